/* Detects samples of one series at times that it already has. */
#include "diag/import/repeats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

enum { RUN_LEAST = 4, RUNS_MAX = 32, WRONG_LEAST = 3 };

struct run {
	double from_s, to_s;
};

struct repeats_series {
	double from_s, last_s, step_s, value;
	struct run *runs; /* those that have ended, at most RUNS_MAX */
	unsigned n, n_runs;
	uint32_t text;
};

void repeats_clear(struct repeats *r)
{
	for (size_t i = 0; i < r->room; i++)
		free(r->series[i].runs);
	free(r->series);
	r->series = NULL;
	r->room = 0;
}

void repeats_begin(struct repeats *r)
{
	r->text++;
}

static struct repeats_series *repeats_find(struct repeats *r, uint32_t series)
{
	if (series >= r->room) {
		size_t room = 2 * (size_t)series + 64;

		r->series = alloc_resize(r->series, room, sizeof(*r->series));
		memset(r->series + r->room, 0, (room - r->room) * sizeof(*r->series));
		r->room = room;
	}
	return &r->series[series];
}

/* Ends the run; the next one begins at 'time_s'. If there are too many, the oldest are
 * forgotten. */
static void end_run(const struct repeats *r, struct repeats_series *s, double time_s)
{
	if (s->n >= (r->run ? r->run : RUN_LEAST)) {
		if (!s->runs)
			s->runs = alloc_zero(RUNS_MAX, sizeof(*s->runs));
		s->runs[s->n_runs++ % RUNS_MAX] = (struct run){s->from_s, s->last_s};
	}
	s->from_s = time_s;
	s->step_s = 0;
	s->n = 0;
}

static bool in_a_run(const struct repeats_series *s, double time_s)
{
	unsigned n = s->n_runs < RUNS_MAX ? s->n_runs : RUNS_MAX;

	for (unsigned i = 0; i < n; i++)
		if (time_s >= s->runs[i].from_s && time_s <= s->runs[i].to_s)
			return true;
	return false;
}

/* Within one text the clock was put back by an hour. If a run begins at the same time as the last
 * one, it is another host's. */
static bool summer_ends(const struct repeats *r, const struct repeats_series *s, double time_s)
{
	return r->local && s->text == r->text && time_s > s->from_s + s->step_s &&
		fabs(s->last_s + s->step_s - time_s - 3600) <= fmax(s->step_s, 60);
}

/* Advances the series to a new time. */
static void repeats_advance(const struct repeats *r, struct repeats_series *s, double time_s)
{
	double passed = time_s - s->last_s;

	if (s->n && passed < 0 && !summer_ends(r, s, time_s))
		end_run(r, s, time_s);
	else if (s->n && s->step_s > 0 && passed > fmax(10 * s->step_s, 600))
		end_run(r, s, time_s);
	else if (s->n && passed > 0)
		s->step_s = passed;
	else if (!s->n)
		s->from_s = time_s;
}

void repeats_sample(
	struct repeats *r, uint32_t series, double time_s, double value, unsigned long line)
{
	struct repeats_series *s = repeats_find(r, series);
	bool same_time = s->n && time_s == s->last_s;

	r->samples++;
	if (!same_time)
		repeats_advance(r, s, time_s);
	if (same_time || (s->n_runs && in_a_run(s, time_s))) {
		if (!r->repeated++) {
			r->line = line;
			r->first = series;
		}
		r->differ += !same_time ||
			(value != s->value && !(isnan(value) && isnan(s->value)));
	}
	s->last_s = time_s;
	s->value = value;
	s->text = r->text;
	s->n++;
}

int repeats_judge(const struct repeats *r, const char *example, const char *remedy,
	struct import_said *said, struct err *e)
{
	if (repeats_wrong(r->repeated, r->samples, WRONG_LEAST) && r->differ >= WRONG_LEAST)
		return err_set(e, -EINVAL,
			"%lu: %" PRIu64 " of %" PRIu64
			" samples repeat a time of their series, this one first (%s), and no "
			"column separates them: %s",
			r->line, r->repeated, r->samples, example, remedy);
	if (r->repeated)
		import_note(said,
			"%" PRIu64 " of %" PRIu64
			" samples repeat a time of their series, the first "
			"at line %lu (%s); their mean is used",
			r->repeated, r->samples, r->line, example);
	return 0;
}
