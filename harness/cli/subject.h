/* What a query or a search for findings is about: a run, or logs. */
#ifndef CULPRIT_HARNESS_CLI_SUBJECT_H
#define CULPRIT_HARNESS_CLI_SUBJECT_H

#include "harness/judging/run_tables.h"

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

#endif
