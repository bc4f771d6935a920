#ifndef PODBOT_SIGNALS_H
#define PODBOT_SIGNALS_H

/* Every signal at its default, and none blocked: what a command expects to begin with. */
void reset_signals(void);

#endif
