#include "porter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"
#include "doors.h"
#include "info.h"
#include "moment.h"

/* The porter's own descriptors, besides the complaints at 2. */
enum { CHANNEL = 3, INFO = 4, LEAVE_TO_BEGIN = 5 };

enum { LONGEST_INFO = 4096, INFO_MS = 30000, FAILED = 125 };

static _Noreturn void fail(const char *wrong) {
    complain_of_doors(wrong);
    exit(FAILED);
}

/* What bubblewrap says, to its end. */
static size_t read_info(char *bytes, size_t room) {
    size_t length = 0;
    for (long long end = moment() + INFO_MS; length < room;) {
        struct pollfd watched = {.fd = INFO, .events = POLLIN};
        long long left = end - moment();
        errno = ETIMEDOUT;
        if (left <= 0) fail("bubblewrap does not tell of the box");
        if (poll(&watched, 1, (int)left) <= 0) continue;
        ssize_t count = read(INFO, bytes + length, room - length);
        if (count < 0) fail("cannot read what bubblewrap tells of the box");
        if (count == 0) return length;
        length += (size_t)count;
    }
    errno = EMSGSIZE;
    fail("cannot read what bubblewrap tells of the box");
}

/*
 * Nothing of the caller's stays with it, and no signal of the terminal ends it. It never lives longer than it is
 * waited for: every wait of its own is bounded.
 */
static void keep_only(int channel, int info, int leave) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(channel, CHANNEL) < 0 || dup2(info, INFO) < 0 || dup2(leave, LEAVE_TO_BEGIN) < 0 ||
        dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || !close_from(LEAVE_TO_BEGIN + 1)) {
        fail("cannot put descriptors in place");
    }
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "podbot-gate");
}

static _Noreturn void be_porter(const uint16_t *ports, size_t count) {
    char bytes[LONGEST_INFO + 1];
    size_t length = read_info(bytes, LONGEST_INFO);
    if (length == 0) exit(FAILED); /* bubblewrap never got so far, and says itself why */
    bytes[length] = '\0';

    struct info info;
    errno = 0;
    if (!parse_info(bytes, length, &info)) fail("bubblewrap tells nothing of the box that makes sense");
    struct doors doors = {.pid = info.pid, .network = info.network, .ports = ports, .count = count};
    const char *wrong = open_doors(&doors, CHANNEL);
    if (wrong == NULL) wrong = await_leave(CHANNEL);
    if (wrong != NULL) fail(wrong);
    exit(write(LEAVE_TO_BEGIN, "", 1) == 1 ? 0 : FAILED);
}

/* A child of bubblewrap's would be taken for its box. So it is nobody's, and has a session of its own. */
static bool fork_away(void) {
    int status;
    pid_t between = fork();
    if (between == 0) {
        setsid();
        pid_t porter = fork();
        if (porter == 0) return true;
        _exit(porter < 0 ? errno : 0);
    }
    if (between > 0 && waitpid(between, &status, 0) == between && WIFEXITED(status)) errno = WEXITSTATUS(status);
    return false;
}

const char *start_porter(int channel, const uint16_t *ports, size_t count) {
    int info[2], leave[2];
    if (pipe2(info, O_CLOEXEC) != 0 || pipe2(leave, O_CLOEXEC) != 0) return "cannot make a pipe";
    errno = 0;
    if (fork_away()) {
        keep_only(channel, info[0], leave[1]);
        be_porter(ports, count);
    }
    if (errno != 0) return "cannot start the gate";
    if (dup2(info[1], channel) < 0 || dup2(leave[0], channel + 1) < 0 || !close_from(channel + 2)) {
        return "cannot put the gate's pipes in place";
    }
    return NULL;
}
