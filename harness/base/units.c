/* Parses and prints quantities with units. */
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
	const char *text;
	double factor;
};

static const struct suffix none_suffixes[] = {{"", 1}, {NULL, 0}};
static const struct suffix percent_suffixes[] = {{"%", 1}, {NULL, 0}};
static const struct suffix second_suffixes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9},
	{"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}, {NULL, 0}};
static const struct suffix byte_suffixes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
	{"TiB", 1099511627776.0}, {NULL, 0}};
static const struct suffix rate_suffixes[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6},
	{"GB/s", 1e9}, {"KiB/s", 1024.0}, {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0},
	{"bit/s", 0.125}, {"kbit/s", 125}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {NULL, 0}};

static const struct {
	const char *name, *example;
	const struct suffix *suffixes;
} units[] = {
	[UNIT_NONE] = {"number", "5", none_suffixes},
	[UNIT_BYTES] = {"bytes", "256MiB", byte_suffixes},
	[UNIT_SECONDS] = {"seconds", "10s or 500ms", second_suffixes},
	[UNIT_PERCENT] = {"percent", "5%", percent_suffixes},
	[UNIT_BYTE_RATE] = {"bytes_per_second", "8MB/s or 100Mbit/s", rate_suffixes},
};

int unit_parse(enum unit unit, const char *text, double *value, struct err *e)
{
	const struct suffix *s;
	char known[120] = "", *end;
	size_t n = 0;
	double number;

	number = strtod(text, &end);
	if (end == text || !isfinite(number))
		return err_set(e, -EINVAL, "'%s' is not a number of %s; write it like %s", text,
			units[unit].name, units[unit].example);
	end += strspn(end, " ");
	if (number == 0 && !*end) {
		*value = 0;
		return 0;
	}
	for (s = units[unit].suffixes; s->text; s++) {
		if (!strcmp(end, s->text)) {
			*value = number * s->factor;
			return 0;
		}
	}
	if (!*end)
		return err_set(e, -EINVAL, "'%s' has no unit; write it like %s", text,
			units[unit].example);
	for (s = units[unit].suffixes; s->text && n < sizeof(known); s++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", s->text);
	if (!*known)
		return err_set(e, -EINVAL, "'%s' must be a number without a unit, like %s", text,
			units[unit].example);
	return err_set(e, -EINVAL, "'%s' has the unknown unit '%s'; write it like %s (units: %s)",
		text, end, units[unit].example, known);
}

int unit_from_name(const char *name, enum unit *unit)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(units[i].name, name)) {
			*unit = (enum unit)i;
			return 0;
		}
	}
	return -EINVAL;
}

char *unit_format(enum unit unit, double value, char *buf, unsigned size)
{
	static const struct suffix none = {"", 1};
	const struct suffix *best = &none, *s;
	double best_score = INFINITY;

	/* Chooses the suffix with the shortest mantissa; among those, the smallest mantissa of at
	 * least 1. */
	for (s = units[unit].suffixes; s->text; s++) {
		double scaled = value / s->factor, score;
		char digits[64];

		if (strstr(s->text, "bit"))
			continue;
		snprintf(digits, sizeof(digits), "%.6g", scaled);
		score = (double)strlen(digits) + (fabs(scaled) < 1 && value != 0 ? 100 : 0) +
			fabs(scaled) / 1e6;
		if (score < best_score) {
			best_score = score;
			best = s;
		}
	}
	snprintf(buf, size, "%.6g%s%s", value / best->factor,
		*best->text && *best->text != '%' ? " " : "", best->text);
	return buf;
}
