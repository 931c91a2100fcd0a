/* Slices and their arrows by number, for the exports. */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_ARROW_INDEX_H
#define CULPRIT_HARNESS_WEB_TIMELINE_ARROW_INDEX_H

#include "harness/web/timeline/timeline_impl.h"

struct arrow_index {
	uint64_t n_slices, n_arrows;
	const struct stored_arrow *arrows;
	int64_t *starts; /* by slice */
	/* Arrows out of slice i: from out[out_first[i + 1]] up to out[out_first[i + 2]]; into it
	 * likewise. In the order in which they were added. */
	uint32_t *out_first, *out, *into_first, *into;
};

/* 16 bytes per slice and 8 per arrow. -E2BIG for 2^32 arrows or more. */
int arrow_index_init(struct arrow_index *j, struct timeline *t, struct err *e);
void arrow_index_clear(struct arrow_index *j);

/* Does the arrow lead forward: to a slice that starts later, or at the same time but was added
 * later? Following only such arrows cannot form a cycle. */
bool arrow_index_leads_on(const struct arrow_index *j, uint32_t arrow);

#endif
