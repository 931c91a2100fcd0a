/* What the commands on logs share: what they are about, and the database that has it. */
#ifndef CULPRIT_HARNESS_CLI_SUBJECT_H
#define CULPRIT_HARNESS_CLI_SUBJECT_H

#include "diag/ship/clickhouse.h"
#include "diag/ship/ship.h"
#include "harness/cli/options.h"
#include "harness/judging/run_tables.h"

/* ---- subject.c ---- */

/* What a query or a search for findings is about: a run, or logs. */

struct subject {
	long recording;  /* set by the caller: of a run, only what flight recorders wrote so the
			 * so-manyth time; 0: all */
	bool tables;     /* set by the caller: a run without logs, or a corpus, will do */
	const char *run; /* set by subject_open: its folder; NULL: logs */
	struct run_tables *of_run;
	struct query_log *logs;
};

/* One folder is a run; else 'args' are logs. Opens them for queries; SIGINT ends these. '*spec' has
 * what the caller sets. The caller frees '*q', and then closes the subject, in case of errors,
 * too. */
int subject_open(struct subject *s, int n, char **args, long cell, struct query_spec *spec,
	struct query **q, struct err *e);
void subject_close(struct subject *s);

/* Says what could not be read, and that calls were asked of logs that keep none; returns the exit
 * code, given what it would be without. */
int subject_problems(const struct query *q, const char *command, int code);

/* ---- clickhouse_options.c ---- */

/* Options of commands that talk to ClickHouse. */

struct clickhouse_given {
	const char *password_file, *ca_file;
};

extern const struct option_row clickhouse_rows[];

/* Opens the database; the limit is of each request. SIGINT ends it. */
int clickhouse_given_open(const struct clickhouse_given *given, const char *url, double timeout_s,
	struct clickhouse **out, struct err *e);

/* ---- ship_requests.c ---- */

/* The requests of a run's attempts as logs that are shipped. */

/* Sends the requests of the i-th attempt; a block is one request. '*none': its logs do not tell
 * them; nothing was sent. */
int ship_requests(struct run_requests *r, size_t i, const struct run_logs *logs,
	const struct ship_spec *spec, const struct ship_sink *sink, struct ship_counts *counts,
	bool *none, struct err *e);

#endif
