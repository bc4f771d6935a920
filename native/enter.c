/*
 * podbot-enter [--isolate | --isolate-abstract] [--mounts FD [--directory PATH]] [--doors FD] STDERR_FD -- COMMAND [ARGUMENT…] — the first program
 * inside the wall. It puts the caller's stderr in place, drops what bubblewrap needed and the command must not have,
 * and becomes the command. --isolate keeps signals inside as well as the kernel can; --isolate-abstract also keeps
 * abstract sockets apart, or fails. --mounts compares the mounts here with the list at FD, before anything else; where
 * they differ, nothing begins; the command begins in the directory that was found at --directory. --doors waits at FD for a byte, which says that the box has its doors; without it,
 * nothing begins.
 *
 * Until then, descriptor 2 is where complaints go. STDERR_FD 2 means that it is the caller's stderr already, as in
 * a script that a person pastes into a shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptors.h"
#include "mounts.h"
#include "program.h"
#include "signals.h"

enum { COMPLAINTS = 3, SIGN_OF_LIFE = 3, FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* The compiler's kernel headers may be older than these. */
enum {
    CREATE_RULESET = 444,
    RESTRICT_SELF = 446,
    ASK_VERSION = 1,
    SCOPE_ABSTRACT_UNIX_SOCKET = 1,
    SCOPE_SIGNAL = 2,
    FIRST_VERSION_WITH_SCOPES = 6,
};

struct ruleset {
    uint64_t filesystem, network, scoped;
};

static _Noreturn void fail(int complaints, const char *what) {
    dprintf(complaints, "podbot-enter: %s\n", what);
    exit(FAILED);
}

/* Whoever opens them closes the other end when it ends, whatever became of it. */
static void wait_for_doors(int doors) {
    char byte;
    ssize_t count;
    while ((count = read(doors, &byte, 1)) < 0 && errno == EINTR) continue;
    if (count != 1) fail(STDERR_FILENO, "the box has no doors");
}

static void refuse_other_mounts(int list, const char *directory) {
    const char *place, *wrong = compare_mounts(list, directory, &place);
    if (wrong == NULL) return;
    dprintf(STDERR_FILENO, "podbot-enter: changed: %s: %s\n", place, wrong);
    exit(FAILED);
}

/* As the kernel says it of the first process of our namespace: it sleeps when it has nothing left to do but wait. */
static bool is_init_asleep(void) {
    char stat[256];
    int file = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    ssize_t length = read(file, stat, sizeof stat - 1);
    close(file);
    if (length <= 0) return true;
    stat[length] = '\0';
    const char *end = strrchr(stat, ')');
    return end == NULL || (end[1] == ' ' && end[2] == 'S');
}

/*
 * Ends here, if bubblewrap was killed before it could ask for us to die with it. From now on it has asked: our own
 * parent has, too, once it sleeps.
 */
static void refuse_to_be_an_orphan(void) {
    struct pollfd bwrap = {.fd = SIGN_OF_LIFE, .events = POLLIN};
    if (fcntl(SIGN_OF_LIFE, F_GETFD) < 0) return;
    for (int tries = 0; getpid() != 1 && tries < 100000 && !is_init_asleep(); tries++) sched_yield();
    if (poll(&bwrap, 1, 0) != 0) exit(FAILED);
}

/* After this, descriptor 3 takes the complaints until the command starts, and nothing above it is open. */
static void put_stderr_in_place(int stderr_fd) {
    if (fcntl(stderr_fd, F_GETFD) < 0) fail(STDERR_FILENO, "STDERR_FD is not open");
    int complaints = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, COMPLAINTS);
    if (complaints < 0) fail(STDERR_FILENO, "cannot keep the complaints");
    if (stderr_fd != STDERR_FILENO && dup2(stderr_fd, STDERR_FILENO) < 0) fail(complaints, "cannot set stderr");
    if (complaints != COMPLAINTS && dup3(complaints, COMPLAINTS, O_CLOEXEC) < 0) fail(complaints, "cannot set stderr");
    if (!close_from(COMPLAINTS + 1)) fail(COMPLAINTS, "cannot close inherited descriptors");
}

