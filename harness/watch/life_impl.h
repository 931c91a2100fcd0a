/* Within this folder: what life.c shares with life_state.c. */
#ifndef CULPRIT_WATCH_LIFE_IMPL_H
#define CULPRIT_WATCH_LIFE_IMPL_H

#include "harness/watch/life.h"

void life_free(struct life *life);
/* The life of 'key' (taken), which is new if '*fresh'. */
struct life *lives_add(struct lives *l, char *key, bool *fresh);

#endif
