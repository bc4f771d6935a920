#ifndef PODBOT_INFO_H
#define PODBOT_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What bubblewrap says at --info-fd of a box that it builds: its first process, and the inode of its network. */
struct info {
    int pid;
    uint64_t network;
};

/* Reads that of `length` bytes, behind which there must be a NUL. False where it does not say both. */
bool parse_info(const char *bytes, size_t length, struct info *info);

#endif
