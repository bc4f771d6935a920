#ifndef PODBOT_FRAMES_H
#define PODBOT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The frames of docs/protocols.md, as the warden's side reads and writes them. */
enum { FRAME_HEADER = 5, MAX_WORD = 131071, MAX_DATA = 65536, MAX_MOVED = 262144, MAX_REASON = 200 };

struct frame {
    unsigned char type;
    uint32_t length;
    const unsigned char *payload; /* good until the next hear() */
};

/* A frame that may come at some point of the conversation. Lists of them end with type 0. */
struct expected {
    unsigned char type;
    uint32_t least, most;
};

/* A conversation: what has come and is not yet understood, and what is said and not yet sent. */
struct conversation {
    int socket;
    size_t in_begin, in_end;
    size_t out_begin, out_end;
    int pipe;     /* where the rest of the last frame's payload still is, */
    size_t piped; /* and how much: it is moved to the socket without a look at it */
    unsigned char in[FRAME_HEADER + MAX_WORD];
    /* One frame at a time; if it turns out to be the last but one, a complaint follows it. */
    unsigned char out[FRAME_HEADER + MAX_DATA + FRAME_HEADER + MAX_REASON];
};

/* Takes in what has come. False if nobody is at the other end any more. */
bool hear(struct conversation *talk);

/*
 * The next whole frame. False if there is none yet; or if what comes is not among the expected, and then `*wrong`
 * says so. That is decided by the header alone.
 */
bool understand(struct conversation *talk, const struct expected *expected, struct frame *frame, const char **wrong);

uint32_t number_of_4(const unsigned char *bytes);
uint16_t number_of_2(const unsigned char *bytes);

/* Whether all that was said has been sent. Only then may more be said, but for a complaint. */
bool is_silent(const struct conversation *talk);

/* Sends what it can without waiting. False if nobody is at the other end any more. */
bool flush(struct conversation *talk);

/*
 * Both say a frame and send what they can of it. `say_read` takes the payload from a descriptor, at most `most` bytes,
 * and answers as read(2) does.
 */
void say(struct conversation *talk, unsigned char type, const void *payload, size_t length);
ssize_t say_read(struct conversation *talk, unsigned char type, int descriptor, size_t most);

/* Lets the other end read the last frame, for a second at most, and ends the process. */
_Noreturn void part(struct conversation *talk);

#endif
