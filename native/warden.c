/*
 * podbot-warden SOCKET [BIRTH] — the first process of a session's box. It starts commands for the keeper, which
 * listens at SOCKET; docs/protocols.md has the whole of it. Descriptor 0 brings a token, by which the keeper knows it;
 * in a container the file BIRTH does, with the environment and the system call filter.
 *
 * It dials and keeps one connection parked. When something comes on it, an attendant takes the connection over, and
 * the warden dials the next. It buries whoever dies without a parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attendant.h"
#include "birth.h"
#include "command.h"
#include "descriptors.h"
#include "moment.h"

enum {
    TOKEN = 32,
    SHORTEST_DELAY_MS = 10,
    LONGEST_DELAY_MS = 1000,
    GRACE_MS = 10000,
    ORPHAN_MS = 5000,
    FAILED = 125,
    TERMINATED = 128 + SIGTERM,
};

/* An attendant, and the connection that it took over. */
struct attending {
    pid_t process;
    int connection; /* held here as well by a mortal warden; else -1 */
};

struct warden {
    struct sockaddr_un address;
    char hello[8 + TOKEN];
    int signals;
    int parked; /* -1 while there is none */
    int delay;  /* before the next try, if this one fails */
    long long next_try;
    size_t attendants;     /* how many there are */
    struct attending *attending;
    bool mortal;           /* whether it ends when its keeper is dead, for nobody else would end it */
    long long alone_since; /* when the keeper was first found dead; 0 while it lives */
};

static _Noreturn void fail(const char *what) {
    dprintf(STDERR_FILENO, "podbot-warden: %s\n", what);
    exit(FAILED);
}

static _Noreturn void fail_with_error(const char *what) {
    dprintf(STDERR_FILENO, "podbot-warden: %s: %s\n", what, strerror(errno));
    exit(FAILED);
}

static size_t read_token(char *bytes, size_t room) {
    size_t length = 0;
    for (ssize_t count = 1; count > 0 && length < room; length += (size_t)count) {
        count = read(STDIN_FILENO, bytes + length, room - length);
        if (count < 0) fail_with_error("cannot read the token");
    }
    return length;
}

static void make_hello(char *hello) {
    char more;
    memcpy(hello, "podbot\0001", 8);
    if (read_token(hello + 8, TOKEN) != TOKEN || read_token(&more, 1) != 0) fail("the token is not 32 bytes long");
}

/* The engine removes a container with all that it said, so the keeper is told what is wrong. */
static _Noreturn void complain(struct warden *warden, const char *what) {
    int keeper = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    warden->hello[7] = '!';
    if (keeper >= 0 && connect(keeper, (struct sockaddr *)&warden->address, sizeof warden->address) == 0 &&
        send(keeper, warden->hello, sizeof warden->hello, MSG_NOSIGNAL) == sizeof warden->hello) {
        (void)!send(keeper, what, strlen(what), MSG_NOSIGNAL);
    }
    fail(what);
}

static void be_born(struct warden *warden, const char *birth) {
    memcpy(warden->hello, "podbot\0001", 8);
    const char *wrong = read_birth(birth, warden->hello + 8, TOKEN);
    if (wrong != NULL) complain(warden, wrong);
}

static void empty_descriptors(void) {
    int null = open("/dev/null", O_RDWR);
    if (null < 0) fail_with_error("cannot open /dev/null");
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) dup2(null, STDERR_FILENO);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) fail_with_error("cannot set stdin and stdout");
    if (!close_from(STDERR_FILENO + 1)) fail_with_error("cannot close inherited descriptors");
}

static bool is_first_process(void) {
    return getpid() == 1;
}

static int watch_signals(void) {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigprocmask(SIG_SETMASK, &watched, NULL);
    int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) fail_with_error("cannot watch signals");
    return signals;
}

/* Failures are followed by growing delays, until a connection has been of use. */
static void try_later(struct warden *warden) {
    if (warden->parked >= 0) close(warden->parked);
    warden->parked = -1;
    warden->next_try = moment() + warden->delay;
    warden->delay = warden->delay * 2 < LONGEST_DELAY_MS ? warden->delay * 2 : LONGEST_DELAY_MS;
}

/*
 * A refusal proves that whoever listened is dead: a busy keeper, or one that is stopped, does not refuse. But its
 * socket may be gone as well, or an agent may keep us from dialling: a keeper that cannot be reached is as good
 * as dead, unless it still holds the other end of an attendant's connection.
 */
static void note_failure(struct warden *warden, int error) {
    if (error == EAGAIN || error == EINTR || error == EINPROGRESS) return;
    if (warden->alone_since == 0) warden->alone_since = moment();
}

static void dial(struct warden *warden) {
    warden->parked = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_connected = warden->parked >= 0 &&
                        connect(warden->parked, (struct sockaddr *)&warden->address, sizeof warden->address) == 0;
    if (is_connected) warden->alone_since = 0;
    else note_failure(warden, errno);
    if (!is_connected ||
        send(warden->parked, warden->hello, sizeof warden->hello, MSG_NOSIGNAL) != sizeof warden->hello) {
        try_later(warden);
    }
}

/* The keeper learns that there can be no attendant, in the same words as of one that could not fork. */
static void refuse(int connection, int error) {
    const unsigned char frame[] = {'F', 5, 0, 0, 0, PLUMBING, (unsigned char)error, 0, 0, 0};
    send(connection, frame, sizeof frame, MSG_NOSIGNAL);
}

