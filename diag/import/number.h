/* Numbers and times as they stand in tables. */
#ifndef CULPRIT_DIAG_IMPORT_NUMBER_H
#define CULPRIT_DIAG_IMPORT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUMBER_MISSING: empty, "-", NaN, NA, null and their like, in any case; also Inf, +Inf, -Infinity,
 * which are a division by 0. NUMBER_BAD: anything else that is no finite decimal number:
 * hexadecimal, 1e999, text. */
enum number { NUMBER_OK, NUMBER_MISSING, NUMBER_BAD };

/* The part of number_read that is rarely needed. */
enum number number_read_slow(const char *p, size_t n, double *x);

/* The 'n' bytes at 'p' as a number, rounded as strtod does. p[n] must be readable, and be no digit
 * and no point. '*x' is NAN for a missing one, untouched for a bad one. */
static inline enum number number_read(const char *p, size_t n, double *x)
{
	/* Powers of ten that a double holds exactly. A mantissa below 2^53 is exact too, so that
	 * their quotient is rounded once, and therefore correctly. */
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

/* The 'n' bytes at 'p' as ISO 8601 ("2026-11-22T14:00:00.5+01:00"); the rules are import_time's.
 * '*local' (may be NULL): whether they say no zone. */
bool iso_time_read(const char *p, size_t n, double *time_s, bool *local);

/* 'x' times 'unit_s', of which 1e-3, 1e-6 and 1e-9 are taken as exact. */
double number_scale(double x, double unit_s);

#endif
