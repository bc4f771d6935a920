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

/* The kernel writes some bytes of a path as a backslash and three octal digits. Compares up to the space behind it. */
static bool is_path(const char *written, const char *path) {
    for (; *written != ' ' && *written != '\0'; path++) {
        char byte = *written++;
        if (byte == '\\' && strlen(written) >= 3) {
            byte = (char)((written[0] - '0') << 6 | (written[1] - '0') << 3 | (written[2] - '0'));
            written += 3;
        }
        if (byte != *path || byte == '\0') return false;
    }
    return *path == '\0';
}

/* The n-th word of a line, counted from 0; never NULL. */
static const char *word_of(const char *line, int n) {
    for (; n > 0; n--) line += strcspn(line, " ") + (line[strcspn(line, " ")] == ' ');
    return line;
}

/* "ro" or "rw" as the mount on top at a path has it; "no" if there is no mount just there. */
static const char *mount_at(const char *mounts, const char *path) {
    const char *found = "no";
    for (const char *line = mounts; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (is_path(word_of(line, 4), path)) found = strncmp(word_of(line, 5), "ro", 2) == 0 ? "ro" : "rw";
    }
    return found;
}

static char *load_mounts(void) {
    size_t length = 0, room = 65536;
    char *text = malloc(room);
    int file = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    ssize_t count = text == NULL || file < 0 ? -1 : 1;
    while (count > 0) {
        count = read(file, text + length, room - length - 1);
        if (count > 0 && (length += (size_t)count) + 1 == room) {
            char *more = room > LARGEST ? NULL : realloc(text, room *= 2);
            if (more == NULL) count = -1;
            else text = more;
        }
    }
    if (file >= 0) close(file);
    if (count < 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

/* Takes a word that ends before a NUL. NULL if there is none. */
static const char *take_word(const char **at, const char *end) {
    const char *word = *at, *last = memchr(word, '\0', (size_t)(end - word));
    if (last != NULL) *at = last + 1;
    return last == NULL ? NULL : word;
}

/* Words in threes: a path, the DEVICE:INODE that must be mounted there, and whether that must be "ro" or "rw". */
static const char *check_mounts(const char *at, const char *end) {
    static char wrong[4096];
    char *mounts = at == end ? NULL : load_mounts();
    if (at < end && mounts == NULL) return "the mounts cannot be read";
    while (at < end) {
        const char *path = take_word(&at, end), *meant = path == NULL ? NULL : take_word(&at, end);
        const char *access = meant == NULL ? NULL : take_word(&at, end);
        if (access == NULL) return "a mount without an identity";
        struct stat stat;
        char found[64] = "nothing";
        if (lstat(path, &stat) == 0) {
            snprintf(found, sizeof found, "%llu:%llu", (unsigned long long)stat.st_dev, (unsigned long long)stat.st_ino);
        }
        if (strcmp(found, meant) != 0 || strcmp(mount_at(mounts, path), access) != 0) {
            snprintf(wrong, sizeof wrong, "mount %s", path);
            return wrong;
        }
    }
    free(mounts);
    return NULL;
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
static bool take_part(char **at, const char *end, char **part, size_t *length) {
    if (end - *at < 4) return false;
    *length = number_at(*at);
    *part = *at + 4;
    if ((size_t)(end - *part) < *length) return false;
    *at = *part + *length;
    return true;
}

const char *read_birth(const char *path, char *token, size_t token_length) {
    size_t length, filter_length, mounts_length;
    char *at = load(path, &length), *end, *filter, *mounts;
    if (at == NULL) return "the birth cannot be read";
    end = at + length;
    if (length < token_length) return "the birth is too short";
    memcpy(token, at, token_length);
    at += token_length;
    if (!take_part(&at, end, &filter, &filter_length) || !take_part(&at, end, &mounts, &mounts_length)) {
        return "the birth is too short";
    }
    const char *wrong = check_mounts(mounts, mounts + mounts_length);
    if (wrong == NULL) wrong = set_variables(at, end);
    return wrong != NULL ? wrong : install_filter(filter, filter_length);
}
