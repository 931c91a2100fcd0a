/*
 * The data of a report: a run's store as JSON.
 */
#ifndef CULPRIT_CLI_REPORT_DATA_H
#define CULPRIT_CLI_REPORT_DATA_H

#include <jansson.h>

#include "harness/store/store.h"

/* The part that is shown before a cell is opened: {report, run, facts: {}, table (as culprit table
 * --format json), tally, metrics: [{name, unit, definition}], cells, attempts (of the detail,
 * runtime_s), verdicts (no evidence), models}. New reference. */
int report_index(struct store *s, json_t **index, struct err *e);

/* The part of one attempt: {detail, samples: {metric: {server: [[second], [count], [sum_s],
 * [max_s], [bytes]]}}, events, verdicts (with evidence), files}. 'attempt' is a row of the table
 * "attempt"; 'verdicts' and 'files' are those of all attempts. New reference. */
int report_block(struct store *s, const json_t *attempt, const json_t *verdicts,
	const json_t *files, json_t **block, struct err *e);

#endif
