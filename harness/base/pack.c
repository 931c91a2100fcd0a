/* Packs rows of numbers and unpacks them. */
#include "harness/base/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/bytes.h"

enum { PLACES_MAX = 9, DOUBLES, SAME, COUNTING, ALIKE = 0x80 };
enum { NUMBER_MAX = 10 };

static const double powers[PLACES_MAX + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* A column's values: integers, or bits of doubles. */
struct pack_column {
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

static void pack_put_number(struct writer *w, uint64_t v)
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
	pack_put_number(w, bytes_zigzag((int64_t)v));
}

static uint64_t get_signed(struct reader *r)
{
	return (uint64_t)bytes_unzigzag(get_number(r));
}

/* The double 'bits' times 10^places as a whole number; false if that is not exact. */
static bool scaled(uint64_t bits, int places, uint64_t *whole)
{
	double v = double_of(bits), n = nearbyint(v * powers[places]);

	/* Converts through the integer, which has no -0. */
	if (!(fabs(n) < 9007199254740992.0) || bits_of((double)(int64_t)n / powers[places]) != bits)
		return false;
	*whole = (uint64_t)(int64_t)n;
	return true;
}

/* The smallest number of decimal places that represents all values exactly, or DOUBLES. */
static int places_of(const struct pack_column *c)
{
	uint64_t whole;
	int places = 0;

	for (size_t i = 0; i < c->n; i++)
		while (!scaled(c->v[i], places, &whole))
			if (++places > PLACES_MAX)
				return DOUBLES;
	/* A value that fits with fewer places may overflow with more. */
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

static void put_column(
	struct writer *w, const struct pack_column *c, const struct pack_column *last)
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

static uint64_t get_value(struct reader *r, const struct pack_column *c, int how, uint64_t *before)
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

static void get_column(struct reader *r, struct pack_column *c, const struct pack_column *last)
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

/* ---- rows ---- */

static uint64_t field_get(const struct pack_field *f, const void *row)
{
	const char *p = (const char *)row + f->at;
	uint16_t two = 0;
	int32_t four = 0; /* so that negative values stay small */
	uint64_t eight = 0;

	switch (f->size) {
	case 1: return (uint8_t)*p;
	case 2: memcpy(&two, p, sizeof(two)); return two;
	case 4: memcpy(&four, p, sizeof(four)); return (uint64_t)(int64_t)four;
	default: memcpy(&eight, p, sizeof(eight)); return eight;
	}
}

static void field_set(const struct pack_field *f, void *row, uint64_t v)
{
	char *p = (char *)row + f->at;
	const uint16_t two = (uint16_t)v;
	const uint32_t four = (uint32_t)v;

	switch (f->size) {
	case 1: *p = (char)(f->is_bool ? v != 0 : v); break;
	case 2: memcpy(p, &two, sizeof(two)); break;
	case 4: memcpy(p, &four, sizeof(four)); break;
	default: memcpy(p, &v, sizeof(v)); break;
	}
}

/* 'values' has room for all columns of 'n' rows. */
static struct pack_column *columns_of(const struct pack_kind *kind, uint64_t *values, size_t n)
{
	struct pack_column *c = alloc_zero(kind->n_fields, sizeof(*c));

	for (size_t i = 0; i < kind->n_fields; i++)
		c[i] = (struct pack_column){
			.v = values + i * n, .n = n, .real = kind->fields[i].is_real};
	return c;
}

void pack_rows(
	const struct pack_kind *kind, const void *rows, size_t n, unsigned char **out, size_t *size)
{
	const size_t fields = kind->n_fields;
	uint64_t *values = alloc_zero(fields * n, sizeof(*values));
	struct pack_column *c = columns_of(kind, values, n);
	struct writer w = {.p = alloc_zero((fields * n + 1) * NUMBER_MAX + fields, 1)};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < fields; k++)
			c[k].v[i] = field_get(
				&kind->fields[k], (const char *)rows + i * kind->row_size);
	pack_put_number(&w, n);
	for (size_t i = 0; n && i < fields; i++)
		put_column(&w, &c[i], i ? &c[i - 1] : NULL);
	free(c);
	free(values);
	*out = alloc_resize(w.p, w.n, 1);
	*size = w.n;
}

bool pack_read(const struct pack_kind *kind, size_t most, const void *data, size_t size,
	void **rows, size_t *n)
{
	struct reader r = {.p = data, .end = (const unsigned char *)data + size};
	const uint64_t number = get_number(&r);
	struct pack_column *c;
	uint64_t *values;
	char *out;

	if (r.bad || number > most)
		return false;
	values = alloc_zero(kind->n_fields * number, sizeof(*values));
	c = columns_of(kind, values, number);
	for (size_t i = 0; number && i < kind->n_fields; i++)
		get_column(&r, &c[i], i ? &c[i - 1] : NULL);
	if (r.bad || r.p != r.end) {
		free(c);
		free(values);
		return false;
	}
	out = alloc_zero(number, kind->row_size);
	for (size_t i = 0; i < number; i++)
		for (size_t k = 0; k < kind->n_fields; k++)
			field_set(&kind->fields[k], out + i * kind->row_size, c[k].v[i]);
	free(c);
	free(values);
	*rows = out;
	*n = number;
	return true;
}
