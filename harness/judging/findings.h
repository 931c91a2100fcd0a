/*
 * Findings: patterns in logs, each a query with an explanation (diag/findings/NAME.lua, or a
 * user's file; see harness/lua/templates/finding.lua). Each row of the query is a finding.
 */
#ifndef CULPRIT_HARNESS_JUDGING_FINDINGS_H
#define CULPRIT_HARNESS_JUDGING_FINDINGS_H

#include "diag/query/query.h"

/* Valid during the call that receives it. */
struct finding {
	const char *name, *severity, *about, *todo;
	const char *text;     /* description of this row */
	const char *evidence; /* a query that shows the events; NULL: none */
	/* From the row's columns of the same names: an event of the finding and its location. */
	const char *log, *node; /* NULL: none */
	int64_t cell, number;   /* 0: none */
	double t_s;             /* NAN: none */
};

/* Returns 0, or a value that ends the search. */
typedef int findings_fn(void *ctx, const struct finding *f, struct err *e);

/* Calls 'fn' for each of culprit's own findings; 'text' and 'evidence' are NULL. */
int findings_each(findings_fn *fn, void *ctx, struct err *e);

/* Searches for one finding (a name or a path), or all of culprit's own (NULL), errors first.
 * Findings whose tables these logs lack are skipped; for a single one that is -ENODATA. -EINVAL:
 * the finding is invalid, with its file; otherwise errors of query_run and of 'fn'. */
int findings_search(struct query *q, const char *name, findings_fn *fn, void *ctx, struct err *e);

#endif
