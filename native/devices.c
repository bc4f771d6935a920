#include "devices.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* As the kernel has them; its headers are not those of every C library. */
enum { WHOLE_TREE = 0x8000, READ_ONLY = 1, MEMORY_DEVICES = 1 };

struct attributes {
    uint64_t set, clear, propagation, user_namespace;
};

/* What is read-only here must not become so on the host. */
static void leave_mounts(void) {
    if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* Kernels before 5.12 cannot, nor can this process without a namespace of its own. */
static bool make_read_only(void) {
    const struct attributes attributes = {.set = READ_ONLY};
    return syscall(SYS_mount_setattr, AT_FDCWD, "/dev", WHOLE_TREE, &attributes, sizeof attributes) == 0;
}

/* Opening has no effects on these. */
static bool is_harmless(int descriptor, const struct stat *stat) {
    return S_ISCHR(stat->st_mode) && (isatty(descriptor) || major(stat->st_rdev) == MEMORY_DEVICES);
}

/* A descriptor keeps the mount by which it was opened. Where it cannot be opened anew, this user does not own it. */
static void open_anew(int descriptor) {
    struct stat before, after;
    char link[32], path[PATH_MAX];
    if (fstat(descriptor, &before) != 0 || !is_harmless(descriptor, &before)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || strncmp(path, "/dev/", 5) != 0) return;
    path[length] = '\0';
    int flags = fcntl(descriptor, F_GETFL);
    int opened = open(path, (flags & (O_ACCMODE | O_APPEND)) | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) return;
    bool is_same = fstat(opened, &after) == 0 && after.st_dev == before.st_dev && after.st_ino == before.st_ino;
    if (is_same && fcntl(opened, F_SETFL, flags) == 0) dup2(opened, descriptor);
    close(opened);
}

void protect_devices(const int *descriptors, size_t count, bool has_own_mounts) {
    if (!has_own_mounts) leave_mounts();
    if (!make_read_only()) return;
    for (size_t at = 0; at < count; at++) open_anew(descriptors[at]);
}
