#include "order.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RECORDS = 65536, MAX_ORDER = 8 * 1024 * 1024 };

static const struct expected records[] = {
    {'A', 0, MAX_WORD}, {'V', 1, MAX_WORD}, {'C', 1, MAX_WORD}, {'U', 8, 8},
    {'T', 4, 4},        {'G', 0, 0},        {'Q', 0, 0},        {0},
};

static const char NO_MEMORY[] = "an order for which there is no memory";

/* An order while it is read. */
struct reading {
    struct order *order;
    size_t records, bytes, words, room;
};

/* The payload as a string. NULL, and what is wrong, if it cannot be one. */
static char *copy_word(const struct frame *frame, const char **wrong) {
    if (memchr(frame->payload, '\0', frame->length) != NULL) {
        *wrong = "a NUL in an order";
        return NULL;
    }
    char *word = malloc(frame->length + 1);
    if (word == NULL) {
        *wrong = NO_MEMORY;
        return NULL;
    }
    memcpy(word, frame->payload, frame->length);
    word[frame->length] = '\0';
    return word;
}

static const char *add_word(struct reading *reading, char *word) {
    if (reading->words + 1 >= reading->room) {
        size_t room = reading->room * 2 + 16;
        char **moved = realloc(reading->order->words, room * sizeof *moved);
        if (moved == NULL) return NO_MEMORY;
        reading->order->words = moved;
        reading->room = room;
    }
    reading->order->words[reading->words++] = word;
    reading->order->words[reading->words] = NULL;
    return NULL;
}

/* Into the environment of this process: the command inherits it. */
static const char *set_variable(char *word) {
    if (word[0] == '=') return "a variable without a name";
    if (strchr(word, '=') == NULL) return unsetenv(word) == 0 ? NULL : NO_MEMORY;
    return putenv(word) == 0 ? NULL : NO_MEMORY;
}

static const char *add_string(struct reading *reading, const struct frame *frame) {
    const char *wrong = NULL;
    char *word = copy_word(frame, &wrong);
    if (word == NULL) return wrong;
    if (frame->type == 'A') return add_word(reading, word);
    if (frame->type == 'V') return set_variable(word);
    if (reading->order->directory != NULL) return "a second directory";
    reading->order->directory = word;
    return NULL;
}

static const char *set_user(struct order *order, const unsigned char *payload) {
    if (order->as_user) return "a second user";
    order->as_user = true;
    order->user = number_of_4(payload);
    order->group = number_of_4(payload + 4);
    /* To the kernel these would mean: whoever it is now. */
    return order->user == (uid_t)-1 || order->group == (gid_t)-1 ? "a user that there cannot be" : NULL;
}

static const char *set_terminal(struct order *order, const unsigned char *payload) {
    if (order->on_terminal) return "a second terminal";
    order->on_terminal = true;
    order->size = (struct winsize){.ws_row = number_of_2(payload), .ws_col = number_of_2(payload + 2)};
    return NULL;
}

static const char *add_record(struct reading *reading, const struct frame *frame) {
    struct order *order = reading->order;
    reading->bytes += FRAME_HEADER + frame->length;
    if (++reading->records > MAX_RECORDS || reading->bytes > MAX_ORDER) return "too large an order";
    switch (frame->type) {
    case 'U': return set_user(order, frame->payload);
    case 'T': return set_terminal(order, frame->payload);
    case 'G': return order->words == NULL ? "an order without a command" : NULL;
    case 'Q': order->quit = true; return reading->records == 1 ? NULL : "a Q after something else";
    default: return add_string(reading, frame);
    }
}

const char *take_order(struct conversation *talk, struct order *order) {
    struct reading reading = {.order = order};
    for (;;) {
        struct frame frame;
        const char *wrong = NULL;
        while (understand(talk, records, &frame, &wrong)) {
            wrong = add_record(&reading, &frame);
            if (wrong != NULL || frame.type == 'G' || frame.type == 'Q') return wrong;
        }
        if (wrong != NULL) return wrong;

        struct pollfd socket = {.fd = talk->socket, .events = POLLIN};
        poll(&socket, 1, -1);
        if (!hear(talk)) _exit(0);
    }
}
