/*
 * Time series from elsewhere: a CSV file that any monitoring system can write.
 *
 *     time,server,metric,value
 *     0,s1,read_latency_ms,4.1
 *     0,s2,read_latency_ms,3.9
 *
 * RFC 4180 (quotes, CRLF or LF), UTF-8, a head line with these four names in any order and no
 * others. 'time' is a number of seconds from any zero; 'time_ms', 'time_us' and 'time_ns' are other
 * units. 'value' is a decimal number in any unit, the same for all of one metric; an empty value is
 * a missing sample. The rows of one server and metric must be in the order of their times, without
 * equal times; different series may be mixed or follow one another.
 */
#ifndef CULPRIT_DIAG_SERIES_H
#define CULPRIT_DIAG_SERIES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

enum {
	SERIES_SERVERS_MAX = 1000,
	SERIES_METRICS_MAX = 256,
	SERIES_NAME_MAX = 200,
	SERIES_POINTS_MAX = 20000000
};

/* Names in the order of their first row, over all files that were read into it. */
struct series_names {
	char **servers, **metrics;
	size_t n_servers, n_metrics;
	struct series_index *index; /* private */
};

struct series_point {
	double time_s, value;
	uint32_t server, metric;
};

struct series {
	struct series_point *points; /* in the order of the file */
	size_t n;
	double from_s, to_s; /* the first and the last time; 0 if there is no point */
	double step_s; /* median time between two points of one series; 0 if there are no two */
};

/* Reads 'f'; messages call it 'source'. -EINVAL with "FILE:LINE: sentence" for what is not allowed,
 * -E2BIG for more than the maxima above, -EIO. '*names' is zero at first; new names are added to
 * it, also on failure. */
int series_read(
	FILE *f, const char *source, struct series_names *names, struct series *out, struct err *e);
void series_clear(struct series *s);
void series_names_clear(struct series_names *names);

/* The points from 'from_s' up to, but not at, 'to_s' as samples: 'second' is the number of 'step_s'
 * since from_s; count, sum and maximum are of the values. The caller frees; '*n' of them. */
struct sample *series_samples(
	const struct series *s, double from_s, double to_s, double step_s, size_t *n);

#endif
