/*
 * The served or compared session: a run, which may still be in progress, or logs, which may still
 * be written. A snapshot has its state at one moment; a query uses one snapshot, whatever arrives
 * afterwards.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_PAGE_SUBJECT_H
#define CULPRIT_HARNESS_WEB_SERVE_PAGE_SUBJECT_H

#include "harness/judging/run_tables.h"

struct page_subject;

/* 'n' logs, or one folder: a run. 'cell' 0: all cells. -EINVAL, and errors of store_open and
 * log_reader_new. */
int page_subject_open(int n, char **args, long cell, struct page_subject **out, struct err *e);
/* "RUN", "RUN:CELL" or "LOG". */
int page_subject_open_named(const char *what, struct page_subject **out, struct err *e);
/* Shows the faults and verdicts of 'run', which runs or ran at the same time, with a capture's
 * logs. -EINVAL: 's' is not a folder of a capture; also errors of store_open. */
int page_subject_beside(struct page_subject *s, const char *run, struct err *e);
void page_subject_close(struct page_subject *s); /* NULL is fine */

/* "NAME, cell 3", or the log's name. */
const char *page_subject_name(const struct page_subject *s);
bool page_subject_is_run(const struct page_subject *s);
const char *page_subject_folder(const struct page_subject *s); /* a run's folder; NULL: logs */
/* Is it still being written? Then more data may arrive. */
bool page_subject_goes_on(const struct page_subject *s);

struct snapshot {
	uint64_t generation; /* counts from 1; changes when there is more data */
	const struct query_log *logs;
	size_t n_logs;
	/* For a run: attempts with logs, oldest first: [{attempt, cell, number, outcome, text,
	 * seconds, goes_on, marks}]; for logs: empty. marks: [{kind: "fault"|"verdict", of, from,
	 * to, text, server}]: 'of' is the mark's cell, times are in seconds on the axis of t; to
	 * is null for a fault that has not ended and for a moment. A fault also has 'asked' (s,
	 * or null), and is active from 'from' on; a verdict has 'detector' and 'right' (null: it
	 * abstains); server null: none. */
	json_t *attempts;
	/* The run next to a capture: {name, running, cells, done, phase, now}; or null. */
	json_t *beside;
	/* Internal. */
	int users;
	struct run_tables *run; /* NULL: logs */
	struct query_log *own;
};

/* The latest snapshot; checks for new data. Must be released. Thread-safe. */
struct snapshot *page_subject_get(struct page_subject *s);
void page_subject_put(struct page_subject *s, struct snapshot *snap);

/* The default attempt: the latest of a run in progress, otherwise the first confirmed one with a
 * fault, otherwise the first confirmed one, otherwise the first. 0: there is none, or these are
 * logs. */
int64_t page_subject_first_choice(const struct page_subject *s, const struct snapshot *snap);

/* Are all attempts of one cell? */
bool page_subject_has_one_cell(const struct snapshot *snap);

/* A query of one attempt (0: of all), with all tables of its run; 'spec' has the caller's other
 * settings. End it with query_free before releasing the snapshot. */
int page_subject_ask(const struct snapshot *snap, int64_t attempt, const struct query_spec *spec,
	struct query **q, struct err *e);

#endif
