#ifndef PODBOT_GIT_CONFIG_H
#define PODBOT_GIT_CONFIG_H

/*
 * Configuration that comes with one call, by option or environment, instead of from the files that the owner can
 * read and the filesystem rules protect. Both return if it is let pass.
 */
void judge_git_key(const char *how, const char *key);
void judge_git_environment(void);

#endif
