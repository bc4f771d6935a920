#include "git-rules.h"

#include <stdlib.h>
#include <string.h>

#define DISCARDS "it overwrites or removes work that is not committed"
#define SKIPS_HOOKS "it skips the hooks"
#define LOSES_COMMITS "it can make commits unreachable"
#define REWRITES_REMOTE "it can overwrite or delete what others have pushed"
#define USE_STASH "Put the changes aside with git stash, or commit them first."
#define RUN_HOOKS "Run it without that option and fix what the hooks report."
#define ASK_OWNER "Leave it in place; if it must go, ask the owner to do it."
#define PUSH_PLAINLY "Push without it, to a new branch if the remote one has moved."

const struct rule git_rules[] = {
    {.command = "checkout",
     .why = DISCARDS,
     .instead = "Use git switch for branches (-c creates one), and git show REVISION:FILE to read an older version."},
    {.command = "restore",
     .why = DISCARDS,
     .instead = "Edit the file back by hand, or unstage it with git reset -- FILE; git show REVISION:FILE prints it."},
    {.command = "reset", .blocked = "hard", .values = "pathspec-from-file", .why = DISCARDS, .instead = USE_STASH},
    {.command = "clean",
     .blocked = "f i force interactive",
     .values = "e exclude",
     .why = "it deletes files that git cannot bring back",
     .instead = "List them with git clean -n, and remove with rm those that you made."},
    {.command = "commit",
     .blocked = "n no-verify",
     .values = "m F C c t message file reuse-message reedit-message template author date fixup squash trailer cleanup "
               "pathspec-from-file",
     .attached = "u S U",
     .why = SKIPS_HOOKS,
     .instead = RUN_HOOKS},
    {.command = "merge",
     .blocked = "no-verify",
     .values = "m F s X message file strategy strategy-option into-name cleanup",
     .attached = "S",
     .why = SKIPS_HOOKS,
     .instead = RUN_HOOKS},
    {.command = "pull",
     .blocked = "no-verify",
     .values = "s X o strategy strategy-option server-option upload-pack cleanup",
     .attached = "S j r",
     .why = SKIPS_HOOKS,
     .instead = RUN_HOOKS},
    {.command = "rebase",
     .blocked = "no-verify",
     .values = "s X x C strategy strategy-option exec onto whitespace empty",
     .attached = "S r",
     .executes = "x exec",
     .why = SKIPS_HOOKS,
     .instead = RUN_HOOKS},
    {.command = "am",
     .blocked = "n no-verify",
     .values = "C p directory exclude include patch-format whitespace quoted-cr empty resolvemsg",
     .attached = "S",
     .why = SKIPS_HOOKS,
     .instead = RUN_HOOKS},
    {.command = "stash", .verbs = "drop clear", .why = "it destroys work that was put aside", .instead = ASK_OWNER},
    {.command = "stash",
     .verbs = "pop",
     .why = "it deletes the stash that it applies",
     .instead = "Use git stash apply, which keeps it."},
    {.command = "branch",
     .blocked = "D M C f force",
     .values = "u set-upstream-to sort format points-at",
     .attached = "t",
     .why = LOSES_COMMITS,
     .instead = "Use -d, -m or -c, which refuse to lose anything, or choose a new branch name."},
    {.command = "switch",
     .blocked = "f C force force-create discard-changes",
     .values = "c create orphan conflict",
     .attached = "t",
     .why = DISCARDS,
     .instead = "Switch without it, after a git stash or a commit; -c creates a branch."},
    {.command = "push",
     .blocked = "f d force force-with-lease mirror delete prune",
     .values = "o push-option repo receive-pack exec recurse-submodules",
     .refspecs = true,
     .why = REWRITES_REMOTE,
     .instead = PUSH_PLAINLY},
    {.command = "push",
     .blocked = "no-verify",
     .values = "o push-option repo receive-pack exec recurse-submodules",
     .why = SKIPS_HOOKS,
     .instead = RUN_HOOKS},
    {.command = "send-pack",
     .blocked = "f force force-with-lease mirror",
     .values = "receive-pack exec remote push-option",
     .refspecs = true,
     .why = REWRITES_REMOTE,
     .instead = PUSH_PLAINLY},
    {.command = "checkout-index",
     .blocked = "f force",
     .values = "prefix stage",
     .why = DISCARDS,
     .instead = "Write elsewhere with --prefix=DIRECTORY/, or print one file with git show :FILE."},
    {.command = "read-tree",
     .blocked = "u reset",
     .values = "prefix index-output exclude-per-directory",
     .why = DISCARDS,
     .instead = USE_STASH},
    {.command = "rm",
     .blocked = "f force",
     .values = "pathspec-from-file",
     .why = DISCARDS,
     .instead = "Commit or stash the file's changes first, then use git rm without it."},
    {.command = "update-ref",
     .blocked = "d stdin",
     .values = "m",
     .why = LOSES_COMMITS,
     .instead = "Use git branch or git tag, which check first."},
    {.command = "symbolic-ref",
     .blocked = "d delete",
     .values = "m",
     .why = "it can leave the repository without a branch",
     .instead = "Use git switch to change the branch."},
    {.command = "worktree", .verbs = "remove", .blocked = "f force", .why = DISCARDS, .instead = USE_STASH},
    {.command = "reflog", .verbs = "expire delete drop", .why = LOSES_COMMITS, .instead = ASK_OWNER},
    {.command = "prune", .why = LOSES_COMMITS, .instead = "Use git gc, which keeps what is recent."},
    {.command = "gc",
     .blocked = "prune",
     .with_value = true,
     .why = LOSES_COMMITS,
     .instead = "Use git gc without a date, which keeps what is recent."},
    {.command = "filter-branch", .why = "it rewrites history", .instead = "Make a new commit, or ask the owner."},
    {.command = "submodule", .verbs = "foreach", .blocked = "", .executes_rest = true},
    {.command = "bisect", .verbs = "run", .blocked = "", .executes_rest = true},
};
const size_t git_rules_count = sizeof git_rules / sizeof *git_rules;

