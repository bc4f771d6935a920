/*
 * podbot-peer — says who is at the other end of the Unix socket on descriptor 3, as "PID UID GID": the kernel knows
 * it, and Node cannot ask. A process of another pid namespace has the number 0.
 *
 * Not on 0: what Node lends a child as one of the standard streams, it makes blocking, for both of them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTION = 3, FAILED = 125 };

int main(void) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(CONNECTION, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
        dprintf(STDERR_FILENO, "podbot-peer: descriptor 3: %s\n", strerror(errno));
        return FAILED;
    }
    if (peer.uid == (uid_t)-1) {
        dprintf(STDERR_FILENO, "podbot-peer: descriptor 3: nobody is connected\n");
        return FAILED;
    }
    return dprintf(STDOUT_FILENO, "%d %u %u\n", (int)peer.pid, peer.uid, peer.gid) < 0 ? FAILED : 0;
}
