/* Separates sets of labels that would become one series although they have samples at the same
 * time, by another label. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/labels_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"

/* A series, and its key for the sink. */
struct row {
	uint64_t key;
	const struct labels_series *series;
};

static uint64_t hash_of(const struct labels_series *s, const char *name, uint64_t before)
{
	const char *value = labels_value(s, name);

	return hash_mix(before, value ? hash_text(value) : 0);
}

static uint64_t labels_apart_key_of(const struct labels *l, const struct labels_series *s)
{
	uint64_t h = hash_text(s->text);

	if (l->member)
		h = hash_of(s, l->member, h);
	for (size_t i = 0; i < l->n_groups; i++)
		h = hash_of(s, l->group[i], h);
	return h;
}

static int by_key_and_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double from = x->series->from_s, other = y->series->from_s;

	return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
				: (from > other) - (from < other);
}

/* 'b' begins later. A set of labels that replaces another one (a version, a pod) may begin before
 * the other one has ended: Prometheus repeats the last sample for five minutes. */
static bool at_one_time(const struct labels_series *a, const struct labels_series *b)
{
	double both_s = fmin(a->to_s, b->to_s) - b->from_s;
	double shorter_s = fmin(a->to_s - a->from_s, b->to_s - b->from_s);

	if (a->from_s == a->to_s && b->from_s == b->to_s)
		return a->from_s == b->from_s;
	return both_s > 0 && both_s >= shorter_s / 2;
}

/* Finds two series with one key that have samples at the same time. */
static bool find_pair(const struct labels *l, const struct labels_series *pair[2])
{
	struct row *rows = alloc_zero(l->n_series, sizeof(*rows));
	const struct labels_series *last = NULL; /* the series with the row's key that ends last */
	bool found = false;
	size_t n = 0;

	for (size_t i = 0; i < l->n_series; i++) {
		const struct labels_series *s = &l->series[i];

		if (s->from_s <= s->to_s && (!l->member || labels_value(s, l->member)))
			rows[n++] = (struct row){labels_apart_key_of(l, s), s};
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_key_and_time);
	for (size_t i = 0; i < n && !found; i++) {
		if (!i || rows[i].key != rows[i - 1].key) {
			last = rows[i].series;
			continue;
		}
		pair[0] = last;
		pair[1] = rows[i].series;
		found = at_one_time(pair[0], pair[1]);
		if (rows[i].series->to_s > last->to_s)
			last = rows[i].series;
	}
	free(rows);
	return found;
}

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t count_values(const struct labels *l, const char *name)
{
	uint64_t *hash = alloc_zero(l->n_series, sizeof(*hash));
	size_t n = 1;

	for (size_t i = 0; i < l->n_series; i++)
		hash[i] = hash_of(&l->series[i], name, 0);
	qsort(hash, l->n_series, sizeof(*hash), by_hash);
	for (size_t i = 1; i < l->n_series; i++)
		n += hash[i] != hash[i - 1];
	free(hash);
	return n;
}

/* The label with the fewest values that 'a' has, and that 'b' lacks or has with another value. */
static void find_label(const struct labels *l, const struct labels_series *a,
	const struct labels_series *b, const char **best, size_t *fewest)
{
	const char *name = a->text + strlen(a->text) + 1, *value;

	for (; name < a->text + a->size; name = value + strlen(value) + 1) {
		const char *other = labels_value(b, name);
		size_t n;

		value = name + strlen(name) + 1;
		if (other && !strcmp(value, other))
			continue;
		n = count_values(l, name);
		if (!*best || n < *fewest) {
			*best = name;
			*fewest = n;
		}
	}
}

const char *labels_differ(
	const struct labels *l, const struct labels_series *a, const struct labels_series *b)
{
	const char *label = NULL;
	size_t values = 0;

	find_label(l, a, b, &label, &values);
	find_label(l, b, a, &label, &values);
	return label;
}

int labels_separate(struct labels *l, struct import_said *said, struct err *e)
{
	const struct labels_series *pair[2];
	char example[256];

	while (find_pair(l, pair)) {
		const char *label = labels_differ(l, pair[0], pair[1]);

		labels_print(pair[1], example, sizeof(example));
		if (!label || l->n_groups == IMPORT_GROUPS_MAX)
			return err_set(e, -EINVAL,
				"series of one member have samples at the same time, such as %s: "
				"name the label '%s' with --member or --group, or ask for less",
				example, label ? label : "le");
		l->group[l->n_groups++] = alloc_copy(label);
		import_note(said,
			"label '%s' is added as a group: without it, series of one member have "
			"samples at the same time, such as %s",
			label, example);
	}
	return 0;
}
