#include "frames.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "moment.h"

/* Less than that is copied sooner than its pages are moved. */
enum { PARTING_MS = 1000, WORTH_MOVING = 16384 };

bool hear(struct conversation *talk) {
    if (talk->in_begin > 0) {
        memmove(talk->in, talk->in + talk->in_begin, talk->in_end - talk->in_begin);
        talk->in_end -= talk->in_begin;
        talk->in_begin = 0;
    }
    ssize_t count = recv(talk->socket, talk->in + talk->in_end, sizeof talk->in - talk->in_end, MSG_DONTWAIT);
    if (count > 0) talk->in_end += (size_t)count;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static const char *judge(const struct expected *expected, const struct frame *frame) {
    for (; expected->type != 0; expected++) {
        if (expected->type != frame->type) continue;
        return frame->length < expected->least || frame->length > expected->most ? "a frame of a wrong length" : NULL;
    }
    return "a frame that is unknown or comes at a wrong time";
}

bool understand(struct conversation *talk, const struct expected *expected, struct frame *frame, const char **wrong) {
    size_t length = talk->in_end - talk->in_begin;
    if (length < FRAME_HEADER) return false;

    const unsigned char *header = talk->in + talk->in_begin;
    *frame = (struct frame){header[0], number_of_4(header + 1), header + FRAME_HEADER};
    *wrong = judge(expected, frame);
    if (*wrong != NULL || length - FRAME_HEADER < frame->length) return false;
    talk->in_begin += FRAME_HEADER + frame->length;
    return true;
}

uint32_t number_of_4(const unsigned char *bytes) {
    return number_of_2(bytes) | (uint32_t)number_of_2(bytes + 2) << 16;
}

uint16_t number_of_2(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

bool is_silent(const struct conversation *talk) {
    return talk->out_begin == talk->out_end && talk->piped == 0;
}

static bool flush_bytes(struct conversation *talk) {
    size_t length = talk->out_end - talk->out_begin;
    int more = talk->piped > 0 ? MSG_MORE : 0;
    ssize_t count = send(talk->socket, talk->out + talk->out_begin, length, MSG_DONTWAIT | MSG_NOSIGNAL | more);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    talk->out_begin += (size_t)count;
    if (talk->out_begin == talk->out_end) talk->out_begin = talk->out_end = 0;
    return true;
}

static size_t waiting_in(int pipe) {
    int count = 0;
    return ioctl(pipe, FIONREAD, &count) == 0 && count > 0 ? (size_t)count : 0;
}

/* For kernels that cannot move pages to a socket. */
static bool copy_piped(struct conversation *talk) {
    ssize_t count = read(talk->pipe, talk->out, talk->piped < MAX_DATA ? talk->piped : MAX_DATA);
    if (count <= 0) return false;
    talk->piped -= (size_t)count;
    talk->out_end = (size_t)count;
    return flush_bytes(talk);
}

static bool flush_piped(struct conversation *talk) {
    ssize_t count = splice(talk->pipe, NULL, talk->socket, NULL, talk->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count > 0) talk->piped -= (size_t)count;
    if (count > 0 || (count < 0 && errno == EINTR)) return true;
    if (count < 0 && errno == EINVAL) return copy_piped(talk);
    /* What was promised is in the pipe, since nobody else reads it: it is the socket that is full. */
    return count < 0 && errno == EAGAIN && waiting_in(talk->pipe) > 0;
}

bool flush(struct conversation *talk) {
    if (talk->out_begin < talk->out_end && !flush_bytes(talk)) return false;
    return talk->piped == 0 || talk->out_begin < talk->out_end || flush_piped(talk);
}

/* Of the payload, `here` bytes are in place behind the header. A broken connection shows when it is next read. */
static void send_frame(struct conversation *talk, unsigned char type, size_t length, size_t here) {
    unsigned char *header = talk->out + talk->out_end;
    header[0] = type;
    for (int i = 0; i < 4; i++) header[1 + i] = (unsigned char)(length >> 8 * i);
    talk->out_end += FRAME_HEADER + here;
    flush(talk);
}

void say(struct conversation *talk, unsigned char type, const void *payload, size_t length) {
    if (length > 0) memcpy(talk->out + talk->out_end + FRAME_HEADER, payload, length);
    send_frame(talk, type, length, length);
}

/* Only pipes hold so much, and only from them can it be moved; a terminal holds a page. */
ssize_t say_read(struct conversation *talk, unsigned char type, int descriptor, size_t most) {
    if (most > MAX_MOVED) most = MAX_MOVED;
    size_t waiting = waiting_in(descriptor);
    if (waiting < WORTH_MOVING || most < WORTH_MOVING) {
        ssize_t count = read(descriptor, talk->out + FRAME_HEADER, most < MAX_DATA ? most : MAX_DATA);
        if (count > 0) send_frame(talk, type, (size_t)count, (size_t)count);
        return count;
    }
    talk->pipe = descriptor;
    talk->piped = waiting < most ? waiting : most;
    ssize_t count = (ssize_t)talk->piped;
    send_frame(talk, type, talk->piped, 0);
    return count;
}

/* Waits until the socket is ready or the time is over. */
static bool wait_until(struct conversation *talk, short events, long long end) {
    struct pollfd socket = {.fd = talk->socket, .events = events};
    long long left = end - moment();
    return left > 0 && poll(&socket, 1, (int)left) > 0;
}

/* Were the socket closed with something in it unread, the other end would be told of a broken connection. */
_Noreturn void part(struct conversation *talk) {
    long long end = moment() + PARTING_MS;
    while (!is_silent(talk) && flush(talk) && wait_until(talk, POLLOUT, end)) continue;
    shutdown(talk->socket, SHUT_WR);
    while (wait_until(talk, POLLIN, end)) {
        if (recv(talk->socket, talk->in, sizeof talk->in, MSG_DONTWAIT) <= 0) break;
    }
    _exit(0);
}
