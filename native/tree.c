#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"
#include "mount-calls.h"
#include "mounts.h"

enum { MOST_WORDS = 5, LONGEST_NAME = 256 };

/*
 * A file system or directory of Podbot's, in which missing mount points may be made. It stays open, because the kernel
 * gives the number of a mount that is gone to the next one, which may be the host's.
 */
struct own_mount {
    int file;
    uint64_t id;
    struct own_mount *next;
};

static struct {
    int host;  /* the host's root */
    int store; /* a file system in memory, which holds the tree, and the files that cover others */
    int root;  /* the tree's root; -1 until the first step */
    struct own_mount *own;
    struct mounts *mounts; /* what has been mounted, for podbot-enter */
    unsigned covers;
    mode_t umask;
} tree = {.root = -1};

static void write_setting(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) fail_with_error("cannot set up a user namespace");
    close(file);
}

static void map_own_ids(uid_t uid, gid_t gid) {
    char map[64];
    write_setting("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    write_setting("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    write_setting("/proc/self/gid_map", map);
}

/* Root keeps its rights over other users' files, which a user namespace would take away. */
static void leave_mount_namespace(void) {
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (uid == 0 && unshare(CLONE_NEWNS) == 0) return;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) fail_with_error("cannot make a user namespace for the mounts");
    map_own_ids(uid, gid);
}

static int open_directory(int at, const char *path) {
    int directory = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) fail_with_error("cannot open a directory for the mounts");
    return directory;
}

/* While the tree is built, the store is the root, so that no part of the host is covered: not even its /tmp. */
void begin_tree(void) {
    tree.umask = umask(0);
    leave_mount_namespace();
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail_with_error("cannot keep mounts to itself");
    if (mount("podbot", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
        fail_with_error("cannot mount a file system for the mounts");
    }
    if (mkdir("/tmp/host", 0755) != 0 || mkdir("/tmp/tree", 0755) != 0 || chdir("/tmp") != 0 ||
        syscall(SYS_pivot_root, ".", "host") != 0 || chdir("/") != 0) {
        fail_with_error("cannot change to the file system for the mounts");
    }
    tree.host = open_directory(AT_FDCWD, "/host");
    tree.store = open_directory(AT_FDCWD, "/");
    tree.mounts = begin_mounts();
}

static void own(int file) {
    struct own_mount *mount = malloc(sizeof *mount);
    if (mount == NULL) fail("out of memory");
    *mount = (struct own_mount){fcntl(file, F_DUPFD_CLOEXEC, 0), mount_id(file), tree.own};
    if (mount->file < 0) fail_with_error("cannot hold a mount open");
    if (mount->id == 0) fail("cannot tell mounts apart: the kernel is older than 5.8");
    tree.own = mount;
}

static void disown_all(void) {
    while (tree.own != NULL) {
        struct own_mount *mount = tree.own;
        tree.own = mount->next;
        close(mount->file);
        free(mount);
    }
}

static bool is_own(int file) {
    uint64_t id = mount_id(file);
    for (struct own_mount *mount = tree.own; mount != NULL; mount = mount->next) {
        if (mount->id == id) return id != 0;
    }
    return false;
}

static struct stat look_at(int file) {
    struct stat stat;
    if (fstat(file, &stat) != 0) fail_with_error("cannot look at an open file");
    return stat;
}

/* Each place has one spelling: the kernel's in its list of mounts, with which this program's is compared. */
static const char *below_root(const char *path) {
    if (path[0] != '/') fail("the letter names a path that is not absolute");
    if (strlen(path) >= PATH_MAX) fail_at(path, strerror(ENAMETOOLONG));
    if (path[1] == '\0') return ".";
    for (const char *name = path + 1; name != NULL; name = strchr(name, '/')) {
        name += *name == '/' && name != path + 1;
        size_t length = strcspn(name, "/");
        bool is_dots = length <= 2 && strncmp(name, "..", length) == 0;
        if (length >= LONGEST_NAME || is_dots) fail("the letter names a path that cannot be");
    }
    return path + 1;
}

/* Copies the next name of a path. Returns what is behind it; NULL at the end. */
static const char *next_name(const char *path, char name[LONGEST_NAME]) {
    size_t length = strcspn(path, "/");
    if (length == 0 || length >= LONGEST_NAME) return NULL;
    memcpy(name, path, length);
    name[length] = '\0';
    return path + length + (path[length] == '/');
}

/* ENOTDIR from a descriptor that names a link means that the link was on the way. */
static void blame_link(int file) {
    struct stat stat;
    if (errno == ENOTDIR && fstat(file, &stat) == 0) errno = S_ISLNK(stat.st_mode) ? ELOOP : ENOTDIR;
}

/*
 * Opens what lies below a directory, name by name, and never through a link: openat2 could do so at once, but is not
 * allowed within another sandbox. -1 with errno: ELOOP where a link is on the way.
 */
static int open_below(int directory, const char *path) {
    char name[LONGEST_NAME];
    int here = openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (strcmp(path, ".") == 0) return here;
    for (const char *rest = path; here >= 0 && (rest = next_name(rest, name)) != NULL;) {
        int next = openat(here, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) blame_link(here);
        int error = errno;
        close(here);
        errno = error;
        here = next;
    }
    return here;
}

/* Where a name is missing in a directory of the host's, something was moved since the plan. */
static void make(int directory, const char *name, bool as_directory, mode_t mode, const char *target) {
    if (!is_own(directory)) fail_at(target, "it is missing");
    int file = as_directory ? mkdirat(directory, name, mode)
                            : openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file < 0 && errno != EEXIST) fail_at(target, strerror(errno));
    if (file > 0) close(file);
}

