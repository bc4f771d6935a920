/*
 * podbot-launch PARENT_PID BWRAP — outside the wall; builds what the box will see, prepares what Node cannot, then
 * becomes bubblewrap. With --probe it only tries whether mounts can be built here.
 *
 * Node cannot make memory files, close the descriptors that it was itself given, or ignore signals for a child.
 *
 * Descriptors. Whoever writes the letter counts by the same list, because the options name these numbers:
 *
 *   0, 1           the caller's own
 *   2              complaints: ours, and bubblewrap's until the command starts
 *   3              the letter, read to its end; then a descriptor of this very process, by which podbot-enter sees
 *                  whether it still lives
 *   4              the caller's real stderr, which podbot-enter puts back in place
 *   5 … 5+P-1      pins: opened paths, and pipes with files that are still being made
 *   F … F+D-1      one memory file for each data blob, in the letter's order; F is 5+P. Where there is a tree of
 *                  mounts, the first one is the list of them, for podbot-enter
 *   F+D            the option words, each ended by NUL, for bubblewrap's --args
 *
 * If the box is to have doors, F is 5+P+2. Node's channel comes at 5+P, and goes to a process of its own, which opens
 * the doors, hands them over and waits for the word that somebody is behind them: see porter.h. Then bubblewrap finds
 *
 *   5+P            where it tells of the box, for --info-fd
 *   5+P+1          what podbot-enter waits at, until the doors are there: at its end they will never be
 *
 * The letter is "podbot1\n", P as a 32-bit little-endian number, then records: a type byte, a 32-bit little-endian
 * length, and as many bytes.
 *
 *   A  one option word for bubblewrap      C  one word of the command inside
 *   D  one data blob                       E  the end: length 0, and nothing after it
 *   M  one step of building the tree of mounts, before all A, C and D: see tree.h
 *   G  before all others: there are doors, at these ports, each a 16-bit little-endian number
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptors.h"
#include "devices.h"
#include "doors.h"
#include "failure.h"
#include "porter.h"
#include "tree.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static const int CALLERS[] = {STDIN_FILENO, STDOUT_FILENO, 4};

enum {
    LETTER = 3,
    FIRST_PIN = 5,
    FIRST_ROOM = 64 * 1024,
    MAX_LETTER = 16 * 1024 * 1024,
    MAX_PINS = 65536,
    MAX_BLOBS = 4096,
    MAX_WORDS = 65536,
};

static const char MAGIC[] = "podbot1\n";

struct letter {
    const unsigned char *next, *end;
};

/* What the letter asks for, and how far it has been carried out. */
struct order {
    int next_descriptor;
    size_t blobs, words;
    char *options;
    size_t options_length;
    bool builds_tree, has_own_mounts;
    char **command; /* bubblewrap's argument vector; the words of the command follow its first four */
    size_t command_length;
};

static void *allocate(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL) fail("out of memory");
    return memory;
}

/* The check comes after the request: a parent that died in between has already been replaced by another. */
static void die_with_parent(int parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail_with_error("cannot ask to die with the parent");
    if (getppid() != parent) fail("the parent process is gone");
}

/* Returns 0 at the end. The descriptor may be a socket that somebody has set to non-blocking. */
static size_t read_some(unsigned char *buffer, size_t size) {
    for (;;) {
        ssize_t count = read(LETTER, buffer, size);
        if (count >= 0) return (size_t)count;
        if (errno == EAGAIN) {
            struct pollfd letter = {.fd = LETTER, .events = POLLIN};
            poll(&letter, 1, -1);
        } else if (errno != EINTR) {
            fail_with_error("cannot read the letter");
        }
    }
}

static unsigned char *resize(unsigned char *bytes, size_t size) {
    unsigned char *moved = realloc(bytes, size);
    if (moved == NULL) fail("out of memory");
    return moved;
}

