/* Parses dates, times and zones in tables. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "diag/import/import.h"
#include "diag/import/number.h"

struct text {
	const char *p, *end;
};

/* Exactly 'digits' digits. */
static bool take_number(struct text *t, int digits, int *value)
{
	*value = 0;
	if (t->end - t->p < digits)
		return false;
	for (; digits; digits--, t->p++) {
		unsigned d = (unsigned)(unsigned char)*t->p - '0';

		if (d > 9)
			return false;
		*value = *value * 10 + (int)d;
	}
	return true;
}

static bool time_take(struct text *t, char c)
{
	bool there = t->p < t->end && *t->p == c;

	t->p += there;
	return there;
}

/* Days from 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the leap day
 * is the last one. */
static int64_t days(int year, int month, int day)
{
	int y = year - (month <= 2), m = (month + 9) % 12;

	return 365 * (int64_t)y + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

static bool take_date(struct text *t, int64_t *day)
{
	static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int y, m, d;

	if (!take_number(t, 4, &y) || !time_take(t, '-') || !take_number(t, 2, &m) ||
		!time_take(t, '-') || !take_number(t, 2, &d) || y < 1 || m < 1 || m > 12 || d < 1 ||
		d > lengths[m - 1])
		return false;
	if (m == 2 && d == 29 && (y % 4 || (y % 100 == 0 && y % 400)))
		return false;
	*day = days(y, m, d);
	return true;
}

/* hh:mm, optionally with seconds and their fraction. */
static bool take_clock(struct text *t, int *seconds, double *fraction)
{
	int h, m, s = 0;

	*fraction = 0;
	if (!take_number(t, 2, &h) || !time_take(t, ':') || !take_number(t, 2, &m) || h > 24 ||
		m > 59)
		return false;
	if (time_take(t, ':') && !take_number(t, 2, &s))
		return false;
	*seconds = h * 3600 + m * 60 + s;
	if (s > 60 || *seconds > 86400)
		return false;
	if (time_take(t, '.') || time_take(t, ',')) {
		const char *first = t->p;
		double value = 0, scale = 1;

		for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
			if (t->p - first < 15) {
				value = value * 10 + (*t->p - '0');
				scale *= 10;
			}
		*fraction = value / scale;
		return t->p > first;
	}
	return true;
}

/* Abbreviations of tzdata(5) that have had one offset since 2019. CDT, CST, IST and PST have
 * several: PST is Los Angeles' and Manila's. */
static const struct zone {
	const char *name;
	int minutes;
} zones[] = {{"Z", 0}, {"UTC", 0}, {"GMT", 0}, {"WET", 0}, {"WEST", 60}, {"BST", 60}, {"CET", 60},
	{"CEST", 120}, {"MET", 60}, {"MEST", 120}, {"EET", 120}, {"EEST", 180}, {"MSK", 180},
	{"IDT", 180}, {"WAT", 60}, {"CAT", 120}, {"SAST", 120}, {"EAT", 180}, {"PKT", 300},
	{"WIB", 420}, {"WITA", 480}, {"WIT", 540}, {"HKT", 480}, {"JST", 540}, {"KST", 540},
	{"AWST", 480}, {"ACST", 570}, {"ACDT", 630}, {"AEST", 600}, {"AEDT", 660}, {"NZST", 720},
	{"NZDT", 780}, {"ChST", 600}, {"NST", -210}, {"NDT", -150}, {"AST", -240}, {"ADT", -180},
	{"EST", -300}, {"EDT", -240}, {"MST", -420}, {"MDT", -360}, {"PDT", -420}, {"AKST", -540},
	{"AKDT", -480}, {"HST", -600}, {"HDT", -540}, {"SST", -660}};

/* Nothing, an abbreviation, +hh, +hhmm or +hh:mm. */
static bool take_zone(struct text *t, int *offset_s)
{
	int sign, h, m = 0;

	*offset_s = 0;
	if (t->p == t->end)
		return true;
	time_take(t, ' ');
	for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		size_t n = strlen(zones[i].name);

		if ((size_t)(t->end - t->p) == n && !strncasecmp(t->p, zones[i].name, n)) {
			*offset_s = zones[i].minutes * 60;
			return true;
		}
	}
	sign = time_take(t, '+') ? 1 : time_take(t, '-') ? -1 : 0;
	if (!sign || !take_number(t, 2, &h))
		return false;
	time_take(t, ':');
	if (t->p < t->end && !take_number(t, 2, &m))
		return false;
	*offset_s = sign * (h * 3600 + m * 60);
	return t->p == t->end && h < 24 && m < 60;
}

bool iso_time_read(const char *p, size_t n, double *time_s, bool *local)
{
	struct text t = {p, p + n};
	int seconds = 0, offset = 0;
	double fraction = 0;
	bool zone = false;
	int64_t day;

	if (!take_date(&t, &day))
		return false;
	if (t.p < t.end) {
		if (!time_take(&t, 'T') && !time_take(&t, 't') && !time_take(&t, ' '))
			return false;
		if (!take_clock(&t, &seconds, &fraction))
			return false;
		zone = t.p < t.end;
		if (!take_zone(&t, &offset))
			return false;
	}
	if (local)
		*local = !zone;
	*time_s = (double)(day * 86400 + seconds - offset) + fraction;
	return true;
}

bool import_zone(const char *text, int *offset_s)
{
	struct text t = {text, text + strlen(text)};

	return *text && *text != ' ' && take_zone(&t, offset_s);
}

int import_time(const char *text, double unit_s, double *time_s)
{
	size_t n = strlen(text);
	double x;

	if (number_read(text, n, &x) == NUMBER_OK) {
		x = number_scale(x, unit_s);
		if (!isfinite(x))
			return -EINVAL;
		*time_s = x;
		return 0;
	}
	return iso_time_read(text, n, time_s, NULL) ? 0 : -EINVAL;
}
