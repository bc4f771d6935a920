/*
 * The system calls that build a tree of mounts by descriptor (Linux 5.12 and later). Neither musl nor older C libraries
 * have them, and their numbers are the same on every machine that Podbot runs on.
 */
#ifndef PODBOT_MOUNT_CALLS_H
#define PODBOT_MOUNT_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CALL_OPEN_TREE = 428,
    CALL_MOVE_MOUNT = 429,
    CALL_FSOPEN = 430,
    CALL_FSCONFIG = 431,
    CALL_FSMOUNT = 432,
    CALL_MOUNT_SETATTR = 442,
};

/* From <linux/mount.h> and <linux/stat.h>, which may be too old as well. */
enum {
    TREE_CLONE = 1,
    WHOLE_TREE = 0x8000, /* AT_RECURSIVE */
    MOVE_FROM_EMPTY = 0x04,
    MOVE_TO_EMPTY = 0x40,
    CONFIG_STRING = 1,
    CONFIG_CREATE = 6,
    MOUNT_READ_ONLY = 1,
    MOUNT_NO_SUID = 2,
    MOUNT_NO_DEVICES = 4,
    ASK_MOUNT_ID = 0x1000,
};

struct mount_attributes {
    uint64_t set, clear, propagation, user_namespace;
};

static inline int clone_mounts(int file, int whole) {
    int flags = TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | (whole ? WHOLE_TREE : 0);
    return (int)syscall(CALL_OPEN_TREE, file, "", flags);
}

static inline int set_mount_flags(int mount, uint64_t set, int whole) {
    struct mount_attributes attributes = {.set = set, .propagation = MS_PRIVATE};
    return (int)syscall(CALL_MOUNT_SETATTR, mount, "", AT_EMPTY_PATH | (whole ? WHOLE_TREE : 0), &attributes,
                        sizeof attributes);
}

static inline int attach_mount(int mount, int target) {
    return (int)syscall(CALL_MOVE_MOUNT, mount, "", target, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY);
}

/* A new file system in memory; -1 with errno if there is none. */
static inline int make_tmpfs(const char *mode) {
    int context = (int)syscall(CALL_FSOPEN, "tmpfs", 1), mount = -1;
    if (context < 0) return -1;
    if (syscall(CALL_FSCONFIG, context, CONFIG_STRING, "mode", mode, 0) == 0 &&
        syscall(CALL_FSCONFIG, context, CONFIG_CREATE, NULL, NULL, 0) == 0) {
        mount = (int)syscall(CALL_FSMOUNT, context, 1, MOUNT_NO_SUID | MOUNT_NO_DEVICES);
    }
    int error = errno;
    close(context);
    errno = error;
    return mount;
}

/* The mount that an open file was reached through; 0 if the kernel does not say. */
static inline uint64_t mount_id(int file) {
    uint64_t answer[32] = {0}; /* struct statx: the mask of what was answered comes first, the mount at byte 144 */
    if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, ASK_MOUNT_ID, answer) != 0) return 0;
    return ((uint32_t)answer[0] & ASK_MOUNT_ID) != 0 ? answer[18] : 0;
}

#endif
