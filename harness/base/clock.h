/* Wall clock in nanoseconds, monotonic clock and processor time in seconds. */
#ifndef CULPRIT_HARNESS_BASE_CLOCK_H
#define CULPRIT_HARNESS_BASE_CLOCK_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

/* Formats a time with strftime's 'format'. Returns false and "" if it is not a valid date. */
static inline bool clock_text(double unix_s, bool local, const char *format, char *out, size_t size)
{
	time_t s = fabs(unix_s) < 1e15 ? (time_t)floor(unix_s) : 0;
	struct tm tm;

	*out = '\0';
	return fabs(unix_s) < 1e15 && (local ? localtime_r(&s, &tm) : gmtime_r(&s, &tm)) &&
		strftime(out, size, format, &tm) > 0;
}

/* The same in UTC. */
static inline bool clock_utc(double unix_s, const char *format, char *out, size_t size)
{
	return clock_text(unix_s, false, format, out, size);
}

/* a + b, saturating: times from logs can have any value, so a sum that overflows is clamped. */
static inline int64_t clock_sum_ns(int64_t a, int64_t b)
{
	int64_t sum;

	return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

/* The time of clock 'id' in nanoseconds. */
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

/* CLOCK_REALTIME minus CLOCK_MONOTONIC. Takes the fastest of several readings; the error is at
 * most half its duration, some 100 ns even if the other readings were interrupted. */
static inline int64_t clock_real_ahead_ns(void)
{
	int64_t ahead = 0, shortest = INT64_MAX;

	for (int i = 0; i < 8; i++) {
		int64_t before = clock_ns(CLOCK_MONOTONIC), real = clock_real_ns(),
			took = clock_ns(CLOCK_MONOTONIC) - before;

		if (took >= shortest)
			continue;
		shortest = took;
		ahead = real - before - took / 2;
	}
	return ahead;
}

/* Processor time used by this process, user and system, in seconds. */
static inline double clock_rusage_s(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
		(double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1e-6;
}

/* Seconds since some moment before boot; never steps. */
static inline double clock_mono_s(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

/* Until clock_mono_s would return 'at', whatever signals come. */
static inline void clock_sleep_until(double at)
{
	struct timespec until = {.tv_sec = (time_t)at};

	until.tv_nsec = (long)((at - (double)until.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

#endif
