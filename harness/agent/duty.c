/* Works for a share of the time only. */
#include "harness/agent/duty.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"

#define CATCH_UP_S 1 /* of rest that was too long */

bool duty_option(const char *text, void *duty)
{
	double percent;

	if (unit_parse(UNIT_PERCENT, text, &percent, NULL) || !(percent > 0 && percent <= 100))
		return false;
	*(struct duty *)duty = (struct duty){.share = percent / 100};
	return true;
}

void duty_begin(struct duty *d)
{
	d->since_s = clock_mono_s();
}

bool duty_is_over(const struct duty *d)
{
	return d->share < 1 &&
		d->worked_s + clock_mono_s() - d->since_s >= d->share * DUTY_PERIOD_S;
}

void duty_end(struct duty *d)
{
	bool over = duty_is_over(d);
	double now = clock_mono_s(), rest_s, owed_s;

	d->worked_s += now - d->since_s;
	if (!over)
		return;
	rest_s = d->worked_s * (1 / d->share - 1);
	clock_sleep_until(now + rest_s);
	/* A late wake-up is made up for, within limits. */
	owed_s = d->worked_s - (clock_mono_s() - now) * d->share / (1 - d->share);
	d->worked_s = owed_s > -CATCH_UP_S * d->share ? owed_s : -CATCH_UP_S * d->share;
}
