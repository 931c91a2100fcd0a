/*
 * The run store: a run is a folder. Its run.db (SQLite) has the plan, the attempts, the
 * measurements and the verdicts; traces and output are files in the same folder, listed with
 * checksums.
 *
 * An attempt is written in one transaction when it has ended; an attempt that is not in run.db
 * does not count.
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

enum outcome { OUTCOME_CONFIRMED, OUTCOME_INVALID, OUTCOME_ERROR, OUTCOME_ABORTED };
const char *outcome_name(enum outcome o);

/* Makes the folder (0700; -EEXIST if it exists), those above it, and an empty store in it. Under
 * sudo the folder and everything later made in it are given to the user who called sudo
 * (file_give_to_sudo_user). */
int store_create(const char *folder, struct store **out, struct err *e);

/* Opens and checks run.db, otherwise a corpus' run.db.gz, which is read into memory and is
 * read-only. -ENOENT: not a run; -EACCES: no permission; -EINVAL: another version; -EBADMSG
 * (ERR_DAMAGED): it cannot be unpacked, or its pages are inconsistent. All of these give exit
 * code 2. */
int store_open(const char *folder, struct store **out, struct err *e);
void store_close(struct store *s);

/* Writes 'folder'/run.db.gz: a corpus with all data for judging and scoring (plan, attempts,
 * samples, events), without hosts and verdicts; 'whole': with these, all details and requests. */
int store_pack(struct store *s, const char *folder, bool whole, struct err *e);

/* Reads the shards of a run (harness/scenario/shard.h; each has the fact "shard") as one run,
 * which is read-only and no longer needs 'from'. Scored cells keep their numbers. Training cells
 * occur once per shard: the first shard's with their own numbers, the others after the plan's.
 * Attempts are renumbered; files are listed with their shards' folders. The fact "shards" has
 * [{index, of, cells, run, key, servers, first, last, training}]: the data for judging each
 * shard's attempts ('first' to 'last') with its own key and training. If a corpus among the
 * shards has no verdicts, the joined run has none. The caller has checked that the shards belong
 * together. */
int store_join(struct store *const from[], size_t n, struct store **out, struct err *e);

/* The secret from which detectors' view of the run is drawn, as text. Fails if it cannot be read,
 * because without it detectors could guess names. */
int store_blind_key(struct store *s, char key[80], struct err *e);

bool store_is_corpus(const struct store *s); /* or joined from corpora */
const char *store_folder(const struct store *s);
const char *store_run_id(const struct store *s); /* the folder's name */

/* Facts about the run as a whole: seed, scenario text, versions, hosts. Reading returns 1 with
 * '*value' (the caller frees; JSON: a new reference), 0 with NULL if the fact does not exist, or
 * an error. -EBADMSG (ERR_DAMAGED): damaged, or not JSON. */
int store_set(struct store *s, const char *key, const char *value, struct err *e);
int store_get(struct store *s, const char *key, char **value, struct err *e);
/* A fact: the sentence of a run in which ptrace replaced a tracer that could not run. */
#define STORE_TRACER_REPLACED "tracer_replaced"
int store_get_json(struct store *s, const char *key, json_t **value, struct err *e);

/* 1: the run measured run times; 0: verdicts; or an error. */
int store_has_runtimes(struct store *s, struct err *e);

/* The plan's cells, in order. */
int store_put_plan(struct store *s, const struct scenario *sc, const struct plan *p,
	char *const servers[], struct err *e);

/* Marks the scored cells of a "fault" or "tracer" ('what'; its label) as skipped; they then do
 * not count as missing. */
int store_skip(
	struct store *s, const char *what, const char *label, const char *reason, struct err *e);

/* Adds a cell without a scenario, with the fault "none", so that an attempt can belong to it. */
int store_put_cell(struct store *s, size_t number, const char *workload, struct err *e);

int store_begin(struct store *s, struct err *e);
/* Commits if 'rc' is 0, otherwise rolls back; returns 'rc' or the error of the commit. */
int store_end(struct store *s, int rc, struct err *e);

struct attempt_row {
	int64_t id; /* out */
	size_t cell;
	long number; /* counts the cell's attempts, from 1 */
	enum outcome outcome;
	const char *reason; /* NULL when confirmed */
	/* CLOCK_REALTIME; 0: not reached. start: all workloads run; onset: the fault was verified
	 * as active; offset: it was verified as gone. */
	int64_t started_ns, start_ns, onset_ns, offset_ns, ended_ns;
	int32_t seconds;      /* measured, from start_ns */
	const json_t *detail; /* verify's evidence, results, lost records, clock offsets */
	const char *key;      /* digest of its measurement conditions (cell_key.h) */
};

int store_put_attempt(struct store *s, struct attempt_row *row, struct err *e);
/* Samples in the order of metrics_samples. */
int store_put_samples(struct store *s, int64_t attempt, char *const servers[],
	const struct sample *samples, size_t n, struct err *e);
