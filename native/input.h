#ifndef PODBOT_INPUT_H
#define PODBOT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIRST_CREDIT = 262144 };

/* A command's standard input: what the keeper has sent and the command has not yet taken. */
struct input {
    int descriptor; /* -1 when nothing more goes into it */
    bool on_terminal;
    bool ended; /* the keeper said so */
    bool lost;  /* nobody reads it */
    uint32_t credit, owed; /* what the keeper may send, and what it has not yet been told that it may send besides */
    size_t begin, end;
    unsigned char bytes[2 * FIRST_CREDIT]; /* twice, so that they seldom have to be moved down */
};

/* NULL, or what is wrong with sending that. */
const char *take_input(struct input *input, const unsigned char *bytes, uint32_t length);

void end_input(struct input *input);
void lose_input(struct input *input);

/* Gives the command what it takes without waiting. */
void feed(struct input *input);

bool has_input(const struct input *input);

#endif
