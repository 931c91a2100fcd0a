/* Compares an application with its replay, row by row. */
#include "harness/replay/replay_rows.h"

#include <stdio.h>

#include "harness/base/jget.h"
#include "harness/base/units.h"

enum { COMPUTING = 2 }; /* index of its row */

struct filling {
	struct replay_row *rows;
	size_t n;
};

double replay_mean(const json_t *result, const char *key)
{
	const json_t *passes = jget(result, "passes"), *pass;
	double sum = 0;
	size_t i;

	json_array_foreach((json_t *)passes, i, pass)
		sum += jget_real(pass, key);
	return i ? sum / (double)i : 0;
}

double replay_crowding(const json_t *result)
{
	double needs = jget_real(jget(result, "application"), "computed_s");
	double speed = jget_real(result, "speed"), copies = jget_real(result, "copies");

	needs *= (copies > 1 ? copies : 1) / (speed > 0 ? speed : 1);
	return needs > 0 ? replay_mean(result, "computed_s") / needs : 0;
}

static void replay_rows_print(char *out, size_t size, enum unit unit, double value)
{
	char text[32];

	if (value < 0)
		*out = '\0';
	else if (unit == UNIT_BYTE_RATE)
		snprintf(out, size, "%.1f MB/s", value / 1e6);
	else if (unit == UNIT_SECONDS)
		snprintf(out, size, value < 0.1 ? "%.3f ms" : "%.3f s",
			value < 0.1 ? value * 1e3 : value);
	else
		snprintf(out, size, "%s", unit_format(unit, value, text, sizeof(text)));
}

/* Negative: unknown. */
static void replay_rows_add(struct filling *f, enum unit unit, const char *what, const char *of,
	double application, double replay)
{
	struct replay_row *r = &f->rows[f->n];

	if (f->n == REPLAY_ROWS_MAX)
		return;
	f->n++;
	snprintf(r->what, sizeof(r->what), "%s%s%s", what, *of ? ", " : "", of);
	replay_rows_print(r->application, sizeof(r->application), unit, application);
	replay_rows_print(r->replay, sizeof(r->replay), unit, replay);
	r->difference[0] = '\0';
	if (application > 0 && replay >= 0)
		snprintf(r->difference, sizeof(r->difference), "%+.1f %%",
			(replay - application) / application * 100);
}

/* For a figure that may be missing. */
static double known(const json_t *v, const char *key)
{
	return json_is_number(jget(v, key)) ? jget_real(v, key) : -1;
}

static void add_calls(struct filling *f, const json_t *application, const json_t *replay)
{
	const char *name;
	json_t *c;

	json_object_foreach((json_t *)replay, name, c) {
		const json_t *was = jget(application, name);

		replay_rows_add(f, UNIT_SECONDS, name, "median", known(was, "p50_s"),
			jget_real(c, "p50_s"));
		replay_rows_add(
			f, UNIT_SECONDS, name, "99 %", known(was, "p99_s"), jget_real(c, "p99_s"));
	}
}

static void add_bytes(struct filling *f, const json_t *result, const char *what, const char *key)
{
	const json_t *was = jget(result, "application");
	double is = replay_mean(result, key), s = known(result, "seconds");
	double was_s = known(was, "seconds"), bytes = known(was, key);

	if (bytes <= 0 && is <= 0)
		return;
	replay_rows_add(f, UNIT_BYTES, what, "", bytes, is);
	replay_rows_add(f, UNIT_BYTE_RATE, what, "per second", was_s > 0 ? bytes / was_s : -1,
		s > 0 ? is / s : -1);
}

size_t replay_rows(const json_t *result, struct replay_row rows[REPLAY_ROWS_MAX])
{
	static const struct {
		const char *what, *key;
	} sums[] = {{"in calls", "calls_s"}, {"computing", "computed_s"}, {"away", "away_s"},
		{"waiting", "waited_s"}};
	const json_t *was = jget(result, "application");
	struct filling f = {rows, 0};

	replay_rows_add(&f, UNIT_SECONDS, "run time", "", known(result, "application_s"),
		known(result, "seconds"));
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		replay_rows_add(&f, UNIT_SECONDS, sums[i].what, "all threads",
			known(was, sums[i].key), replay_mean(result, sums[i].key));
	/* Processor time for the application, wall time for the replay. */
	rows[COMPUTING].difference[0] = '\0';
	add_bytes(&f, result, "read", "read_bytes");
	add_bytes(&f, result, "written", "written_bytes");
	add_calls(&f, jget(was, "calls"), jget(result, "calls"));
	return f.n;
}
