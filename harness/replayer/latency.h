/* Histogram of durations in buckets that are 6 % wide. */
#ifndef CULPRIT_HARNESS_REPLAYER_LATENCY_H
#define CULPRIT_HARNESS_REPLAYER_LATENCY_H

#include <stdint.h>

enum { LATENCY_BUCKETS = 1024 };

static inline unsigned latency_bucket(uint64_t ns)
{
	unsigned log;

	if (ns < 16)
		return (unsigned)ns;
	log = 63 - (unsigned)__builtin_clzll(ns);
	return (log - 3) * 16 + (unsigned)(ns >> (log - 4) & 15);
}

/* The middle of a bucket, in nanoseconds. */
static inline double latency_ns(unsigned bucket)
{
	unsigned log = bucket / 16 + 3;

	if (bucket < 16)
		return bucket;
	return (double)(16 + bucket % 16) * (double)(1ull << (log - 4)) +
		(double)(1ull << (log - 4)) / 2;
}

#endif