/* From here on, an exit status is the command's own: whoever reads the complaints can tell it from the wall's. */
static void say_ready(int stderr_fd) {
    if (stderr_fd != STDERR_FILENO) dprintf(COMPLAINTS, "podbot-enter: ready\n");
}

static _Noreturn void fail_landlock(int error) {
    const char *name = error == ENOSYS       ? "ENOSYS"
                       : error == EOPNOTSUPP ? "EOPNOTSUPP"
                       : error == EPERM      ? "EPERM"
                       : error == EINVAL     ? "EINVAL"
                       : error == E2BIG      ? "E2BIG"
                                             : strerror(error);
    dprintf(COMPLAINTS, "podbot-enter: landlock: %s\n", name);
    exit(FAILED);
}

/* Returns false, with errno, where the kernel knows no scopes. */
static bool restrict_scope(uint64_t scope) {
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 0) return false;
    errno = EOPNOTSUPP;
    if (version < FIRST_VERSION_WITH_SCOPES) return false;

    struct ruleset rules = {.scoped = scope};
    long ruleset = syscall(CREATE_RULESET, &rules, sizeof rules, 0);
    if (ruleset < 0) return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    if (syscall(RESTRICT_SELF, ruleset, 0) != 0) return false;
    close((int)ruleset);
    return true;
}

/*
 * A process group reaches across the wall: kill(0, …) would signal whoever started us. Landlock stops that; where
 * there is no terminal to share, a group of our own does so too, on any kernel.
 */
static void isolate_signals(void) {
    int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) setpgid(0, 0);
    else close(terminal);
    restrict_scope(SCOPE_SIGNAL);
}

/* Abstract sockets have no path that a mount could hide: with the host's network, only Landlock stops them. */
static void isolate_abstract_sockets(void) {
    if (!restrict_scope(SCOPE_ABSTRACT_UNIX_SOCKET)) fail_landlock(errno);
}

static bool take_number(char ***word, const char *option, int *number) {
    char **here = *word;
    if (*here == NULL || strcmp(*here, option) != 0 || here[1] == NULL || !parse_number(here[1], number)) return false;
    *word += 2;
    return true;
}

int main(int argc, char **argv) {
    char **word = argv + (argc > 0);
    bool isolate_abstract = *word != NULL && strcmp(*word, "--isolate-abstract") == 0;
    bool isolate = isolate_abstract || (*word != NULL && strcmp(*word, "--isolate") == 0);
    if (isolate) word++;
    int mounts, doors, stderr_fd;
    bool has_mounts = take_number(&word, "--mounts", &mounts);
    const char *directory = NULL;
    if (has_mounts && word[0] != NULL && strcmp(word[0], "--directory") == 0 && word[1] != NULL) {
        directory = word[1];
        word += 2;
    }
    bool has_doors = take_number(&word, "--doors", &doors);

    if (word[0] == NULL || !parse_number(word[0], &stderr_fd) || stderr_fd < STDERR_FILENO || word[1] == NULL ||
        strcmp(word[1], "--") != 0 || word[2] == NULL) {
        fail(STDERR_FILENO, "usage: podbot-enter [--isolate | --isolate-abstract] [--mounts FD [--directory PATH]] [--doors FD] "
                            "STDERR_FD -- COMMAND [ARGUMENT...]");
    }
    if (has_mounts) refuse_other_mounts(mounts, directory);
    if (has_doors) wait_for_doors(doors);
    if (stderr_fd != STDERR_FILENO) refuse_to_be_an_orphan();
    put_stderr_in_place(stderr_fd);
    reset_signals();
    if (isolate) isolate_signals();
    if (isolate_abstract) isolate_abstract_sockets();
    say_ready(stderr_fd);

    int error = become_command(word + 2);
    dprintf(COMPLAINTS, "podbot-enter: exec: %d\n", error);
    return error == ENOENT || error == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE;
}
