/*
 * Run store: a run is a folder. run.db (SQLite) in it holds the plan, the attempts, the
 * measurements and the verdicts; traces and output are files in the same folder, listed with
 * checksums.
 *
 * An attempt is written in one transaction when it has ended; one that is not in run.db does not
 * count.
 */
#ifndef CULPRIT_HARNESS_STORE_STORE_H
#define CULPRIT_HARNESS_STORE_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "diag/derive/events.h"
#include "harness/scenario/plan.h"

struct store;

enum outcome { OUTCOME_CONFIRMED, OUTCOME_INVALID, OUTCOME_ERROR };
const char *outcome_name(enum outcome o);

/* Makes the folder (0700; -EEXIST if it is there) and an empty store in it. Under sudo the folder
 * and what is later made in it go to the user who called sudo (file_give_to_sudo_user). */
int store_create(const char *folder, struct store **out, struct err *e);

/* Opens and checks run.db or, where there is none, a corpus' run.db.gz, which is read into memory
 * and is read-only. -ENOENT: there is no run; -EACCES: it may not be read; -EINVAL: another
 * version; -EBADMSG (ERR_DAMAGED): it does not unpack, or its pages do not hang together. All are
 * exit code 2. */
int store_open(const char *folder, struct store **out, struct err *e);
void store_close(struct store *s);

/* Writes 'folder'/run.db.gz: a corpus, which is all that judging and scoring need (plan, attempts,
 * samples, events) without hosts and verdicts; 'whole': with these, all details and requests. */
int store_pack(struct store *s, const char *folder, bool whole, struct err *e);

/* Reads the shards of a run (harness/scenario/shard.h; each has the fact "shard") as one run, which
 * is read-only and needs 'from' no longer. Scored cells keep their numbers. Training cells stand
 * there once for each shard: the first's under their own numbers, the others behind the plan's.
 * Attempts are numbered anew; files are listed with their shards' folders. The fact "shards" has
 * [{index, of, cells, run, key, servers, first, last, training}]: what judging needs to judge each
 * shard's attempts ('first' to 'last') under its own key with its own training. If a corpus among
 * them has no verdicts, the run has none. The caller has checked that they belong together. */
int store_join(struct store *const from[], size_t n, struct store **out, struct err *e);

/* The secret that detectors' view of the run is drawn from, as text. An error if it cannot be
 * read: without it detectors could guess names. */
int store_blind_key(struct store *s, char key[80], struct err *e);

bool store_is_corpus(const struct store *s); /* or joined of some */
const char *store_folder(const struct store *s);
const char *store_run_id(const struct store *s); /* the folder's own name */

/* Facts about the run as a whole: seed, scenario text, versions, hosts. Reading: 1 with '*value'
 * (the caller frees; JSON: a new reference), 0 with NULL if there is no such fact, or an error.
 * -EBADMSG (ERR_DAMAGED): damaged, or no JSON. */
int store_set(struct store *s, const char *key, const char *value, struct err *e);
int store_get(struct store *s, const char *key, char **value, struct err *e);
/* A fact: the sentence of a run whose tracer could not run, and was replaced by ptrace. */
#define STORE_TRACER_REPLACED "tracer_replaced"
int store_get_json(struct store *s, const char *key, json_t **value, struct err *e);

/* 1: the run measured run times; 0: verdicts; or an error. */
int store_has_runtimes(struct store *s, struct err *e);

/* The plan's cells, in order. */
int store_put_plan(struct store *s, const struct scenario *sc, const struct plan *p,
	char *const servers[], struct err *e);

/* Marks the scored cells of a "fault" or "tracer" ('what'; its label) as skipped; they are then not
 * missing. */
int store_skip(
	struct store *s, const char *what, const char *label, const char *reason, struct err *e);

/* A cell that no scenario planned, of the fault "none", so that an attempt can belong to it. */
int store_put_cell(struct store *s, size_t number, const char *workload, struct err *e);

int store_begin(struct store *s, struct err *e);
/* Commits if 'rc' is 0, rolls back if not; returns 'rc' or the error of the commit. */
int store_end(struct store *s, int rc, struct err *e);

struct attempt_row {
	int64_t id; /* out */
	size_t cell;
	long number; /* 1, 2 ... of this cell */
	enum outcome outcome;
	const char *reason; /* NULL when confirmed */
	/* CLOCK_REALTIME; 0: not reached. start: all workloads run; onset: the fault was
	 * verified to act; offset: it was verified to be gone. */
	int64_t started_ns, start_ns, onset_ns, offset_ns, ended_ns;
	int32_t seconds;      /* measured, from start_ns */
	const json_t *detail; /* what verify saw, workloads' results, lost records, clock offsets */
	const char *key;      /* digest of what it was measured under (cell_key.h) */
};

int store_put_attempt(struct store *s, struct attempt_row *row, struct err *e);
/* In the order of metrics_samples. */
int store_put_samples(struct store *s, int64_t attempt, char *const servers[],
	const struct sample *samples, size_t n, struct err *e);
