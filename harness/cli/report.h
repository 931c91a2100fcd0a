/* What the files of 'culprit report' share. */
#ifndef CULPRIT_HARNESS_CLI_REPORT_H
#define CULPRIT_HARNESS_CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/store/store.h"

/* ---- report_samples.c ---- */

/*
 * An attempt's samples in a report: numbers of three digits, two bytes each.
 *
 * JSON says what there is: {seconds, metrics: {NAME: {servers: [NAMES], columns, count}}}.
 * 'columns' has a letter for each column, in this order: c count, s sum, m largest, b bytes; "="
 * for "m": as the sum. Counts that are all equal are the number 'count' instead. The bytes hold,
 * metric by metric, column by column, server by server, a number for each second; the lower
 * halves of all numbers stand before the upper halves.
 *
 * A number is 0 (no sample), 1 (zero) or 2 + 900 * (exponent + 10) + digits - 100, which means
 * digits * 10^exponent, of 100 to 999 digits; plus 0x8000 if it is negative. Smaller numbers are
 * zero, larger ones the largest.
 */

struct report_samples {
	json_t *what; /* new reference */
	unsigned char *bytes;
	size_t size;
};

/* Metrics that did not change on any server are left out, unless they are service times. 'brief':
 * so are the largest values of readings. */
int report_samples_read(
	struct store *s, int64_t attempt, bool brief, struct report_samples *out, struct err *e);
void report_samples_clear(struct report_samples *r);

/* A number as it is stored. */
uint16_t report_samples_code(double x);

/* ---- report_data.c ---- */

/*
 * The data of a report: a run's store as JSON.
 */

/* The part that is shown before a cell is opened: {report, run, facts: {}, table (as culprit table
 * --format json), doses (as with --by strength, or null), tally, metrics: [{name, unit,
 * definition}], cells (with a fault: with impact {measure: as in doses}), attempts (of the detail,
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
