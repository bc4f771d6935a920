#ifndef PODBOT_TABLE_H
#define PODBOT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* One line of the table of wrapped commands. Paths that do not apply are "". */
struct record {
    const char *target;      /* the path that the shim was mounted over */
    const char *command;     /* the name under which the owner wrapped it */
    const char *kind;        /* "deny", "script", "git" or "check" */
    const char *real;        /* where the program itself is to be found now */
    const char *interpreter; /* of the script, from its first line */
    const char *argument;    /* the one argument that a first line may give its interpreter */
    const char *script;
};

struct table {
    const struct record *records;
    size_t count;
};

/* Reads the table from a file of records of seven NUL-terminated strings. False if it is missing or damaged. */
bool read_table(const char *path, struct table *table);

#endif
