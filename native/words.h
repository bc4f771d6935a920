#ifndef PODBOT_WORDS_H
#define PODBOT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Zeroed memory; ends the program if there is none. Nothing is freed: the shim soon becomes another program. */
void *allocate(size_t size);

bool same(const char *one, const char *other);
bool starts_with(const char *text, const char *beginning);

/* The text after the last slash. */
const char *base_name(const char *path);

/* Lists of words end with NULL, as argv does. */
size_t count_words(char *const *words);
char **first_words(char *const *words, size_t count);
char **concatenate(char *const *words, char *const *more);

/* `first` and the words, separated by blanks. */
char *join(const char *first, char *const *words);

/* Reads until the end, or until `size` bytes have come. Returns their number, or -1. */
ssize_t read_all(int file, char *buffer, size_t size);

#endif
