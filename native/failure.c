#include "failure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void fail(const char *what) {
    dprintf(STDERR_FILENO, "podbot-launch: %s\n", what);
    exit(FAILED);
}

_Noreturn void fail_with_error(const char *what) {
    dprintf(STDERR_FILENO, "podbot-launch: %s: %s\n", what, strerror(errno));
    exit(FAILED);
}

_Noreturn void fail_at(const char *path, const char *why) {
    dprintf(STDERR_FILENO, "podbot-launch: changed: %s: %s\n", path, why);
    exit(FAILED);
}
