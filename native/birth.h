#ifndef PODBOT_BIRTH_H
#define PODBOT_BIRTH_H

#include <stddef.h>

/*
 * What a warden is told that starts in a container: the engine's own ways (arguments, environment) are shown to
 * everybody who may ask the engine. docs/protocols.md has the format of the file.
 *
 * Looks whether the mounts are those that were meant, sets the environment and installs the system call filter.
 * Returns what is wrong, or NULL.
 */
const char *read_birth(const char *path, char *token, size_t token_length);

#endif