/* The directory that holds the last name of a path, which is copied; what is missing on the way is made. */
static int open_parent(const char *target, char name[LONGEST_NAME]) {
    if (tree.root < 0) fail("the letter's first step is not about the root");
    int directory = open_below(tree.root, ".");
    const char *rest = next_name(below_root(target), name);
    if (directory < 0 || rest == NULL || strcmp(target, "/") == 0) fail_at(target, "it has no name");
    while (*rest != '\0') {
        int next = open_below(directory, name);
        if (next < 0 && errno == ENOENT) {
            make(directory, name, true, 0755, target);
            next = open_below(directory, name);
        }
        if (next < 0 || !S_ISDIR(look_at(next).st_mode)) fail_at(target, "on the way to it is something else than directories");
        close(directory);
        directory = next;
        rest = next_name(rest, name);
    }
    return directory;
}

static int open_present(const char *target) {
    if (tree.root < 0) fail("the letter's first step is not about the root");
    return open_below(tree.root, below_root(target));
}

/* What a mount is to lie on. */
static int open_target(const char *target, bool as_directory, mode_t mode) {
    int file = open_present(target);
    if (file < 0 && errno == ENOENT) {
        char name[LONGEST_NAME];
        int parent = open_parent(target, name);
        make(parent, name, as_directory, mode, target);
        file = open_below(parent, name);
        close(parent);
    }
    if (file < 0) fail_at(target, errno == ELOOP ? "on the way to it is a link" : strerror(errno));
    struct stat found = look_at(file);
    if (S_ISLNK(found.st_mode)) fail_at(target, "it is a link");
    if (S_ISDIR(found.st_mode) != as_directory) fail_at(target, as_directory ? "it is no directory" : "it is a directory");
    return file;
}

/* A new root takes the place of the one before: bubblewrap would not find what lies under it. */
static int open_place_of_root(void) {
    if (tree.root >= 0) {
        close(tree.root);
        disown_all();
        if (umount2("/tree", MNT_DETACH) != 0) fail_with_error("cannot change the root");
    }
    return open_directory(tree.store, "tree");
}

static bool is_same(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Attaches a mount that has no place yet. What is mounted onto itself must lie where it was seen. */
static void attach(int mount, const char *target, bool is_owned, const struct stat *source, bool onto_itself) {
    bool is_root = strcmp(target, "/") == 0;
    bool as_directory = S_ISDIR(source->st_mode);
    if (is_root && !as_directory) fail_at(target, "the root is no directory");
    int place = is_root ? open_place_of_root() : open_target(target, as_directory, as_directory ? 0755 : 0444);
    struct stat found = look_at(place);
    if (onto_itself && !is_root && !is_own(place) && !is_same(&found, source)) {
        fail_at(target, "another file or directory has taken its place");
    }
    if (attach_mount(mount, place) != 0) fail_at(target, strerror(errno));
    close(place);
    if (is_root) tree.root = open_directory(tree.store, "tree");
    if (is_owned) own(mount);
    add_mount(tree.mounts, target, source);
}

static bool is_number(const char *text, size_t length) {
    return length > 0 && strspn(text, "0123456789") == length;
}

/* Node knows numbers to 53 bits, and writes them so. */
static bool has_identity(const struct stat *stat, const char *identity) {
    size_t length = strcspn(identity, ":");
    const char *inode = identity + length + (identity[length] == ':');
    if (!is_number(identity, length) || !is_number(inode, strlen(inode))) fail("the letter names no identity");
    return (double)stat->st_dev == strtod(identity, NULL) && (double)stat->st_ino == strtod(inode, NULL);
}

static int open_source(const char *path, const char *identity, struct stat *source) {
    int file = open_below(tree.host, below_root(path));
    if (file < 0) fail_at(path, errno == ELOOP ? "on the way to it is a link" : strerror(errno));
    *source = look_at(file);
    if (!has_identity(source, identity)) fail_at(path, "it is no longer the file or directory that was surveyed");
    if (S_ISLNK(source->st_mode)) fail_at(path, "it is a link now");
    return file;
}

static void bind(const char *access, const char *identity, const char *source, const char *target) {
    struct stat stat;
    bool is_read_only = strcmp(access, "ro") == 0, is_owned = strcmp(access, "own") == 0;
    if (!is_read_only && !is_owned && strcmp(access, "rw") != 0) fail("the letter names an unknown access");
    int file = open_source(source, identity, &stat);
    int mount = clone_mounts(file, true);
    if (mount < 0) fail_with_error("cannot copy mounts");
    uint64_t flags = MOUNT_NO_SUID | MOUNT_NO_DEVICES | (is_read_only ? MOUNT_READ_ONLY : 0);
    if (set_mount_flags(mount, flags, true) != 0) fail_at(target, strerror(errno));
    attach(mount, target, is_owned, &stat, strcmp(source, target) == 0);
    close(mount);
    close(file);
}

static void lay_tmpfs(const char *mode, const char *target) {
    int mount = make_tmpfs(mode);
    if (mount < 0) fail_with_error("cannot make a file system in memory");
    struct stat stat = look_at(mount);
    attach(mount, target, true, &stat, false);
    close(mount);
}

static void write_whole(int file, const char *bytes, size_t length, const char *target) {
    while (length > 0) {
        ssize_t count = write(file, bytes, length);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) fail_at(target, strerror(errno));
        bytes += count;
        length -= (size_t)count;
    }
}

