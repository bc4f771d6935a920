/*
 * The @git preset: keeps an agent from the git commands that lose work, skip hooks or rewrite what others have. Like
 * everything in the shim it deters. It judges what is asked for, not what a program could do with the same files.
 */
#include "git.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "git-alias.h"
#include "git-config.h"
#include "git-rules.h"
#include "words.h"

enum { BLOCKED = 126, MAX_QUESTIONS = 8, MAX_DEPTH = 8 };

static char *const NO_WORDS[] = {NULL};

/* What is known while one call is judged. */
struct call {
    const char *real;
    char *const *options; /* those that precede the command; they also decide which repository's aliases count */
    int questions;        /* how many aliases have been asked for; git itself ends the loops that this leaves open */
    int depth;            /* of shell commands within shell commands */
    const char *subject;  /* the command and verb being judged, as in `worktree remove` */
};

static void judge_command(struct call *call, char *const *words);

static _Noreturn void refuse(const struct call *call, const struct rule *rule, const char *detail) {
    refuse_git(call->subject, detail, rule->why, rule->instead);
}

void refuse_git(const char *command, const char *detail, const char *why, const char *instead) {
    dprintf(STDERR_FILENO, "podbot: git %s%s%s is blocked by the @git preset: %s. %s\n", command,
            detail[0] == '\0' ? "" : " ", detail, why, instead);
    exit(BLOCKED);
}

static const char OPTIONS_WITH_VALUE[] =
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --shallow-file";
static const char OPTIONS_THAT_ONLY_PRINT[] =
    "-h --help -v --version --exec-path --html-path --man-path --info-path";

static bool is_one_of(const char *list, const char *word) { return listed(list, word, strlen(word), false); }

/* Returns how many words precede the command, or -1 if git only prints something and runs none. */
static int judge_global_options(char *const *words) {
    int i = 0;
    while (words[i] != NULL && words[i][0] == '-') {
        const char *word = words[i++];
        if (is_one_of(OPTIONS_THAT_ONLY_PRINT, word) || starts_with(word, "--list-cmds=")) return -1;
        if (starts_with(word, "--config-env=")) judge_git_key("--config-env", strchr(word, '=') + 1);
        if (!is_one_of(OPTIONS_WITH_VALUE, word)) continue;
        if (words[i] == NULL) return -1;
        if (same(word, "-c") || same(word, "--config-env")) judge_git_key(word, words[i]);
        i++;
    }
    return i;
}

static bool names_git(const char *word) { return same(base_name(word), "git"); }

static void judge_simple_command(struct call *call, char *const *words) {
    for (; *words != NULL; words++) {
        if (names_git(*words)) judge_command(call, words + 1);
    }
}

/*
 * Judges every `git …` in a shell command. Quotes count as blanks, so that `sh -c 'git …'` is seen through; a text
 * that merely speaks of git may thus be judged as well.
 */
static void judge_shell(struct call *call, const char *command) {
    if (call->depth++ >= MAX_DEPTH) refuse_git("…", "", "it is nested too deeply to be judged", "Run it by itself.");
    char *text = join(command, NO_WORDS); /* a copy, to be cut up */
    char **words = allocate((strlen(text) + 2) * sizeof *words);
    size_t count = 0;
    for (char *next = text, end = ' '; end != '\0';) {
        size_t length = strcspn(next, " \t\r'\"\\<>;&|()`\n");
        end = next[length];
        next[length] = '\0';
        if (length > 0) words[count++] = next;
        next += length + 1;
        if (strchr(";&|()`\n", end) == NULL) continue; /* the end of the text counts as found */
        words[count] = NULL;
        judge_simple_command(call, words);
        count = 0;
    }
    call->depth--;
}

static void judge_value(struct call *call, const struct rule *rule, const char *name, size_t length,
                        const char *value) {
    if (value != NULL && listed(rule->executes, name, length, true)) judge_shell(call, value);
}

