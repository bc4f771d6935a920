#include "relay.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "doors.h"
#include "moment.h"

enum { LONGEST_WAIT_MS = 30000, SHORT_NS = 5000000, LONGEST_LINE = 256 };

static bool name_socket(const char *path, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(address->sun_path, path);
    return true;
}

const char *reach_owner(const char *path, int *channel) {
    struct sockaddr_un address;
    if (!name_socket(path, &address)) return "SOCKET is no path";
    for (long long end = moment() + LONGEST_WAIT_MS;;) {
        *channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (*channel < 0) return "there are no sockets";
        if (connect(*channel, (struct sockaddr *)&address, sizeof address) == 0) return NULL;
        bool is_early = errno == ENOENT || errno == ECONNREFUSED;
        if (!is_early || moment() > end) return "cannot reach whoever wants the doors";
        close(*channel);
        nanosleep(&(struct timespec){.tv_nsec = SHORT_NS}, NULL);
    }
}

void tell_owner(int channel, const char *wrong) {
    char line[LONGEST_LINE];
    int length = snprintf(line, sizeof line - 1, "%s%s%s", wrong, errno == 0 ? "" : ": ", errno == 0 ? "" : strerror(errno));
    if (length < 0) return;
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length] = '\n';
    ssize_t sent = send(channel, line, (size_t)length + 1, MSG_NOSIGNAL);
    (void)sent;
}

/* The engine's helper is root's; a file of that name is reached by its owner and by root alone. */
static bool is_expected(int connection) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
    return peer.uid == 0 || peer.uid == geteuid();
}

static const char *await_helper(const char *path, int *connection) {
    struct sockaddr_un address;
    if (!name_socket(path, &address)) return "SOCKET is no path";
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) return "there are no sockets";
    mode_t before = umask(0177);
    int bound = bind(listener, (struct sockaddr *)&address, sizeof address);
    umask(before);
    if (bound != 0 || listen(listener, 1) != 0) return "cannot listen for the helper";
    if (!wait_for(listener, POLLIN, moment() + LONGEST_WAIT_MS)) return "no helper has come";
    *connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    unlink(path);
    if (*connection < 0) return "no helper has come";
    errno = 0;
    return is_expected(*connection) ? NULL : "somebody else has come";
}

/* A line and the socket that came with it; -1 where none did. The length is 0 at the end, and negative for an error. */
static ssize_t receive(int connection, char *line, size_t room, int *door) {
    union {
        char bytes[CMSG_SPACE(sizeof *door)];
        struct cmsghdr alignment;
    } control = {0};
    struct iovec text = {.iov_base = line, .iov_len = room};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    *door = -1;
    if (!wait_for(connection, POLLIN, moment() + LONGEST_WAIT_MS)) return -1;
    ssize_t length = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *rights = length < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (rights != NULL && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
        memcpy(door, CMSG_DATA(rights), sizeof *door);
    }
    return length;
}

const char *pass_doors_on(const char *path, int channel) {
    static char line[LONGEST_LINE];
    int connection, door;
    const char *wrong = await_helper(path, &connection);
    if (wrong != NULL) return wrong;
    for (;;) {
        /* One at a time: the helper waits for the answer to each. */
        ssize_t length = receive(connection, line, sizeof line - 1, &door);
        if (length == 0) return NULL;
        if (length < 0) return "the helper has stopped";
        line[length] = '\0';
        if (length < 2 || line[length - 1] != '\n' || strlen(line) != (size_t)length) {
            errno = 0;
            return "the helper speaks in riddles";
        }
        if (door < 0) {
            line[length - 1] = '\0';
            errno = 0;
            return line;
        }
        wrong = hand_over(channel, door, line);
        close(door);
        if (wrong != NULL) return wrong;
        if (send(connection, TAKEN "\n", sizeof TAKEN, MSG_NOSIGNAL) != sizeof TAKEN) return "the helper has stopped";
    }
}
