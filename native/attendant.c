/*
 * The attendant of one command: it carries input, output, signals and the end between the command and the keeper.
 *
 * It reads the connection whatever happens. What it has to keep meanwhile is bounded by credit: input that the command
 * does not take, and one frame that the keeper does not take. While there is such a frame, nothing else is looked at
 * that could have to be told.
 */
#include "attendant.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "frames.h"
#include "input.h"
#include "moment.h"
#include "order.h"
#include "quit.h"

enum {
    MAX_CREDIT_BITS = 31,
    OUTPUT_CREDIT = 1024 * 1024, /* at the beginning */
    WORTH_A_FRAME = 65536, /* credit for input is told in such portions */
    SEND_BUFFER = 1024 * 1024,
    SIGNALS = 64,
    SILENCE_MS = 100,
    GRACE_MS = 1000,
};

static const struct expected frames[] = {
    {'I', 1, MAX_DATA}, {'E', 0, 0}, {'S', 1, 1}, {'W', 4, 4}, {'D', 1, 1}, {'K', 5, 5}, {0},
};

struct stream {
    int descriptor; /* -1 after its end */
    unsigned char data, end;
    uint32_t credit;
    bool left;   /* by everybody who could write, but with something in it for which there is no credit yet */
    bool unread; /* nobody wants it any more */
};

struct attendant {
    struct conversation talk;
    struct command command;
    struct input input;
    struct stream streams[2];
    int changes; /* becomes readable when the command stops, goes on or ends */
    bool changed, started, stopped, ended, over, told_lost_input;
    siginfo_t end;
    bool listening;
    long long silent_since, listening_since, listened;
    unsigned turn;
};

/* Zeroed, and therefore no memory before it is used: the warden, which has it as well, stays small. */
static struct attendant attendant;

enum watched { SOCKET, CHANGES, START, INPUT, STREAMS, WATCHED = STREAMS + 2 };

/* Looks whether the command has ended, and leaves it a zombie: so its number, and its group's, stays its own. */
static bool has_ended(struct attendant *a) {
    siginfo_t *end = &a->end;
    if (end->si_pid == 0) waitid(P_PID, (id_t)a->command.process, end, WEXITED | WNOHANG | WNOWAIT);
    return end->si_pid != 0;
}

static void read_changes(struct attendant *a) {
    struct signalfd_siginfo change;
    while (read(a->changes, &change, sizeof change) > 0) continue;
    a->changed = true;
}

/* The client has gone, or is no longer listened to. */
static _Noreturn void abandon(struct attendant *a) {
    signal_command(&a->command, SIGHUP);
    signal_command(&a->command, SIGCONT);
    for (long long end = moment() + GRACE_MS, left; !has_ended(a) && (left = end - moment()) > 0;) {
        struct pollfd changes = {.fd = a->changes, .events = POLLIN};
        poll(&changes, 1, (int)left);
        read_changes(a);
    }
    signal_command(&a->command, SIGKILL);
    part(&a->talk);
}

static void complain(struct conversation *talk, const char *wrong) {
    say(talk, 'B', wrong, strlen(wrong));
}

static _Noreturn void break_off(struct attendant *a, const char *wrong) {
    complain(&a->talk, wrong);
    abandon(a);
}

static void pass_signal(struct attendant *a, unsigned char number) {
    if (number < 1 || number > SIGNALS) break_off(a, "a signal that there is not");
    signal_command(&a->command, number);
}

static void resize(struct attendant *a, const unsigned char *payload) {
    struct winsize size = {.ws_row = number_of_2(payload), .ws_col = number_of_2(payload + 2)};
    if (a->command.on_terminal) ioctl(a->command.output, TIOCSWINSZ, &size);
}

static void take_credit(struct attendant *a, unsigned char number, uint32_t bytes) {
    if (number < 1 || number > 2) break_off(a, "credit for a stream that there is not");
    struct stream *stream = &a->streams[number - 1];
    if (bytes > (1U << MAX_CREDIT_BITS) - stream->credit) break_off(a, "more credit than can be counted");
    stream->credit += bytes;
    if (bytes > 0) stream->left = false;
}

static void leave_unread(struct attendant *a, unsigned char number) {
    if (number < 1 || number > 2) break_off(a, "a stream that there is not");
    if (!a->command.on_terminal) a->streams[number - 1].unread = true;
}

static void pass_input(struct attendant *a, const struct frame *frame) {
    const char *wrong = take_input(&a->input, frame->payload, frame->length);
    if (wrong != NULL) break_off(a, wrong);
}

static void follow(struct attendant *a, const struct frame *frame) {
    switch (frame->type) {
    case 'I': return pass_input(a, frame);
    case 'E': return end_input(&a->input);
    case 'S': return pass_signal(a, frame->payload[0]);
    case 'W': return resize(a, frame->payload);
    case 'D': return leave_unread(a, frame->payload[0]);
    case 'K': return take_credit(a, frame->payload[0], number_of_4(frame->payload + 1));
    }
}

