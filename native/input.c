#include "input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A terminal's descriptor is for output too. */
static void close_input(struct input *input) {
    if (!input->on_terminal) close(input->descriptor);
    input->descriptor = -1;
}

static void make_room(struct input *input, size_t length) {
    if (sizeof input->bytes - input->end >= length) return;
    memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
}

const char *take_input(struct input *input, const unsigned char *bytes, uint32_t length) {
    if (length > input->credit) return "input beyond its credit";
    if (input->ended) return "input after its end";
    input->credit -= length;
    if (input->descriptor < 0) {
        input->owed += length;
        return NULL;
    }
    make_room(input, length);
    memcpy(input->bytes + input->end, bytes, length);
    input->end += length;
    return NULL;
}

void end_input(struct input *input) {
    if (!input->on_terminal) input->ended = true;
}

void lose_input(struct input *input) {
    close_input(input);
    input->lost = true;
    input->owed += (uint32_t)(input->end - input->begin);
    input->begin = input->end = 0;
}

bool has_input(const struct input *input) {
    return input->begin < input->end;
}

void feed(struct input *input) {
    if (input->descriptor < 0) return;
    if (has_input(input)) {
        ssize_t count = write(input->descriptor, input->bytes + input->begin, input->end - input->begin);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count < 0) return lose_input(input);
        input->begin += (size_t)count;
        input->owed += (uint32_t)count;
        if (has_input(input)) return;
        input->begin = input->end = 0;
    }
    if (input->ended) close_input(input);
}
