#ifndef PODBOT_QUIT_H
#define PODBOT_QUIT_H

#include "frames.h"

/* The name that attendants go by among the processes. */
#define ATTENDANT "podbot-attend"

/*
 * Asks every process of this pid namespace but the warden and its attendants to end. Says so when they have, and when
 * the attendants have told their clients how the commands ended. Only for an attendant whose warden is the namespace's
 * first process.
 */
_Noreturn void quit(struct conversation *talk);

#endif
