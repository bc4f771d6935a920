#include "birth.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extras.h"
#include "mountinfo.h"

/* As the kernel has them; its headers are not those of every C library. */
struct instruction {
    uint16_t code;
    uint8_t if_true, if_false;
    uint32_t k;
};
struct program {
    unsigned short length;
    struct instruction *instructions;
};

enum { LARGEST = 8 * 1024 * 1024, INSTRUCTION = sizeof(struct instruction), MOST_INSTRUCTIONS = 4096, FILTER = 2 };

static bool read_whole(int file, char *bytes, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t count = read(file, bytes + done, length - done);
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return true;
}

/* The file with a NUL behind it. It stays in memory, since variables are not copied from it. */
static char *load(const char *path, size_t *length) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return NULL;
    struct stat stat;
    char *bytes = NULL;
    if (fstat(file, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size <= LARGEST) {
        *length = (size_t)stat.st_size;
        bytes = malloc(*length + 1);
    }
    if (bytes != NULL && !read_whole(file, bytes, *length)) {
        free(bytes);
        bytes = NULL;
    }
    if (bytes != NULL) bytes[*length] = '\0';
    close(file);
    return bytes;
}

static size_t number_at(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

/* Words in threes: a path, the DEVICE:INODE that must be mounted there, and whether that must be "ro" or "rw". */
static const char *check_mounts(const char *mounts, const char *at, const char *end) {
    static char wrong[4096];
    while (at < end) {
        const char *path = take_word(&at, end), *meant = path == NULL ? NULL : take_word(&at, end);
        const char *access = meant == NULL ? NULL : take_word(&at, end);
        if (access == NULL) return "a mount without an identity";
        if (!is_identity(path, meant) || strcmp(mount_at(mounts, path), access) != 0) {
            snprintf(wrong, sizeof wrong, "mount %s", path);
            return wrong;
        }
    }
    return NULL;
}

/* Both parts may be empty: where the kernel of the box shows mounts of its own, nothing can be said of them. */
static const char *check_box(struct part expected, struct part bounds) {
    if (expected.length == 0 && bounds.length == 0) return NULL;
    char *mounts = load_mounts();
    if (mounts == NULL) return "the mounts cannot be read";
    const char *wrong = check_mounts(mounts, expected.bytes, expected.bytes + expected.length);
    if (wrong == NULL && bounds.length > 0) wrong = find_extras(mounts, expected, bounds);
    free(mounts);
    return wrong;
}

static const char *set_variables(char *at, const char *end) {
    while (at < end) {
        char *next = at + strlen(at) + 1;
        if (next > end) return "the last variable has no end";
        if (at[0] == '=' || strchr(at, '=') == NULL) return "a variable without a name";
        if (putenv(at) != 0) return "there is no memory for the environment";
        at = next;
    }
    return NULL;
}

static const char *install_filter(const char *bytes, size_t length) {
    if (length == 0) return NULL;
    if (length % INSTRUCTION != 0 || length / INSTRUCTION > MOST_INSTRUCTIONS) return "the filter has no such length";
    struct instruction *aligned = malloc(length);
    if (aligned == NULL) return "there is no memory for the filter";
    memcpy(aligned, bytes, length);
    struct program program = {.length = (unsigned short)(length / INSTRUCTION), .instructions = aligned};
    bool installed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                     prctl(PR_SET_SECCOMP, FILTER, &program, 0, 0) == 0;
    free(aligned);
    return installed ? NULL : "the system call filter cannot be installed";
}

/* Takes a length and as many bytes. False if there are not so many left. */
static bool take_part(const char **at, const char *end, struct part *part) {
    if (end - *at < 4) return false;
    part->length = number_at(*at);
    part->bytes = *at + 4;
    if ((size_t)(end - part->bytes) < part->length) return false;
    *at = part->bytes + part->length;
    return true;
}

const char *read_birth(const char *path, char *token, size_t token_length) {
    size_t length;
    char *birth = load(path, &length);
    if (birth == NULL) return "the birth cannot be read";
    if (length < token_length) return "the birth is too short";
    memcpy(token, birth, token_length);

    const char *at = birth + token_length, *end = birth + length;
    struct part filter, expected, bounds;
    if (!take_part(&at, end, &filter) || !take_part(&at, end, &expected) || !take_part(&at, end, &bounds)) {
        return "the birth is too short";
    }
    const char *wrong = check_box(expected, bounds);
    if (wrong == NULL && bounds.length > 0) drop_variables(bounds);
    if (wrong == NULL) wrong = set_variables(birth + (at - birth), end);
    return wrong != NULL ? wrong : install_filter(filter.bytes, filter.length);
}
