/*
 * The list of a box's mounts. podbot-launch writes it of the tree that it has built; podbot-enter, the first program
 * inside, compares it with what is there. Entries end with NUL:
 *
 *   mount DEVICE OPTIONS PLACE   one line of mountinfo, with its numbers and escapes
 *   beside DEVICE OPTIONS PLACE  the same of a mount of the host's that came along with one of the plan's. It may be
 *                                missing: the kernel takes a mount away when the host removes the directory under it
 *   inode DEVICE:INODE PLACE     what is found at the place of a mount that the plan names
 *   any PLACE                    there and below bubblewrap mounts what it likes
 */
#ifndef PODBOT_MOUNTS_H
#define PODBOT_MOUNTS_H

#include <stddef.h>
#include <sys/stat.h>

struct mounts;

struct mounts *begin_mounts(void);
void add_mount(struct mounts *mounts, const char *place, const struct stat *stat);
void expect_any_below(struct mounts *mounts, const char *place);

/*
 * Of what is mounted at `root` and below, by this file of the kernel's. NULL if that cannot be read, or if a mount has
 * left its place: when another process moves the directory that it lies on, the mount goes along. Then `lost` is where
 * it was.
 */
char *list_mounts(const struct mounts *mounts, const char *mountinfo, const char *root, size_t *length,
                  const char **lost);

/*
 * Returns NULL if the mounts here are those of the list; otherwise why not, and the place that differs. Where `directory`
 * is the place of one, it becomes the working directory; NULL for none.
 */
const char *compare_mounts(int list, const char *directory, const char **place);

#endif
