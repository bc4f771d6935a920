#ifndef PODBOT_ORDER_H
#define PODBOT_ORDER_H

#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include "frames.h"

/* What the other end wants to have started. Its variables are in the environment of this process already. */
struct order {
    bool quit; /* instead of everything else */
    char **words;
    char *directory;
    bool as_user;
    uid_t user;
    gid_t group;
    bool on_terminal;
    struct winsize size;
};

/* Reads up to and with the G or Q. NULL if it is good, or what is wrong with it; ends the process with its client. */
const char *take_order(struct conversation *talk, struct order *order);

#endif
