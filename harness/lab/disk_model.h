/*
 * The timing of a disk with one head, as arithmetic: no I/O, no clock.
 *
 * Requests are served in order of arrival. A request that does not begin where the last one ended
 * costs a seek; then its bytes take their time at the disk's rate. Storage and spare partition are
 * ranges of one address space, so that they compete for the head.
 *
 * A fault makes requests longer, makes the disk pause, or makes requests fail. The head is busy
 * with a longer request, as in a drive that retries, so later requests wait for it.
 */
#ifndef CULPRIT_HARNESS_LAB_DISK_MODEL_H
#define CULPRIT_HARNESS_LAB_DISK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

/* What is wrong with the disk. All zero: nothing. */
struct disk_fault {
	int64_t latency_ns; /* added to each request */
	double rate;        /* bytes/s at most; 0: the disk's own */
	double factor;      /* a request takes so many times its own time; 0: once */
	int64_t stall_ns;   /* the disk does nothing for so long, ... */
	int64_t every_ns;   /* ... in each period of this length; 0: once */
	int64_t begin_ns;   /* when the first stall begins */
	double errors_pct;  /* share of reads that fail */
};

struct disk_model {
	double rate; /* bytes/s; 0: no delay, and no fault */
	int64_t seek_ns;
	int64_t busy_until_ns; /* when the last request is done */
	uint64_t end;          /* position of the head then */
	struct disk_fault fault;
	uint64_t drawn; /* reads so far of which it was drawn whether they fail */
};

/* How a request is served. */
struct disk_turn {
	int64_t done_ns;
	int64_t added_ns; /* by the fault, without the wait for earlier requests */
	bool held;        /* by a stall */
};

/* What a disk has done since it was made. */
struct disk_counters {
	uint64_t requests;
	uint64_t delayed; /* of these, served more slowly than without the fault */
	uint64_t held;    /* of these, kept by a stall */
	uint64_t failed;
	int64_t added_ns; /* as of disk_turn, of all */
};

/* A request that arrives at 'now_ns'. */
struct disk_turn disk_model_request(
	struct disk_model *m, int64_t now_ns, uint64_t position, uint64_t size);

/* The time at which all earlier requests will be done, and no stall holds the disk: for a flush. */
int64_t disk_model_idle(const struct disk_model *m, int64_t now_ns);

/* Does the next read fail? Drawn for each, always in the same way. */
bool disk_model_fails(struct disk_model *m);

/* Is the disk in a stall at 'now_ns'? */
bool disk_model_stalls(const struct disk_model *m, int64_t now_ns);

/*
 * The control file: a JSON object. Read, it has "state", the fault, and "counters". What is written
 * is a state; members that it lacks are 0. Units: seconds, bytes/s, percent.
 */

/* A state. The first stall begins at 'now_ns'. -EINVAL: it is none, or a value is out of range. */
int disk_fault_parse(
	const char *text, size_t size, int64_t now_ns, struct disk_fault *f, struct err *e);
/* The same fault? The beginning of stalls does not count. */
bool disk_fault_same(const struct disk_fault *a, const struct disk_fault *b);
/* What the file says; the caller frees. NULL: no memory. */
char *disk_control_text(const struct disk_fault *f, const struct disk_counters *c);

#endif
