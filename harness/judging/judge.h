/*
 * The judge shows measurements to detectors and records their verdicts.
 *
 * It works from the store only, so any machine judges a recorded run as it was judged live.
 * Detectors are blind: a run has an opaque id, and servers have shuffled aliases that are mapped
 * back afterwards. Both are drawn from the run's secret key, not from its seed, which determines
 * the victims. All scored runs are cut to one length, because a fault with a slow undo makes a
 * run longer. Nothing reveals fault, victim, onset or workload.
 *
 * Joined shards (store_join) are judged separately, each with its own key and training: a model
 * is valid only for the cluster that it was trained on.
 *
 * The null detectors judge every run, whether or not the scenario names them.
 */
#ifndef CULPRIT_HARNESS_JUDGING_JUDGE_H
#define CULPRIT_HARNESS_JUDGING_JUDGE_H

#include "harness/store/store.h"

struct judge;

/* 'detectors': [{name, params}], 'servers': [names]; both borrowed. Loads every detector; 'store'
 * may be NULL, to find mistakes in detectors before a node is touched. Returns an error if the
 * run's secret key cannot be read. */
int judge_new(const json_t *detectors, const json_t *servers, struct store *store,
	struct judge **out, struct err *e);
void judge_free(struct judge *j);

/* Judges one confirmed, scored attempt and writes the verdicts. The first call trains on all
 * confirmed training attempts in the store and writes the models. 'text' receives a few words for
 * the progress line. The verdict of a failed detector is an abstention with its "error"; the
 * others are written as usual, and the result is -EPROTO with the first error. */
int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e);

/* Judges every confirmed scored attempt ('only': this one; 0: all) without writing. '*rows' is
 * [{attempt, detector, metric, verdict}] in the form of store_verdicts. Failed detectors: as
 * above, but the result is 0 and judge_failures counts them. */
int judge_all(struct judge *j, int64_t only, json_t **rows, struct err *e);

/* 'v', made by a detector (a model), with aliases replaced by servers' names. New reference. */
int judge_names(struct store *s, const json_t *v, json_t **named, struct err *e);

/* Number of verdicts that are errors of a detector; '*first' is the first of them, or NULL. */
unsigned judge_failures(const struct judge *j, const char **first);

/* Replaces all verdicts and models of the store by those of judge_all, and the fact
 * 'detector_texts' by the SHA-256 of these detectors. judge_replace does this inside the caller's
 * transaction. */
int judge_replace(struct judge *j, const json_t *rows, struct err *e);
int judge_save(struct judge *j, const json_t *rows, struct err *e);

#endif
