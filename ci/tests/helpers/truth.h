/* What the program of known calls writes down, for the test to hold against the log. */
#ifndef CULPRIT_CI_TESTS_HELPERS_TRUTH_H
#define CULPRIT_CI_TESTS_HELPERS_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TRUTH_ENTRIES = 4096,
	TRUTH_BEGIN = -7777, /* close() of these numbers marks where a section begins and ends */
	TRUTH_END = -7778,
};

struct truth_entry {
	uint32_t pid, tid, nr;
	uint64_t args[6];
	int64_t result;       /* as a record's */
	bool known;           /* false: result and times are not (rt_sigreturn) */
	int64_t t0_ns, t1_ns; /* CLOCK_REALTIME before and after */
	char want[48]; /* how the path of the descriptor in argument 0 ends; "": not checked */
	uint16_t local, remote; /* its ports; 0: not checked */
};

struct truth {
	_Atomic uint32_t n;
	uint16_t port;
	struct truth_entry entry[TRUTH_ENTRIES];
};

#endif
