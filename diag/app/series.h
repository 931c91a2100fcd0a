/*
 * Bytes over time: how much an application, or its replay, read and wrote in each of equal
 * intervals (Mesnier et al. 2007, Figure 1). A call's bytes are spread evenly over its duration;
 * all sums remain exact. Intervals start at 1 ms and double in length whenever there would be more
 * than SERIES_STEPS.
 */
#ifndef CULPRIT_DIAG_APP_SERIES_H
#define CULPRIT_DIAG_APP_SERIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { SERIES_STEPS = 1024 };
#define SERIES_LEAST_NS 1000000
#define SERIES_MOST_NS ((uint64_t)SERIES_LEAST_NS << 40)

struct app_series {
	uint64_t interval_ns;
	unsigned n; /* intervals up to the last one with bytes */
	uint64_t read[SERIES_STEPS], written[SERIES_STEPS];
};

/* Empties 's'. */
void series_begin(struct app_series *s);

/* Adds one call, in nanoseconds since the start; time before the start counts at the start. */
void series_add(
	struct app_series *s, bool written, int64_t begin_ns, int64_t end_ns, uint64_t bytes);

/* Makes the intervals at least 'interval_ns' long. */
void series_coarsen(struct app_series *s, uint64_t interval_ns);

/* Adds 'from', which must have the same start. */
void series_merge(struct app_series *into, const struct app_series *from);

/* Converts to and from {"interval_s": 0.001, "skipped": 25, "read_bytes": [...], "written_bytes":
 * [...]}, here with the first 25 intervals, which have no bytes, left out. False: 'v' is not a
 * series, and 's' is unchanged. */
json_t *series_json(const struct app_series *s);
bool series_from_json(const json_t *v, struct app_series *s);

#endif
