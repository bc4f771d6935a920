/*
 * podbot-reclaim DIRECTORY — gives everything below a directory to whoever runs this. Run as root in a container whose
 * root is the owner outside: what belongs to others there could not even be removed outside. Links are not followed,
 * and what is mounted read-only stays as it is.
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 4000, MOST_TRIES = 1000, PAUSE_NS = 2000000, FAILED = 125 };

static bool failed;

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

static void take(int directory, const char *name, const struct stat *stat) {
    if (stat->st_uid == getuid() && stat->st_gid == getgid()) return;
    if (fchownat(directory, name, getuid(), getgid(), AT_SYMLINK_NOFOLLOW) != 0 && errno != EROFS && errno != ENOENT) {
        failed = true;
    }
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
    failed = !be_alone();
    take_all(directory, 0);
    return failed ? 1 : 0;
}
