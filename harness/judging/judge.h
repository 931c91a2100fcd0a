/*
 * Judge: shows detectors what was measured and writes down what they say.
 *
 * Works from the store alone, so that a recorded run is judged on any machine as it was while it
 * ran. Detectors are blind. A run comes to them under an opaque id, servers under aliases that are
 * shuffled and mapped back afterwards, both drawn from the run's secret key (not from its seed,
 * which victims are drawn from); all scored runs are cut to one length, since a fault that is slow
 * to undo makes a run longer; nothing tells fault, victim, onset or workload.
 *
 * The null detectors are judged with every run, named by the scenario or not.
 */
#ifndef CULPRIT_HARNESS_JUDGE_H
#define CULPRIT_HARNESS_JUDGE_H

#include "harness/store/store.h"

struct judge;

/* 'detectors': [{name, params}], 'servers': [names]; both borrowed. Loads every detector, so that a
 * mistake in one is said before any node is touched; 'store' may be NULL for just that. */
int judge_new(const json_t *detectors, const json_t *servers, struct store *store,
	struct judge **out, struct err *e);
void judge_free(struct judge *j);

/* Judges one confirmed, scored attempt and writes the verdicts. The first call trains on all
 * confirmed training attempts in the store and writes the models. 'text' gets a few words for the
 * progress line. A detector that failed has an abstention with its "error" as its verdict, and the
 * others have theirs; -EPROTO then, with the first error. */
int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e);

/* Judges every confirmed scored attempt ('only': one, by its id; 0: all) and writes nothing:
 * '*rows' is [{attempt, detector, metric, verdict}] as store_verdicts gives them. Detectors that
 * failed: as above, but the result is 0; judge_failures says it. */
int judge_all(struct judge *j, int64_t only, json_t **rows, struct err *e);

/* How many verdicts are errors of a detector; '*first' is the first of them, or NULL. */
unsigned judge_failures(const struct judge *j, const char **first);

/* Replaces all verdicts and models of the store by those of judge_all; judge_replace: inside the
 * caller's transaction. */
int judge_replace(struct judge *j, const json_t *rows, struct err *e);
int judge_save(struct judge *j, const json_t *rows, struct err *e);

#endif
