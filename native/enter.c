/*
 * podbot-enter [--isolate | --isolate-abstract] STDERR_FD -- COMMAND [ARGUMENT…] — the first program inside the wall.
 * It puts the caller's stderr in place, drops what bubblewrap needed and the command must not have, and becomes the
 * command. --isolate keeps signals inside as well as the kernel can; --isolate-abstract also keeps abstract sockets
 * apart, or fails.
 *
 * Until then, descriptor 2 is where complaints go. STDERR_FD 2 means that it is the caller's stderr already, as in
 * a script that a person pastes into a shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptors.h"
#include "program.h"

enum { COMPLAINTS = 3, SIGNALS = 64, FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

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

/*
 * By the system call itself, because every libc keeps some numbers for itself and refuses to set them. The kernel's
 * own structure has no more than these four words, and all of them are zero for the default. It refuses two signals
 * that are always at their default.
 */
static void reset_signals(void) {
    const unsigned long by_default[4] = {0};
    for (int number = 1; number <= SIGNALS; number++) syscall(SYS_rt_sigaction, number, by_default, NULL, SIGNALS / 8);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
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

/* Tries one directory of PATH; an empty one means the working directory. Returns the error number. */
static int become_in(const char *directory, size_t length, char **command) {
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s/%s", length == 0 ? 1 : (int)length, length == 0 ? "." : directory,
                        command[0]);
    if (size < 0 || (size_t)size >= sizeof path) return ENOENT;
    int error = become(path, command);
    /* A directory that may not even be searched says nothing about the command. */
    return error == EACCES && access(path, F_OK) != 0 ? ENOENT : error;
}

/* Searches as shells do. Returns only on failure, with the error number. */
static int become_command(char **command) {
    if (command[0][0] == '\0') return ENOENT;
    if (strchr(command[0], '/') != NULL) return become(command[0], command);

    const char *path = getenv("PATH");
    if (path == NULL) path = "/bin:/usr/bin";
    int found = ENOENT;
    for (;;) {
        size_t length = strcspn(path, ":");
        if (length > INT_MAX) return ENAMETOOLONG;
        int error = become_in(path, length, command);
        if (error == EACCES) found = EACCES;
        else if (error != ENOENT && error != ENOTDIR) return error;
        if (path[length] == '\0') return found;
        path += length + 1;
    }
}

int main(int argc, char **argv) {
    char **word = argv + (argc > 0);
    bool isolate_abstract = *word != NULL && strcmp(*word, "--isolate-abstract") == 0;
    bool isolate = isolate_abstract || (*word != NULL && strcmp(*word, "--isolate") == 0);
    if (isolate) word++;

    int stderr_fd;
    if (word[0] == NULL || !parse_number(word[0], &stderr_fd) || stderr_fd < STDERR_FILENO || word[1] == NULL ||
        strcmp(word[1], "--") != 0 || word[2] == NULL) {
        fail(STDERR_FILENO, "usage: podbot-enter [--isolate | --isolate-abstract] STDERR_FD -- COMMAND [ARGUMENT...]");
    }
    put_stderr_in_place(stderr_fd);
    reset_signals();
    if (isolate) isolate_signals();
    if (isolate_abstract) isolate_abstract_sockets();
    say_ready(stderr_fd);

    int error = become_command(word + 2);
    dprintf(COMPLAINTS, "podbot-enter: exec: %d\n", error);
    return error == ENOENT || error == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE;
}
