/* Groups of calls, found by a hash of the columns that the query names. */
#include <stdlib.h>
#include <string.h>

#include "diag/query/query_impl.h"
#include "diag/record/describe.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"
#include "harness/base/map.h"

enum { BUCKETS = 40, GROUPS_MOST = 1 << 22 };

struct group {
	uint64_t hash; /* the row's number in SQL */
	int64_t measure[COLUMN_P50_NS];
	uint32_t *histogram; /* by powers of two; NULL: nobody asks for percentiles */
	struct column_value
		value[]; /* of the columns that are named; texts that do not last are its own */
};

struct summed {
	const struct column *columns;
	int n_columns, n_named, *named;                      /* 'named': their indexes */
	struct column_value *value;                          /* of the row at hand */
	char (*kept)[sizeof(((struct query_row *)0)->text)]; /* their texts */
	struct {
		const char *text;
		uint64_t hash;
	} * last; /* by name: a text that lasts, and its hash */
	bool percentiles;
	struct group **group; /* in the order in which they were found */
	size_t n;
	struct map index; /* by hash: the group's number + 1 */
};

struct summed *summed_new(const struct column *columns, uint64_t used)
{
	struct summed *t = alloc_zero(1, sizeof(*t));
	int n = 0;

	while (columns[n].name)
		n++;
	t->columns = columns;
	t->n_columns = n;
	t->named = alloc_zero((size_t)n, sizeof(*t->named));
	t->value = alloc_zero((size_t)n, sizeof(*t->value));
	t->last = alloc_zero((size_t)n, sizeof(*t->last));
	t->kept = alloc_zero((size_t)n, sizeof(*t->kept));
	for (int i = 0; i < n; i++)
		if (columns[i].get && used >> i & 1)
			t->named[t->n_named++] = i;
	t->percentiles = used >> (n - 2) & 3;
	return t;
}

void summed_free(struct summed *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		for (int k = 0; k < t->n_named; k++)
			if (t->group[i]->value[k].type == VALUE_TEXT &&
				!t->group[i]->value[k].lasting)
				free((char *)t->group[i]->value[k].text);
		free(t->group[i]->histogram);
		free(t->group[i]);
	}
	free(t->group);
	map_clear(&t->index);
	free(t->last);
	free(t->kept);
	free(t->value);
	free(t->named);
	free(t);
}

static uint64_t hash_value(struct summed *t, int k)
{
	const struct column_value *v = &t->value[k];

	if (v->type == VALUE_INT)
		return (uint64_t)v->number;
	if (v->type != VALUE_TEXT)
		return 0x5bd1e995;
	if (!v->lasting)
		return hash_text(v->text);
	if (v->text != t->last[k].text) {
		t->last[k].text = v->text;
		t->last[k].hash = hash_text(v->text);
	}
	return t->last[k].hash;
}

static bool is_same(const struct summed *t, const struct group *g)
{
	for (int k = 0; k < t->n_named; k++) {
		const struct column_value *a = &g->value[k], *b = &t->value[k];

		if (a->type != b->type || (a->type == VALUE_INT && a->number != b->number) ||
			(a->type == VALUE_TEXT && a->text != b->text &&
				strcmp(a->text, b->text) != 0))
			return false;
	}
	return true;
}

static struct group *new_group(struct summed *t, uint64_t hash)
{
	struct group *g = alloc_zero(1, sizeof(*g) + (size_t)t->n_named * sizeof(g->value[0]));

	g->hash = hash;
	for (int k = 0; k < t->n_named; k++) {
		g->value[k] = t->value[k];
		if (t->value[k].type == VALUE_TEXT && !t->value[k].lasting)
			g->value[k].text = alloc_copy(t->value[k].text);
	}
	if (t->percentiles)
		g->histogram = alloc_zero(BUCKETS, sizeof(*g->histogram));
	t->group = alloc_room(t->group, t->n, sizeof(*t->group));
	t->group[t->n++] = g;
	return g;
}

/* The group of the values at hand. */
static struct group *group_at(struct summed *t)
{
	uint64_t hash = 0, i;
	size_t at = 0;

