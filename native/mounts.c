#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ROOM = 64 * 1024, LARGEST = 64 * 1024 * 1024 };

struct place {
    char *path;
    dev_t device;
    ino_t inode;
    bool is_any;
};

struct mounts {
    struct place *places;
    size_t count, room;
};

struct text {
    char *bytes;
    size_t length, room;
};

/* Words of a line of mountinfo, counted from 0. */
enum { DEVICE = 2, PLACE = 4, OPTIONS = 5, WORDS = 6 };

struct line {
    const char *words[WORDS];
    int lengths[WORDS];
};

static _Noreturn void end_without_memory(void) {
    dprintf(STDERR_FILENO, "podbot: out of memory\n");
    exit(125);
}

static void *resize(void *memory, size_t size) {
    void *moved = realloc(memory, size);
    if (moved == NULL) end_without_memory();
    return moved;
}

struct mounts *begin_mounts(void) {
    struct mounts *mounts = resize(NULL, sizeof *mounts);
    *mounts = (struct mounts){NULL, 0, 0};
    return mounts;
}

static void remember(struct mounts *mounts, struct place place) {
    if (mounts->count == mounts->room) {
        mounts->room = 2 * mounts->room + 64;
        mounts->places = resize(mounts->places, mounts->room * sizeof *mounts->places);
    }
    place.path = strdup(place.path);
    if (place.path == NULL) end_without_memory();
    mounts->places[mounts->count++] = place;
}

void add_mount(struct mounts *mounts, const char *place, const struct stat *stat) {
    remember(mounts, (struct place){(char *)place, stat->st_dev, stat->st_ino, false});
}

void expect_any_below(struct mounts *mounts, const char *place) {
    remember(mounts, (struct place){(char *)place, 0, 0, true});
}

static bool is_within(const char *path, size_t length, const char *directory, size_t above) {
    if (above == 1) return true;
    return length >= above && memcmp(path, directory, above) == 0 && (length == above || path[above] == '/');
}

static void add(struct text *text, const char *bytes, size_t length) {
    if (text->length + length > text->room) text->bytes = resize(text->bytes, text->room = 2 * text->room + length + FIRST_ROOM);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

/* The whole file, with a NUL behind it. False if it cannot be read, or is larger than any such list. */
static bool read_whole(int file, struct text *text) {
    char piece[16 * 1024];
    for (;;) {
        ssize_t count = read(file, piece, sizeof piece);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 || text->length > LARGEST) return false;
        if (count == 0) break;
        add(text, piece, (size_t)count);
    }
    add(text, "", 1);
    return true;
}

static bool read_path(const char *path, struct text *text) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool done = file >= 0 && read_whole(file, text);
    if (file >= 0) close(file);
    return done;
}

/* Splits the next line of mountinfo. Returns what is behind it; NULL at the end. */
static const char *next_line(const char *text, struct line *line) {
    const char *end = strchr(text, '\n');
    if (end == NULL) return NULL;
    for (int word = 0; word < WORDS; word++) {
        line->words[word] = text;
        line->lengths[word] = (int)strcspn(text, " \n");
        text += line->lengths[word];
        if (*text == ' ') text++;
    }
    return end + 1;
}

static void add_line(struct text *text, const struct line *line, const char *place, int length) {
    char *entry = NULL;
    int size = asprintf(&entry, "mount %.*s %.*s %.*s", line->lengths[DEVICE], line->words[DEVICE], line->lengths[OPTIONS],
                        line->words[OPTIONS], length, place);
    if (size < 0) end_without_memory();
    add(text, entry, (size_t)size + 1);
    free(entry);
}

/* Whether a later mount lies over a place, so that what was mounted there is not seen. */
static bool is_covered(const struct mounts *mounts, size_t at) {
    const char *path = mounts->places[at].path;
    size_t length = strlen(path);
    for (size_t later = at + 1; later < mounts->count; later++) {
        const char *over = mounts->places[later].path;
        if (is_within(path, length, over, strlen(over))) return true;
    }
    return false;
}

