#ifndef PODBOT_PORTER_H
#define PODBOT_PORTER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Starts a process that will open doors in the box that bubblewrap is about to build, hand them over on the channel,
 * and let the box begin when somebody is behind them. Descriptors 0 to `channel` must be open and none above. Afterwards `channel` is where
 * bubblewrap tells of the box (--info-fd), the next number is where podbot-enter waits for a byte, and none above is
 * open. Gives NULL, or what is wrong in words; then errno says why.
 */
const char *start_porter(int channel, const uint16_t *ports, size_t count);

#endif
