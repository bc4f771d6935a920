/*
 * podbot-peer — says who is at the other end of the Unix socket on descriptor 3, as "PID UID GID STARTED": the kernel
 * knows it, and Node cannot ask. A process of another pid namespace has the number 0. STARTED is when it began, in
 * ticks since boot, by which no other process is taken for it that has its number later; 0 if it has ended already.
 *
 * Not on 0: what Node lends a child as one of the standard streams, it makes blocking, for both of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel has them; its headers are not those of every C library. */
enum { PEER_PIDFD = 77, PIDFD_OPEN = 434 };

enum { CONNECTION = 3, FAILED = 125, START_FIELD = 22 };

static int fail(const char *what) {
    dprintf(STDERR_FILENO, "podbot-peer: descriptor 3: %s\n", what);
    return FAILED;
}

/*
 * A descriptor of the peer itself. Kernels before 6.5 know it by its number alone, which is right as long as the
 * connection is open; -1 where they do not even know that.
 */
static int open_peer(pid_t pid, bool *is_gone) {
    int peer = -1;
    socklen_t length = sizeof peer;
    bool is_known = getsockopt(CONNECTION, SOL_SOCKET, PEER_PIDFD, &peer, &length) == 0;
    if (!is_known && errno == ENOPROTOOPT) peer = (int)syscall(PIDFD_OPEN, pid, 0);
    *is_gone = peer < 0 && (errno == ESRCH || errno == EINVAL || errno == ENODATA);
    return peer;
}

/* Whether the peer has ended, so that its number may be another's. */
static bool is_over(int peer) {
    struct pollfd ends[] = {{.fd = peer, .events = POLLIN}, {.fd = CONNECTION}};
    return poll(ends, 2, 0) != 0;
}

static unsigned long long start_of(pid_t pid) {
    char path[32], stat[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, stat, sizeof stat - 1);
    if (length <= 0) return 0;
    stat[length] = '\0';
    /* "NUMBER (NAME) STATE …", and the name may hold anything. */
    char *at = strrchr(stat, ')');
    for (int field = 2; at != NULL && field < START_FIELD; field++) at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

int main(void) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(CONNECTION, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return fail(strerror(errno));
    if (peer.uid == (uid_t)-1) return fail("no process is connected");
    unsigned long long started = 0;
    if (peer.pid > 0) {
        bool is_gone;
        int process = open_peer(peer.pid, &is_gone);
        started = start_of(peer.pid);
        if (is_gone || is_over(process)) started = 0;
    }
    return dprintf(STDOUT_FILENO, "%d %u %u %llu\n", (int)peer.pid, peer.uid, peer.gid, started) < 0 ? FAILED : 0;
}
