#ifndef PODBOT_DOORS_H
#define PODBOT_DOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_DOORS = 512 };

/* Where doors are opened, and at which ports besides 53. */
struct doors {
    int pid;          /* in whose network, or 0: in our own */
    uint64_t network; /* the inode, or 0 where nobody knows */
    bool is_built;    /* false while somebody is still about to configure the network */
    const uint16_t *ports;
    size_t count;
};

/*
 * Opens them in the network of the process, and hands them to whoever is at the other end of the channel, which is
 * Node's own between a parent and a child. This process is in that network afterwards. Gives NULL, or what is wrong
 * in words; then errno says why, or is 0 where nothing more can be said.
 */
const char *open_doors(const struct doors *doors, int channel);

/* What Node says when it has got a socket. */
#define TAKEN "{\"cmd\":\"NODE_HANDLE_ACK\"}"

/* What Node sends for the word "begin". */
#define BEGIN "\"begin\""

/* Sends a line with a socket, and waits for that answer. Gives NULL, or what is wrong as above. */
const char *hand_over(int channel, int door, const char *line);

/*
 * Waits until whoever has taken the doors over says that somebody is behind them: Node says that it has got a socket
 * before anybody in its program hears of it. Gives NULL, or what is wrong as above.
 */
const char *await_leave(int channel);

/* Whether anything of `events` happens before that moment. */
bool wait_for(int channel, short events, long long end);

/* The one line that is said of a failure. */
void complain_of_doors(const char *wrong);

#endif
