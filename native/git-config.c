#include "git-config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "git.h"
#include "words.h"

/* Sections end in a dot. Each of these can give another command a harmless name, skip hooks or lift a safeguard. */
static const char *const forbidden_keys[] = {
    "alias.", "include.", "includeif.", "core.hookspath", "clean.requireforce", "help.autocorrect",
    "gc.pruneexpire", "gc.reflogexpire", "gc.reflogexpireunreachable",
};

static bool is_key_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* The key may be followed by anything that cannot be part of one, as in KEY=VALUE. */
static bool is_forbidden_key(const char *text) {
    for (size_t i = 0; i < sizeof forbidden_keys / sizeof *forbidden_keys; i++) {
        const char *key = forbidden_keys[i];
        size_t length = strlen(key);
        if (strncasecmp(text, key, length) != 0) continue;
        if (key[length - 1] == '.' || !is_key_character(text[length])) return true;
    }
    return false;
}

void judge_git_key(const char *how, const char *key) {
    if (!is_forbidden_key(key)) return;
    char shown[64];
    snprintf(shown, sizeof shown, "%.*s", (int)strcspn(key, "=' "), key);
    refuse_git(how, shown, "such a setting hides what a command does or lifts its safeguards",
               "Run the command without it.");
}

static void judge_config_parameters(const char *text) {
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (i == 0 || !is_key_character(text[i - 1])) judge_git_key("with GIT_CONFIG_PARAMETERS", text + i);
    }
}

static void judge_config_file(const char *variable) {
    const char *path = getenv(variable);
    if (path == NULL || path[0] == '\0' || same(path, "/dev/null")) return;
    refuse_git("with", variable, "another configuration can hide what a command does", "Unset the variable.");
}

void judge_git_environment(void) {
    judge_config_file("GIT_CONFIG_GLOBAL");
    judge_config_file("GIT_CONFIG_SYSTEM");
    const char *parameters = getenv("GIT_CONFIG_PARAMETERS");
    if (parameters != NULL) judge_config_parameters(parameters);
    if (getenv("GIT_CONFIG_COUNT") == NULL) return;
    for (char **variable = environ; *variable != NULL; variable++) {
        const char *value = strchr(*variable, '=');
        if (value == NULL || !starts_with(*variable, "GIT_CONFIG_KEY_")) continue;
        judge_git_key("with GIT_CONFIG_KEY", value + 1);
    }
}
