#ifndef PODBOT_GIT_CALLER_H
#define PODBOT_GIT_CALLER_H

#include <limits.h>
#include <stdbool.h>

#include "table.h"

/* The path of the program that a process (a number, or "self") runs. False if it is not to be had. */
bool executable_of(const char *process, char path[PATH_MAX]);

/*
 * Whether git itself made this call: stash runs `git reset --hard`, rebase and submodule run `git checkout`, gc
 * runs `git prune`. They find the shim, because it lies over the git of git's own directory too.
 */
bool called_by_git(const struct table *table);

#endif