/* These two return whether the next word is the option's value. */
static bool judge_long(struct call *call, const struct rule *rule, const char *word, const char *next) {
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    bool has_value = name[length] == '=';
    bool blocked = listed(rule->blocked, name, length, true) && (has_value || !rule->with_value);
    if (blocked) refuse(call, rule, word);
    if (!listed(rule->values, name, length, true)) return false;
    judge_value(call, rule, name, length, has_value ? name + length + 1 : next);
    return !has_value;
}

static bool judge_short(struct call *call, const struct rule *rule, const char *word, const char *next) {
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        if (listed(rule->blocked, letter, 1, false)) {
            char option[] = {'-', *letter, '\0'};
            refuse(call, rule, option);
        }
        if (listed(rule->attached, letter, 1, false)) return false;
        if (!listed(rule->values, letter, 1, false)) continue;
        judge_value(call, rule, letter, 1, letter[1] != '\0' ? letter + 1 : next);
        return letter[1] == '\0';
    }
    return false;
}

static void judge_operand(struct call *call, const struct rule *rule, const char *word) {
    bool forces = word[0] == '+', deletes = word[0] == ':' && word[1] != '\0';
    if (rule->refspecs && (forces || deletes)) refuse(call, rule, word);
}

static void judge_options(struct call *call, const struct rule *rule, char *const *words) {
    bool options = true;
    for (; *words != NULL; words++) {
        const char *word = *words;
        bool next_is_value = false;
        if (!options || word[0] != '-' || word[1] == '\0') judge_operand(call, rule, word);
        else if (same(word, "--") || same(word, "--end-of-options")) options = false;
        else if (word[1] == '-') next_is_value = judge_long(call, rule, word, words[1]);
        else next_is_value = judge_short(call, rule, word, words[1]);
        if (next_is_value && words[1] != NULL) words++;
    }
}

static void judge_rule(struct call *call, const struct rule *rule, char *const *words) {
    call->subject = rule->command;
    if (rule->verbs != NULL) {
        while (*words != NULL && is_one_of("-q --quiet", *words)) words++;
        if (*words == NULL || !is_one_of(rule->verbs, *words)) return;
        call->subject = join(rule->command, first_words(words++, 1));
    }
    if (rule->blocked == NULL) refuse(call, rule, "");
    if (rule->executes_rest) judge_shell(call, join("", words));
    else judge_options(call, rule, words);
}

static void judge_alias(struct call *call, const char *name, char *const *words) {
    if (call->questions++ >= MAX_QUESTIONS) return;
    char *alias = ask_alias(call->real, call->options, name);
    if (alias == NULL) return;
    if (alias[0] == '!') {
        judge_shell(call, join(alias + 1, words));
        return;
    }
    char **expansion = split_alias(alias);
    if (expansion == NULL) return;
    judge_command(call, concatenate(expansion, words));
}

static bool asks_for_help(char *const *words) {
    return words[0] != NULL && (same(words[0], "--help") || (same(words[0], "-h") && words[1] == NULL));
}

static void judge_command(struct call *call, char *const *words) {
    int count = judge_global_options(words);
    if (count < 0 || words[count] == NULL) return;
    const char *name = words[count];
    char *const *rest = words + count + 1;
    if (asks_for_help(rest)) return;
    for (size_t i = 0; i < git_rules_count; i++) {
        if (same(git_rules[i].command, name)) judge_rule(call, &git_rules[i], rest);
    }
    if (is_git_command(name)) return;

    char *const *outer = call->options;
    call->options = concatenate(outer, first_words(words, (size_t)count));
    judge_alias(call, name, rest);
    call->options = outer;
}

void judge_git(const char *real, char *const *words) {
    struct call call = {.real = real, .options = NO_WORDS};
    judge_git_environment();
    judge_command(&call, words);
}

char **git_words(char **argv) {
    const char *name = base_name(argv[0]);
    bool dashed = starts_with(name, "git-") && name[4] >= 'a' && name[4] <= 'z';
    char *const git[] = {"git", dashed ? (char *)name + 4 : NULL, NULL};
    return concatenate(git, argv + 1);
}
