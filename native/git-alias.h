#ifndef PODBOT_GIT_ALIAS_H
#define PODBOT_GIT_ALIAS_H

#include <stdbool.h>

/*
 * Asks the real git what `alias.NAME` stands for, with the options of the call that precede the command. NULL if it
 * is no alias.
 */
char *ask_alias(const char *real, char *const *options, const char *name);

/* Splits a plain alias into words as git does, in place. NULL if git would refuse it. */
char **split_alias(char *text);

#endif
