#ifndef PODBOT_COMMAND_H
#define PODBOT_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "order.h"

/* Where the start of a command failed, as docs/protocols.md numbers it. */
enum stage { ORDER, DIRECTORY, USER, EXECUTION, PLUMBING };

struct failure {
    unsigned char stage;
    int error;
};

/* A command and this end of its streams; -1 is a stream that there is not. On a terminal all are its master. */
struct command {
    pid_t process; /* also its group */
    bool on_terminal;
    int input, output, errors;
    int start; /* ends when the command has been executed, or brings a struct failure */
};

/* Forks and lets the child become the command. False if it does not come so far. */
bool start_command(const struct order *order, struct command *command, struct failure *failure);

/* Signals the command's group and, on a terminal, the group in the foreground. */
void signal_command(const struct command *command, int number);

/* Says in which directory this process is, so that a command that begins there does not look it up by its name. */
void begin_at(const char *directory);

#endif
