/* What journal.c and journal_others.c share. */
#ifndef CULPRIT_HARNESS_AGENT_JOURNAL_IMPL_H
#define CULPRIT_HARNESS_AGENT_JOURNAL_IMPL_H

#include "harness/agent/journal.h"

/* "packets culprit_...": an entry in a few words, a new string. NULL: no memory. */
json_t *journal_describe(const json_t *entry);

#endif
