/*
 * podbot-gate PID NETWORK|- [PORT…] — opens doors in the network of a box, and hands them to its parent.
 * podbot-gate --here SOCKET [PORT…] — the same in the network that it is in, for whoever listens at SOCKET.
 * podbot-gate --relay SOCKET        — listens there, and hands what comes to its parent.
 *
 * A door is a socket that listens in there and is held out here: it stays in the network that it was made in, whoever
 * has it. Every address of that network is its own by then, so that whatever is dialled inside arrives at a door of
 * that port, or is refused. Port 53 has two, for UDP and for TCP.
 *
 * NETWORK is the inode of the network that is meant. The parent is Node, with a channel as it has for its children:
 * NODE_CHANNEL_FD names it, and each door goes over it as if another Node had sent it. Only when the parent has said
 * that it has them all does this end, with status 0.
 *
 * Whose containers are root's, and who is not, may not enter their network. The engine can put somebody there: a
 * container that shares it, with this program in it, and the owner's directory with SOCKET.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "doors.h"
#include "relay.h"

enum { LAST_PORT = 65535, FAILED = 125 };

static _Noreturn void fail(const char *what, int error) {
    errno = error;
    complain_of_doors(what);
    exit(FAILED);
}

static uint64_t parse_inode(const char *text) {
    if (strcmp(text, "-") == 0) return 0;
    char *end;
    errno = 0;
    unsigned long long inode = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || inode == 0) fail("NETWORK is no inode", 0);
    return inode;
}

static int find_channel(void) {
    const char *text = getenv("NODE_CHANNEL_FD");
    int channel;
    if (text == NULL || !parse_number(text, &channel) || channel <= STDERR_FILENO) {
        fail("NODE_CHANNEL_FD names no channel", 0);
    }
    return channel;
}

static void read_ports(char **words, struct doors *doors) {
    static uint16_t ports[MAX_DOORS];
    int port;
    for (; words[doors->count] != NULL; doors->count++) {
        if (doors->count == MAX_DOORS) fail("too many ports", 0);
        if (!parse_number(words[doors->count], &port) || port == 0 || port > LAST_PORT) fail("a port is not one", 0);
        ports[doors->count] = (uint16_t)port;
    }
    doors->ports = ports;
}

static const char *open_here(const char *socket, struct doors *doors) {
    int channel;
    const char *wrong = reach_owner(socket, &channel);
    if (wrong != NULL) return wrong;
    wrong = open_doors(doors, channel);
    if (wrong != NULL) tell_owner(channel, wrong);
    return wrong;
}

int main(int argc, char **argv) {
    struct doors doors = {.is_built = true};
    const char *wrong;
    if (argc == 3 && strcmp(argv[1], "--relay") == 0) {
        wrong = pass_doors_on(argv[2], find_channel());
    } else if (argc >= 3 && strcmp(argv[1], "--here") == 0) {
        read_ports(argv + 3, &doors);
        wrong = open_here(argv[2], &doors);
    } else {
        if (argc < 3 || !parse_number(argv[1], &doors.pid) || doors.pid == 0) {
            fail("usage: podbot-gate PID NETWORK|- [PORT...]", 0);
        }
        doors.network = parse_inode(argv[2]);
        read_ports(argv + 3, &doors);
        wrong = open_doors(&doors, find_channel());
    }
    if (wrong != NULL) fail(wrong, errno);
}
