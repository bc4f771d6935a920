#ifndef PODBOT_MOMENT_H
#define PODBOT_MOMENT_H

#include <time.h>

/* Milliseconds since some moment in the past; no clock change moves it. */
static inline long long moment(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

#endif