/* Deletes the attempt's rows of a table: "series" (samples), "event", ... */
int store_drop(struct store *s, const char *table, int64_t attempt, struct err *e);
/* Events in their order; 'servers' and 'clients' are the names that their indices stand for. */
int store_put_events(struct store *s, int64_t attempt, char *const servers[], char *const clients[],
	const struct event *events, size_t n, struct err *e);
/* Requests of an attempt, or of what its flight recorder wrote the 'recording'-th time (0: of the
 * attempt itself), as blocks of a table (diag/flow/table.h). A run of an older program has none. */
int store_put_requests(struct store *s, int64_t attempt, int64_t recording, uint32_t block,
	const void *data, size_t size, struct err *e);
/* 1: '*data' is malloced; 0: there is none. */
int store_get_requests(struct store *s, int64_t attempt, int64_t recording, uint32_t block,
	unsigned char **data, size_t *size, struct err *e);
/* 1: there are some of the attempt, or ('attempt' 0) of any; 0. */
int store_has_requests(struct store *s, int64_t attempt, struct err *e);
/* 'recording' below 0: of all. */
int store_drop_requests(struct store *s, int64_t attempt, int64_t recording, struct err *e);
/* 'path' is relative to the run's folder; size and SHA-256 are taken here. */
int store_put_file(struct store *s, int64_t attempt, const char *path, struct err *e);

int store_put_model(struct store *s, const char *detector, const json_t *params,
	const json_t *model, struct err *e);
int store_put_verdict(struct store *s, int64_t attempt, const char *detector, const json_t *verdict,
	struct err *e);
int store_clear_verdicts(struct store *s, struct err *e);

/* Rows, as objects: */
enum store_rows {
	/* For judging, in the order of cells: {cell, training, workload, fault, resource, victims:
	 * [names]|null, repeat, attempt (of the run), number (of the cell's attempts), seconds,
	 * start_ns, onset_ns, offset_ns} for every cell that has a confirmed attempt. */
	ROWS_CONFIRMED,
	/* Of a run that measures run times: {cell, workload, tracer, repeat, runtime_s, cpu_s,
	 * tracers_s, calls, records, lost} for every cell with a confirmed attempt; the processor
	 * times are null in runs of older versions; calls, records and lost are null where the
	 * tracer does not count. */
	ROWS_RUNTIMES,
	/* {kind, server|null, client|null, time_s, detail: {last_s, count, call, ...}} of one
	 * attempt. */
	ROWS_EVENTS,
	/* {attempt, detector, metric, verdict} of all attempts. */
	ROWS_VERDICTS,
	/* {id, cell, number, outcome, key|null}, oldest first. */
	ROWS_ATTEMPTS,
	/* {attempt, cell, number, start_ns, seconds, onset_ns, offset_ns, training, workload,
	 * fault, victims: [names]|null, detail, files} of confirmed attempts; files: how many are
	 * listed. */
	ROWS_TRACED,
	/* {attempt, cell} of confirmed scored attempts without any verdict. */
	ROWS_UNJUDGED,
	/* {path, size, sha256} of one attempt. */
	ROWS_FILES,
};

/* 'attempt': of rows of one attempt, else 0. '*rows' is a new reference to an array. */
int store_rows(
	struct store *s, enum store_rows which, int64_t attempt, json_t **rows, struct err *e);
/* Where run times are measured, 'fault' is the cell's tracer. {planned, confirmed, attempts:
 * {confirmed, invalid, error}, missing: [{number, training, workload, fault}], failed: [{cell,
 * number, outcome, reason}], cells: [as missing, all of them, and done], skipped: [{fault, reason,
 * cells}]} */
int store_tally(struct store *s, json_t **tally, struct err *e);
/* The samples of one metric of one server, in the order of seconds, valid during the call; their
 * own 'metric' and 'server' are 0. A result other than 0 ends the reading. */
typedef int (*store_series_fn)(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e);
/* Calls 'fn' for every metric and server of which the attempt has samples, in the order of their
 * names. -EBADMSG: the store is damaged. */
int store_samples(struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e);
/* All rows of one table ("fact", "cell", "attempt", "file", "model") in the order of the first
 * column, every column as it is stored, JSON as text. New reference. */
int store_table(struct store *s, const char *table, json_t **rows, struct err *e);

/* For resuming a run. */

/* Compares the attempt's files with their sizes and checksums. -EBADMSG names the first one that
 * differs. */
int store_check_files(struct store *s, int64_t attempt, struct err *why);
/* Makes a confirmed attempt invalid (its files are damaged, say) and deletes its verdicts. */
int store_spoil(struct store *s, int64_t cell, int64_t number, const char *reason, struct err *e);
/* Deletes an attempt with all that belongs to it: one that the second tracer's store has and the
 * run's own store has not. */
int store_drop_attempt(struct store *s, int64_t attempt, struct err *e);
/* Deletes all skip marks, so that a resumed run checks again. */
int store_unskip(struct store *s, struct err *e);

#endif
