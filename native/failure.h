#ifndef PODBOT_FAILURE_H
#define PODBOT_FAILURE_H

enum { FAILED = 125 };

/* Each of these writes one line for the person who started Podbot, and ends podbot-launch. */
_Noreturn void fail(const char *what);

/* Adds what errno says. */
_Noreturn void fail_with_error(const char *what);

/* A path is not what the plan saw there, or nothing can be mounted on it. */
_Noreturn void fail_at(const char *path, const char *why);

#endif
