/*
 * The slices of one track as a page shows them: those that it holds one by one, sums of short ones
 * that follow each other, and all in lanes, in which no two overlap.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_LANES_H
#define CULPRIT_HARNESS_WEB_TIMELINE_LANES_H

#include "harness/web/timeline/detail.h"

enum {
	LANES_MAX = 256, /* slices that fit into none overlap in the last */
	SUMS_MAX = 64,   /* categories that are summed at a time */
};

struct shown {
	struct stored s;  /* of a sum: from the first to the end of the last; its name is 0 */
	uint64_t n;       /* 1, or of a sum: how many slices */
	uint64_t busy_ns; /* of a sum: of their durations; it may be more than lasts the sum */
	uint16_t lane;
};

struct lanes {
	const struct detail *detail;
	int64_t from_ns;
	uint64_t window_ns; /* a sum begins and ends in the same window after 'from_ns' */
	struct shown *list;
	size_t n;
	uint32_t in_lane[LANES_MAX]; /* slices by lane */
	unsigned n_lanes;
	struct shown sums[SUMS_MAX]; /* those that are open */
	unsigned n_sums;
};

/* Slices of one track, sorted by start. */
void lanes_add(struct lanes *l, const struct stored *s);
/* The list is sorted by lane and start. */
void lanes_end(struct lanes *l);
/* For the next track. */
void lanes_reset(struct lanes *l);
void lanes_clear(struct lanes *l);

#endif