static void follow_all(struct attendant *a) {
    struct frame frame;
    const char *wrong = NULL;
    while (understand(&a->talk, frames, &frame, &wrong)) follow(a, &frame);
    if (wrong != NULL) break_off(a, wrong);
    feed(&a->input);
}

static void tell_failure(struct conversation *talk, const struct failure *failure) {
    unsigned char payload[5] = {failure->stage};
    for (int i = 0; i < 4; i++) payload[1 + i] = (unsigned char)((unsigned)failure->error >> 8 * i);
    say(talk, 'F', payload, sizeof payload);
}

/* Either the pipe ended, because the execution closed it, or it brings the reason why there was none. */
static void tell_start(struct attendant *a) {
    struct failure failure;
    ssize_t count = read(a->command.start, &failure, sizeof failure);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count == sizeof failure) {
        tell_failure(&a->talk, &failure);
        part(&a->talk);
    }
    close(a->command.start);
    a->started = true;
    say(&a->talk, 'P', NULL, 0);
}

static void tell_stop(struct attendant *a, const siginfo_t *change) {
    bool stopped = change->si_code == CLD_STOPPED;
    if (stopped == a->stopped) return; /* so quick a change back and forth that only its end was seen */
    a->stopped = stopped;
    unsigned char number = (unsigned char)change->si_status;
    if (stopped) say(&a->talk, 'Z', &number, 1);
    else say(&a->talk, 'Y', NULL, 0);
}

static void tell_change(struct attendant *a) {
    siginfo_t change = {0};
    waitid(P_PID, (id_t)a->command.process, &change, WSTOPPED | WCONTINUED | WNOHANG);
    if (change.si_pid != 0) return tell_stop(a, &change);
    a->changed = false;
    a->ended = has_ended(a);
}

static void tell_lost_input(struct attendant *a) {
    a->told_lost_input = true;
    say(&a->talk, 'i', NULL, 0);
}

static void tell_credit(struct attendant *a) {
    uint32_t bytes = a->input.owed;
    unsigned char payload[5] = {0, bytes & 255, bytes >> 8 & 255, bytes >> 16 & 255, bytes >> 24};
    a->input.owed = 0;
    a->input.credit += bytes;
    say(&a->talk, 'K', payload, sizeof payload);
}

static bool is_open(const struct stream *stream) {
    return stream->descriptor >= 0;
}

static void end_stream(struct attendant *a, struct stream *stream) {
    if (!a->command.on_terminal) close(stream->descriptor);
    stream->descriptor = -1;
    say(&a->talk, stream->end, NULL, 0);
}

/* What is known and waits to be told. */
static void tell(struct attendant *a) {
    while (a->started && a->changed && is_silent(&a->talk)) tell_change(a);
    if (is_silent(&a->talk) && a->started && a->input.lost && !a->told_lost_input) tell_lost_input(a);
    if (is_silent(&a->talk) && a->started && a->input.owed >= WORTH_A_FRAME) tell_credit(a);
    for (int i = 0; i < 2; i++) {
        struct stream *stream = &a->streams[i];
        if (is_silent(&a->talk) && a->started && stream->unread && is_open(stream)) end_stream(a, stream);
    }
}

static bool has_more(const struct stream *stream) {
    int waiting = 0;
    ioctl(stream->descriptor, FIONREAD, &waiting);
    return waiting > 0;
}

/* Without credit it can still be the end, of which nothing is to be read. */
static void pass_output(struct attendant *a, struct stream *stream) {
    if (stream->credit == 0 && (stream->left = has_more(stream))) return;
    a->silent_since = moment();
    ssize_t count = say_read(&a->talk, stream->data, stream->descriptor, stream->credit);
    if (count > 0) stream->credit -= (uint32_t)count;
    if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return;
    end_stream(a, stream);
}

static bool can_listen(const struct attendant *a) {
    if (!is_silent(&a->talk) || !a->started) return false;
    for (int i = 0; i < 2; i++) {
        if (is_open(&a->streams[i]) && a->streams[i].credit == 0) return false;
    }
    return true;
}

/*
 * How long the streams have still to be silent until the command's end counts; -1 while that is not the question. One
 * who is never silent is not listened to for ever.
 */
static int silence_left(struct attendant *a) {
    long long now = moment();
    bool listening = a->ended && !a->over && can_listen(a);
    if (a->listening) a->listened += now - a->listening_since;
    if (listening && !a->listening) a->silent_since = now;
    a->listening = listening;
    a->listening_since = now;
    if (!listening) return -1;
    if ((!is_open(&a->streams[0]) && !is_open(&a->streams[1])) || a->listened >= GRACE_MS) return 0;
    long long left = a->silent_since + SILENCE_MS - now;
    return left > 0 ? (int)left : 0;
}

static void tell_end(struct attendant *a) {
    unsigned char payload[2] = {a->end.si_code != CLD_EXITED, (unsigned char)a->end.si_status};
    a->over = true;
    say(&a->talk, 'X', payload, sizeof payload);
}