static struct letter read_letter(void) {
    unsigned char *bytes = NULL;
    size_t room = 0, length = 0, count;
    do {
        if (length == room) bytes = resize(bytes, room += room + FIRST_ROOM);
        count = read_some(bytes + length, room - length);
        length += count;
        if (length > MAX_LETTER) fail("the letter is too long");
    } while (count > 0);
    bytes = resize(bytes, length > 0 ? length : 1); /* tight, so that a sanitizer sees any step beyond it */
    return (struct letter){bytes, bytes + length};
}

static const unsigned char *take(struct letter *letter, size_t length) {
    if ((size_t)(letter->end - letter->next) < length) fail("the letter is truncated");
    const unsigned char *bytes = letter->next;
    letter->next += length;
    return bytes;
}

static uint32_t take_number(struct letter *letter) {
    const unsigned char *byte = take(letter, 4);
    return byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

/* Returns the first number after the pins. */
static int take_heading(struct letter *letter) {
    size_t length = sizeof MAGIC - 1;
    if (memcmp(take(letter, length), MAGIC, length) != 0) fail("the letter does not begin as one");
    uint32_t pins = take_number(letter);
    if (pins > MAX_PINS) fail("the letter names too many pins");
    return FIRST_PIN + (int)pins;
}

/*
 * Leaves exactly the descriptors 0 to `count`-1 open, so that the kernel, which gives out the lowest free number,
 * numbers the memory files as the letter's writer has counted them.
 */
static void keep_first_descriptors(int count) {
    for (int number = 0; number < count; number++) {
        if (fcntl(number, F_GETFD) >= 0) continue;
        dprintf(STDERR_FILENO, "podbot-launch: descriptor %d is missing\n", number);
        exit(FAILED);
    }
    if (!close_from(count)) fail_with_error("cannot close inherited descriptors");
}

static bool has_doors(const struct letter *letter) {
    return letter->next < letter->end && *letter->next == 'G';
}

/* Takes the channel away, and leaves two other descriptors instead. */
static void open_doors_later(struct letter *letter, struct order *order) {
    static uint16_t ports[MAX_DOORS];
    take(letter, 1);
    uint32_t length = take_number(letter);
    const unsigned char *bytes = take(letter, length);
    if (length % 2 != 0 || length / 2 > MAX_DOORS) fail("the letter names no such doors");
    for (size_t at = 0; at < length / 2; at++) {
        ports[at] = (uint16_t)(bytes[2 * at] | bytes[2 * at + 1] << 8);
        if (ports[at] == 0) fail("the letter names no such doors");
    }

    const char *wrong = start_porter(order->next_descriptor, ports, length / 2);
    if (wrong != NULL) fail_with_error(wrong);
    order->next_descriptor += 2;
    if (clearenv() != 0) fail("cannot clear the environment"); /* in which Node has told of its channel */
}

static void store(struct order *order, const void *bytes, size_t length) {
    int file = memfd_create("podbot", 0);
    if (file < 0) fail_with_error("cannot make a memory file");
    if (file != order->next_descriptor) fail("a memory file has an unexpected number");
    order->next_descriptor++;

    for (const char *next = bytes, *end = next + length; next < end;) {
        ssize_t count = write(file, next, (size_t)(end - next));
        if (count < 0 && errno != EINTR) fail_with_error("cannot fill a memory file");
        if (count > 0) next += count;
    }
    if (lseek(file, 0, SEEK_SET) != 0) fail_with_error("cannot rewind a memory file");
}

static void add_blob(struct order *order, const unsigned char *bytes, size_t length) {
    if (++order->blobs > MAX_BLOBS) fail("the letter holds too many blobs");
    store(order, bytes, length);
}

static void check_word(struct order *order, const unsigned char *bytes, size_t length) {
    if (++order->words > MAX_WORDS) fail("the letter holds too many words");
    if (memchr(bytes, '\0', length) != NULL) fail("the letter holds a word with a NUL in it");
}

static void add_option(struct order *order, const unsigned char *bytes, size_t length) {
    check_word(order, bytes, length);
    memcpy(order->options + order->options_length, bytes, length);
    order->options[order->options_length + length] = '\0';
    order->options_length += length + 1;
}

static void add_command_word(struct order *order, const unsigned char *bytes, size_t length) {
    check_word(order, bytes, length);
    char *word = allocate(length + 1);
    memcpy(word, bytes, length);
    word[length] = '\0';
    order->command[order->command_length++] = word;
}

static void add_mount_step(struct order *order, const unsigned char *bytes, size_t length) {
    if (order->words > 0 || order->blobs > 0) fail("the letter mounts too late");
    if (!order->builds_tree) begin_tree();
    order->builds_tree = order->has_own_mounts = true;
    take_step((const char *)bytes, length);
}

static void store_mounts(struct order *order) {
    size_t length;
    char *list = finish_tree(&length);
    store(order, list, length);
    order->builds_tree = false;
}

static void follow(struct letter *letter, struct order *order) {
    for (;;) {
        unsigned char type = *take(letter, 1);
        uint32_t length = take_number(letter);
        const unsigned char *bytes = take(letter, length);
        if (type != 'M' && order->builds_tree) store_mounts(order);
        switch (type) {
        case 'M': add_mount_step(order, bytes, length); break;
        case 'A': add_option(order, bytes, length); break;
        case 'C': add_command_word(order, bytes, length); break;
        case 'D': add_blob(order, bytes, length); break;
        case 'E':
            if (length != 0 || letter->next != letter->end) fail("the letter goes on after its end");
            return;
        default: fail("the letter holds an unknown record");
        }
    }
}

/*
 * A Ctrl-C goes to everybody at the terminal. Were it to kill bubblewrap, --die-with-parent would kill the command
 * before it could handle the signal; podbot-enter gives the command its signals back.
 */
static void leave_signals_to_the_command(void) {
    const int signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void become_bwrap(const char *path, struct order *order, int options) {
    char number[16];
    snprintf(number, sizeof number, "%d", options);
    order->command[0] = "bwrap";
    order->command[1] = "--args";
    order->command[2] = number;
    order->command[3] = "--";
    order->command[order->command_length] = NULL;
    execv(path, order->command);
    fail_with_error("cannot execute bubblewrap");
}

/*
 * bubblewrap asks for its child to die with it only some time after it has made it. If it is killed in between, the
 * child goes on building and nobody waits for it. Kernels before 5.3 cannot say; there it stays so.
 */
static void leave_sign_of_life(void) {
    close(LETTER);
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0); /* the lowest free number, which is the letter's */
    if (self < 0) return;
    if (self != LETTER || fcntl(self, F_SETFD, 0) != 0) fail("cannot leave a sign of life");
}

/* Whether this machine lets a tree of mounts be built: for `podbot doctor`. */
static int probe(void) {
    static const char root[] = "tmpfs\0000755\0/";
    size_t length;
    begin_tree();
    take_step(root, sizeof root);
    free(finish_tree(&length));
    return 0;
}

int main(int argc, char **argv) {
    int parent;
    if (argc == 2 && strcmp(argv[1], "--probe") == 0) return probe();
    if (argc != 3 || !parse_number(argv[1], &parent) || argv[2][0] != '/') {
        fail("usage: podbot-launch PARENT_PID /PATH/TO/BWRAP");
    }
    die_with_parent(parent);

    struct letter letter = read_letter();
    size_t length = (size_t)(letter.end - letter.next);
    struct order order = {
        .next_descriptor = take_heading(&letter),
        .options = allocate(length + 1), /* a word takes five bytes more in the letter than its NUL takes here */
        .command = allocate((MAX_WORDS + 5) * sizeof(char *)),
        .command_length = 4,
    };
    bool is_guarded = has_doors(&letter);
    keep_first_descriptors(order.next_descriptor + is_guarded);
    if (is_guarded) open_doors_later(&letter, &order);
    follow(&letter, &order);
    if (order.command_length == 4) fail("the letter names no command");

    int options = order.next_descriptor;
    store(&order, order.options, order.options_length);
    protect_devices(CALLERS, sizeof CALLERS / sizeof *CALLERS, order.has_own_mounts);
    leave_sign_of_life();
    leave_signals_to_the_command();
    become_bwrap(argv[2], &order, options);
}
