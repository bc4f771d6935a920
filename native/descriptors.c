#include "descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* The kernel lists /proc/self/fd in ascending order from where the last read ended, so closing on the way is safe. */
static bool close_listed(int first) {
    DIR *listing = opendir("/proc/self/fd");
    if (listing == NULL) return false;
    int own = dirfd(listing);

    errno = 0;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        int number;
        if (parse_number(entry->d_name, &number) && number >= first && number != own) close(number);
        errno = 0;
    }
    bool complete = errno == 0;
    closedir(listing);
    return complete;
}

bool close_from(int first) {
    /* Kernels before 5.9 lack close_range, and old container filters refuse what they do not know. */
    return syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0 || close_listed(first);
}

bool parse_number(const char *text, int *number) {
    if (text[0] < '0' || text[0] > '9') return false;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > INT_MAX) return false;
    *number = (int)value;
    return true;
}
