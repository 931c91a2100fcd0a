/*
 * Bytes over time: what an application, or its replay, read and wrote in each of equal intervals
 * (Mesnier et al. 2007, Figure 1). A call's bytes are spread evenly over its duration; all sums
 * remain exact. Intervals are 1 ms long at first, and twice as long each time that there would be
 * more than SERIES_STEPS of them.
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

/* Holds nothing. */
void series_begin(struct app_series *s);

/* One call, in nanoseconds since the start; what is before it counts at the start. */
void series_add(
	struct app_series *s, bool written, int64_t begin_ns, int64_t end_ns, uint64_t bytes);

/* Intervals of 'interval_ns' at least. */
void series_coarsen(struct app_series *s, uint64_t interval_ns);

/* Adds 'from', which has the same start. */
void series_merge(struct app_series *into, const struct app_series *from);

/* {"interval_s": 0.001, "skipped": 25, "read_bytes": [...], "written_bytes": [...]}, where the
 * first 25 intervals, without bytes, are left out; and back. False: it is not that, and 's' is not
 * changed. */
json_t *series_json(const struct app_series *s);
bool series_from_json(const json_t *v, struct app_series *s);

#endif