/* Deletes the attempt's rows of a table: "series" (samples), "event", ... */
int store_drop(struct store *s, const char *table, int64_t attempt, struct err *e);
/* Events in order; 'servers' and 'clients' are the names for their indices. */
int store_put_events(struct store *s, int64_t attempt, char *const servers[], char *const clients[],
	const struct event *events, size_t n, struct err *e);
/* Requests of an attempt, or of what its flight recorder wrote the 'recording'-th time (0: of the
 * attempt itself), as blocks of a table (diag/flow/table.h). A run of an older program has none. */
int store_put_requests(struct store *s, int64_t attempt, int64_t recording, uint32_t block,
	const void *data, size_t size, struct err *e);
/* 1: '*data' is malloced; 0: no such block. */
int store_get_requests(struct store *s, int64_t attempt, int64_t recording, uint32_t block,
	unsigned char **data, size_t *size, struct err *e);
/* 1: the attempt, or ('attempt' 0) any attempt, has requests; 0. */
int store_has_requests(struct store *s, int64_t attempt, struct err *e);
/* 'recording' below 0: of all. */
int store_drop_requests(struct store *s, int64_t attempt, int64_t recording, struct err *e);
/* 'path' is relative to the run's folder; computes size and SHA-256. */
int store_put_file(struct store *s, int64_t attempt, const char *path, struct err *e);

int store_put_model(struct store *s, const char *detector, const json_t *params,
	const json_t *model, struct err *e);
int store_put_verdict(struct store *s, int64_t attempt, const char *detector, const json_t *verdict,
	struct err *e);
int store_clear_verdicts(struct store *s, struct err *e);

/* Rows, as objects: */
enum store_rows {
	/* For judging, sorted by cell: {cell, training, workload, fault, resource, victims:
	 * [names]|null, repeat, attempt (of the run), number (of the cell's attempts), seconds,
	 * start_ns, onset_ns, offset_ns} for every cell with a confirmed attempt. */
	ROWS_CONFIRMED,
	/* For a run that measures run times: {cell, workload, tracer, repeat, runtime_s, cpu_s,
	 * tracers_s, calls, records, lost} for every cell with a confirmed attempt; the processor
	 * times are null in runs of older versions; calls, records and lost are null if the
	 * tracer does not count them. */
	ROWS_RUNTIMES,
	/* {kind, server|null, client|null, time_s, detail: {last_s, count, call, ...}} of one
	 * attempt. */
	ROWS_EVENTS,
	/* {attempt, detector, metric, verdict} of all attempts. */
	ROWS_VERDICTS,
	/* {id, cell, number, outcome, key|null}, oldest first. */
	ROWS_ATTEMPTS,
	/* {attempt, cell, number, start_ns, seconds, onset_ns, offset_ns, training, workload,
	 * fault, victims: [names]|null, detail, files} of confirmed attempts; files: number of
	 * listed files. */
	ROWS_TRACED,
	/* {attempt, cell} of confirmed scored attempts without any verdict. */
	ROWS_UNJUDGED,
	/* {path, size, sha256} of one attempt. */
	ROWS_FILES,
};

/* 'attempt': for rows of one attempt, otherwise 0. '*rows' is a new reference to an array. */
int store_rows(
	struct store *s, enum store_rows which, int64_t attempt, json_t **rows, struct err *e);
/* If run times are measured, 'fault' is the cell's tracer. {planned, confirmed, attempts:
 * {confirmed, invalid, error, aborted}, missing: [{number, training, workload, fault}], failed:
 * [{cell, number, outcome, reason}], cells: [like missing, all of them, plus done], skipped:
 * [{fault, reason, cells}]} */
int store_tally(struct store *s, json_t **tally, struct err *e);
/* The samples of one metric of one server, sorted by second, valid during the call; their fields
 * 'metric' and 'server' are 0. A non-zero result ends the reading. */
typedef int (*store_series_fn)(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e);
/* Calls 'fn' for every metric and server with samples in the attempt, sorted by name. -EBADMSG:
 * the store is damaged. */
int store_samples(struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e);
/* All rows of one table ("fact", "cell", "attempt", "file", "model"), sorted by the first column,
 * every column as stored, JSON as text. New reference. */
int store_table(struct store *s, const char *table, json_t **rows, struct err *e);

/* For resuming a run. */

/* Compares the attempt's files with their recorded sizes and checksums. -EBADMSG names the first
 * that differs. */
int store_check_files(struct store *s, int64_t attempt, struct err *why);
/* Makes a confirmed attempt invalid (for example if its files are damaged) and deletes its
 * verdicts. */
int store_spoil(struct store *s, int64_t cell, int64_t number, const char *reason, struct err *e);
/* Deletes an attempt and all of its data: one that is in the second tracer's store but not in the
 * run's own store. */
int store_drop_attempt(struct store *s, int64_t attempt, struct err *e);
/* Deletes all skip marks, so that a resumed run repeats the checks. */
int store_unskip(struct store *s, struct err *e);

#endif
