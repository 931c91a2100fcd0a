/*
 * Judge: shows detectors what was measured and writes down what they say.
 *
 * Works from the store alone, so that a recorded run is judged on any machine as it was while it
 * ran. Detectors are blind: a run comes to them under an opaque id, servers under aliases that are
 * shuffled by the seed and mapped back afterwards; nothing tells fault, victim, onset or workload.
 */
#ifndef CULPRIT_HARNESS_JUDGE_H
#define CULPRIT_HARNESS_JUDGE_H

#include "harness/run/store.h"

struct judge;

/* 'detectors': [{name, params}], 'servers': [names]; both borrowed. Loads every detector, so that a
 * mistake in one is said before any node is touched; 'store' may be NULL for just that. */
int judge_new(const json_t *detectors, const json_t *servers, uint64_t seed, struct store *store, struct judge **out,
	      struct err *e);
void judge_free(struct judge *j);

/* Judges one confirmed, scored attempt. The first call trains on all confirmed training attempts
 * in the store and writes the models. 'text' gets a few words for the progress line. */
int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e);

/* Judges every confirmed scored attempt anew, replacing all verdicts and models. */
int judge_all(struct judge *j, struct err *e);

#endif
