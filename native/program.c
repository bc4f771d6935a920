#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int become_script(const char *path, char **argv) {
    size_t count = 0;
    while (argv[count] != NULL) count++;

    /* One more than argv: the shell comes first, and the script's path takes the place of argv[0]. */
    char **shell = calloc(count + 3, sizeof *shell);
    if (shell == NULL) return ENOMEM;
    shell[0] = "/bin/sh";
    shell[1] = (char *)path;
    if (count > 1) memcpy(shell + 2, argv + 1, (count - 1) * sizeof *shell);

    execv(shell[0], shell);
    int error = errno;
    free(shell);
    return error;
}

int become(const char *path, char **argv) {
    execv(path, argv);
    return errno == ENOEXEC ? become_script(path, argv) : errno;
}
