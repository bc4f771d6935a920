/*
 * Builds what a box will see, before bubblewrap makes the box of it.
 *
 * Agents may run in directories that are mounted here, and exchange names while this program works. So no path is
 * looked up twice, and none through a link: each source is opened and compared with what the plan saw, each target is
 * opened below the tree's root, and the mount goes from the one descriptor to the other. Nothing is ever made in a
 * directory of the host's: a missing target is made in file systems of this program's own alone, and in directories
 * that belong to Podbot.
 *
 * A step is a list of words, each ended by NUL; MODE is octal, IDENTITY is DEVICE:INODE in decimal. Paths are absolute,
 * and spelled as the kernel spells them: without empty names, `.` and `..`.
 *
 *   bind ACCESS IDENTITY SOURCE TARGET   ACCESS is ro, rw, or own: writable, and Podbot's own directory
 *   tmpfs MODE TARGET
 *   directory MODE TARGET
 *   file MODE TARGET CONTENT             a file in the box's own file system; CONTENT has no NUL at its end
 *   cover MODE TARGET CONTENT            a read-only file over whatever file is there
 *   link TO TARGET
 *   hold IDENTITY TARGET                 a link of the host's, mounted onto itself, so that it stays
 *   mode MODE TARGET
 *   seal TARGET                          its file system takes no more changes
 *   point KIND TARGET                    KIND is directory or file: there bubblewrap itself will mount something
 */
#ifndef PODBOT_TREE_H
#define PODBOT_TREE_H

#include <stddef.h>

/* Where bubblewrap finds the tree once it is finished. */
#define TREE_PLACE "/tmp/tree"

/* Gives this process a mount namespace of its own, in which nothing that the host mounts later appears. */
void begin_tree(void);

void take_step(const char *bytes, size_t length);

/*
 * Puts the host's root back in place, with the tree at TREE_PLACE, and closes everything. Returns the list of its
 * mounts for podbot-enter (see mounts.h), whose length is stored.
 */
char *finish_tree(size_t *length);

#endif
