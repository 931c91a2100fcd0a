/*
 * A command given as one text, split into words without a shell. Blanks separate words; between '
 * and ' all stands for itself; between " and " a backslash takes " or \ literally; elsewhere a
 * backslash takes the next character literally. Nothing else is special: there are no variables, no
 * patterns, no pipes.
 */
#ifndef CULPRIT_HARNESS_BASE_WORDS_H
#define CULPRIT_HARNESS_BASE_WORDS_H

#include "harness/base/err.h"

/* '*words' ends with NULL and is one block: the caller frees it. -EINVAL with a sentence that
 * follows the option's name, for an open quote, a backslash at the end, or no word at all. */
int words_split(const char *text, char ***words, struct err *e);

#endif
