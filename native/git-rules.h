#ifndef PODBOT_GIT_RULES_H
#define PODBOT_GIT_RULES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * One thing that the @git preset knows of a git command. Lists are separated by blanks; in lists of options a single
 * letter is a short option, anything longer a long one.
 *
 * Long options match by any beginning, as git itself lets them be shortened: `--h` is `--hard`. Where a beginning
 * fits another option as well, git refuses it as ambiguous, so nothing is lost by blocking it. No option of these
 * commands is spelled like the beginning of a blocked one.
 */
struct rule {
    const char *command;
    const char *verbs;     /* the words that may follow, as in `stash pop`; NULL: whatever follows */
    const char *blocked;   /* the options that are blocked; NULL: every use is */
    bool with_value;       /* … but only with a value attached: `--prune=now` */
    const char *values;    /* options that take the rest of their word, or else the next word, as their value */
    const char *attached;  /* short options that take the rest of their word, if there is any, as their value */
    const char *executes;  /* those of `values` whose value is a shell command, to be judged by itself */
    bool executes_rest;    /* the words after the verb are a shell command */
    bool refspecs;         /* words that are no options may be refspecs that force (+x) or delete (:x) */
    const char *why, *instead;
};

extern const struct rule git_rules[];
extern const size_t git_rules_count;

/* Whether a word, up to `length`, is in a list. `beginning` lets a beginning of the listed word suffice. */
bool listed(const char *list, const char *word, size_t length, bool beginning);

/* Whether git has a command of this name, so that no alias can take it. Newer ones may be missing. */
bool is_git_command(const char *name);

#endif