/* Only names that every git has: one that is missing here costs a question, one that is wrong hides an alias. */
static const char *const commands[] = {
    "add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file", "check-attr",
    "check-ignore", "check-mailmap", "check-ref-format", "checkout", "checkout-index", "cherry", "cherry-pick",
    "clean", "clone", "column", "commit", "commit-graph", "commit-tree", "config", "count-objects", "credential",
    "describe", "diff", "diff-files", "diff-index", "diff-tree", "difftool", "fast-export", "fast-import", "fetch",
    "fetch-pack", "filter-branch", "fmt-merge-msg", "for-each-ref", "format-patch", "fsck", "gc", "grep",
    "hash-object", "help", "index-pack", "init", "interpret-trailers", "log", "ls-files", "ls-remote", "ls-tree",
    "mailinfo", "mailsplit", "merge", "merge-base", "merge-file", "merge-index", "merge-tree", "mktag", "mktree",
    "mv", "name-rev", "notes", "pack-objects", "pack-refs", "patch-id", "prune", "prune-packed", "pull", "push",
    "range-diff", "read-tree", "rebase", "receive-pack", "reflog", "remote", "repack", "replace", "rerere", "reset",
    "restore", "rev-list", "rev-parse", "revert", "rm", "send-pack", "shortlog", "show", "show-branch", "show-index",
    "show-ref", "sparse-checkout", "stage", "stash", "status", "stripspace", "submodule", "switch", "symbolic-ref",
    "tag", "unpack-file", "unpack-objects", "update-index", "update-ref", "update-server-info", "upload-archive",
    "upload-pack", "var", "verify-commit", "verify-pack", "verify-tag", "version", "worktree", "write-tree",
};

static int compare(const void *name, const void *entry) { return strcmp(name, *(const char *const *)entry); }

bool is_git_command(const char *name) {
    return bsearch(name, commands, sizeof commands / sizeof *commands, sizeof *commands, compare) != NULL;
}

bool listed(const char *list, const char *word, size_t length, bool beginning) {
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, " ");
        bool fits = length == size || (beginning && length < size && size > 1);
        if (length > 0 && fits && memcmp(list, word, length) == 0) return true;
        list += size + strspn(list + size, " ");
    }
    return false;
}
