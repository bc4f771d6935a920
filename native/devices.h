#ifndef PODBOT_DEVICES_H
#define PODBOT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * bubblewrap mounts the host's own device nodes into the box's /dev, and a terminal's node is reached through every
 * descriptor of it: what runs inside as the owner of a node could give it another mode or group, on the host as well.
 *
 * So in the mount namespace in which this process has built the box's mounts, /dev becomes read-only with everything
 * that is mounted there; what bubblewrap mounts from there stays so. A device can be written to all the same. Then each
 * of these descriptors that is a terminal or like /dev/null is opened anew there.
 *
 * Where bubblewrap mounts alone, root gets a mount namespace for this; an ordinary user keeps what he has, and only a
 * terminal is his.
 */
void protect_devices(const int *descriptors, size_t count, bool has_own_mounts);

#endif
