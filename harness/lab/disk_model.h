/*
 * The timing of a disk with one head, as arithmetic: no I/O, no clock.
 *
 * Requests are served in order of arrival. A request that does not begin where the last one ended
 * costs a seek; then its bytes take their time at the disk's rate. Storage and spare partition are
 * ranges of one address space, so that they compete for the head.
 */
#ifndef CULPRIT_HARNESS_LAB_DISK_MODEL_H
#define CULPRIT_HARNESS_LAB_DISK_MODEL_H

#include <stdint.h>

struct disk_model {
	double rate; /* bytes/s; 0: no delay */
	int64_t seek_ns;
	int64_t busy_until_ns; /* when the last request is done */
	uint64_t end;          /* position of the head then */
};

/* The time at which a request that arrives at 'now_ns' will be done. */
int64_t disk_model_request(struct disk_model *m, int64_t now_ns, uint64_t position, uint64_t size);

/* The time at which all earlier requests will be done: for a flush. */
int64_t disk_model_idle(const struct disk_model *m, int64_t now_ns);

#endif
