/*
 * The data of a report: a run's store as JSON.
 */
#ifndef CULPRIT_HARNESS_CLI_REPORT_DATA_H
#define CULPRIT_HARNESS_CLI_REPORT_DATA_H

#include <jansson.h>

#include "harness/cli/report_samples.h"

/* The part that is shown before a cell is opened: {report, run, facts: {}, table (as culprit table
 * --format json), tally, metrics: [{name, unit, definition}], cells, attempts (of the detail,
 * runtime_s; logs: true if they are in the run's folder), verdicts (on "any"; of the evidence,
 * severity), models}. 'verdicts': {attempt, detector, metric, verdict} of all. New reference. */
int report_index(struct store *s, const json_t *verdicts, json_t **index, struct err *e);

/* The part of one attempt: {detail, samples (report_samples.what), events, verdicts (with
 * evidence), files}; 'brief': confirmed attempts are without gates. 'attempt' is a row of the table
 * "attempt"; 'verdicts' and 'files' are those of all attempts. New reference. */
int report_block(struct store *s, const json_t *attempt, const json_t *verdicts,
	const json_t *files, const struct report_samples *samples, bool brief, json_t **block,
	struct err *e);

#endif