/* Without credit only a pipe's end is of interest; it tells that without being asked. */
static void watch_stream(const struct attendant *a, const struct stream *stream, bool now, struct pollfd *watched) {
    bool readable = stream->credit > 0;
    if (now && (readable || !(stream->left || a->command.on_terminal))) watched->fd = stream->descriptor;
    watched->events = readable ? POLLIN : 0;
}

/* Everything that could have to be told is looked at only while nothing is being told. */
static void watch(const struct attendant *a, struct pollfd *watched) {
    bool silent = is_silent(&a->talk), running = a->started && !a->over;
    for (int i = 0; i < WATCHED; i++) watched[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    watched[SOCKET].fd = a->talk.socket;
    if (!silent) watched[SOCKET].events |= POLLOUT;
    if (running && silent) watched[CHANGES].fd = a->changes;
    if (!a->started && silent) watched[START].fd = a->command.start;

    /* A pipe tells without being asked that nobody reads it; but a terminal without anybody tells it for ever. */
    bool hungry = has_input(&a->input);
    if (running && (hungry || !a->command.on_terminal)) watched[INPUT].fd = a->input.descriptor;
    watched[INPUT].events = hungry ? POLLOUT : 0;
    for (int i = 0; i < 2; i++) watch_stream(a, &a->streams[i], running && silent, &watched[STREAMS + i]);
}

static void take_socket(struct attendant *a, short events) {
    if (events & POLLOUT && !flush(&a->talk)) abandon(a);
    if (!(events & (POLLIN | POLLHUP | POLLERR))) return;
    if (!hear(&a->talk)) abandon(a);
    if (a->over) a->talk.in_begin = a->talk.in_end; /* nothing matters any more */
    else follow_all(a);
}

static void take_appetite(struct attendant *a, short events) {
    if (a->input.descriptor < 0) return;
    if (events & (POLLERR | POLLHUP)) lose_input(&a->input);
    else if (events != 0) feed(&a->input);
}

static void take_streams(struct attendant *a, const struct pollfd *watched) {
    /* By turns, so that neither of them waits for the other to be quiet. */
    a->turn ^= 1;
    for (unsigned i = 0; i < 2; i++) {
        unsigned number = i ^ a->turn;
        if (watched[number].revents != 0 && is_silent(&a->talk)) pass_output(a, &a->streams[number]);
    }
}

static _Noreturn void accompany(struct attendant *a) {
    follow_all(a); /* what came behind the order */
    for (;;) {
        if (!a->over) tell(a);
        else if (is_silent(&a->talk)) break;

        struct pollfd watched[WATCHED];
        watch(a, watched);
        int left = silence_left(a);
        if (poll(watched, WATCHED, left) < 0) {
            /* Whoever took the descriptors away (prlimit) shall not have us turn in circles. */
            if (errno == EINTR) continue;
            abandon(a);
        }
        if (watched[CHANGES].revents != 0) read_changes(a);
        take_socket(a, watched[SOCKET].revents);
        take_appetite(a, watched[INPUT].revents);
        if (watched[START].revents != 0) tell_start(a);
        bool heard = watched[STREAMS].revents != 0 || watched[STREAMS + 1].revents != 0;
        if (left == 0 && (!heard || a->listened >= GRACE_MS)) tell_end(a);
        else if (heard) take_streams(a, watched + STREAMS);
    }
    /* The terminal is hung up now, and no zombie stays, however long the client takes to go. */
    if (a->command.on_terminal) close(a->command.output);
    waitpid(a->command.process, NULL, 0);
    part(&a->talk);
}

static void prepare(struct attendant *a) {
    const struct command *command = &a->command;
    a->input.descriptor = command->input;
    a->input.on_terminal = command->on_terminal;
    a->input.credit = FIRST_CREDIT;
    a->streams[0] = (struct stream){command->output, 'O', 'o', OUTPUT_CREDIT, false, false};
    a->streams[1] = (struct stream){command->errors, 'R', 'r', OUTPUT_CREDIT, false, false};
    a->changed = true; /* whatever happened before anybody watched */
}

/* Every signal is blocked, and so none ends, stops or interrupts an attendant but those that nobody can block. */
static int block_signals(void) {
    sigset_t all, child;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void die_with(pid_t warden) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != warden) _exit(0);
}

_Noreturn void attend(int connection, pid_t warden) {
    die_with(warden);
    prctl(PR_SET_NAME, ATTENDANT);
    struct attendant *a = &attendant;
    a->talk.socket = connection;
    a->changes = block_signals();
    int size = SEND_BUFFER;
    setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);

    static struct order order;
    struct failure failure = {ORDER, EPERM};
    const char *wrong = take_order(&a->talk, &order);
    if (wrong != NULL) {
        complain(&a->talk, wrong);
        part(&a->talk);
    }
    if (order.quit && warden == 1) quit(&a->talk);
    if (a->changes < 0) failure = (struct failure){PLUMBING, EMFILE};
    if (order.quit || a->changes < 0 || !start_command(&order, &a->command, &failure)) {
        tell_failure(&a->talk, &failure);
        part(&a->talk);
    }
    prepare(a);
    accompany(a);
}