/* Where a mount of the host's lies on a name, or a file has a name elsewhere, a change would be seen there too. */
static void refuse_shared(int file, const char *target) {
    struct stat found = look_at(file);
    if (!is_own(file)) fail_at(target, "it would be made in a directory of the host's");
    if (!S_ISDIR(found.st_mode) && found.st_nlink > 1) fail_at(target, "it has another name too");
}

static int open_own_parent(const char *target, char name[LONGEST_NAME]) {
    int parent = open_parent(target, name);
    if (!is_own(parent)) fail_at(target, "it would be made in a directory of the host's");
    return parent;
}

/* An agent may have left something else in a directory that Podbot keeps for it. */
static void write_file(mode_t mode, const char *target, const char *bytes, size_t length) {
    char name[LONGEST_NAME];
    int parent = open_own_parent(target, name);
    int file = openat(parent, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
    if (file < 0) fail_at(target, strerror(errno));
    if (!S_ISREG(look_at(file).st_mode)) fail_at(target, "it is no file");
    refuse_shared(file, target);
    if (ftruncate(file, 0) != 0 || fchmod(file, mode) != 0) fail_at(target, strerror(errno));
    write_whole(file, bytes, length, target);
    close(file);
    close(parent);
}

static void cover(mode_t mode, const char *target, const char *bytes, size_t length) {
    char name[32];
    snprintf(name, sizeof name, "cover-%u", tree.covers++);
    int file = openat(tree.store, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0) fail_with_error("cannot make a file for the mounts");
    write_whole(file, bytes, length, target);
    int place = openat(tree.store, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int mount = place < 0 ? -1 : clone_mounts(place, false);
    if (mount < 0 || set_mount_flags(mount, MOUNT_READ_ONLY | MOUNT_NO_SUID | MOUNT_NO_DEVICES, false) != 0) {
        fail_with_error("cannot cover a file");
    }
    struct stat stat = look_at(place);
    attach(mount, target, false, &stat, false);
    /* Without a name, it is known for a mask by a sandbox within this one. */
    unlinkat(tree.store, name, 0);
    close(mount);
    close(place);
    close(file);
}

/* What a link leads to is protected elsewhere; mounted onto itself, the link can be neither removed nor replaced. */
static void hold(const char *identity, const char *target) {
    int source = open_below(tree.host, below_root(target)), place = open_present(target);
    if (source < 0 || place < 0) fail_at(target, strerror(errno));
    struct stat stat = look_at(source), found = look_at(place);
    if (!S_ISLNK(stat.st_mode) || !has_identity(&stat, identity) || !is_same(&stat, &found)) {
        fail_at(target, "it is no longer the link that was surveyed");
    }
    int mount = clone_mounts(source, false);
    if (mount < 0 || set_mount_flags(mount, MOUNT_READ_ONLY | MOUNT_NO_SUID | MOUNT_NO_DEVICES, false) != 0 ||
        attach_mount(mount, place) != 0) {
        fail_at(target, strerror(errno));
    }
    add_mount(tree.mounts, target, &stat);
    close(mount);
    close(place);
    close(source);
}

static void make_link(const char *to, const char *target) {
    char name[LONGEST_NAME], found[PATH_MAX];
    int parent = open_own_parent(target, name);
    if (symlinkat(to, parent, name) != 0) {
        ssize_t length = errno == EEXIST ? readlinkat(parent, name, found, sizeof found) : -1;
        if (length < 0 || (size_t)length != strlen(to) || memcmp(found, to, (size_t)length) != 0) {
            fail_at(target, "it cannot be made a link");
        }
    }
    close(parent);
}

/* The mode of what a descriptor only names can be changed through /proc alone. */
static void set_mode(mode_t mode, const char *target) {
    int file = open_present(target);
    if (file < 0 || !is_own(file)) fail_at(target, "it is not Podbot's own");
    if (S_ISLNK(look_at(file).st_mode)) fail_at(target, "it is a link");
    refuse_shared(file, target);
    char path[64];
    snprintf(path, sizeof path, "/host/proc/self/fd/%d", file);
    if (chmod(path, mode) != 0) fail_at(target, strerror(errno));
    close(file);
}

static void seal(const char *target) {
    int file = open_present(target);
    if (file < 0 || set_mount_flags(file, MOUNT_READ_ONLY, false) != 0) fail_at(target, strerror(errno));
    close(file);
}

static void prepare_point(const char *kind, const char *target) {
    bool as_directory = strcmp(kind, "directory") == 0;
    if (!as_directory && strcmp(kind, "file") != 0) fail("the letter names an unknown kind of point");
    close(open_target(target, as_directory, as_directory ? 0755 : 0444));
    expect_any_below(tree.mounts, target);
}

static mode_t mode_of(const char *text) {
    size_t length = strlen(text);
    if (length == 0 || length > 5 || strspn(text, "01234567") != length) fail("the letter names no mode");
    return (mode_t)strtoul(text, NULL, 8) & 07777;
}

/* Splits off as many words as a step of this kind has; returns what is behind them. */
static const char *split(const char *bytes, const char *end, const char *words[], size_t count) {
    for (size_t at = 0; at < count; at++) {
        const char *stop = bytes < end ? memchr(bytes, '\0', (size_t)(end - bytes)) : NULL;
        if (stop == NULL) fail("the letter holds a step without its words");
        words[at] = bytes;
        bytes = stop + 1;
    }
    return bytes;
}

void take_step(const char *bytes, size_t length) {
    const char *end = bytes + length, *words[MOST_WORDS];
    const char *rest = split(bytes, end, words, 1);
    const char *kind = words[0];
    static const struct {
        const char *kind;
        size_t words;
        bool has_content;
    } steps[] = {{"bind", 4, false}, {"tmpfs", 2, false}, {"directory", 2, false}, {"file", 2, true}, {"cover", 2, true},
                 {"link", 2, false}, {"hold", 2, false},  {"mode", 2, false},      {"seal", 1, false}, {"point", 2, false}};
    size_t at = 0, count = sizeof steps / sizeof *steps;
    while (at < count && strcmp(steps[at].kind, kind) != 0) at++;
    if (at == count) fail("the letter holds an unknown step");
    rest = split(rest, end, words, steps[at].words);
    if (!steps[at].has_content && rest != end) fail("the letter holds a step with too many words");

    size_t content = (size_t)(end - rest);
    if (strcmp(kind, "bind") == 0) bind(words[0], words[1], words[2], words[3]);
    else if (strcmp(kind, "tmpfs") == 0) lay_tmpfs(words[0], words[1]);
    else if (strcmp(kind, "directory") == 0) close(open_target(words[1], true, mode_of(words[0])));
    else if (strcmp(kind, "file") == 0) write_file(mode_of(words[0]), words[1], rest, content);
    else if (strcmp(kind, "cover") == 0) cover(mode_of(words[0]), words[1], rest, content);
    else if (strcmp(kind, "link") == 0) make_link(words[0], words[1]);
    else if (strcmp(kind, "hold") == 0) hold(words[0], words[1]);
    else if (strcmp(kind, "mode") == 0) set_mode(mode_of(words[0]), words[1]);
    else if (strcmp(kind, "seal") == 0) seal(words[0]);
    else prepare_point(words[0], words[1]);
}

char *finish_tree(size_t *length) {
    if (tree.root < 0) fail("the letter's steps mount nothing");
    const char *lost = NULL;
    char *list = list_mounts(tree.mounts, "/host/proc/self/mountinfo", "/tree", length, &lost);
    if (lost != NULL) fail_at(lost, "its mount is no longer there");
    if (list == NULL) fail_with_error("cannot list the mounts");
    disown_all();
    close(tree.root);
    close(tree.store);
    /* The other way round: the host's root is the root again, with the store on its /tmp. */
    if (fchdir(tree.host) != 0 || syscall(SYS_pivot_root, ".", "tmp") != 0 || chdir("/") != 0) {
        fail_with_error("cannot change back from the file system for the mounts");
    }
    close(tree.host);
    umask(tree.umask);
    return list;
}
