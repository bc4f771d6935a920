#include "table.h"

#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "words.h"

enum { MAX_TABLE = 1024 * 1024, STRINGS_A_RECORD = 7 };

/* Returns the number of bytes read, at most `size`, or -1. */
static ssize_t read_file(const char *path, char *buffer, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t length = read_all(file, buffer, size);
    close(file);
    return length;
}

static size_t count_strings(const char *bytes, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += bytes[i] == '\0';
    return count;
}

static const char *take_string(const char **next) {
    const char *string = *next;
    *next += strlen(string) + 1;
    return string;
}

static bool is_path(const char *text) { return text[0] == '/'; }
static bool is_path_or_empty(const char *text) { return text[0] == '/' || text[0] == '\0'; }

static bool is_sound(const struct record *record) {
    if (!is_path(record->target) || record->command[0] == '\0') return false;
    if (!is_path_or_empty(record->real) || !is_path_or_empty(record->interpreter)) return false;
    if (same(record->kind, "script")) return is_path(record->script);
    if (same(record->kind, "git")) return is_path(record->real);
    return same(record->kind, "deny") || same(record->kind, "check");
}

bool read_table(const char *path, struct table *table) {
    char *bytes = allocate(MAX_TABLE + 1);
    ssize_t length = read_file(path, bytes, MAX_TABLE + 1);
    if (length <= 0 || length > MAX_TABLE || bytes[length - 1] != '\0') return false;

    size_t strings = count_strings(bytes, (size_t)length);
    if (strings % STRINGS_A_RECORD != 0) return false;
    size_t count = strings / STRINGS_A_RECORD;
    struct record *records = allocate(count * sizeof *records);

    const char *next = bytes;
    for (size_t i = 0; i < count; i++) {
        struct record *record = &records[i];
        record->target = take_string(&next);
        record->command = take_string(&next);
        record->kind = take_string(&next);
        record->real = take_string(&next);
        record->interpreter = take_string(&next);
        record->argument = take_string(&next);
        record->script = take_string(&next);
        if (!is_sound(record)) return false;
    }
    *table = (struct table){records, count};
    return true;
}
