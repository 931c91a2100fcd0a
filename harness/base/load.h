/* A machine's load from /proc: counters since boot, whose differences are the load of an
 * interval. */
#ifndef CULPRIT_HARNESS_BASE_LOAD_H
#define CULPRIT_HARNESS_BASE_LOAD_H

#include <stdint.h>

#include "harness/base/err.h"

enum { LOAD_CPU, LOAD_IO, LOAD_MEMORY, N_PRESSURES };

struct load {
	double at_s; /* CLOCK_MONOTONIC */
	unsigned cpus;
	/* CPU seconds of all processors; busy: neither idle nor waiting nor stolen. */
	double busy_s, iowait_s, steal_s;
	/* Seconds in which some task waited for the resource (PSI); negative: the kernel has no
	 * PSI. */
	double pressure_s[N_PRESSURES];
	double load1;
	uint64_t memory_bytes, available_bytes;
};

int load_read(struct load *out, struct err *e);

#endif
