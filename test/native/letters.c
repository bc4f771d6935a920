/*
 * letters LAUNCH BWRAP FILE FIRST STEP — posts many letters to podbot-launch, faster than Node can start processes.
 * FILE holds letters, each after its length as a 32-bit number; this posts numbers FIRST, FIRST+STEP, … and prints a
 * line for each: its number and the exit status, or 128 and the signal.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LETTER = 3, LAST_PIN = 6 };

static int post(char **argv, const char *letter, uint32_t length) {
    char parent[16];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        int file = memfd_create("letter", 0), nothing = open("/dev/null", O_RDWR);
        if (file < 0 || nothing < 0 || write(file, letter, length) != (ssize_t)length) _exit(98);
        lseek(file, 0, SEEK_SET);
        int spare = fcntl(file, F_DUPFD_CLOEXEC, 100), null = fcntl(nothing, F_DUPFD_CLOEXEC, 100);
        for (int number = 0; number <= LAST_PIN; number++) dup2(number == LETTER ? spare : null, number);
        execl(argv[1], "podbot-launch", parent, argv[2], (char *)NULL);
        _exit(98);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 98;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    FILE *file = fopen(argv[3], "re");
    if (file == NULL) return 2;
    int first = atoi(argv[4]), step = atoi(argv[5]);
    uint32_t length;
    for (int number = 0; fread(&length, sizeof length, 1, file) == 1; number++) {
        char *letter = malloc(length + 1);
        if (letter == NULL || fread(letter, 1, length, file) != length) return 2;
        if (number % step == first) printf("%d %d\n", number, post(argv, letter, length));
        fflush(stdout);
        free(letter);
    }
    return 0;
}
