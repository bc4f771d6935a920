#ifndef PODBOT_EXTRAS_H
#define PODBOT_EXTRAS_H

#include "mountinfo.h"

/*
 * Looks for what the engine has put into the box although the plan has none of it: mounts, devices, namespaces of the
 * host's; and whether it has left its own system call filter out. An engine's settings can do all of that, and no
 * request overrules them all.
 *
 * `expected` are the plan's mounts as a birth has them, `bounds` the words of docs/protocols.md. Returns "extra " and
 * what there is, or NULL.
 */
const char *find_extras(const char *mounts, struct part expected, struct part bounds);

/* Unsets every variable that neither the image nor an engine's custom explains: bounds say "=NAME" of each other. */
void drop_variables(struct part bounds);

#endif
