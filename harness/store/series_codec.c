/* Packs and unpacks the samples of one metric of one server. */
#include "harness/store/series_codec.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/bytes.h"

enum { PLACES_MAX = 9, DOUBLES, SAME, COUNTING, ALIKE = 0x80 };
enum { COLUMNS = 5, SAMPLES_MAX = 1 << 22, NUMBER_MAX = 10 };

static const double powers[PLACES_MAX + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* A column's values: whole numbers, or bits of doubles. */
struct column {
	uint64_t *v;
	size_t n;
	bool real;
};

struct writer {
	unsigned char *p;
	size_t n;
};

struct reader {
	const unsigned char *p, *end;
	bool bad;
};

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static double double_of(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static void series_codec_put_number(struct writer *w, uint64_t v)
{
	w->n = (size_t)(bytes_put_varint(w->p + w->n, v) - w->p);
}

static uint64_t get_number(struct reader *r)
{
	uint64_t v = 0;

	if (!bytes_get_varint(&r->p, r->end, &v))
		r->bad = true;
	return v;
}

static void put_signed(struct writer *w, uint64_t v)
{
	series_codec_put_number(w, bytes_zigzag((int64_t)v));
}

static uint64_t get_signed(struct reader *r)
{
	return (uint64_t)bytes_unzigzag(get_number(r));
}

/* The double 'bits' times 10^places as a whole number; false if that is not exact. */
static bool scaled(uint64_t bits, int places, uint64_t *whole)
{
	double v = double_of(bits), n = nearbyint(v * powers[places]);

	/* Through the whole number, which has no -0. */
	if (!(fabs(n) < 9007199254740992.0) || bits_of((double)(int64_t)n / powers[places]) != bits)
		return false;
	*whole = (uint64_t)(int64_t)n;
	return true;
}

/* The least number of decimal places that represents all values exactly, or DOUBLES. */
static int places_of(const struct column *c)
{
	uint64_t whole;
	int places = 0;

	for (size_t i = 0; i < c->n; i++)
		while (!scaled(c->v[i], places, &whole))
			if (++places > PLACES_MAX)
				return DOUBLES;
	/* A value that fits with fewer places may be too large with more. */
	for (size_t i = 0; i < c->n; i++)
		if (!scaled(c->v[i], places, &whole))
			return DOUBLES;
	return places;
}

static void put_value(struct writer *w, uint64_t v, int how, uint64_t *before)
{
	if (how == DOUBLES) {
		for (int i = 0; i < 8; i++)
			w->p[w->n++] = (unsigned char)(v >> 8 * i);
		return;
	}
	put_signed(w, v - *before);
	*before = v;
}

static void put_column(struct writer *w, const struct column *c, const struct column *last)
{
	int how = c->real ? places_of(c) : 0;
	bool alike = true, counting = !c->real;
	uint64_t before = 0, whole;

	if (last && last->real == c->real && !memcmp(c->v, last->v, c->n * sizeof(*c->v))) {
		w->p[w->n++] = SAME;
		return;
	}
	for (size_t i = 1; i < c->n; i++) {
		alike = alike && c->v[i] == c->v[0];
		counting = counting && c->v[i] == c->v[i - 1] + 1;
	}
	w->p[w->n++] = (unsigned char)(alike ? how | ALIKE : counting ? COUNTING : how);
	for (size_t i = 0; i < (alike || counting ? 1 : c->n); i++) {
		whole = c->v[i];
		if (c->real && how != DOUBLES)
			scaled(c->v[i], how, &whole);
		put_value(w, whole, how, &before);
	}
}

static uint64_t get_value(struct reader *r, const struct column *c, int how, uint64_t *before)
{
	uint64_t v = 0;

	if (how == DOUBLES) {
		r->bad = r->bad || r->end - r->p < 8;
		for (int i = 0; i < 8 && !r->bad; i++)
			v |= (uint64_t)*r->p++ << 8 * i;
		return v;
	}
	*before += get_signed(r);
	return c->real ? bits_of((double)(int64_t)*before / powers[how]) : *before;
}

static void get_column(struct reader *r, struct column *c, const struct column *last)
{
	bool alike, counting;
	uint64_t before = 0;
	int how;

	if (r->bad || r->p == r->end) {
		r->bad = true;
		return;
	}
	how = *r->p++;
	alike = how & ALIKE;
	how &= ~ALIKE;
	counting = how == COUNTING;
	if (how == SAME && last && last->real == c->real) {
		memcpy(c->v, last->v, c->n * sizeof(*c->v));
		return;
	}
	if (counting ? c->real || alike : how > DOUBLES || (!c->real && how)) {
		r->bad = true;
		return;
	}
	for (size_t i = 0; i < c->n && !r->bad; i++)
		c->v[i] = i && (alike || counting) ? c->v[i - 1] + counting
						   : get_value(r, c, counting ? 0 : how, &before);
}

/* 'values' has room for all columns of 'n'. */
static void set_columns(struct column columns[COLUMNS], uint64_t *values, size_t n)
{
	for (size_t i = 0; i < COLUMNS; i++)
		columns[i] = (struct column){.v = values + i * n, .n = n, .real = i == 2 || i == 3};
}

void series_encode(const struct sample *samples, size_t n, unsigned char **out, size_t *size)
{
	struct column c[COLUMNS];
	uint64_t *values = alloc_zero(COLUMNS * n, sizeof(*values));
	struct writer w = {.p = alloc_zero((COLUMNS * n + 1) * NUMBER_MAX + COLUMNS, 1)};

	set_columns(c, values, n);
	for (size_t i = 0; i < n; i++) {
		c[0].v[i] = (uint64_t)(int64_t)samples[i].second;
		c[1].v[i] = samples[i].count;
		c[2].v[i] = bits_of(samples[i].sum_s);
		c[3].v[i] = bits_of(samples[i].max_s);
		c[4].v[i] = samples[i].bytes;
	}
	series_codec_put_number(&w, n);
	for (size_t i = 0; i < COLUMNS; i++)
		put_column(&w, &c[i], i ? &c[i - 1] : NULL);
	free(values);
	*out = w.p;
	*size = w.n;
}

int series_decode(const void *data, size_t size, struct sample **out, size_t *n, struct err *e)
{
	struct reader r = {.p = data, .end = (const unsigned char *)data + size};
	uint64_t number = get_number(&r), *values;
	struct column c[COLUMNS];
	struct sample *samples;

	if (r.bad || number > SAMPLES_MAX)
		return err_set(e, -EBADMSG, "samples do not unpack");
	values = alloc_zero(COLUMNS * number, sizeof(*values));
	samples = alloc_zero(number, sizeof(*samples));
	set_columns(c, values, number);
	for (size_t i = 0; i < COLUMNS; i++)
		get_column(&r, &c[i], i ? &c[i - 1] : NULL);
	for (size_t i = 0; i < number; i++) {
		samples[i].second = (int32_t)c[0].v[i];
		samples[i].count = c[1].v[i];
		samples[i].sum_s = double_of(c[2].v[i]);
		samples[i].max_s = double_of(c[3].v[i]);
		samples[i].bytes = c[4].v[i];
	}
	free(values);
	if (r.bad || r.p != r.end) {
		free(samples);
		return err_set(e, -EBADMSG, "samples do not unpack");
	}
	*out = samples;
	*n = number;
	return 0;
}
