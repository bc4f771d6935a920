#include "extras.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LONGEST_PATH = 4096, ID = 64, DEEPEST = 16, TERMINALS = 136, LAST_TERMINALS = 143 };

struct look {
    struct part expected, bounds;
    const char *root; /* the line of the box's root */
    const char *proc; /* the device of what lies at /proc, up to a space */
};

/* The words of one line of mountinfo that matter. */
struct mount {
    char path[LONGEST_PATH], root[LONGEST_PATH], type[64];
    const char *device; /* MAJOR:MINOR, up to a space */
    bool is_read_only;
};

static char said[LONGEST_PATH];

static void add(const char *what, const char *which) {
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s%s%s", length == 0 ? "extra " : ", ", what, which);
}

static bool is_one_of(const char *word, const char *const *words) {
    while (*words != NULL && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

static bool is_below(const char *path, const char *directory) {
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static bool is_bound(const struct look *look, const char *wanted) {
    const char *at = look->bounds.bytes, *end = at + look->bounds.length;
    for (const char *word; (word = take_word(&at, end)) != NULL;) {
        if (strcmp(word, wanted) == 0) return true;
    }
    return false;
}

enum relation { UNRELATED, BELOW, SAME };

static enum relation relation_to_expected(const struct look *look, const char *path) {
    const char *at = look->expected.bytes, *end = at + look->expected.length;
    enum relation found = UNRELATED;
    for (const char *target; (target = take_word(&at, end)) != NULL;) {
        if (strcmp(path, target) == 0) return SAME;
        if (is_below(path, target)) found = BELOW;
        take_word(&at, end);
        take_word(&at, end);
    }
    return found;
}

/* Only the host's own of these have an identity that the keeper knows: "!DEVICE:INODE". */
static bool is_of_host(const struct look *look, const char *path) {
    struct stat stat;
    char identity[64];
    if (lstat(path, &stat) != 0) return true;
    snprintf(identity, sizeof identity, "!%llu:%llu", (unsigned long long)stat.st_dev, (unsigned long long)stat.st_ino);
    return is_bound(look, identity);
}

static bool is_fresh_memory(const struct look *look, const struct mount *mount) {
    return strcmp(mount->type, "tmpfs") == 0 && strcmp(mount->root, "/") == 0 && !is_of_host(look, mount->path);
}

/* What follows the directory that an engine has named by the 64 digits of an id; NULL if there is no such. */
static const char *behind_id(const char *root) {
    for (const char *at = strchr(root, '/'); at != NULL; at = strchr(at + 1, '/')) {
        size_t length = strspn(at + 1, "0123456789abcdef");
        if (length == ID && at[1 + ID] == '/') return at + 1 + ID;
    }
    return NULL;
}

/* Files that an engine writes for each container. */
static bool is_engines_file(const struct mount *mount) {
    static const char *const names[] = {"/hosts", "/hostname", "/resolv.conf", "/passwd", "/group",
                                        "/localtime", "/.containerenv", NULL};
    const char *name = behind_id(mount->root);
    if (name == NULL) return false;
    if (strncmp(name, "/userdata/", 10) == 0) name += 9;
    return is_one_of(name, names);
}

/* It hides what the plan shows, so it must not lie in the workspace. */
static bool is_volume(const struct look *look, const struct mount *mount) {
    const char *name = behind_id(mount->root);
    return name != NULL && strcmp(name, "/_data") == 0 && relation_to_expected(look, mount->path) == UNRELATED;
}

static bool is_same_device(const char *one, const char *other) {
    size_t length = strcspn(one, " ") + 1;
    return strncmp(one, other, length) == 0;
}

/* A directory of the image at another place, as on machines in FIPS mode. An overlay is no other container's. */
static bool is_of_image(const struct look *look, const struct mount *mount) {
    return strcmp(mount->type, "overlay") == 0 && is_same_device(word_of(look->root, 2), mount->device) &&
           relation_to_expected(look, mount->path) == UNRELATED;
}

static bool is_empty(const char *directory) {
    DIR *listing = opendir(directory);
    if (listing == NULL) return false;
    int count = 0;
    while (count <= 2 && readdir(listing) != NULL) count++;
    closedir(listing);
    return count <= 2;
}

/* Runtimes hide parts of the kernel's files below /dev/null, fresh memory, or an empty directory of their own. */
static bool hides(const struct mount *mount) {
    return strcmp(mount->root, "/null") == 0 || (mount->is_read_only && is_empty(mount->path));
}

/* In a namespace of its own the box's control group is the root; that of another is not. */
static bool is_own_group(const struct look *look, const struct mount *mount) {
    char name[64];
    ssize_t length = readlink("/proc/self/ns/cgroup", name, sizeof name - 1);
    if (length < 0 || strncmp(mount->type, "cgroup", 6) != 0 || strcmp(mount->root, "/") != 0) return false;
    name[length] = '\0';
    return !is_bound(look, name);
}

/* Engines mount parts of it a second time, read-only. Another one than the box's shows other processes. */
static bool is_in_proc(const struct look *look, const struct mount *mount) {
    bool is_proc = strcmp(mount->type, "proc") == 0;
    if (strcmp(mount->path, "/proc") == 0) return is_proc && strcmp(mount->root, "/") == 0 && !is_of_host(look, "/proc");
    if (!is_below(mount->path, "/proc")) return false;
    return (is_proc && mount->is_read_only && look->proc != NULL && is_same_device(look->proc, mount->device)) || is_fresh_memory(look, mount) ||
           hides(mount);
}

/* Read-only, or the host's settings could be changed there. */
static bool is_in_sys(const struct look *look, const struct mount *mount) {
    static const char *const types[] = {"sysfs",  "cgroup", "cgroup2",  "securityfs", "debugfs",  "tracefs",
                                        "pstore", "bpf",    "efivarfs", "fusectl",    "configfs", "selinuxfs", NULL};
    if (strcmp(mount->path, "/sys") != 0 && !is_below(mount->path, "/sys")) return false;
    if (is_one_of(mount->type, types)) return mount->is_read_only || is_own_group(look, mount);
    return is_fresh_memory(look, mount) || hides(mount);
}

static bool is_in_devices(const struct look *look, const struct mount *mount) {
    struct stat stat;
    if (strcmp(mount->path, "/dev/pts") == 0) return strcmp(mount->type, "devpts") == 0;
    if (strcmp(mount->path, "/dev/mqueue") == 0) return strcmp(mount->type, "mqueue") == 0;
    if (strcmp(mount->path, "/dev/hugepages") == 0) return strcmp(mount->type, "hugetlbfs") == 0;
    if (strcmp(mount->path, "/dev") == 0 || strcmp(mount->path, "/dev/shm") == 0) return is_fresh_memory(look, mount);
    /* Files of devices are looked at one by one. */
    return is_below(mount->path, "/dev") && lstat(mount->path, &stat) == 0 && S_ISCHR(stat.st_mode);
}

static bool is_usual(const struct look *look, const struct mount *mount) {
    if (strcmp(mount->path, "/") == 0 || relation_to_expected(look, mount->path) == SAME) return true;
    if (is_bound(look, mount->path) && is_fresh_memory(look, mount)) return true;
    return is_engines_file(mount) || is_volume(look, mount) || is_of_image(look, mount) || is_in_proc(look, mount) ||
           is_in_sys(look, mount) || is_in_devices(look, mount);
}

static const char *next_line(const char *line) {
    line = strchr(line, '\n');
    return line == NULL || line[1] == '\0' ? NULL : line + 1;
}

/* Between the options and the type are words of unknown number, up to a dash. */
static bool read_mount(const char *line, struct mount *mount) {
    int at = 6;
    while (word_of(line, at)[0] != '\n' && word_of(line, at)[0] != '\0' && strncmp(word_of(line, at), "- ", 2) != 0) at++;
    mount->device = word_of(line, 2);
    mount->is_read_only = strncmp(word_of(line, 5), "ro", 2) == 0;
    return read_path(word_of(line, 3), mount->root, sizeof mount->root) &&
           read_path(word_of(line, 4), mount->path, sizeof mount->path) &&
           read_path(word_of(line, at + 1), mount->type, sizeof mount->type);
}

static void find_mounts(struct look *look, const char *mounts) {
    static struct mount mount;
    for (const char *line = mounts; line != NULL && *line != '\0'; line = next_line(line)) {
        if (!read_mount(line, &mount)) continue;
        if (strcmp(mount.path, "/") == 0) look->root = line;
        if (strcmp(mount.path, "/proc") == 0) look->proc = mount.device;
    }
    for (const char *line = mounts; line != NULL && *line != '\0'; line = next_line(line)) {
        if (!read_mount(line, &mount)) add("a mount", " that cannot be read");
        else if (look->root == NULL || !is_usual(look, &mount)) add("the mount ", mount.path);
    }
}

/* Those that every container has, by their numbers. */
static bool is_usual_device(const char *path, const struct stat *stat) {
    static const struct {
        const char *path;
        unsigned major, minor;
    } usual[] = {{"/dev/null", 1, 3},    {"/dev/zero", 1, 5}, {"/dev/full", 1, 7},    {"/dev/random", 1, 8},
                 {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},  {"/dev/console", 5, 1}, {"/dev/ptmx", 5, 2}};
    if (!S_ISCHR(stat->st_mode)) return false;
    unsigned number = major(stat->st_rdev);
    if (strcmp(path, "/dev/console") == 0 && number >= TERMINALS && number <= LAST_TERMINALS) return true;
    for (size_t at = 0; at < sizeof usual / sizeof *usual; at++) {
        if (strcmp(path, usual[at].path) != 0) continue;
        return number == usual[at].major && minor(stat->st_rdev) == usual[at].minor;
    }
    return false;
}

static void find_devices(const struct look *look, const char *directory, int depth) {
    DIR *listing = opendir(directory);
    if (listing == NULL) return;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        char path[LONGEST_PATH];
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        /* Terminals of the box's own come and go there. */
        if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) >= (int)sizeof path) add("a long path in ", "/dev");
        else if (strcmp(path, "/dev/pts") == 0 || lstat(path, &stat) != 0) continue;
        else if (S_ISDIR(stat.st_mode) && depth == DEEPEST) add("what is too deep in ", "/dev");
        else if (S_ISDIR(stat.st_mode)) find_devices(look, path, depth + 1);
        else if ((S_ISCHR(stat.st_mode) || S_ISBLK(stat.st_mode)) && !is_usual_device(path, &stat) && !is_bound(look, path))
            add("the device ", path);
    }
    closedir(listing);
}

