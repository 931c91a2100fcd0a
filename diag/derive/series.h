/*
 * Time series from elsewhere, whole in memory, for detectors: what diag/import reads, with more
 * rules. The samples of one series must be in the order of their times, without equal times;
 * different series may be mixed or follow one another. A missing value is no point.
 */
#ifndef CULPRIT_DIAG_DERIVE_SERIES_H
#define CULPRIT_DIAG_DERIVE_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "diag/import/import.h"
#include "harness/base/err.h"

enum { SERIES_SERVERS_MAX = 100000, SERIES_METRICS_MAX = 256, SERIES_POINTS_MAX = 20000000 };

/* Names in the order in which they came, over all files that were read into it. A server is a
 * member with its groups: "rack1/host7/sda". */
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

/* Reads a file by import_file ('o' may be NULL), whose errors it returns; and -EINVAL with
 * "FILE:LINE: sentence" for times out of order, -E2BIG for more than the maxima above. '*names' is
 * zero at first; new names are added to it, also on failure. 'said' may be NULL. */
int series_read(const char *path, const struct import_options *o, struct series_names *names,
	struct series *out, struct import_said *said, struct err *e);
void series_clear(struct series *s);
void series_names_clear(struct series_names *names);

/* The points from 'from_s' up to, but not at, 'to_s' as samples: 'second' is the number of 'step_s'
 * since from_s; count, sum and maximum are of the values. The caller frees; '*n' of them. */
struct sample *series_samples(
	const struct series *s, double from_s, double to_s, double step_s, size_t *n);

#endif
