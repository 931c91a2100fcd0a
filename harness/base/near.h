/* Suggests the known name that a user probably meant. */
#ifndef CULPRIT_HARNESS_BASE_NEAR_H
#define CULPRIT_HARNESS_BASE_NEAR_H

/* The entry of 'names' (NULL-terminated) closest to 'word', or NULL if no name is close. */
const char *near_match(const char *word, const char *const names[]);

/* "; did you mean 'NAME'?" with the closest of 'names', or "". Returns 'text'. */
char *near_hint(const char *word, const char *const names[], char text[96]);

#endif
