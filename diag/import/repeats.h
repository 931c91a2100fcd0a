/* Detects in one pass samples at times that their series already has: two hosts (disks, clusters)
 * have the same name, or a recording occurs twice. Either both alternate, so that each time comes
 * twice in a row; or one follows the other, so that time goes back into a run of samples. */
#ifndef CULPRIT_DIAG_IMPORT_REPEATS_H
#define CULPRIT_DIAG_IMPORT_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/import/import.h"

struct repeats {
	bool local;   /* times are a host's: they go back an hour when summer time ends */
	unsigned run; /* consecutive samples that make a run; 0: 4 */
	/* Results. */
	uint64_t samples, repeated, differ; /* 'differ': not known to have equal values */
	unsigned long line;                 /* of the first repeated sample */
	uint32_t first;                     /* its series */
	/* Private; zero at first. */
	uint32_t text;
	struct repeats_series *series;
	size_t room;
};
void repeats_clear(struct repeats *r);

/* Another text begins; its times may be earlier. */
void repeats_begin(struct repeats *r);
void repeats_sample(
	struct repeats *r, uint32_t series, double time_s, double value, unsigned long line);

/* -EINVAL with a sentence without file if more than one sample in 20, and at least three, repeat; a
 * note if fewer do. 'example' names the series of the first one; 'remedy' says what to do. */
int repeats_judge(const struct repeats *r, const char *example, const char *remedy,
	struct import_said *said, struct err *e);

/* Is this number of repeated rows or samples an error? */
static inline bool repeats_wrong(uint64_t repeated, uint64_t all, uint64_t least)
{
	return repeated * 20 > all && repeated >= least;
}

#endif
