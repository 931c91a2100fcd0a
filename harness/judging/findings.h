/*
 * Findings: patterns in logs, each a query with an explanation (diag/findings/NAME.lua, or a file
 * of the user's; harness/lua/templates/finding.lua shows how). A row of the query is a finding.
 */
#ifndef CULPRIT_HARNESS_JUDGING_FINDINGS_H
#define CULPRIT_HARNESS_JUDGING_FINDINGS_H

#include "diag/query/query.h"

/* Valid during the call that gets it. */
struct finding {
	const char *name, *severity, *about, *todo;
	const char *text;     /* what was found, of this row */
	const char *evidence; /* a query that shows it; NULL: none */
	/* Of the row's columns of these names: an event of it and its place. */
	const char *log, *node; /* NULL: none */
	int64_t cell, number;   /* 0: none */
	double t_s;             /* NAN: none */
};

/* Returns 0, or what ends the search. */
typedef int findings_fn(void *ctx, const struct finding *f, struct err *e);

/* Tells of each of culprit's own: 'text' and 'evidence' are NULL. */
int findings_each(findings_fn *fn, void *ctx, struct err *e);

/* Asks one finding (a name, or a path), or all of culprit's own (NULL), errors first, without those
 * whose tables cannot be made of these logs: of one, that is -ENODATA. -EINVAL: it is wrong, with
 * its file; else errors as query_run, and those of 'fn'. */
int findings_search(struct query *q, const char *name, findings_fn *fn, void *ctx, struct err *e);

#endif
