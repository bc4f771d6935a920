#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        dprintf(STDERR_FILENO, "podbot: out of memory\n");
        exit(126);
    }
    return memory;
}

bool same(const char *one, const char *other) { return strcmp(one, other) == 0; }

bool starts_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

size_t count_words(char *const *words) {
    size_t count = 0;
    while (words[count] != NULL) count++;
    return count;
}

char **first_words(char *const *words, size_t count) {
    char **some = allocate((count + 1) * sizeof *some);
    memcpy(some, words, count * sizeof *some);
    return some;
}

char **concatenate(char *const *words, char *const *more) {
    size_t first = count_words(words), second = count_words(more);
    char **all = allocate((first + second + 1) * sizeof *all);
    memcpy(all, words, first * sizeof *all);
    memcpy(all + first, more, second * sizeof *all);
    return all;
}

char *join(const char *first, char *const *words) {
    size_t size = strlen(first) + 1;
    for (char *const *word = words; *word != NULL; word++) size += strlen(*word) + 1;
    char *text = allocate(size), *end = stpcpy(text, first);
    for (char *const *word = words; *word != NULL; word++) end = stpcpy(stpcpy(end, " "), *word);
    return text;
}

ssize_t read_all(int file, char *buffer, size_t size) {
    size_t length = 0;
    while (length < size) {
        ssize_t count = read(file, buffer + length, size - length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        if (count == 0) break;
        length += (size_t)count;
    }
    return (ssize_t)length;
}
