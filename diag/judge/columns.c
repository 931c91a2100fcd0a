/* Packs a run's measurements into columns, in the narrowest exact form. */
#include "diag/judge/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

enum form { ONE, AS_SUM, SHORT, FLOAT, DOUBLE };

static const size_t widths[] = {[ONE] = 0,
	[AS_SUM] = 0,
	[SHORT] = sizeof(uint16_t),
	[FLOAT] = sizeof(float),
	[DOUBLE] = sizeof(double)};

/* One metric of one server. The widest columns come first in 'data', so that all are aligned. */
struct block {
	double one[COLUMNS];
	uint8_t form[COLUMNS];
	uint32_t at[COLUMNS];
	_Alignas(double) char data[];
};

struct columns {
	size_t n_metrics, n_servers, seconds;
	double *scratch;        /* COLUMNS * seconds */
	struct block *blocks[]; /* [metric * n_servers + server]; NULL: no sample */
};

struct columns *columns_new(size_t n_metrics, size_t n_servers, int32_t seconds)
{
	struct columns *c = alloc_zero(
		1, sizeof(*c) + n_metrics * n_servers * sizeof(c->blocks[0]));

	c->n_metrics = n_metrics;
	c->n_servers = n_servers;
	c->seconds = seconds > 0 ? (size_t)seconds : 0;
	c->scratch = alloc_zero(COLUMNS * c->seconds, sizeof(*c->scratch));
	return c;
}

void columns_free(struct columns *c)
{
	for (size_t i = 0; c && i < c->n_metrics * c->n_servers; i++)
		free(c->blocks[i]);
	if (c)
		free(c->scratch);
	free(c);
}

/* NaN does not occur: a missing sample shows in the count. */
static enum form narrowest(const double *v, size_t n)
{
	bool one = true, is_short = true, is_float = true;

	for (size_t i = 0; i < n; i++) {
		one = one && v[i] == v[0];
		is_short = is_short && v[i] >= 0 && v[i] <= UINT16_MAX &&
			v[i] == (double)(uint16_t)v[i];
		is_float = is_float && v[i] == (double)(float)v[i];
	}
	return one ? ONE : is_short ? SHORT : is_float ? FLOAT : DOUBLE;
}

static void pack(char *to, enum form form, const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (form == SHORT)
			((uint16_t *)to)[i] = (uint16_t)v[i];
		else if (form == FLOAT)
			((float *)to)[i] = (float)v[i];
		else
			((double *)to)[i] = v[i];
	}
}

void columns_put(struct columns *c, size_t metric, size_t server, const double *values)
{
	struct block head = {0}, *b, **place = &c->blocks[metric * c->n_servers + server];
	size_t n = c->seconds, size = 0;

	for (int k = 0; k < COLUMNS; k++) {
		const double *v = values + (size_t)k * n;

		head.form[k] = (uint8_t)narrowest(v, n);
		head.one[k] = n ? v[0] : 0;
		/* With one sample a second, as for most readings, the maximum equals the sum. */
		if (k == COLUMN_MAX && head.form[k] != ONE &&
			!memcmp(v, values + COLUMN_SUM * n, n * sizeof(*v)))
			head.form[k] = AS_SUM;
	}
	for (enum form form = DOUBLE; form > AS_SUM; form--)
		for (int k = 0; k < COLUMNS; k++)
			if (head.form[k] == form) {
				head.at[k] = (uint32_t)size;
				size += n * widths[form];
			}
	b = alloc_zero(1, sizeof(*b) + size);
	*b = head;
	for (int k = 0; k < COLUMNS; k++)
		if (widths[head.form[k]])
			pack(b->data + head.at[k], head.form[k], values + (size_t)k * n, n);
	free(*place);
	*place = b;
}

void columns_put_samples(
	struct columns *c, size_t metric, size_t server, const struct sample *samples, size_t n)
{
	size_t width = c->seconds;
	bool any = false;

	memset(c->scratch, 0, COLUMNS * width * sizeof(*c->scratch));
	for (size_t i = 0; i < n; i++) {
		const struct sample *s = &samples[i];
		double *at;

		if (!s->count || s->second < 0 || (size_t)s->second >= width)
			continue;
		any = true;
		at = c->scratch + s->second;
		if (at[COLUMN_COUNT * width] == 0 || s->max_s > at[COLUMN_MAX * width])
			at[COLUMN_MAX * width] = s->max_s;
		at[COLUMN_COUNT * width] += (double)s->count;
		at[COLUMN_SUM * width] += s->sum_s;
		at[COLUMN_BYTES * width] += (double)s->bytes;
	}
	if (any)
		columns_put(c, metric, server, c->scratch);
}

struct columns *columns_from_samples(
	const struct sample *samples, size_t n, size_t n_metrics, size_t n_servers, int32_t seconds)
{
	size_t keys = n_metrics * n_servers;
	size_t *starts = alloc_zero(keys + 2, sizeof(*starts));
	struct sample *sorted = alloc_resize(NULL, n + 1, sizeof(*sorted));
	struct columns *c = columns_new(n_metrics, n_servers, seconds);

	/* A counting sort; samples left out have the last key. */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < n; i++) {
			const struct sample *s = &samples[i];
			bool in = (size_t)s->metric < n_metrics && s->server < n_servers;
			size_t key = in ? (size_t)s->metric * n_servers + s->server : keys;

			if (pass)
				sorted[starts[key]++] = *s;
			else
				starts[key + 1]++;
		}
		for (size_t k = 0; !pass && k < keys; k++)
			starts[k + 1] += starts[k];
	}
	/* starts[k] is now the end of key k. */
	for (size_t k = 0, from = 0; k < keys; from = starts[k++])
		if (from < starts[k])
			columns_put_samples(
				c, k / n_servers, k % n_servers, sorted + from, starts[k] - from);
	free(starts);
	free(sorted);
	return c;
}

int32_t columns_seconds(const struct columns *c)
{
	return (int32_t)c->seconds;
}

bool columns_has(const struct columns *c, size_t metric, size_t server)
{
	return c->blocks[metric * c->n_servers + server] != NULL;
}

/* One number of a column that is stored. */
static inline double columns_number_of(enum form form, const char *data, size_t i)
{
	return form == SHORT    ? ((const uint16_t *)data)[i]
		: form == FLOAT ? (double)((const float *)data)[i]
				: ((const double *)data)[i];
}

void columns_read(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out)
{
	const struct block *b = c->blocks[metric * c->n_servers + server];
	int k = b && b->form[which] == AS_SUM ? COLUMN_SUM : which;
	enum form form = b ? (enum form)b->form[k] : ONE;

	for (size_t i = 0; i < c->seconds; i++)
		out[i] = !b           ? 0
			: form == ONE ? b->one[k]
				      : columns_number_of(form, b->data + b->at[k], i);
}

void columns_series(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out)
{
	const struct block *b = c->blocks[metric * c->n_servers + server];
	const enum form form = b ? (enum form)b->form[COLUMN_COUNT] : ONE;

	columns_read(c, metric, server, which == COLUMN_MEAN ? COLUMN_SUM : which, out);
	if (which == COLUMN_COUNT || which == COLUMN_BYTES)
		return;
	for (size_t i = 0; i < c->seconds; i++) {
		double n = !b         ? 0
			: form == ONE ? b->one[COLUMN_COUNT]
				      : columns_number_of(form, b->data + b->at[COLUMN_COUNT], i);

		out[i] = n == 0 ? NAN : which == COLUMN_MEAN ? out[i] / n : out[i];
	}
}
