/*
 * A disk with one head, as arithmetic: no I/O, no clock of its own.
 *
 * Requests are served in the order in which they come. One that does not begin where the last
 * one ended pays a seek; then its bytes pass at the disk's rate. Storage and spare partition are
 * ranges of one address space, so that they compete for the head.
 */
#ifndef CULPRIT_HARNESS_LAB_DISK_MODEL_H
#define CULPRIT_HARNESS_LAB_DISK_MODEL_H

#include <stdint.h>

struct disk_model {
	double rate; /* bytes/s; 0: every request is done at once */
	int64_t seek_ns;
	int64_t busy_until_ns; /* when the last request is done */
	uint64_t end;          /* where the head is then */
};

/* When a request of 'size' bytes at 'position' that comes at 'now_ns' will be done. */
int64_t disk_model_request(struct disk_model *m, int64_t now_ns, uint64_t position, uint64_t size);

/* When all that came before 'now_ns' is done: for a flush. */
int64_t disk_model_idle(const struct disk_model *m, int64_t now_ns);

#endif
