#include "git-alias.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words.h"

enum { MAX_ALIAS = 4096 };

/* The question: git OPTIONS… config --get alias.NAME */
static char **compose(char *const *options, const char *name) {
    size_t size = strlen("alias.") + strlen(name) + 1;
    char *key = allocate(size);
    snprintf(key, size, "alias.%s", name);
    char *const git[] = {"git", NULL}, *const ask[] = {"config", "--get", key, NULL};
    return concatenate(concatenate(git, options), ask);
}

/* The caller may have closed the standard descriptors, so that the pipe got one of their numbers: move it first. */
static _Noreturn void answer(const char *real, char **question, int pipe_end) {
    int output = fcntl(pipe_end, F_DUPFD_CLOEXEC, 3), nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0 &&
        dup2(output, STDOUT_FILENO) >= 0) {
        execv(real, question);
    }
    _exit(127);
}

char *ask_alias(const char *real, char *const *options, const char *name) {
    char **question = compose(options, name);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
    pid_t child = fork();
    if (child == 0) answer(real, question, ends[1]);
    close(ends[1]);

    char *text = allocate(MAX_ALIAS + 1);
    ssize_t length = child < 0 ? -1 : read_all(ends[0], text, MAX_ALIAS);
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;

    /* git prints nothing but the value, and a newline after it. */
    if (length > 0 && text[length - 1] == '\n') text[--length] = '\0';
    return length > 0 ? text : NULL;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Quotes and backslashes mean what git's split_cmdline gives them. */
char **split_alias(char *text) {
    char **words = allocate((strlen(text) + 2) * sizeof *words);
    size_t count = 0;
    char quote = '\0', *to = text;
    words[count++] = to;
    for (const char *from = text; *from != '\0';) {
        char c = *from++;
        if (quote == '\0' && is_blank(c)) {
            while (is_blank(*from)) from++;
            *to++ = '\0';
            words[count++] = to;
        } else if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == quote) {
            quote = '\0';
        } else {
            if (c == '\\' && quote != '\'') c = *from++;
            if (c == '\0') return NULL;
            *to++ = c;
        }
    }
    *to = '\0';
    return quote == '\0' ? words : NULL;
}
