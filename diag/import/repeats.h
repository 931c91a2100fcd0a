/* Samples of a series at times that it has had already, seen in one pass: two hosts (disks,
 * clusters) have one name, or a recording is there twice. Either they alternate, so that a time
 * comes twice in a row; or one follows the other, so that time goes back into a run of samples. */
#ifndef CULPRIT_DIAG_IMPORT_REPEATS_H
#define CULPRIT_DIAG_IMPORT_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/import/import.h"

struct repeats {
	bool local;   /* times are a host's: they go back an hour when summer time ends */
	unsigned run; /* samples in order that make a run; 0: 4 */
	/* What was seen. */
	uint64_t samples, repeated, differ; /* 'differ': not known to be the same value */
	unsigned long line;                 /* of the first */
	uint32_t first;                     /* its series */
	/* Private; zero at first. */
	uint32_t text;
	struct repeats_series *series;
	size_t room;
};
void repeats_clear(struct repeats *r);

/* Another text begins, by which time may go back. */
void repeats_begin(struct repeats *r);
void repeats_sample(
	struct repeats *r, uint32_t series, double time_s, double value, unsigned long line);

/* -EINVAL with a sentence without file if more than one sample in 20 repeats, and at least three
 * do; a note if fewer do. 'example' names the first one's series; 'remedy' says what to do. */
int repeats_judge(const struct repeats *r, const char *example, const char *remedy,
	struct import_said *said, struct err *e);

/* Whether so many repeated rows or samples are no mishap. */
static inline bool repeats_wrong(uint64_t repeated, uint64_t all, uint64_t least)
{
	return repeated * 20 > all && repeated >= least;
}

#endif
