/* The known name that a user may have meant. */
#ifndef CULPRIT_HARNESS_BASE_NEAR_H
#define CULPRIT_HARNESS_BASE_NEAR_H

/* The entry of 'names' (ended by NULL) that is nearest to 'word', or NULL if none is near. */
const char *near_match(const char *word, const char *const names[]);

/* "; did you mean 'NAME'?" with the nearest of 'names', or "". Returns 'text'. */
char *near_hint(const char *word, const char *const names[], char text[96]);

#endif
