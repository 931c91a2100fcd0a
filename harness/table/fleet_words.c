/* Formats times, numbers and shares for fleet output. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/table/fleet.h"

bool fleet_unix_times(double from_s)
{
	return from_s >= 631152000 && from_s < 32503680000.0; /* 1990 .. 3000 */
}

char *fleet_say_time(double time_s, bool unix_times, char text[FLEET_WORD])
{
	if (!unix_times || !clock_utc(time_s, "%Y-%m-%d %H:%M:%S", text, FLEET_WORD))
		snprintf(text, FLEET_WORD, "%.10g s", time_s);
	return text;
}

char *fleet_say_iso(double time_s, char text[FLEET_WORD])
{
	clock_utc(time_s, "%Y-%m-%dT%H:%M:%SZ", text, FLEET_WORD);
	return text;
}

char *fleet_say_number(double x, char text[FLEET_WORD])
{
	double a = fabs(x);

	if (a > 0 && a < 0.1)
		snprintf(text, FLEET_WORD, a < 0.001 ? "%.2g" : "%.3f", x);
	else
		snprintf(text, FLEET_WORD,
			a < 9.995           ? "%.2f"
				: a < 99.95 ? "%.1f"
				: a < 1e6   ? "%.0f"
					    : "%.3g",
			x);
	return text;
}

char *fleet_say_share(double share, char text[FLEET_WORD])
{
	double percent = 100 * share;

	if (percent >= 9.95)
		/* 100 % only for the whole time */
		snprintf(text, FLEET_WORD, "%.0f %%", share < 1 ? fmin(percent, 99) : 100);
	else
		snprintf(text, FLEET_WORD, "%.2g %%", percent);
	return text;
}

char *fleet_say_stretch(const struct fleet_finding *f, char text[FLEET_WORD])
{
	if (f->over_share >= 1)
		return strcpy(text, "all");
	return unit_format(UNIT_SECONDS, f->over_s, text, FLEET_WORD);
}

/* 'n' with commas between thousands. */
static void grouped(double n, char text[FLEET_WORD])
{
	char plain[32];
	int length = snprintf(plain, sizeof(plain), "%.0f", n);
	char *to = text;

	for (int i = 0; i < length; i++) {
		if (i && !((length - i) % 3))
			*to++ = ',';
		*to++ = plain[i];
	}
	*to = '\0';
}

char *fleet_say_alarms(double alarms, char text[FLEET_WORD])
{
	char n[FLEET_WORD];

	if (alarms <= 0 || alarms > 0.5 || alarms < 1e-15) {
		snprintf(text, FLEET_WORD, "%g", alarms);
		return text;
	}
	grouped(round(1 / alarms), n);
	snprintf(text, FLEET_WORD, "1 in %.32s", n);
	return text;
}

bool fleet_accuses(const struct fleet_finding *f)
{
	return f->kind == FINDING_SHIFT || f->kind == FINDING_BURSTS;
}

const char *fleet_whom(const struct fleet_result *r, const struct fleet_finding *f)
{
	if (f->kind == FINDING_GROUP)
		return *r->groups[f->member].path ? r->groups[f->member].path : "(all)";
	return r->members[f->member].path;
}
