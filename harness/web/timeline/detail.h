/*
 * Which slices a page holds one by one when it cannot hold all: the slowest requests, whole. A
 * request is what arrows join; it is as slow as its longest slice. Where single requests are too
 * many (one that joins all), slices are taken by their own duration.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_DETAIL_H
#define CULPRIT_HARNESS_WEB_TIMELINE_DETAIL_H

#include <stdbool.h>

#include "harness/web/timeline/timeline_impl.h"

struct detail {
	uint32_t *joined;            /* union-find over slices */
	uint16_t *longest;           /* by root: the class of its longest slice */
	uint64_t *requests, *single; /* slices by class: of their request, of their own */
	bool by_request;
	unsigned least; /* class */
};

/* 6 bytes a slice. */
void detail_init(struct detail *d, struct timeline *t);
void detail_clear(struct detail *d);

/* At most 'slices_max' are kept from here on. */
void detail_choose(struct detail *d, uint64_t slices_max);
bool detail_keeps(const struct detail *d, const struct stored *s);
/* All slices of at least this duration are kept. */
int64_t detail_least_ns(const struct detail *d);
/* The slice that stands for its request. */
uint32_t detail_root(const struct detail *d, uint32_t number);

#endif
