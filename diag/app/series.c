/* Bytes read and written per interval, spread evenly over each call. */
#include "diag/app/series.h"

#include <math.h>
#include <string.h>

#include "harness/base/jget.h"

void series_begin(struct app_series *s)
{
	memset(s, 0, sizeof(*s));
	s->interval_ns = SERIES_LEAST_NS;
}

static void double_interval(struct app_series *s)
{
	for (unsigned i = 0; i < SERIES_STEPS; i++) {
		bool there = 2 * i < SERIES_STEPS;

		s->read[i] = there ? s->read[2 * i] + s->read[2 * i + 1] : 0;
		s->written[i] = there ? s->written[2 * i] + s->written[2 * i + 1] : 0;
	}
	s->interval_ns *= 2;
	s->n = (s->n + 1) / 2;
}

void series_coarsen(struct app_series *s, uint64_t interval_ns)
{
	while (s->interval_ns < interval_ns && s->interval_ns < SERIES_MOST_NS)
		double_interval(s);
}

void series_add(
	struct app_series *s, bool written, int64_t begin_ns, int64_t end_ns, uint64_t bytes)
{
	uint64_t *to = written ? s->written : s->read, done = 0;
	uint64_t begin = begin_ns > 0 ? (uint64_t)begin_ns : 0;
	uint64_t end = end_ns > (int64_t)begin ? (uint64_t)end_ns : begin;
	uint64_t first, last;

	if (!bytes)
		return;
	while (end / s->interval_ns >= SERIES_STEPS)
		double_interval(s);
	first = begin / s->interval_ns;
	last = end > begin ? (end - 1) / s->interval_ns : first;
	for (uint64_t i = first; i <= last; i++) {
		uint64_t until = i == last ? end - begin : (i + 1) * s->interval_ns - begin;
		uint64_t share = i == last
			? bytes
			: (uint64_t)((unsigned __int128)bytes * until / (end - begin));

		to[i] += share - done;
		done = share;
	}
	if (last >= s->n)
		s->n = (unsigned)last + 1;
}

void series_merge(struct app_series *into, const struct app_series *from)
{
	struct app_series other = *from;

	series_coarsen(into, other.interval_ns);
	series_coarsen(&other, into->interval_ns);
	for (unsigned i = 0; i < other.n; i++) {
		into->read[i] += other.read[i];
		into->written[i] += other.written[i];
	}
	if (other.n > into->n)
		into->n = other.n;
}

json_t *series_json(const struct app_series *s)
{
	json_t *read = json_array(), *written = json_array();
	unsigned from = 0;

	while (from < s->n && !s->read[from] && !s->written[from])
		from++;
	for (unsigned i = from; i < s->n; i++) {
		json_array_append_new(read, json_integer((json_int_t)s->read[i]));
		json_array_append_new(written, json_integer((json_int_t)s->written[i]));
	}
	return json_pack("{s:f, s:i, s:o, s:o}", "interval_s", (double)s->interval_ns / 1e9,
		"skipped", (int)from, "read_bytes", read, "written_bytes", written);
}

/* Checks that sums of all steps stay below 2^63. */
static bool get_steps(const json_t *v, size_t from, uint64_t *to)
{
	size_t i;
	json_t *step;

	if (!json_is_array(v) || json_array_size(v) > SERIES_STEPS - from)
		return false;
	json_array_foreach((json_t *)v, i, step) {
		json_int_t bytes = json_integer_value(step);

		if (!json_is_integer(step) || bytes < 0 || bytes > INT64_MAX / SERIES_STEPS)
			return false;
		to[from + i] = (uint64_t)bytes;
	}
	return true;
}

bool series_from_json(const json_t *v, struct app_series *s)
{
	double steps = jget_real(v, "interval_s") * 1e9 / SERIES_LEAST_NS, whole = round(steps);
	int64_t from = jget_int(v, "skipped");
	struct app_series got;
	size_t n;

	series_begin(&got);
	if (!(whole >= 1 && whole <= (double)(SERIES_MOST_NS / SERIES_LEAST_NS)) ||
		fabs(steps - whole) > whole * 1e-6 || ((uint64_t)whole & ((uint64_t)whole - 1)) ||
		from < 0 || from > SERIES_STEPS ||
		!get_steps(jget(v, "read_bytes"), (size_t)from, got.read) ||
		!get_steps(jget(v, "written_bytes"), (size_t)from, got.written))
		return false;
	got.interval_ns = (uint64_t)whole * SERIES_LEAST_NS;
	n = json_array_size(jget(v, "written_bytes"));
	if (json_array_size(jget(v, "read_bytes")) > n)
		n = json_array_size(jget(v, "read_bytes"));
	got.n = (unsigned)((size_t)from + n);
	*s = got;
	return true;
}
