/* Wall clock in nanoseconds, monotonic clock in seconds. */
#ifndef CULPRIT_BASE_CLOCK_H
#define CULPRIT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of 'id'. */
static inline int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds since the Unix epoch. */
static inline int64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* Seconds since some moment before boot; never steps. */
static inline double clock_mono_s(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

#endif
