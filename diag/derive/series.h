/*
 * Time series from files (diag/import) in memory, for detectors, with stricter rules. The samples
 * of one series must have increasing times; different series may be interleaved or follow one
 * another. A missing value adds no point.
 */
#ifndef CULPRIT_DIAG_DERIVE_SERIES_H
#define CULPRIT_DIAG_DERIVE_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "diag/import/import.h"
#include "harness/base/err.h"

enum { SERIES_SERVERS_MAX = 100000, SERIES_METRICS_MAX = 256, SERIES_POINTS_MAX = 20000000 };

/* Names in order of appearance over all files read into them. A server is a member with its groups:
 * "rack1/host7/sda". */
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
	double from_s, to_s; /* first and last time; 0 without points */
	double step_s; /* median time between two points of one series; 0 if there are no two */
};

/* Reads a file with import_file ('o' may be NULL) and returns its errors; also -EINVAL with
 * "FILE:LINE: sentence" for times out of order, and -E2BIG above the maxima. '*names' starts as
 * zero; new names are added to it, also on failure. 'said' may be NULL. */
int series_read(const char *path, const struct import_options *o, struct series_names *names,
	struct series *out, struct import_said *said, struct err *e);
void series_clear(struct series *s);
void series_names_clear(struct series_names *names);

/* Returns the points in [from_s, to_s) as samples, '*n' of them; the caller frees. 'second' is the
 * number of the 'step_s' interval since from_s; count, sum and maximum are of the values. */
struct sample *series_samples(
	const struct series *s, double from_s, double to_s, double step_s, size_t *n);

#endif
