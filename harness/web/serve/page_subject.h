/*
 * What is served or compared: a run, which may still continue, or logs, which may still be written.
 * What is known of it at one moment is a snapshot; a query asks one snapshot, whatever comes
 * in the meantime.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_PAGE_SUBJECT_H
#define CULPRIT_HARNESS_WEB_SERVE_PAGE_SUBJECT_H

#include "harness/judging/run_tables.h"

struct page_subject;

/* 'n' logs, or one folder: a run. 'cell' 0: all cells. -EINVAL and what store_open and
 * log_reader_new say. */
int page_subject_open(int n, char **args, long cell, struct page_subject **out, struct err *e);
/* "RUN", "RUN:CELL" or "LOG". */
int page_subject_open_named(const char *what, struct page_subject **out, struct err *e);
/* Shows the faults and verdicts of 'run', which goes on or went on meanwhile, with a capture's
 * logs. -EINVAL: 's' is no folder of a capture; and what store_open says. */
int page_subject_beside(struct page_subject *s, const char *run, struct err *e);
void page_subject_close(struct page_subject *s); /* NULL is fine */

/* "NAME, cell 3", or the log's name. */
const char *page_subject_name(const struct page_subject *s);
bool page_subject_is_run(const struct page_subject *s);
const char *page_subject_folder(const struct page_subject *s); /* of a run; NULL: logs */
/* Does something still write to it? Then more may come. */
bool page_subject_goes_on(const struct page_subject *s);

struct snapshot {
	uint64_t generation; /* from 1; another one: there is more */
	const struct query_log *logs;
	size_t n_logs;
	/* Of a run: attempts with logs, oldest first: [{attempt, cell, number, outcome, text,
	 * seconds, goes_on, marks}], of logs: empty. marks: [{kind: "fault"|"verdict", of, from,
	 * to, text, server}]: 'of' is its cell, times are in seconds on the axis of t; to null: it
	 * did not end, or it is a moment. A fault has 'asked' (s, or null) too, and acts from
	 * 'from' on; a verdict 'detector' and 'right' (null: it abstains); server null: nobody. */
	json_t *attempts;
	/* The run next to a capture: {name, running, cells, done, phase, now}; or null. */
	json_t *beside;
	/* Inside. */
	int users;
	struct run_tables *run; /* NULL: logs */
	struct query_log *own;
};

/* The latest; looks for what is new. To be given back. Threads may call these. */
struct snapshot *page_subject_get(struct page_subject *s);
void page_subject_put(struct page_subject *s, struct snapshot *snap);

/* The attempt that is shown where none is chosen: the latest of a run that goes on, else the first
 * confirmed one with a fault, or the first confirmed one, or the first. 0: there is none, or these
 * are logs. */
int64_t page_subject_first_choice(const struct page_subject *s, const struct snapshot *snap);

/* Are all attempts of one cell? */
bool page_subject_has_one_cell(const struct snapshot *snap);

/* A query of one attempt (0: of all), with all tables of its run; 'spec' has what else the caller
 * wants. query_free ends it, before the snapshot is given back. */
int page_subject_ask(const struct snapshot *snap, int64_t attempt, const struct query_spec *spec,
	struct query **q, struct err *e);

#endif
