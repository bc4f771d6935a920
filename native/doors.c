#include "doors.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "moment.h"
#include "network.h"

enum { NAMES = 53, BACKLOG = 4096, ANSWER_MS = 10000, LONGEST_ANSWER = 256 };

/* One socket for both families, where there are both: to it, an IPv4 address is ::ffff:a.b.c.d. */
static int listen_at(uint16_t port) {
    const int on = 1, off = 0;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int door = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_ipv6 = door >= 0;
    if (!is_ipv6) door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door < 0) return -1;

    /* Connections of a gate before us may still be dying. While one listens, nobody else can all the same. */
    if (setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return -1;
    if (is_ipv6 && setsockopt(door, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) return -1;
    int bound = is_ipv6 ? bind(door, (struct sockaddr *)&any, sizeof any)
                        : bind(door, (struct sockaddr *)&any4, sizeof any4);
    return bound == 0 && listen(door, BACKLOG) == 0 ? door : -1;
}

/*
 * IPv4 alone: there, the kernel answers from the very address that was asked, as whoever asks expects. To a question
 * over IPv6 it would answer from ::1, and nobody would hear it; it is better refused at once.
 */
static int hear_questions(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(NAMES)};
    int door = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door < 0) return -1;
    return bind(door, (struct sockaddr *)&any, sizeof any) == 0 ? door : -1;
}

bool wait_for(int channel, short events, long long end) {
    struct pollfd watched = {.fd = channel, .events = events};
    for (;;) {
        long long left = end - moment();
        int count = poll(&watched, 1, left > 0 ? (int)left : 0);
        if (count == 0) errno = ETIMEDOUT;
        if (count >= 0 || errno != EINTR) return count > 0;
    }
}

static bool send_with(int channel, const char *line, int door, long long end) {
    union {
        char bytes[CMSG_SPACE(sizeof door)];
        struct cmsghdr alignment;
    } control = {0};
    struct iovec text = {.iov_base = (char *)line, .iov_len = strlen(line)};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof door);
    memcpy(CMSG_DATA(rights), &door, sizeof door);

    if (!wait_for(channel, POLLOUT, end)) return false;
    ssize_t sent = sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0 && (size_t)sent < text.iov_len) errno = EMSGSIZE;
    return sent >= 0 && (size_t)sent == text.iov_len;
}

/* One line, a byte at a time: nothing of what follows it is taken. */
static bool read_line(int channel, char *line, size_t room, long long end) {
    for (size_t length = 0; length < room; length++) {
        if (!wait_for(channel, POLLIN, end)) return false;
        ssize_t count = recv(channel, line + length, 1, MSG_DONTWAIT);
        if (count == 0) errno = EPIPE;
        if (count <= 0) return false;
        if (line[length] != '\n') continue;
        line[length] = '\0';
        return true;
    }
    errno = EMSGSIZE;
    return false;
}

const char *hand_over(int channel, int door, const char *line) {
    char answer[LONGEST_ANSWER];
    long long end = moment() + ANSWER_MS;
    if (!send_with(channel, line, door, end)) return "cannot hand a door over";
    if (!read_line(channel, answer, sizeof answer, end)) return "nobody has taken a door over";
    if (strcmp(answer, TAKEN) == 0) return NULL;
    errno = 0;
    return "a door was not taken over";
}

const char *await_leave(int channel) {
    char line[LONGEST_ANSWER];
    if (!read_line(channel, line, sizeof line, moment() + ANSWER_MS)) return "nobody is behind the doors";
    if (strcmp(line, BEGIN) == 0) return NULL;
    errno = 0;
    return "nobody is behind the doors";
}

/* As Node sends a socket to another Node. What is in `msg` is for the program on the other side. */
static const char *hand_over_questions(int channel, int door) {
    return hand_over(channel, door,
                     "{\"cmd\":\"NODE_HANDLE\",\"type\":\"dgram.Socket\",\"dgramType\":\"udp4\","
                     "\"msg\":{\"door\":\"udp\",\"port\":53}}\n");
}

static const char *hand_over_listener(int channel, int door, uint16_t port) {
    char line[128];
    snprintf(line, sizeof line,
             "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Server\",\"msg\":{\"door\":\"tcp\",\"port\":%d}}\n", port);
    return hand_over(channel, door, line);
}

const char *open_doors(const struct doors *doors, int channel) {
    static int opened[MAX_DOORS];
    const char *wrong = doors->pid == 0 ? NULL : enter_network(doors->pid, doors->network);
    if (wrong == NULL) wrong = make_every_address_local(doors->is_built ? 0 : doors->pid);
    if (wrong != NULL) return wrong;

    /* All of them first: whoever gets any gets all. */
    int questions = hear_questions(), names = listen_at(NAMES);
    if (questions < 0 || names < 0) return "cannot listen at port 53";
    for (size_t at = 0; at < doors->count; at++) {
        static char words[48];
        snprintf(words, sizeof words, "cannot listen at port %d", doors->ports[at]);
        if ((opened[at] = listen_at(doors->ports[at])) < 0) return words;
    }

    wrong = hand_over_questions(channel, questions);
    if (wrong == NULL) wrong = hand_over_listener(channel, names, NAMES);
    for (size_t at = 0; at < doors->count && wrong == NULL; at++) {
        wrong = hand_over_listener(channel, opened[at], doors->ports[at]);
    }
    return wrong;
}

void complain_of_doors(const char *wrong) {
    const char *why = errno == 0 ? "" : strerror(errno);
    dprintf(STDERR_FILENO, "podbot-gate: %s%s%s\n", wrong, *why == '\0' ? "" : ": ", why);
}
