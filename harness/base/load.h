/*
 * What a machine has been busy with, from /proc: counters since boot, of which differences tell.
 */
#ifndef CULPRIT_BASE_LOAD_H
#define CULPRIT_BASE_LOAD_H

#include <stdint.h>

#include "harness/base/err.h"

enum { LOAD_CPU, LOAD_IO, LOAD_MEMORY, N_PRESSURES };

struct load {
	double at_s; /* CLOCK_MONOTONIC */
	unsigned cpus;
	double busy_s, iowait_s,
		steal_s; /* CPU seconds of all processors; busy: neither idle nor waiting nor stolen */
	double pressure_s
		[N_PRESSURES]; /* time in which some task waited for it (PSI); negative: not known here */
	double load1;
	uint64_t memory_bytes, available_bytes;
};

int load_read(struct load *out, struct err *e);

#endif
