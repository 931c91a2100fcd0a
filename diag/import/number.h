/* Numbers and times in tables. */
#ifndef CULPRIT_DIAG_IMPORT_NUMBER_H
#define CULPRIT_DIAG_IMPORT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUMBER_MISSING: empty, "-", NaN, NA, null and similar words in any case; also Inf, +Inf,
 * -Infinity, the results of a division by 0. NUMBER_BAD: anything else that is not a finite decimal
 * number: hexadecimal, 1e999, text. */
enum number { NUMBER_OK, NUMBER_MISSING, NUMBER_BAD };

/* The rarely needed part of number_read. */
enum number number_read_slow(const char *p, size_t n, double *x);

/* Reads the 'n' bytes at 'p' as a number, rounded as by strtod. p[n] must be readable, and neither
 * a digit nor a point. '*x' becomes NAN for a missing number, and stays unchanged for a bad one. */
static inline enum number number_read(const char *p, size_t n, double *x)
{
	/* Powers of ten that a double holds exactly. A mantissa below 2^53 is also exact, so their
	 * quotient is rounded once, and therefore correctly. */
	static const double power[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
	const char *at = p + (*p == '-'), *first = at;
	uint64_t mantissa = 0;
	size_t digits, behind = 0;
	unsigned d;
	double v;

	while ((d = (unsigned)(unsigned char)*at - '0') < 10) {
		mantissa = mantissa * 10 + d;
		at++;
	}
	digits = (size_t)(at - first);
	if (*at == '.') {
		first = ++at;
		while ((d = (unsigned)(unsigned char)*at - '0') < 10) {
			mantissa = mantissa * 10 + d;
			at++;
		}
		behind = (size_t)(at - first);
	}
	digits += behind;
	/* 19 digits fit into 64 bits. */
	if (at != p + n || digits - 1 > 18 || mantissa >> 53)
		return number_read_slow(p, n, x);
	v = (double)mantissa;
	v = behind ? v / power[behind] : v;
	*x = *p == '-' ? -v : v;
	return NUMBER_OK;
}

/* Reads the 'n' bytes at 'p' as ISO 8601 ("2026-11-22T14:00:00.5+01:00"), by the rules of
 * import_time. '*local' (may be NULL): the text has no zone. */
bool iso_time_read(const char *p, size_t n, double *time_s, bool *local);

/* 'x' times 'unit_s'; 1e-3, 1e-6 and 1e-9 are treated as exact. */
double number_scale(double x, double unit_s);

#endif
