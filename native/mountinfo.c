#include "mountinfo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST = 8 * 1024 * 1024, AT_FIRST = 65536, LONGEST_PATH = 4096 };

const char *take_word(const char **at, const char *end) {
    const char *word = *at, *last = memchr(word, '\0', (size_t)(end - word));
    if (last != NULL) *at = last + 1;
    return last == NULL ? NULL : word;
}

char *load_mounts(void) {
    size_t length = 0, room = AT_FIRST;
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

const char *word_of(const char *line, int n) {
    for (; n > 0; n--) line += strcspn(line, " \n") + (line[strcspn(line, " \n")] == ' ');
    return line;
}

bool read_path(const char *written, char *path, size_t room) {
    size_t length = 0;
    while (*written != ' ' && *written != '\n' && *written != '\0') {
        char byte = *written++;
        if (byte == '\\' && strlen(written) >= 3) {
            byte = (char)((written[0] - '0') << 6 | (written[1] - '0') << 3 | (written[2] - '0'));
            written += 3;
        }
        if (length + 1 >= room) return false;
        path[length++] = byte;
    }
    path[length] = '\0';
    return true;
}

const char *mount_at(const char *mounts, const char *path) {
    const char *found = "no";
    char at[LONGEST_PATH];
    for (const char *line = mounts; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (!read_path(word_of(line, 4), at, sizeof at) || strcmp(at, path) != 0) continue;
        found = strncmp(word_of(line, 5), "ro", 2) == 0 ? "ro" : "rw";
    }
    return found;
}

bool is_identity(const char *path, const char *identity) {
    struct stat stat;
    char found[64];
    if (lstat(path, &stat) != 0) return false;
    snprintf(found, sizeof found, "%llu:%llu", (unsigned long long)stat.st_dev, (unsigned long long)stat.st_ino);
    return strcmp(found, identity) == 0;
}
