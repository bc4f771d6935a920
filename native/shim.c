/*
 * podbot-shim — inside the wall, mounted over every program that the owner has wrapped, and at
 * /run/podbot/bin/podbot. Its own path tells it which of them it stands in for, and the table what to do then.
 *
 * This deters; it does not confine. A program can be copied, or reached by a path nobody thought of. What the
 * agent must not touch is kept from it by the filesystem rules.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "git-caller.h"
#include "git.h"
#include "program.h"
#include "table.h"
#include "words.h"

enum { BLOCKED = 126, FAILED = 125 };

static const char TABLE[] = "/run/podbot/commands";
static const char DESCRIPTION[] = "/run/podbot/sandbox.json";

static _Noreturn void refuse(const char *what, const char *about) {
    dprintf(STDERR_FILENO, "podbot: %s%s\n", what, about);
    exit(BLOCKED);
}

static _Noreturn void become_or_refuse(const char *path, char **argv) {
    int error = become(path, argv);
    dprintf(STDERR_FILENO, "podbot: cannot execute %s: %s\n", path, strerror(error));
    exit(BLOCKED);
}

static _Noreturn void deny(const struct record *record) {
    dprintf(STDERR_FILENO, "podbot: %s is blocked here by the owner's policy (commands.%s = false)\n",
            record->command, record->command);
    exit(BLOCKED);
}

static _Noreturn void run_script(const struct record *record, int argc, char **argv) {
    if (setenv("PODBOT_CMD", record->command, 1) != 0 || setenv("PODBOT_REAL", record->real, 1) != 0) {
        refuse("out of memory", "");
    }
    char **words = allocate(((size_t)argc + 3) * sizeof *words);
    size_t count = 0;
    if (record->interpreter[0] != '\0') words[count++] = (char *)record->interpreter;
    if (count == 1 && record->argument[0] != '\0') words[count++] = (char *)record->argument;
    words[count++] = (char *)record->script;
    for (int i = 1; i < argc; i++) words[count++] = argv[i];
    become_or_refuse(words[0], words);
}

static void print_description(void) {
    int file = open(DESCRIPTION, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        dprintf(STDERR_FILENO, "podbot: cannot read %s\n", DESCRIPTION);
        exit(FAILED);
    }
    char buffer[4096];
    for (ssize_t count; (count = read(file, buffer, sizeof buffer)) > 0;) {
        if (write(STDOUT_FILENO, buffer, (size_t)count) != count) exit(FAILED);
    }
    close(file);
}

static _Noreturn void explain_inside(void) {
    dprintf(STDERR_FILENO, "podbot: this is the inside of a Podbot sandbox, where only `podbot check [--json|--quiet]` "
                           "works. Runs inside a sandbox need sandbox.nesting = true in the configuration outside.\n");
    exit(FAILED);
}

static _Noreturn void check(int argc, char **argv) {
    if (argc < 2 || !same(argv[1], "check")) explain_inside();
    bool json = false, quiet = false;
    for (int i = 2; i < argc; i++) {
        if (same(argv[i], "--json")) json = true;
        else if (same(argv[i], "-q") || same(argv[i], "--quiet")) quiet = true;
        else explain_inside();
    }
    if (!quiet && json) print_description();
    if (!quiet && !json) dprintf(STDOUT_FILENO, "inside sandbox\n");
    exit(0);
}

static const struct record *first_record(const struct table *table, const char *exe) {
    for (size_t i = 0; i < table->count; i++) {
        if (same(table->records[i].target, exe)) return &table->records[i];
    }
    refuse("no rule stands behind ", exe);
}

/* Several commands may share one target. The name under which the shim was called chooses among them. */
static const struct record *find_record(const struct table *table, const char *exe, const char *command) {
    for (size_t i = 0; i < table->count; i++) {
        const struct record *record = &table->records[i];
        if (same(record->target, exe) && same(record->command, command)) return record;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 1) refuse("called without a name", "");
    char exe[PATH_MAX];
    if (!executable_of("self", exe)) refuse("cannot read /proc/self/exe", "");
    struct table table;
    if (!read_table(TABLE, &table)) refuse("missing or damaged table of commands: ", TABLE);

    const char *called_as = base_name(argv[0]), *own_name = base_name(exe);
    const struct record *record = find_record(&table, exe, called_as);
    if (record == NULL) {
        record = first_record(&table, exe);
        /* One program of many names, such as busybox: its other names were never wrapped. */
        bool another_name = !same(own_name, called_as) && find_record(&table, exe, own_name) == NULL;
        if (another_name && record->real[0] != '\0') become_or_refuse(record->real, argv);
    }
    if (same(record->kind, "deny")) deny(record);
    if (same(record->kind, "script")) run_script(record, argc, argv);
    if (same(record->kind, "check")) check(argc, argv);

    char **words = git_words(argv);
    if (!called_by_git(&table)) judge_git(record->real, words + 1);
    become_or_refuse(record->real, words);
}
