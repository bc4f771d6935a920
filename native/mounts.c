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
    bool is_any, is_found;
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
    remember(mounts, (struct place){(char *)place, stat->st_dev, stat->st_ino, false, false});
}

void expect_any_below(struct mounts *mounts, const char *place) {
    remember(mounts, (struct place){(char *)place, 0, 0, true, false});
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

static void add_line(struct text *text, const char *kind, const struct line *line, const char *place, int length) {
    char *entry = NULL;
    int size = asprintf(&entry, "%s %.*s %.*s %.*s", kind, line->lengths[DEVICE], line->words[DEVICE],
                        line->lengths[OPTIONS], line->words[OPTIONS], length, place);
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

static int by_path(const void *one, const void *other) {
    return strcmp(((const struct place *)one)->path, ((const struct place *)other)->path);
}

/* The kernel writes some bytes of a path as a backslash and three octal digits. */
static char *unescaped(const char *written, size_t length) {
    char *path = resize(NULL, length + 1), *end = path;
    for (const char *stop = written + length; written < stop; written++) {
        bool is_escape = *written == '\\' && stop - written > 3;
        *end++ = is_escape ? (char)((written[1] - '0') << 6 | (written[2] - '0') << 3 | (written[3] - '0')) : *written;
        if (is_escape) written += 3;
    }
    *end = '\0';
    return path;
}

/* The mounts that can be seen, each at a place of its own, by their places. */
static struct mounts visible(const struct mounts *mounts) {
    struct mounts seen = {resize(NULL, (mounts->count + 1) * sizeof *mounts->places), 0, 0};
    for (size_t at = 0; at < mounts->count; at++) {
        if (!mounts->places[at].is_any && !is_covered(mounts, at)) seen.places[seen.count++] = mounts->places[at];
    }
    if (seen.count > 0) qsort(seen.places, seen.count, sizeof *seen.places, by_path);
    return seen;
}

static bool find_place(const struct mounts *seen, const char *written, size_t length) {
    struct place wanted = {.path = unescaped(written, length)};
    struct place *found = seen->count == 0 ? NULL : bsearch(&wanted, seen->places, seen->count, sizeof wanted, by_path);
    free(wanted.path);
    if (found != NULL) found->is_found = true;
    return found != NULL;
}

/* Adds the lines of mountinfo for what is mounted at `root` and below. */
static void add_lines(struct text *list, const char *lines, const char *root, const struct mounts *seen) {
    size_t above = strlen(root);
    struct line line;
    for (const char *rest = lines; (rest = next_line(rest, &line)) != NULL;) {
        const char *place = line.words[PLACE];
        int size = line.lengths[PLACE];
        if (!is_within(place, (size_t)size, root, above)) continue;
        bool is_root = (size_t)size == above;
        place = is_root ? "/" : place + above;
        size = is_root ? 1 : size - (int)above;
        add_line(list, find_place(seen, place, (size_t)size) ? "mount" : "beside", &line, place, size);
    }
}

static void add_place(struct text *list, const struct place *place) {
    char *entry = NULL;
    int size = place->is_any ? asprintf(&entry, "any %s", place->path)
                             : asprintf(&entry, "inode %llu:%llu %s", (unsigned long long)place->device,
                                        (unsigned long long)place->inode, place->path);
    if (size < 0) end_without_memory();
    add(list, entry, (size_t)size + 1);
    free(entry);
}

char *list_mounts(const struct mounts *mounts, const char *mountinfo, const char *root, size_t *length,
                  const char **lost) {
    struct text lines = {NULL, 0, 0}, list = {NULL, 0, 0};
    if (!read_path(mountinfo, &lines)) return NULL;
    struct mounts seen = visible(mounts);
    add_lines(&list, lines.bytes, root, &seen);
    free(lines.bytes);
    for (size_t at = 0; at < mounts->count; at++) {
        if (mounts->places[at].is_any) add_place(&list, &mounts->places[at]);
    }
    for (size_t at = 0; at < seen.count; at++) {
        add_place(&list, &seen.places[at]);
        if (!seen.places[at].is_found) *lost = seen.places[at].path;
    }
    free(seen.places);
    *length = list.length;
    return *lost == NULL ? list.bytes : NULL;
}

/* Whether an entry must be found, beside what it says: "DEVICE OPTIONS PLACE", or the place alone. */
struct entry {
    const char *text;
    bool may_be_missing;
};

struct entries {
    struct entry *list;
    size_t count;
};

static void collect(struct entries *entries, const char *text, bool may_be_missing) {
    if (entries->count % 256 == 0) {
        entries->list = resize(entries->list, (entries->count + 256) * sizeof *entries->list);
    }
    entries->list[entries->count++] = (struct entry){text, may_be_missing};
}

/* What is behind the first word of an entry, if that is its kind; otherwise NULL. */
static const char *behind(const char *entry, const char *kind) {
    size_t length = strlen(kind);
    return strncmp(entry, kind, length) == 0 && entry[length] == ' ' ? entry + length + 1 : NULL;
}

/* What is behind the second space of "DEVICE OPTIONS PLACE"; NULL if that is no place. */
static const char *place_of(const char *text) {
    for (int spaces = 0; spaces < 2; spaces++) {
        text = strchr(text, ' ');
        if (text == NULL) return NULL;
        text++;
    }
    return *text == '/' ? text : NULL;
}

static bool is_any(const struct entries *any, const char *written) {
    char *place = unescaped(written, strlen(written));
    bool found = false;
    for (size_t at = 0; at < any->count && !found; at++) {
        found = is_within(place, strlen(place), any->list[at].text, strlen(any->list[at].text));
    }
    free(place);
    return found;
}

static void collect_mount(struct entries *mounts, const struct entries *any, const char *text, bool may_be_missing) {
    if (!is_any(any, place_of(text))) collect(mounts, text, may_be_missing);
}

static int by_text(const void *one, const void *other) {
    return strcmp(((const struct entry *)one)->text, ((const struct entry *)other)->text);
}

static const char *compare_lines(struct entries *expected, struct entries *found, const char **place) {
    if (expected->count > 0) qsort(expected->list, expected->count, sizeof *expected->list, by_text);
    if (found->count > 0) qsort(found->list, found->count, sizeof *found->list, by_text);
    for (size_t wanted = 0, at = 0; wanted < expected->count || at < found->count;) {
        const struct entry *next = &expected->list[wanted], *here = &found->list[at];
        int order = at == found->count ? -1 : wanted == expected->count ? 1 : by_text(next, here);
        *place = place_of(order < 0 ? next->text : here->text);
        if (order > 0) return "a mount is there that the plan does not have";
        if (order < 0 && !next->may_be_missing) return "its mount is missing";
        wanted++;
        if (order == 0) at++;
    }
    return NULL;
}

/*
 * `entry` is "DEVICE:INODE PLACE". A place that root may not look up inside has its line of mountinfo alone: outside,
 * root may. An ordinary user mounts nothing where it may not look, so there an agent has shut a directory meanwhile.
 */
static bool is_same_inode(const char *entry, const char **place, const char *directory) {
    *place = strchr(entry, ' ') + 1;
    int file = open(*place, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return errno == EACCES && getuid() == 0;
    struct stat stat;
    char found[64];
    bool done = fstat(file, &stat) == 0;
    snprintf(found, sizeof found, "%llu:%llu ", (unsigned long long)stat.st_dev, (unsigned long long)stat.st_ino);
    done = done && strncmp(entry, found, strlen(found)) == 0;
    /* By the descriptor that was compared: the name may lead elsewhere a moment later, or has done so before. */
    if (done && directory != NULL && strcmp(*place, directory) == 0) done = fchdir(file) == 0;
    close(file);
    return done;
}

/* What a list says, by kind. */
struct expectation {
    struct entries mounts, beside, inodes, any;
};

/* False if there is something else than an entry. */
static bool take_entry(const char *entry, struct expectation *expected) {
    const char *mount = behind(entry, "mount"), *beside = behind(entry, "beside");
    const char *inode = behind(entry, "inode"), *any = behind(entry, "any");
    if (mount != NULL && place_of(mount) != NULL) collect(&expected->mounts, mount, false);
    else if (beside != NULL && place_of(beside) != NULL) collect(&expected->beside, beside, true);
    else if (inode != NULL && strstr(inode, " /") != NULL) collect(&expected->inodes, inode, false);
    else if (any != NULL && *any == '/') collect(&expected->any, any, true);
    else return false;
    return true;
}

/* Each entry ends with NUL. Behind them all is the one of read_whole(). */
static bool take_entries(const struct text *list, struct expectation *expected) {
    const char *end = list->bytes + list->length - 1;
    if (end > list->bytes && end[-1] != '\0') return false;
    for (const char *entry = list->bytes; entry < end; entry += strlen(entry) + 1) {
        if (!take_entry(entry, expected)) return false;
    }
    return true;
}

static void collect_lines(struct entries *found, struct text *lines, const struct entries *any, struct text *kept) {
    struct line line;
    for (const char *rest = lines->bytes; (rest = next_line(rest, &line)) != NULL;) {
        add_line(kept, "here", &line, line.words[PLACE], line.lengths[PLACE]);
    }
    for (const char *entry = kept->bytes; entry < kept->bytes + kept->length; entry += strlen(entry) + 1) {
        collect_mount(found, any, behind(entry, "here"), false);
    }
}

const char *compare_mounts(int list, const char *directory, const char **place) {
    struct text listed = {NULL, 0, 0}, lines = {NULL, 0, 0}, kept = {NULL, 0, 0};
    struct expectation expected = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    struct entries mounts = {NULL, 0}, found = {NULL, 0};
    *place = "/proc/self/mountinfo";
    if (!read_whole(list, &listed) || !take_entries(&listed, &expected) || !read_path(*place, &lines)) {
        return "the list of mounts cannot be read";
    }
    const struct entries *all[] = {&expected.mounts, &expected.beside};
    for (size_t kind = 0; kind < 2; kind++) {
        for (size_t at = 0; at < all[kind]->count; at++) {
            collect_mount(&mounts, &expected.any, all[kind]->list[at].text, all[kind]->list[at].may_be_missing);
        }
    }
    collect_lines(&found, &lines, &expected.any, &kept);

    const char *wrong = compare_lines(&mounts, &found, place);
    for (size_t at = 0; wrong == NULL && at < expected.inodes.count; at++) {
        if (!is_same_inode(expected.inodes.list[at].text, place, directory)) wrong = "another file or directory is mounted there";
    }
    return wrong;
}
