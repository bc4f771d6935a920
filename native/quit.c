#include "quit.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "descriptors.h"
#include "moment.h"

enum { LOOK_AGAIN_MS = 10, LAST_WORDS_MS = 2000 };

/* Kinds of processes, to be combined. */
enum { ATTENDANTS = 1, OTHERS = 2 };

/* A process can give itself one of these names. Then it is waited for too briefly, and dies with the box. */
#define QUITTER "podbot-quit"

/* The kind of a process; 0 if it is dead, or asks others to quit as this one does. */
static int kind_of(const char *number) {
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, stat, sizeof stat - 1);
    close(file);
    if (length <= 0) return 0;
    stat[length] = '\0';

    /* "NUMBER (NAME) STATE PARENT …", and the name may hold anything. */
    char state, *name = strchr(stat, '('), *end = strrchr(stat, ')');
    int parent;
    if (name == NULL || end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2) return OTHERS;
    *end = '\0';
    if (state == 'Z' || state == 'X') return 0;
    if (parent == 1 && strcmp(name + 1, QUITTER) == 0) return 0;
    return parent == 1 && strcmp(name + 1, ATTENDANT) == 0 ? ATTENDANTS : OTHERS;
}

/* The kinds of all processes but the warden and this one. */
static int kinds_left(void) {
    DIR *listing = opendir("/proc");
    if (listing == NULL) return kill(-1, 0) == 0 ? OTHERS : 0;
    int found = 0;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        int number;
        if (parse_number(entry->d_name, &number) && number > 1 && number != getpid()) found |= kind_of(entry->d_name);
    }
    closedir(listing);
    return found;
}

static void wait_a_moment(struct conversation *talk) {
    struct pollfd socket = {.fd = talk->socket, .events = POLLIN};
    if (poll(&socket, 1, LOOK_AGAIN_MS) > 0) part(talk); /* nothing can come but the client's end */
}

_Noreturn void quit(struct conversation *talk) {
    prctl(PR_SET_NAME, QUITTER);
    kill(-1, SIGTERM);
    kill(-1, SIGCONT);
    while (kinds_left() & OTHERS) wait_a_moment(talk);
    /*
     * The client ends the box after the answer. The attendants must have told their clients before how the commands
     * ended; but a client that does not read must not hold up the end for long.
     */
    for (long long end = moment() + LAST_WORDS_MS; kinds_left() != 0 && moment() < end;) wait_a_moment(talk);
    say(talk, 'X', "\0\0", 2);
    part(talk);
}
