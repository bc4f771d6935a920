#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "program.h"
#include "signals.h"

/* Room for a few frames, so that neither side waits for the other at every one. */
enum { PIPE_SIZE = 256 * 1024 };

/* The child's ends of its streams, and where it reports that it could not become the command. */
struct child_ends {
    int input, output, errors, start;
};

static bool set_nonblocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* A pipe whose one end, ours, never blocks. */
static bool open_pipe(int *reader, int *writer, int *ours, int size) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    *reader = ends[0];
    *writer = ends[1];
    if (size > 0) fcntl(*reader, F_SETPIPE_SZ, size); /* a user may have no pages left for that; it works as well */
    return set_nonblocking(*ours);
}

static bool open_pipes(struct command *command, struct child_ends *child) {
    return open_pipe(&child->input, &command->input, &command->input, PIPE_SIZE) &&
           open_pipe(&command->output, &child->output, &command->output, PIPE_SIZE) &&
           open_pipe(&command->errors, &child->errors, &command->errors, 0);
}

static bool expect_utf8(int terminal) {
    struct termios settings;
    if (tcgetattr(terminal, &settings) != 0) return false;
    settings.c_iflag |= IUTF8;
    return tcsetattr(terminal, TCSANOW, &settings) == 0;
}

/* By the master itself, so that no path can lead elsewhere; gVisor knows only the path. */
static int open_slave(int master) {
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    unsigned number;
    char path[32];
    if (slave >= 0 || errno != ENOTTY || ioctl(master, TIOCGPTN, &number) != 0) return slave;
    snprintf(path, sizeof path, "/dev/pts/%u", number);
    return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
}

/* This process becomes the leader of the terminal's session, as a shell would be. */
static bool open_terminal(const struct order *order, struct command *command, struct child_ends *child) {
    int unlocked = 0;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || !set_nonblocking(master) || ioctl(master, TIOCSPTLCK, &unlocked) != 0) return false;
    int slave = open_slave(master);
    if (slave < 0 || setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) != 0) return false;
    if (!expect_utf8(slave) || ioctl(master, TIOCSWINSZ, &order->size) != 0) return false;
    /* Programs open their terminal by its path too. Where that cannot be, they have the descriptors still. */
    if (order->as_user) (void)!fchown(slave, order->user, (gid_t)-1);

    command->input = command->output = master;
    command->errors = -1;
    child->input = child->output = child->errors = slave;
    return true;
}

static _Noreturn void report(const struct child_ends *child, enum stage stage, int error) {
    struct failure failure = {.stage = (unsigned char)stage, .error = error};
    _exit(write(child->start, &failure, sizeof failure) > 0 ? 126 : 127);
}

static const char *begun_at;

void begin_at(const char *directory) { begun_at = directory; }

/* Whether this process is in a directory already, by a descriptor that was compared with the plan. */
static bool is_here(const char *directory) { return begun_at != NULL && strcmp(directory, begun_at) == 0; }

/* Every signal is blocked until the last step: one that comes earlier finds the command's defaults. */
static _Noreturn void become_ordered(const struct order *order, const struct child_ends *child) {
    if (order->on_terminal) {
        setpgid(0, 0);
        tcsetpgrp(child->input, getpid());
    } else {
        setsid();
    }
    const int ends[] = {child->input, child->output, child->errors};
    for (int number = 0; number < 3; number++) {
        if (dup2(ends[number], number) < 0) report(child, PLUMBING, errno);
    }
    if (order->as_user && (setgroups(0, NULL) != 0 || setresgid(order->group, order->group, order->group) != 0 ||
                           setresuid(order->user, order->user, order->user) != 0)) {
        report(child, USER, errno);
    }
    if (order->directory != NULL && !is_here(order->directory) && chdir(order->directory) != 0) {
        report(child, DIRECTORY, errno);
    }
    reset_signals();
    report(child, EXECUTION, become_command(order->words));
}

bool start_command(const struct order *order, struct command *command, struct failure *failure) {
    struct child_ends child;
    command->on_terminal = order->on_terminal;
    failure->stage = PLUMBING;
    if (!open_pipe(&command->start, &child.start, &command->start, 0) ||
        !(order->on_terminal ? open_terminal(order, command, &child) : open_pipes(command, &child)) ||
        (command->process = fork()) < 0) {
        failure->error = errno;
        return false;
    }
    if (command->process == 0) become_ordered(order, &child);
    close(child.start);
    close(child.input);
    if (!order->on_terminal) {
        close(child.output);
        close(child.errors);
    }
    return true;
}

void signal_command(const struct command *command, int number) {
    pid_t foreground = command->on_terminal ? tcgetpgrp(command->output) : -1;
    /* At its very beginning the child has no group of its own yet. */
    if (kill(-command->process, number) != 0 && errno == ESRCH) kill(command->process, number);
    /* The session's first foreground is its leader, this process; anybody at the terminal can make it so again. */
    if (foreground > 1 && foreground != command->process && foreground != getpgrp()) kill(-foreground, number);
}
