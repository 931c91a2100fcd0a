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
#ifndef CULPRIT_HARNESS_CLI_REPORT_SAMPLES_H
#define CULPRIT_HARNESS_CLI_REPORT_SAMPLES_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/store/store.h"

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

#endif