/*
 * A mortal warden keeps the connection as well as its attendant does, since the kernel tells each holder when the
 * keeper's end is closed. The attendant cannot be asked: it runs as the agent's user, and the agent can stop it.
 */
static void note_attendant(struct warden *warden, pid_t attendant, int connection) {
    struct attending *more = realloc(warden->attending, (warden->attendants + 1) * sizeof *more);
    if (more != NULL) warden->attending = more;
    bool keeps = warden->mortal && more != NULL;
    if (!keeps) close(connection);
    if (more != NULL) more[warden->attendants++] = (struct attending){attendant, keeps ? connection : -1};
}

/* Whether the keeper still holds the other end of any connection. */
static bool is_held(const struct warden *warden) {
    for (size_t at = 0; at < warden->attendants; at++) {
        struct pollfd end = {.fd = warden->attending[at].connection};
        if (end.fd >= 0 && poll(&end, 1, 0) == 0) return true;
    }
    return false;
}

/* In a new attendant, which must not keep those of others open. */
static void leave_connections(const struct warden *warden) {
    for (size_t at = 0; at < warden->attendants; at++) {
        if (warden->attending[at].connection >= 0) close(warden->attending[at].connection);
    }
}

static void serve(struct warden *warden) {
    char first;
    if (recv(warden->parked, &first, 1, MSG_PEEK) <= 0) return try_later(warden);

    pid_t own = getpid(), attendant = fork();
    if (attendant == 0) {
        close(warden->signals);
        leave_connections(warden);
        attend(warden->parked, own);
    }
    if (attendant < 0) {
        refuse(warden->parked, errno);
        return try_later(warden);
    }
    note_attendant(warden, attendant, warden->parked);
    warden->delay = SHORTEST_DELAY_MS;
    dial(warden);
}

static void forget_attendant(struct warden *warden, pid_t ended) {
    for (size_t at = 0; at < warden->attendants; at++) {
        if (warden->attending[at].process != ended) continue;
        if (warden->attending[at].connection >= 0) close(warden->attending[at].connection);
        warden->attending[at] = warden->attending[--warden->attendants];
    }
}

/* Whether anybody is left to be waited for. */
static bool reap(struct warden *warden) {
    pid_t child;
    while ((child = waitpid(-1, NULL, WNOHANG)) > 0) forget_attendant(warden, child);
    return child == 0;
}

/* Whatever is left after the grace period, the kernel kills with the first process of its namespace. */
static _Noreturn void end(struct warden *warden) {
    if (!is_first_process()) exit(TERMINATED);
    if (warden->parked >= 0) close(warden->parked);
    kill(-1, SIGTERM);
    kill(-1, SIGCONT);
    for (long long end = moment() + GRACE_MS, left; reap(warden) && (left = end - moment()) > 0;) {
        struct pollfd signals = {.fd = warden->signals, .events = POLLIN};
        struct signalfd_siginfo signal;
        poll(&signals, 1, (int)left);
        while (read(warden->signals, &signal, sizeof signal) > 0) continue;
    }
    exit(TERMINATED);
}

/* Nobody in the box may end it by a signal: a sender outside its pid namespace has no number here. */
static bool is_obeyed(const struct signalfd_siginfo *signal) {
    return !is_first_process() || (signal->ssi_code == SI_USER && signal->ssi_pid == 0);
}

static void take_signals(struct warden *warden) {
    struct signalfd_siginfo signal;
    while (read(warden->signals, &signal, sizeof signal) > 0) {
        if (signal.ssi_signo == SIGTERM && is_obeyed(&signal)) end(warden);
    }
    reap(warden);
}

static _Noreturn void keep_dialling(struct warden *warden) {
    for (;;) {
        long long now = moment(), left = warden->next_try - now;
        bool is_alone = warden->alone_since != 0 && now - warden->alone_since > ORPHAN_MS;
        if (warden->mortal && is_alone && !is_held(warden)) end(warden);
        if (warden->parked < 0 && left <= 0) {
            dial(warden);
            continue;
        }
        struct pollfd watched[] = {
            {.fd = warden->signals, .events = POLLIN},
            {.fd = warden->parked, .events = POLLIN},
        };
        /* Whoever took its descriptors away (prlimit) has ended the box. */
        if (poll(watched, 2, warden->parked < 0 ? (int)left : -1) < 0 && errno != EINTR) fail_with_error("cannot wait");
        if (watched[0].revents != 0) take_signals(warden);
        if (watched[1].revents != 0) serve(warden);
    }
}

int main(int argc, char **argv) {
    static struct warden warden = {.address.sun_family = AF_UNIX, .parked = -1, .delay = SHORTEST_DELAY_MS};
    if (argc < 2 || argc > 3 || argv[1][0] == '\0') fail("usage: podbot-warden SOCKET [BIRTH]");
    if (strlen(argv[1]) >= sizeof warden.address.sun_path) fail("the path of the socket is too long");
    strcpy(warden.address.sun_path, argv[1]);

    /* Before there is a secret to be read from its memory. */
    if (prctl(PR_SET_DUMPABLE, 0) != 0) fail_with_error("cannot close its memory to others");
    warden.mortal = argc == 3;
    if (warden.mortal) {
        be_born(&warden, argv[2]);
    } else {
        make_hello(warden.hello);
        begin_at(getenv("PWD")); /* bubblewrap has set it, and podbot-enter has gone there */
    }
    empty_descriptors();
    if (!is_first_process()) prctl(PR_SET_CHILD_SUBREAPER, 1); /* as well as it can, as the first process would */
    warden.signals = watch_signals();
    keep_dialling(&warden);
}
