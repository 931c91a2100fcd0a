/*
 * Chooses the slices that a page keeps individually if it cannot keep all: the slowest requests,
 * complete. A request is a set of slices joined by arrows; it is as slow as its longest slice. If
 * single requests are too large (one that joins everything), slices are chosen by their own
 * duration.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_DETAIL_H
#define CULPRIT_HARNESS_WEB_TIMELINE_DETAIL_H

#include <stdbool.h>

#include "harness/web/timeline/timeline_impl.h"

struct detail {
	uint32_t *joined;            /* union-find over slices */
	uint16_t *longest;           /* by root: the class of its longest slice */
	uint64_t *requests, *single; /* slices by class of their request, and by their own */
	bool by_request;
	unsigned least; /* lowest kept class */
};

/* 6 bytes per slice. */
void detail_init(struct detail *d, struct timeline *t);
void detail_clear(struct detail *d);

/* From here on, at most 'slices_max' are kept. */
void detail_choose(struct detail *d, uint64_t slices_max);
bool detail_keeps(const struct detail *d, const struct stored *s);
/* All slices of at least this duration are kept. */
int64_t detail_least_ns(const struct detail *d);
/* The slice that represents its request. */
uint32_t detail_root(const struct detail *d, uint32_t number);

#endif
