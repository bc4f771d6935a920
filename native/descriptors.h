#ifndef PODBOT_DESCRIPTORS_H
#define PODBOT_DESCRIPTORS_H

#include <stdbool.h>

/* Closes every descriptor from `first` upwards. False if that cannot be assured; errno says why. */
bool close_from(int first);

/* Reads a decimal number without sign, blanks or anything after it. False unless it fits an int. */
bool parse_number(const char *text, int *number);

#endif
