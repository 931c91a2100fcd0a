/* Parses numbers in tables, including rare forms. */
#include "diag/import/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/alloc.h"

static bool says_missing(const char *p, size_t n)
{
	static const char *const words[] = {"", "-", "nan", "-nan", "+nan", "na", "n/a", "null",
		"none", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == n && !strncasecmp(words[i], p, n))
			return true;
	return false;
}

enum number number_read_slow(const char *p, size_t n, double *x)
{
	char room[128], *text = room, *end;
	enum number is = NUMBER_BAD;
	double v;

	if (says_missing(p, n)) {
		*x = NAN;
		return NUMBER_MISSING;
	}
	/* strtod also accepts blanks, hexadecimal and nan(1), which are refused here. */
	for (size_t i = 0; i < n; i++)
		if (!memchr("0123456789+-.eE", p[i], 15))
			return NUMBER_BAD;
	if (n >= sizeof(room))
		text = alloc_zero(n + 1, 1);
	memcpy(text, p, n);
	text[n] = '\0';
	v = strtod(text, &end);
	if (end == text + n && isfinite(v)) {
		*x = v;
		is = NUMBER_OK;
	}
	if (text != room)
		free(text);
	return is;
}

double number_scale(double x, double unit_s)
{
	return unit_s < 1 ? x / round(1 / unit_s) : x * unit_s;
}
