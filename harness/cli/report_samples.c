/* Packs an attempt's samples for a report. */
#include "harness/cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"

enum { COUNT, SUM, LARGEST, BYTES, COLUMNS };
enum { LOWEST = -10, EXPONENTS = 36, PER_EXPONENT = 900, FEWEST = 100, NEGATIVE = 0x8000 };

/* One metric's samples on all its servers, second by second; NAN: no sample. */
struct charted {
	char *name;
	char **servers;
	size_t n_servers;
	double *values[COLUMNS]; /* n_servers * room */
	bool moves;
};

struct charts {
	struct charted *metrics;
	size_t n;
	int32_t room, seconds; /* for each server; of the longest one */
};

uint16_t report_samples_code(double x)
{
	const double size = fabs(x);
	int exponent, digits;

	if (!isfinite(x))
		return 0;
	if (size < FEWEST * pow(10, LOWEST))
		return 1;
	exponent = (int)floor(log10(size)) - 2;
	digits = (int)lround(size / pow(10, exponent));
	if (digits >= FEWEST + PER_EXPONENT) { /* 999.6 */
		digits = FEWEST;
		exponent++;
	} else if (digits < FEWEST) {
		digits = FEWEST;
	}
	if (exponent < LOWEST)
		return 1;
	if (exponent >= LOWEST + EXPONENTS) {
		exponent = LOWEST + EXPONENTS - 1;
		digits = FEWEST + PER_EXPONENT - 1;
	}
	return (uint16_t)((x < 0 ? NEGATIVE : 0) + 2 + PER_EXPONENT * (exponent - LOWEST) + digits -
		FEWEST);
}

/* More seconds for each server, all without a sample. */
static void widen(struct charts *r, int32_t seconds)
{
	const int32_t room = seconds > 2 * r->room ? seconds : 2 * r->room;

	for (struct charted *c = r->metrics; c < r->metrics + r->n; c++)
		for (int k = 0; k < COLUMNS; k++) {
			double *wide = alloc_zero(c->n_servers * (size_t)room, sizeof(*wide));

			for (size_t i = 0; i < c->n_servers * (size_t)room; i++)
				wide[i] = NAN;
			for (size_t s = 0; s < c->n_servers && r->room; s++)
				memcpy(wide + s * (size_t)room, c->values[k] + s * (size_t)r->room,
					(size_t)r->room * sizeof(*wide));
			free(c->values[k]);
			c->values[k] = wide;
		}
	r->room = room;
}

static struct charted *metric_of(struct charts *r, const char *name)
{
	if (!r->n || strcmp(r->metrics[r->n - 1].name, name) != 0) {
		r->metrics = alloc_room(r->metrics, r->n, sizeof(*r->metrics));
		r->metrics[r->n++] = (struct charted){.name = alloc_copy(name)};
	}
	return &r->metrics[r->n - 1];
}

static void add_server(struct charts *r, struct charted *c, const char *server)
{
	c->servers = alloc_room(c->servers, c->n_servers, sizeof(*c->servers));
	c->servers[c->n_servers++] = alloc_copy(server);
	for (int k = 0; k < COLUMNS; k++) {
		const size_t room = (size_t)r->room;

		c->values[k] = alloc_resize(
			c->values[k], c->n_servers * room + 1, sizeof(*c->values[k]));
		for (size_t i = (c->n_servers - 1) * room; i < c->n_servers * room; i++)
			c->values[k][i] = NAN;
	}
}

static bool is_constant(const struct sample *samples, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (samples[i].sum_s != samples->sum_s || samples[i].count != samples->count)
			return false;
	return true;
}

static bool is_reading(const char *name)
{
	enum metric m;

	return !metric_from_name(name, &m) && m >= METRIC_SERVICE_TIMES;
}

/* In the order of metrics, as store_samples gives them. */
static int add_series(void *ctx, const char *name, const char *server, const struct sample *samples,
	size_t n, struct err *e)
{
	struct charts *r = ctx;
	struct charted *c = metric_of(r, name);
	size_t at;

	(void)e;
	if (n && samples[n - 1].second >= r->room)
		widen(r, samples[n - 1].second + 1);
	add_server(r, c, server);
	at = (c->n_servers - 1) * (size_t)r->room;
	c->moves = c->moves || !is_reading(name) || !is_constant(samples, n);
	for (const struct sample *i = samples; i < samples + n; i++) {
		const double values[] = {(double)i->count, i->sum_s, i->max_s, (double)i->bytes};

		if (i->second < 0 || i->second >= r->room)
			continue;
		if (i->second >= r->seconds)
			r->seconds = i->second + 1;
		for (int k = 0; k < COLUMNS; k++)
			c->values[k][at + (size_t)i->second] = values[k];
	}
	return 0;
}

