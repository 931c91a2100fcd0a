/* Slices and their arrows by number, for the exports. */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_JOINTS_H
#define CULPRIT_HARNESS_WEB_TIMELINE_JOINTS_H

#include "harness/web/timeline/timeline_impl.h"

struct joints {
	uint64_t n_slices, n_arrows;
	const struct stored_arrow *arrows;
	int64_t *starts; /* by slice */
	/* Arrows out of slice i: from out[out_first[i + 1]] up to out[out_first[i + 2]]; into it
	 * likewise. In the order in which they were added. */
	uint32_t *out_first, *out, *into_first, *into;
};

/* 16 bytes a slice and 8 an arrow. -E2BIG for 2^32 arrows or more. */
int joints_init(struct joints *j, struct timeline *t, struct err *e);
void joints_clear(struct joints *j);

/* Does the arrow lead on: to a slice that starts later, or then and was added later? So no circle
 * of arrows leads on all the way. */
bool joints_leads_on(const struct joints *j, uint32_t arrow);

#endif