	for (int k = 0; k < t->n_named; k++)
		hash = hash_mix(hash, hash_value(t, k));
	while ((i = map_next(&t->index, hash, &at)))
		if (is_same(t, t->group[i - 1]))
			return t->group[i - 1];
	map_keep(&t->index, hash, t->n + 1);
	return new_group(t, hash);
}

static struct group *group_of(struct summed *t, struct query_row *row)
{
	for (int k = 0; k < t->n_named; k++) {
		struct column_value *v = &t->value[k];

		v->type = VALUE_NULL;
		v->lasting = false;
		t->columns[t->named[k]].get(row, v);
		/* The next column may use the row's text. */
		if (v->type == VALUE_TEXT && v->text == row->text)
			v->text = strcpy(t->kept[k], row->text);
	}
	return group_at(t);
}

bool summed_add_part(struct summed *t, const struct query_source *source, void *rows)
{
	struct query_part p;
	struct group *g;

	for (int k = 0; k < t->n_named; k++) {
		t->value[k] = (struct column_value){.type = VALUE_NULL};
		source->get(rows, t->named[k], &t->value[k]);
	}
	source->part(rows, &p);
	g = group_at(t);
	for (int i = 0; i < COLUMN_P50_NS; i++)
		if (i != COLUMN_MAX_NS)
			g->measure[i] += p.measure[i];
	if (p.measure[COLUMN_MAX_NS] > g->measure[COLUMN_MAX_NS])
		g->measure[COLUMN_MAX_NS] = p.measure[COLUMN_MAX_NS];
	if (g->histogram && p.bucket < BUCKETS)
		g->histogram[p.bucket] += (uint32_t)p.measure[COLUMN_CALLS];
	return t->n < GROUPS_MOST;
}

static unsigned bucket_of(int64_t ns)
{
	unsigned i = ns > 0 ? 63 - (unsigned)__builtin_clzll((uint64_t)ns) : 0;

	return i < BUCKETS ? i : BUCKETS - 1;
}

bool summed_add(struct summed *t, struct query_row *row)
{
	const struct record_call *c = &row->item->record->call;
	const int64_t moved = call_moved(row->item->call, c);
	struct group *g = group_of(t, row);

	g->measure[COLUMN_CALLS]++;
	g->measure[COLUMN_ERRORS] += call_failed(c);
	if (moved > 0)
		g->measure[COLUMN_BYTES] += moved;
	g->measure[COLUMN_TOTAL_NS] += c->service_ns;
	if (c->service_ns > g->measure[COLUMN_MAX_NS])
		g->measure[COLUMN_MAX_NS] = c->service_ns;
	if (g->histogram)
		g->histogram[bucket_of(c->service_ns)]++;
	return t->n < GROUPS_MOST;
}

size_t summed_count(const struct summed *t)
{
	return t->n;
}

int64_t summed_id(const struct summed *t, size_t group)
{
	return (int64_t)t->group[group]->hash;
}

/* Linear inside a bucket, and never above the longest. */
static int64_t quantile(const struct group *g, double q)
{
	double before = 0, want = q * (double)g->measure[COLUMN_CALLS], low, ns;

	for (int i = 0; i < BUCKETS; i++) {
		if (g->histogram[i] && before + g->histogram[i] >= want) {
			low = (double)(1ull << i);
			ns = low + low * (want - before) / g->histogram[i];
			return ns < (double)g->measure[COLUMN_MAX_NS] ? (int64_t)ns
								      : g->measure[COLUMN_MAX_NS];
		}
		before += g->histogram[i];
	}
	return 0;
}

void summed_column(const struct summed *t, size_t group, int column, struct column_value *out)
{
	const int measure = column - (t->n_columns - COLUMN_COUNT);
	const struct group *g = t->group[group];

	for (int k = 0; k < t->n_named; k++)
		if (t->named[k] == column)
			*out = g->value[k];
	if (measure < 0 || (measure >= COLUMN_P50_NS && !g->histogram))
		return;
	out->type = VALUE_INT;
	out->number = measure == COLUMN_P50_NS ? quantile(g, 0.5)
		: measure == COLUMN_P99_NS     ? quantile(g, 0.99)
					       : g->measure[measure];
}
