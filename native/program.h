#ifndef PODBOT_PROGRAM_H
#define PODBOT_PROGRAM_H

/*
 * Becomes the program at `path`; a script without an interpreter line is given to /bin/sh, as execvp does (not
 * every libc's execvp does it). Returns only on failure, with the error number.
 */
int become(const char *path, char **argv);

/* Becomes the command, searched on PATH as shells do. Returns only on failure, with the error number. */
int become_command(char **command);

#endif
