/* Windows of time of equal length. Where times are Unix times they begin at whole multiples of it
 * in UTC: an hour's at the hour, a day's at midnight, a week's on Monday. */
#ifndef CULPRIT_HARNESS_CLI_DIAGNOSE_WINDOWS_H
#define CULPRIT_HARNESS_CLI_DIAGNOSE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

struct windows {
	double from_s, length_s;
	size_t n;
};

/* Windows that hold [from_s, to_s]. -E2BIG for very many. */
int windows_cut(struct windows *w, double from_s, double to_s, double length_s, bool unix_times,
	struct err *e);
/* When a window begins; of the n-th, when the last one ends. */
double windows_start(const struct windows *w, size_t i);

#endif