/* "KIND:[INODE]", as the kernel names the keeper's. */
static void find_namespaces(const struct look *look) {
    static const char *const kinds[] = {"pid", "ipc", "uts", "mnt", "net", NULL};
    for (const char *const *kind = kinds; *kind != NULL; kind++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "/proc/self/ns/%s", *kind);
        ssize_t length = readlink(path, name, sizeof name - 1);
        if (length < 0) continue;
        name[length] = '\0';
        if (is_bound(look, name)) add("the host's namespace ", *kind);
    }
}

void drop_variables(struct part bounds) {
    struct look look = {.bounds = bounds};
    for (char **variable = environ; *variable != NULL;) {
        char name[256];
        int length = (int)strcspn(*variable, "=");
        bool fits = snprintf(name, sizeof name, "=%.*s", length, *variable) < (int)sizeof name;
        if (fits && is_bound(&look, name)) {
            variable++;
            continue;
        }
        /* What follows moves up. */
        for (char **next = variable; (next[0] = next[1]) != NULL;) next++;
    }
}

const char *find_extras(const char *mounts, struct part expected, struct part bounds) {
    struct look look = {.expected = expected, .bounds = bounds};
    if (getpid() != 1) add("processes", " that are not the box's");
    find_namespaces(&look);
    find_mounts(&look, mounts);
    find_devices(&look, "/dev", 0);
    if (prctl(PR_GET_SECCOMP) == 0) add("calls", " that the engine's own filter would have denied");
    return said[0] == '\0' ? NULL : said;
}
