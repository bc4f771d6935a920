#include "info.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The number that follows the key. The text is an object of plain numbers, so there is nothing to get lost in. */
static bool find_number(const char *text, const char *key, uint64_t *number) {
    const char *at = strstr(text, key);
    if (at == NULL) return false;
    at += strlen(key);
    at += strspn(at, " ");
    if (*at < '0' || *at > '9') return false;
    char *end;
    errno = 0;
    *number = strtoull(at, &end, 10);
    return errno == 0 && *number != 0 && strchr(",}\n", *end) != NULL && *end != '\0';
}

bool parse_info(const char *bytes, size_t length, struct info *info) {
    uint64_t pid;
    if (strlen(bytes) != length || strrchr(bytes, '}') == NULL) return false;
    if (!find_number(bytes, "\"child-pid\":", &pid) || pid > INT_MAX) return false;
    info->pid = (int)pid;
    return find_number(bytes, "\"net-namespace\":", &info->network);
}
