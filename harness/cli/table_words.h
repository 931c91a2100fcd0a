/* What happened in each cell, and what was said of it, in a sentence for each detector. */
#ifndef CULPRIT_HARNESS_CLI_TABLE_WORDS_H
#define CULPRIT_HARNESS_CLI_TABLE_WORDS_H

#include "harness/judging/scoring.h"

/* In the order of the table; null detectors are left out. 0 or a negative errno. */
int table_words(struct store *s, const struct scoring *c, FILE *out, struct err *e);

#endif
