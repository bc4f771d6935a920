/*
 * podbot-reclaim DIRECTORY — gives what other users of the container have left below a directory to the user who runs
 * this: root in a container whose root is the owner outside. There, the owner could not even remove it. Files of the
 * host's other users and groups stay as they are, and so does what is mounted read-only. Links are not followed.
 *
 * Whatever else runs is killed first, so that nobody changes hands behind our back: all but the first process, and the
 * attendant that started this one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 4000, MOST_TRIES = 1000, PAUSE_NS = 2000000, FAILED = 125 };

/* What chown leaves as it is. */
#define KEEP ((uid_t)-1)

static bool failed;
static uid_t overflow_uid;
static gid_t overflow_gid;

static bool is_name(const char *name) {
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Not one that is dead already and only has not been buried. */
static bool is_running(int number) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = '\0';
    const char *state = strrchr(text, ')');
    return state != NULL && strncmp(state, ") Z", 3) != 0 && strncmp(state, ") X", 3) != 0;
}

/* Whether there was anybody to be killed. */
static bool kill_others(void) {
    DIR *listing = opendir("/proc");
    if (listing == NULL) return false;
    bool found = false;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        int number = atoi(entry->d_name);
        if (number <= 1 || number == getpid() || number == getppid() || !is_running(number)) continue;
        kill(number, SIGKILL);
        found = true;
    }
    closedir(listing);
    return found;
}

/* Whoever is killed ends the system call that he is in, and may have forked meanwhile: so until nobody is left. */
static bool be_alone(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int tries = 0;
    while (kill_others() && ++tries < MOST_TRIES) nanosleep(&pause, NULL);
    return tries < MOST_TRIES;
}

/*
 * The kernel shows an id that the container's user namespace does not know as the overflow id ("nobody"), which the
 * namespace may know, too. So the kernel is asked for a change that changes nothing: it refuses that for unknown ids.
 */
static bool is_known_uid(int directory, const char *name, uid_t uid) {
    return uid != overflow_uid || fchownat(directory, name, uid, KEEP, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_known_gid(int directory, const char *name, gid_t gid) {
    return gid != overflow_gid || fchownat(directory, name, KEEP, gid, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Another user inside has left a file in a directory whose group is the host's, and the file has that group by the
 * directory's set-group-ID bit. Root may not take such a file, but its owner may give it to a group of his.
 */
static bool leave_group(int directory, const char *name, uid_t owner) {
    int file = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return false;
    setfsuid(owner);
    bool left = fchownat(file, "", KEEP, getgid(), AT_EMPTY_PATH) == 0;
    setfsuid(getuid());
    close(file);
    return left;
}

/* Ids that the namespace does not know are the host's: such files were there before, and stay as they are. */
static void take(int directory, const char *name, const struct stat *stat) {
    bool others = stat->st_uid != getuid() && is_known_uid(directory, name, stat->st_uid);
    bool others_group = stat->st_gid != getgid() && is_known_gid(directory, name, stat->st_gid);
    if (!others && !others_group) return;
    uid_t uid = others ? getuid() : KEEP;
    gid_t gid = others_group ? getgid() : KEEP;
    if (fchownat(directory, name, uid, gid, AT_SYMLINK_NOFOLLOW) == 0 || errno == EROFS || errno == ENOENT) return;
    bool left = others && !others_group && errno == EPERM && leave_group(directory, name, stat->st_uid);
    if (!left || fchownat(directory, name, uid, KEEP, AT_SYMLINK_NOFOLLOW) != 0) failed = true;
}

/* Depth first, one descriptor a level: a tree that is deeper than that is left to its owner. */
static void take_all(int directory, int depth) {
    DIR *listing = directory < 0 ? NULL : fdopendir(directory);
    if (listing == NULL) {
        if (directory >= 0) close(directory);
        failed = true;
        return;
    }
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        struct stat stat;
        if (!is_name(entry->d_name) || fstatat(directory, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0) continue;
        take(directory, entry->d_name, &stat);
        if (!S_ISDIR(stat.st_mode)) continue;
        if (depth == DEEPEST) failed = true;
        else take_all(openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), depth + 1);
    }
    closedir(listing);
}

static unsigned read_number(const char *path, unsigned otherwise) {
    char text[16];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (length <= 0) return otherwise;
    text[length] = '\0';
    return (unsigned)strtoul(text, NULL, 10);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: podbot-reclaim DIRECTORY\n", stderr);
        return FAILED;
    }
    int directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        fprintf(stderr, "podbot-reclaim: %s: %s\n", argv[1], strerror(errno));
        return FAILED;
    }
    overflow_uid = read_number("/proc/sys/kernel/overflowuid", 65534);
    overflow_gid = read_number("/proc/sys/kernel/overflowgid", 65534);
    failed = !be_alone();
    take_all(directory, 0);
    return failed ? 1 : 0;
}
