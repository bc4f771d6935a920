#include "quit.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"

enum { LOOK_AGAIN_MS = 10 };

/* Whether a process is neither dead nor an attendant. One that only calls itself so is not waited for: no harm. */
static bool counts(const char *number) {
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, stat, sizeof stat - 1);
    close(file);
    if (length <= 0) return false;
    stat[length] = '\0';

    /* "NUMBER (NAME) STATE PARENT …", and the name may hold anything. */
    char state, *name = strchr(stat, '('), *end = strrchr(stat, ')');
    int parent;
    if (name == NULL || end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2) return true;
    *end = '\0';
    return state != 'Z' && state != 'X' && !(parent == 1 && strcmp(name + 1, ATTENDANT) == 0);
}

static bool are_others_left(void) {
    DIR *listing = opendir("/proc");
    if (listing == NULL) return kill(-1, 0) == 0;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(listing)) != NULL;) {
        int number;
        found = parse_number(entry->d_name, &number) && number > 1 && number != getpid() && counts(entry->d_name);
    }
    closedir(listing);
    return found;
}

_Noreturn void quit(struct conversation *talk) {
    kill(-1, SIGTERM);
    kill(-1, SIGCONT);
    while (are_others_left()) {
        struct pollfd socket = {.fd = talk->socket, .events = POLLIN};
        if (poll(&socket, 1, LOOK_AGAIN_MS) > 0) part(talk); /* nothing can come but the client's end */
    }
    say(talk, 'X', "\0\0", 2);
    part(talk);
}