/* True if all values that there are are equal, and equal to 'other's. */
static bool report_samples_same(
	const struct charted *c, size_t n, int column, int other, double *value)
{
	*value = NAN;
	for (size_t i = 0; i < n; i++) {
		const double x = c->values[column][i];

		if (isnan(x))
			continue;
		if (other < 0 && isnan(*value))
			*value = x;
		if (x != (other < 0 ? *value : c->values[other][i]))
			return false;
	}
	return true;
}

static void put_column(const struct charts *r, const struct charted *c, int column,
	struct report_samples *out, size_t *at, size_t half)
{
	for (size_t s = 0; s < c->n_servers; s++)
		for (int32_t t = 0; t < r->seconds; t++, ++*at) {
			const double x = c->values[column][s * (size_t)r->room + (size_t)t];
			const uint16_t code = report_samples_code(x);

			out->bytes[*at] = (unsigned char)(code & 0xff);
			out->bytes[half + *at] = (unsigned char)(code >> 8);
		}
}

/* Which columns of a metric are kept; 'count' gets their common count, or NAN. */
static void report_samples_choose(
	const struct charts *r, const struct charted *c, bool brief, char *letters, double *count)
{
	const size_t n = c->n_servers * (size_t)r->room;
	double value;

	if (!report_samples_same(c, n, COUNT, -1, count)) {
		*count = NAN;
		*letters++ = 'c';
	}
	*letters++ = 's';
	if (report_samples_same(c, n, LARGEST, SUM, &value))
		*letters++ = '=';
	else if (!brief || !is_reading(c->name))
		*letters++ = 'm';
	if (!report_samples_same(c, n, BYTES, -1, &value) || value > 0)
		*letters++ = 'b';
	*letters = 0;
}

static void put_metric(const struct charts *r, const struct charted *c, bool brief,
	struct report_samples *out, size_t *at, size_t half)
{
	static const char all[] = "csmb";
	char letters[COLUMNS + 1];
	double count;
	json_t *servers = json_array(), *what;

	report_samples_choose(r, c, brief, letters, &count);
	for (size_t i = 0; i < c->n_servers; i++)
		json_array_append_new(servers, json_string(c->servers[i]));
	what = json_pack("{s:o, s:s}", "servers", servers, "columns", letters);
	if (!isnan(count))
		json_object_set_new(what, "count", json_integer((json_int_t)count));
	json_object_set_new(jget(out->what, "metrics"), c->name, what);
	for (const char *l = letters; *l; l++)
		if (*l != '=')
			put_column(r, c, (int)(strchr(all, *l) - all), out, at, half);
}

static void pack(const struct charts *r, bool brief, struct report_samples *out)
{
	size_t half = 0, at = 0;

	for (const struct charted *c = r->metrics; c < r->metrics + r->n; c++)
		half += COLUMNS * c->n_servers * (size_t)r->seconds;
	out->bytes = alloc_zero(2 * half + 1, 1);
	out->what = json_pack("{s:i, s:{}}", "seconds", (int)r->seconds, "metrics");
	for (const struct charted *c = r->metrics; c < r->metrics + r->n; c++)
		if (c->moves)
			put_metric(r, c, brief, out, &at, half);
	memmove(out->bytes + at, out->bytes + half, at);
	out->size = 2 * at;
}

int report_samples_read(
	struct store *s, int64_t attempt, bool brief, struct report_samples *out, struct err *e)
{
	struct charts r = {0};
	int rc = store_samples(s, attempt, add_series, &r, e);

	if (!rc)
		pack(&r, brief, out);
	for (struct charted *c = r.metrics; c < r.metrics + r.n; c++) {
		for (size_t i = 0; i < c->n_servers; i++)
			free(c->servers[i]);
		for (int k = 0; k < COLUMNS; k++)
			free(c->values[k]);
		free(c->servers);
		free(c->name);
	}
	free(r.metrics);
	return rc;
}

void report_samples_clear(struct report_samples *r)
{
	json_decref(r->what);
	free(r->bytes);
}
