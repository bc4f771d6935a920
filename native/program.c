#include "program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
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

/* Tries one directory of PATH; an empty one means the working directory. Returns the error number. */
static int become_in(const char *directory, size_t length, char **command) {
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s/%s", length == 0 ? 1 : (int)length, length == 0 ? "." : directory,
                        command[0]);
    if (size < 0 || (size_t)size >= sizeof path) return ENOENT;
    int error = become(path, command);
    /* A directory that may not even be searched says nothing about the command. */
    return error == EACCES && access(path, F_OK) != 0 ? ENOENT : error;
}

int become_command(char **command) {
    if (command[0][0] == '\0') return ENOENT;
    if (strchr(command[0], '/') != NULL) return become(command[0], command);

    const char *path = getenv("PATH");
    if (path == NULL) path = "/bin:/usr/bin";
    int found = ENOENT;
    for (;;) {
        size_t length = strcspn(path, ":");
        if (length > INT_MAX) return ENAMETOOLONG;
        int error = become_in(path, length, command);
        if (error == EACCES) found = EACCES;
        else if (error != ENOENT && error != ENOTDIR) return error;
        if (path[length] == '\0') return found;
        path += length + 1;
    }
}
