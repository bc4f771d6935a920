#include "git-caller.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "words.h"

static const char GONE[] = " (deleted)";

bool executable_of(const char *process, char path[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%s/exe", process);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0 || length >= PATH_MAX - 1) return false;

    /* The kernel says so of a mounted file whose original has been removed, as after an upgrade. */
    size_t gone = sizeof GONE - 1, end = (size_t)length;
    if (end > gone && memcmp(path + end - gone, GONE, gone) == 0) end -= gone;
    path[end] = '\0';
    return true;
}

static bool in_git_core(const char *path) { return path[0] == '/' && strstr(path, "/git-core/") != NULL; }

static bool is_git(const struct table *table, pid_t process) {
    char number[16], path[PATH_MAX];
    snprintf(number, sizeof number, "%d", (int)process);
    if (!executable_of(number, path)) return false;
    if (in_git_core(path)) return true;
    for (size_t i = 0; i < table->count; i++) {
        if (same(table->records[i].kind, "git") && same(table->records[i].real, path)) return true;
    }
    return false;
}

/* Reads the beginning of a file in /proc, NUL-terminated. */
static bool read_about(pid_t process, const char *name, char *buffer, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read_all(file, buffer, size - 1);
    close(file);
    if (length <= 0) return false;
    buffer[length] = '\0';
    return true;
}

/* Part of git is shell scripts, run as `/bin/sh /usr/lib/git-core/git-…`; their subshells look the same. */
static bool runs_git_script(pid_t process) {
    char line[PATH_MAX] = {0};
    if (!read_about(process, "cmdline", line, sizeof line)) return false;
    size_t interpreter = strlen(line);
    return interpreter + 1 < sizeof line && in_git_core(line + interpreter + 1);
}

/* Returns 0, which no process has, if there is none to be seen. */
static pid_t parent_of(pid_t process) {
    char line[512];
    if (!read_about(process, "stat", line, sizeof line)) return 0;
    /* "pid (name) state parent …", where the name may hold anything, parentheses too. */
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && strlen(name_end) > 4 ? atoi(name_end + 4) : 0;
}

bool called_by_git(const struct table *table) {
    pid_t parent = getppid();
    if (is_git(table, parent) || runs_git_script(parent)) return true;
    /* A hook, which the filesystem rules keep as the owner wrote it. What else git is told to run, by `rebase -x` or
       an alias, passes here too: its text has been judged before git saw it. */
    return is_git(table, parent_of(parent));
}
