/*
 * Judge: shows detectors what was measured and records their verdicts.
 *
 * It works from the store alone, so that any machine judges a recorded run as it was judged while
 * it ran. Detectors are blind: a run has an opaque id, servers have shuffled aliases that are
 * mapped back afterwards, and both are drawn from the run's secret key (not from its seed, from
 * which the victims are drawn). All scored runs are cut to one length, since a fault that is slow
 * to undo makes a run longer. Nothing tells fault, victim, onset or workload.
 *
 * Shards that were joined (store_join) are judged each by itself, with its own key and its own
 * training: a model holds for the cluster that it was made on.
 *
 * The null detectors are judged with every run, whether or not the scenario names them.
 */
#ifndef CULPRIT_HARNESS_JUDGING_JUDGE_H
#define CULPRIT_HARNESS_JUDGING_JUDGE_H

#include "harness/store/store.h"

struct judge;

/* 'detectors': [{name, params}], 'servers': [names]; both borrowed. Loads every detector; with
 * 'store' NULL only to find mistakes in them before a node is touched. An error if the run's secret
 * key cannot be read. */
int judge_new(const json_t *detectors, const json_t *servers, struct store *store,
	struct judge **out, struct err *e);
void judge_free(struct judge *j);

/* Judges one confirmed, scored attempt and writes the verdicts. The first call trains on all
 * confirmed training attempts in the store and writes the models. 'text' gets a few words for the
 * progress line. A failed detector's verdict is an abstention with its "error"; the others are
 * written as usual, and the result is -EPROTO with the first error. */
int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e);

/* Judges every confirmed scored attempt ('only': the one with this id; 0: all) and writes nothing.
 * '*rows' is [{attempt, detector, metric, verdict}] as store_verdicts gives them. Failed detectors:
 * as above, but the result is 0 and judge_failures counts them. */
int judge_all(struct judge *j, int64_t only, json_t **rows, struct err *e);

/* 'v', which a detector made (a model), with the names of servers in place of their aliases. New
 * reference. */
int judge_names(struct store *s, const json_t *v, json_t **named, struct err *e);

/* How many verdicts are errors of a detector; '*first' is the first of them, or NULL. */
unsigned judge_failures(const struct judge *j, const char **first);

/* Replaces all verdicts and models of the store by those of judge_all, and the fact
 * 'detector_texts' by the SHA-256 of the detectors that made them; judge_replace: inside the
 * caller's transaction. */
int judge_replace(struct judge *j, const json_t *rows, struct err *e);
int judge_save(struct judge *j, const json_t *rows, struct err *e);

#endif
