/* A machine's load from /proc: counters since boot; the difference of two readings is the load in
 * between. */
#ifndef CULPRIT_HARNESS_BASE_LOAD_H
#define CULPRIT_HARNESS_BASE_LOAD_H

#include <stdint.h>

#include "harness/base/err.h"

enum { LOAD_CPU, LOAD_IO, LOAD_MEMORY, N_PRESSURES };

struct load {
	double at_s; /* CLOCK_MONOTONIC */
	unsigned cpus;
	/* CPU seconds of all processors; busy excludes idle, iowait and stolen time. */
	double busy_s, iowait_s, steal_s;
	/* Seconds in which at least one task waited for the resource (PSI); negative if the
	 * kernel lacks PSI. */
	double pressure_s[N_PRESSURES];
	double load1;
	uint64_t memory_bytes, available_bytes;
};

int load_read(struct load *out, struct err *e);

#endif
