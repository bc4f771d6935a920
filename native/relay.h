#ifndef PODBOT_RELAY_H
#define PODBOT_RELAY_H

/*
 * Doors that are opened where their owner cannot go, by a helper that the engine has put there. The two meet at a Unix
 * socket in a directory of the owner's. Each of these gives NULL, or what is wrong in words; then errno says why, or is
 * 0 where nothing more can be said.
 */

/* The helper's end: a channel to whoever listens, or will in a moment. */
const char *reach_owner(const char *path, int *channel);

/* Tells the other end why nothing will come. */
void tell_owner(int channel, const char *wrong);

/* The owner's end: what one helper brings goes to the channel, which is Node's. Returns when the helper has ended. */
const char *pass_doors_on(const char *path, int channel);

#endif
