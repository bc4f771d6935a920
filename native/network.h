#ifndef PODBOT_NETWORK_H
#define PODBOT_NETWORK_H

#include <stdint.h>

/*
 * Each of these gives NULL, or what is wrong in words; then errno says why, or is 0 where nothing more can be said.
 */

/*
 * Enters the network of a process, and the user namespace that owns it where that is another than ours: from then on
 * this process may do there as it likes. `inode` names the network that is meant, since a number of a process may have
 * passed to another one; 0 where nobody knows. Our own network is never the one that is meant.
 */
const char *enter_network(int pid, uint64_t inode);

/*
 * Makes every address one of this network's own, so that whatever is dialled in it arrives at whoever listens here.
 * A network that leads anywhere else is left as it is. Whoever builds it may be about to configure its loopback, and
 * would fail if we were first: then `builder` is that process, and is waited for; otherwise it is 0.
 */
const char *make_every_address_local(int builder);

#endif
