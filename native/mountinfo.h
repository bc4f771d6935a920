#ifndef PODBOT_MOUNTINFO_H
#define PODBOT_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>

/* Words that end in NULs, one after the other. */
struct part {
    const char *bytes;
    size_t length;
};

/* Takes a word that ends before a NUL. NULL if there is none. */
const char *take_word(const char **at, const char *end);

/* The kernel's list of this process's mounts; NULL if it cannot be read. */
char *load_mounts(void);

/* The n-th word of a line, counted from 0; never NULL. It ends at a space or the line's end. */
const char *word_of(const char *line, int n);

/* The kernel writes some bytes of a path as a backslash and three octal digits. False if it does not fit. */
bool read_path(const char *written, char *path, size_t room);

/* "ro" or "rw" as the mount on top at a path has it; "no" if there is no mount just there. */
const char *mount_at(const char *mounts, const char *path);

/* Whether a path leads to this DEVICE:INODE, and is not a link. */
bool is_identity(const char *path, const char *identity);

#endif
