/*
 * infos FILE — reads many texts as podbot-gate reads what bubblewrap tells of a box. FILE holds them, each after its
 * length as a 32-bit number. Prints a line for each: the process and the network, or "no".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "info.h"

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    uint32_t length;
    if (file == NULL) return 2;
    while (fread(&length, sizeof length, 1, file) == 1) {
        char *text = malloc(length + 1); /* tight, so that a sanitizer sees any step beyond it */
        if (text == NULL || fread(text, 1, length, file) != length) return 2;
        text[length] = '\0';
        struct info info;
        if (parse_info(text, length, &info)) printf("%d %llu\n", info.pid, (unsigned long long)info.network);
        else printf("no\n");
        free(text);
    }
    return 0;
}
