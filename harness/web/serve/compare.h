/*
 * Compares two recorded sessions: calls by type, errors, files, threads, each with its count and
 * duration, in A and in B.
 *
 *     {"a": {"name", "seconds"}, "b": {...}, "per_second": false,
 *      "tables": [{"title": "Calls", "key": "call", "measures": [{"name": "calls", "unit": "",
 *                  "main": true}, ...], "rows": [["read", [120, .1], [130, .1]]]}],
 *      "problems": ["..."]}
 *
 * If one side lacks a row, its value is null. Rows are sorted by the measure that the table is
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

/* 'per_second': divides counts and bytes by the session's length. '*out': a new reference. */
int compare_sessions(const struct compare_side *a, const struct compare_side *b, bool per_second,
	json_t **out, struct err *e);

/* Prints the comparison: at most 'rows' rows of each table. */
void compare_text(const json_t *compared, long rows, FILE *f);

#endif
