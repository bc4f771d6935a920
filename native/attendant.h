#ifndef PODBOT_ATTENDANT_H
#define PODBOT_ATTENDANT_H

#include <sys/types.h>

/* Carries out what is asked for on one connection, for a warden that has just forked this process. */
_Noreturn void attend(int connection, pid_t warden);

#endif
