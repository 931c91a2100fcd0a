/* Cuts time into windows of equal length. */
#include "harness/cli/diagnose.h"

#include <errno.h>
#include <math.h>

#define DAY_S 86400.0
#define MONDAY_S (4 * DAY_S) /* 1970-01-05 */

enum { WINDOWS_MAX = 10000 };

int windows_cut(struct windows *w, double from_s, double to_s, double length_s, bool unix_times,
	struct err *e)
{
	double zero = unix_times && fmod(length_s, 7 * DAY_S) == 0 ? MONDAY_S : 0;
	double start = unix_times ? zero + floor((from_s - zero) / length_s) * length_s : from_s;
	double n = floor((to_s - start) / length_s) + 1;

	*w = (struct windows){0};
	if (!(n <= WINDOWS_MAX))
		return err_set(e, -E2BIG,
			"a --window of %g s cuts %g s into more than %d windows; give a longer one",
			length_s, to_s - from_s, WINDOWS_MAX);
	*w = (struct windows){start, length_s, (size_t)n};
	return 0;
}

double windows_start(const struct windows *w, size_t i)
{
	return w->from_s + (double)i * w->length_s;
}
