/*
 * Two recorded sessions side by side: calls by type, errors, files, threads, each with what was
 * counted and how long it took, in A and in B.
 *
 *     {"a": {"name", "seconds"}, "b": {...}, "per_second": false,
 *      "tables": [{"title": "Calls", "key": "call", "measures": [{"name": "calls", "unit": "",
 *                  "main": true}, ...], "rows": [["read", [120, .1], [130, .1]]]}],
 *      "problems": ["..."]}
 *
 * A row that one side does not have is null there. Rows come in the order of what they say most
 * about: the largest on either side first.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_COMPARE_H
#define CULPRIT_HARNESS_WEB_SERVE_COMPARE_H

#include <stdio.h>

#include "diag/query/query.h"

struct compare_side {
	const char *name;
	struct query *q;
};

/* 'per_second': counts and bytes are divided by the session's length. '*out': a new reference. */
int compare_sessions(const struct compare_side *a, const struct compare_side *b, bool per_second,
	json_t **out, struct err *e);

/* Prints it: 'rows' of each table at most. */
void compare_text(const json_t *compared, long rows, FILE *f);

#endif
