/* Shared by the files of the overhead table: overhead.c computes, overhead_pages.c prints. */
#ifndef CULPRIT_HARNESS_TABLE_OVERHEAD_IMPL_H
#define CULPRIT_HARNESS_TABLE_OVERHEAD_IMPL_H

#include "harness/table/overhead.h"

struct name_list {
	char **list;
	size_t n;
};

struct timed_run {
	size_t workload, tracer;
	struct overhead_run run; /* names unused */
};

struct published_overhead {
	size_t workload, tracer; /* tracer: among 'instruments' */
	double pct;
};

struct overhead {
	struct name_list workloads, tracers, instruments;
	struct timed_run *runs;
	size_t n_runs;
	char *source; /* source of the published figures */
	struct published_overhead *published;
	size_t n_published;
};

bool overhead_is_untraced(const struct overhead *o, size_t tracer);

/* The figures of a workload under a tracer; no pairs: not measured. */
struct overhead_cell overhead_measure(const struct overhead *o, size_t workload, size_t tracer);

/* Number of pairs to detect 1 %, by run time or by processor time; NAN: fewer than three untraced
 * passes. */
double overhead_pairs_needed(const struct overhead *o, size_t workload, bool cpu);

#endif
