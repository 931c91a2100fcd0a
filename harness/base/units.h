/*
 * Quantities with units, as users write them in scenarios and on the command line: "256MiB",
 * "1MB", "10s", "500ms", "5%", "100Mbit/s", "8MB/s".
 *
 * A unit is required wherever one is possible, except for 0: a timeout of "10" could mean seconds
 * or milliseconds.
 */
#ifndef CULPRIT_HARNESS_BASE_UNITS_H
#define CULPRIT_HARNESS_BASE_UNITS_H

#include "harness/base/err.h"

#define SECONDS_PER_WEEK 604800.0

enum unit {
	UNIT_NONE,      /* a bare number */
	UNIT_BYTES,     /* B kB MB GB (powers of 1000), KiB MiB GiB (of 1024) */
	UNIT_SECONDS,   /* ns us ms s min h d w */
	UNIT_PERCENT,   /* % */
	UNIT_BYTE_RATE, /* bytes/s: 8MB/s, 1MiB/s, and bit rates (100Mbit/s = 12.5e6) */
};

/* Value of 'text' in the base unit (bytes, seconds, percent, bytes per second).
 * -EINVAL with a sentence that shows an example of the right form. */
int unit_parse(enum unit unit, const char *text, double *value, struct err *e);

/* From "bytes", "seconds" ... (-EINVAL), for parameter declarations in Lua. */
int unit_from_name(const char *name, enum unit *unit);

/* Writes 'value' as a person would ("256 MiB", "8 MB/s", "1.5 s"); returns 'buf'. */
char *unit_format(enum unit unit, double value, char *buf, unsigned size);

#endif
