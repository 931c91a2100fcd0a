/*
 * The slices of one track in the form for a page: individual slices and sums of consecutive short
 * ones, all in lanes without overlaps.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_LANES_H
#define CULPRIT_HARNESS_WEB_TIMELINE_LANES_H

#include "harness/web/timeline/detail.h"

enum {
	LANES_MAX = 256, /* slices that fit into no lane overlap in the last */
	SUMS_MAX = 64,   /* categories that are summed at the same time */
};

struct shown {
	struct stored s;  /* a sum: from the first start to the last end; name 0 */
	uint64_t n;       /* 1; a sum: number of slices */
	uint64_t busy_ns; /* a sum: total duration; can exceed the sum's own duration */
	uint16_t lane;
};

struct lanes {
	const struct detail *detail;
	int64_t from_ns;
	uint64_t window_ns; /* a sum begins and ends in the same window after 'from_ns' */
	struct shown *list;
	size_t n;
	uint32_t in_lane[LANES_MAX]; /* number of slices by lane */
	unsigned n_lanes;
	struct shown sums[SUMS_MAX]; /* open sums */
	unsigned n_sums;
};

/* Slices of one track, sorted by start. */
void lanes_add(struct lanes *l, const struct stored *s);
/* Sorted by lane and start. */
void lanes_end(struct lanes *l);
/* Resets for the next track. */
void lanes_reset(struct lanes *l);
void lanes_clear(struct lanes *l);

#endif
