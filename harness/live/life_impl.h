/* Internal to this folder: shared by life.c and life_state.c. */
#ifndef CULPRIT_HARNESS_LIVE_LIFE_IMPL_H
#define CULPRIT_HARNESS_LIVE_LIFE_IMPL_H

#include "harness/live/life.h"

void life_free(struct life *life);
struct life *lives_find(const struct lives *l, const char *key);
/* A new life; takes 'key'. */
struct life *lives_add(struct lives *l, char *key);

#endif
