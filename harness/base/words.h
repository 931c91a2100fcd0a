/*
 * Splits a command line into words without a shell. Blanks separate words. Between single quotes
 * all characters are literal; between double quotes a backslash escapes " or \; elsewhere a
 * backslash escapes the next character. Nothing else is special: there are no variables, patterns
 * or pipes.
 */
#ifndef CULPRIT_HARNESS_BASE_WORDS_H
#define CULPRIT_HARNESS_BASE_WORDS_H

#include "harness/base/err.h"

/* '*words' is NULL-terminated and one block: the caller frees it. Returns -EINVAL for an open
 * quote, a backslash at the end, or an empty command; the error continues a sentence that starts
 * with the option's name. */
int words_split(const char *text, char ***words, struct err *e);

#endif
