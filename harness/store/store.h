/*
 * Run store: a run is a folder; run.db in it holds the plan, the attempts, what was measured
 * and what was said of it. Traces and output are files beside it, listed with checksums.
 *
 * An attempt is written in one transaction when it has ended; what is not there did not happen.
 */
#ifndef CULPRIT_HARNESS_STORE_H
#define CULPRIT_HARNESS_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "diag/derive/events.h"
#include "harness/scenario/plan.h"

struct store;

enum outcome { OUTCOME_CONFIRMED, OUTCOME_INVALID, OUTCOME_ERROR };
const char *outcome_name(enum outcome o);

/* Makes the folder (0700; -EEXIST if it is there) and an empty store in it. */
int store_create(const char *folder, struct store **out, struct err *e);

/* -ENOENT where there is no run, -EINVAL where its version is not ours. */
int store_open(const char *folder, struct store **out, struct err *e);
void store_close(struct store *s);

/* Writes 'folder'/run.db.gz: a corpus, which is all that judging and scoring need (plan, attempts,
 * samples, events), and neither hosts nor verdicts; 'whole': with these and all details, as a run
 * to look at. store_open reads it where there is no run.db, into memory; it cannot be written
 * to. */
int store_pack(struct store *s, const char *folder, bool whole, struct err *e);

/* The secret that detectors' view of the run is drawn from, as text; of a run that was recorded
 * before runs had any, a digest of what no detector knows whole. */
void store_blind_key(struct store *s, char key[80]);

bool store_is_corpus(const struct store *s);
const char *store_folder(const struct store *s);
const char *store_run_id(const struct store *s); /* the folder's own name */

/* Facts about the run as a whole: seed, scenario text, versions, hosts. */
int store_set(struct store *s, const char *key, const char *value, struct err *e);
char *store_get(struct store *s, const char *key); /* malloced, or NULL */

/* The plan's cells, in order. */
int store_put_plan(struct store *s, const struct scenario *sc, const struct plan *p,
	char *const servers[], struct err *e);

/* Marks the cells of a fault (its label) as skipped; they are then not missing. */
int store_skip(struct store *s, const char *fault, const char *reason, struct err *e);

/* The same for the cells of a tracer (its label). */
int store_skip_tracer(struct store *s, const char *tracer, const char *reason, struct err *e);

int store_begin(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);

struct attempt_row {
	int64_t id; /* out */
	size_t cell;
	long number; /* 1, 2 ... of this cell */
	enum outcome outcome;
	const char *reason; /* NULL when confirmed */
	int64_t started_ns, start_ns, onset_ns, offset_ns,
		ended_ns; /* CLOCK_REALTIME; 0: not reached.
	                       start: all workloads run; onset: verified to act; offset: verified gone */
	int32_t seconds;  /* measured, from start_ns */
	const json_t
		*detail; /* what verify saw, workloads' results, lost records, clock offsets ... */
	const char *key; /* of what it was measured under (key.h) */
};

int store_put_attempt(struct store *s, struct attempt_row *row, struct err *e);
/* In the order of metrics_samples. -EINVAL: the store is older than version 5. */
int store_put_samples(struct store *s, int64_t attempt, char *const servers[],
	const struct sample *samples, size_t n, struct err *e);
int store_drop_samples(struct store *s, int64_t attempt, struct err *e);
int store_drop_events(struct store *s, int64_t attempt, struct err *e);
/* Events in their order; 'servers' and 'clients' are the names that their indices stand for. */
int store_put_events(struct store *s, int64_t attempt, char *const servers[], char *const clients[],
	const struct event *events, size_t n, struct err *e);
/* 'path' is relative to the run's folder; size and SHA-256 are taken here. */
int store_put_file(struct store *s, int64_t attempt, const char *path, struct err *e);

int store_put_model(struct store *s, const char *detector, const json_t *params,
	const json_t *model, struct err *e);
int store_put_verdict(struct store *s, int64_t attempt, const char *detector, const json_t *verdict,
	struct err *e);
int store_clear_verdicts(struct store *s, struct err *e);

/* Rows for judging, in the order of cells: {cell, training, workload, fault, resource, victims:
 * [names]|null, attempt, seconds, start_ns, onset_ns} for every cell that has a confirmed attempt.
 * New reference. */
int store_confirmed(struct store *s, json_t **rows, struct err *e);
/* Of a run that measures run times: [{cell, workload, tracer, repeat, runtime_s, records, lost}]
 * for every cell with a confirmed attempt; records and lost are null where the tracer does not
 * count. New reference. */
int store_runtimes(struct store *s, json_t **rows, struct err *e);
/* Where run times are measured, 'fault' is the cell's tracer. {planned, confirmed, attempts:
 * {confirmed, invalid, error}, missing: [{number, training, workload, fault}], failed: [{cell,
 * number, outcome, reason}], cells: [as missing, all of them, and done], skipped: [{fault, reason,
 * cells}]} */
int store_tally(struct store *s, json_t **tally, struct err *e);
/* The samples of one metric of one server, in the order of seconds, valid during the call; their
 * own 'metric' and 'server' are 0. What is not 0 ends it. */
typedef int (*store_series_fn)(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e);
/* Calls 'fn' for every metric and server of which the attempt has samples, in the order of their
 * names. -EBADMSG: the store is damaged. */
int store_samples(struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e);
/* [{kind, server|null, client|null, time_s, detail: {last_s, count, call, ...}}] of one attempt.
 * New reference. */
int store_events(struct store *s, int64_t attempt, json_t **rows, struct err *e);
/* [{attempt, detector, verdict}] over all. New reference. */
int store_verdicts(struct store *s, json_t **rows, struct err *e);
/* All rows of one table ("fact", "cell", "attempt", "file", "model"), every column as it stands in
 * the store, JSON as text; in the order of the first column. For who shows a run whole. New
 * reference. */
int store_table(struct store *s, const char *table, json_t **rows, struct err *e);

/* What a run that is resumed looks at and mends. */

/* [{id, cell, number, outcome, key|null}], oldest first. New reference. */
int store_attempts(struct store *s, json_t **rows, struct err *e);
/* [{attempt, cell, number, start_ns, seconds, detail, files}] of confirmed attempts; files: how
 * many are listed. New reference. */
int store_traced(struct store *s, json_t **rows, struct err *e);
/* Are the attempt's files as they were written? -EBADMSG: which one is not. */
int store_check_files(struct store *s, int64_t attempt, struct err *why);
/* A confirmed attempt whose files are damaged counts as invalid from now on; its verdicts go. */
int store_spoil(struct store *s, int64_t cell, int64_t number, const char *reason, struct err *e);
/* As if it had not been: what the store beside has of an attempt that the run's own store never
 * heard of. */
int store_drop_attempt(struct store *s, int64_t attempt, struct err *e);
/* What was skipped is looked at anew. */
int store_unskip(struct store *s, struct err *e);
/* [{attempt, cell}] of confirmed scored attempts without any verdict. New reference. */
int store_unjudged(struct store *s, json_t **rows, struct err *e);

#endif