char *list_mounts(const struct mounts *mounts, const char *mountinfo, const char *root, size_t *length) {
    struct text lines = {NULL, 0, 0}, list = {NULL, 0, 0};
    if (!read_path(mountinfo, &lines)) return NULL;
    size_t above = strlen(root);
    struct line line;
    for (const char *rest = lines.bytes; (rest = next_line(rest, &line)) != NULL;) {
        const char *place = line.words[PLACE];
        int size = line.lengths[PLACE];
        if (!is_within(place, (size_t)size, root, above)) continue;
        if ((size_t)size == above) add_line(&list, &line, "/", 1);
        else add_line(&list, &line, place + above, size - (int)above);
    }
    for (size_t at = 0; at < mounts->count; at++) {
        const struct place *place = &mounts->places[at];
        char *entry = NULL;
        if (!place->is_any && is_covered(mounts, at)) continue;
        int size = place->is_any ? asprintf(&entry, "any %s", place->path)
                                 : asprintf(&entry, "inode %llu:%llu %s", (unsigned long long)place->device,
                                            (unsigned long long)place->inode, place->path);
        if (size < 0) end_without_memory();
        add(&list, entry, (size_t)size + 1);
        free(entry);
    }
    free(lines.bytes);
    *length = list.length;
    return list.bytes;
}

struct entries {
    const char **list;
    size_t count;
};

static void collect(struct entries *entries, const char *entry) {
    if (entries->count % 256 == 0) {
        entries->list = resize(entries->list, (entries->count + 256) * sizeof *entries->list);
    }
    entries->list[entries->count++] = entry;
}

static const char *place_of(const char *entry) {
    for (int words = 3; words > 0; words--) entry = strchr(entry, ' ') + 1;
    return entry;
}

static bool is_any(const struct entries *any, const char *place) {
    for (size_t at = 0; at < any->count; at++) {
        if (is_within(place, strlen(place), any->list[at], strlen(any->list[at]))) return true;
    }
    return false;
}

static int by_text(const void *one, const void *other) {
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static const char *compare_lines(struct entries *expected, struct entries *found, const char **place) {
    qsort(expected->list, expected->count, sizeof *expected->list, by_text);
    qsort(found->list, found->count, sizeof *found->list, by_text);
    for (size_t at = 0; at < expected->count || at < found->count; at++) {
        bool is_missing = at == found->count, is_new = at == expected->count;
        int order = is_missing ? -1 : is_new ? 1 : strcmp(expected->list[at], found->list[at]);
        if (order == 0) continue;
        *place = place_of(order < 0 ? expected->list[at] : found->list[at]);
        return order < 0 ? "its mount is missing" : "a mount is there that nobody asked for";
    }
    return NULL;
}

/* `entry` is "DEVICE:INODE PLACE". A place that may not be looked up inside has its line of mountinfo alone. */
static bool is_same_inode(const char *entry, const char **place) {
    *place = strchr(entry, ' ') + 1;
    int file = open(*place, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return errno == EACCES;
    struct stat stat;
    char found[64];
    bool done = fstat(file, &stat) == 0;
    close(file);
    snprintf(found, sizeof found, "%llu:%llu ", (unsigned long long)stat.st_dev, (unsigned long long)stat.st_ino);
    return done && strncmp(entry, found, strlen(found)) == 0;
}

const char *compare_mounts(int list, const char **place) {
    struct text expected = {NULL, 0, 0}, lines = {NULL, 0, 0}, own = {NULL, 0, 0};
    struct entries mounts = {NULL, 0}, inodes = {NULL, 0}, any = {NULL, 0}, found = {NULL, 0};
    *place = "/proc/self/mountinfo";
    if (!read_whole(list, &expected) || !read_path(*place, &lines)) return "the list of mounts cannot be read";

    const char *end = expected.bytes + expected.length - 1;
    for (const char *entry = expected.bytes; entry < end; entry += strlen(entry) + 1) {
        if (strncmp(entry, "any ", 4) == 0) collect(&any, entry + 4);
        if (strncmp(entry, "inode ", 6) == 0) collect(&inodes, entry + 6);
    }
    for (const char *entry = expected.bytes; entry < end; entry += strlen(entry) + 1) {
        if (strncmp(entry, "mount ", 6) == 0 && !is_any(&any, place_of(entry))) collect(&mounts, entry);
    }
    struct line line;
    for (const char *rest = lines.bytes; (rest = next_line(rest, &line)) != NULL;) {
        add_line(&own, &line, line.words[PLACE], line.lengths[PLACE]);
    }
    for (const char *entry = own.bytes; entry < own.bytes + own.length; entry += strlen(entry) + 1) {
        if (!is_any(&any, place_of(entry))) collect(&found, entry);
    }

    const char *wrong = compare_lines(&mounts, &found, place);
    for (size_t at = 0; wrong == NULL && at < inodes.count; at++) {
        if (!is_same_inode(inodes.list[at], place)) wrong = "another file or directory is mounted there";
    }
    return wrong;
}
