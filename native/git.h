#ifndef PODBOT_GIT_H
#define PODBOT_GIT_H

/* The call in its plain form: `git-upload-pack x`, by a link to git, becomes `git upload-pack x`. */
char **git_words(char **argv);

/* Returns if the @git preset lets `git WORDS…` pass. Otherwise says why not and ends the program. */
void judge_git(const char *real, char *const *words);

/* Says that `git COMMAND DETAIL` is blocked, why, and what to do instead; ends the program. */
_Noreturn void refuse_git(const char *command, const char *detail, const char *why, const char *instead);

#endif
