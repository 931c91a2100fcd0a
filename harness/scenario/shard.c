/* Splits a plan into shards. */
#include "harness/scenario/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/sha256.h"

/* What is counted of the cells that a shard has so far. */
enum { BY_GROUP, BY_ALL, BY_FAULT, BY_VICTIM, BY_WORKLOAD, BY_REPEAT, COUNTS };

struct deal {
	const struct scenario *s;
	size_t shards;
	unsigned *counts[COUNTS]; /* of each: values x shards */
	size_t *to;               /* the shard of each cell of the plan */
};

int shard_parse(const char *text, struct shard *out, struct err *e)
{
	struct shard got = {0};
	int end = 0;

	if (strspn(text, "0123456789/") == strlen(text) &&
		sscanf(text, "%3ld/%3ld%n", &got.index, &got.of, &end) == 2 && !text[end] &&
		got.index >= 1 && got.index <= got.of && got.of <= SHARDS_MAX) {
		*out = got;
		return 0;
	}
	return err_set(e, -EINVAL,
		"takes i/n, as 2/3: the second of three shards, at most %d of them, not '%.40s'",
		SHARDS_MAX, text);
}

/* How many values there are to count by, and the value of a cell. Of victims there may be several:
 * they are counted apart. */
static size_t shard_value_of(const struct scenario *s, const struct cell *c, int by, size_t *values)
{
	switch (by) {
	case BY_GROUP:
		*values = s->n_workloads * s->n_faults;
		return c->workload * s->n_faults + c->fault;
	case BY_FAULT: *values = s->n_faults; return c->fault;
	case BY_WORKLOAD: *values = s->n_workloads; return c->workload;
	case BY_REPEAT: *values = (size_t)s->repeats + 1; return (size_t)c->repeat;
	default: *values = 1; return 0;
	}
}

static unsigned *counted(struct deal *d, const struct cell *c, int by, size_t value, size_t shard)
{
	size_t values;

	if (by != BY_VICTIM)
		value = shard_value_of(d->s, c, by, &values);
	return &d->counts[by][value * d->shards + shard];
}

static unsigned weight(struct deal *d, const struct cell *c, int by, size_t shard)
{
	unsigned sum = 0;

	if (by != BY_VICTIM)
		return *counted(d, c, by, 0, shard);
	for (size_t i = 0; i < c->n_victims; i++)
		sum += *counted(d, c, by, c->victims[i], shard);
	return sum;
}

/* The first count in which they differ decides. */
static bool is_emptier(struct deal *d, const struct cell *c, size_t shard, size_t other)
{
	for (int by = 0; by < COUNTS; by++) {
		unsigned here = weight(d, c, by, shard), there = weight(d, c, by, other);

		if (here != there)
			return here < there;
	}
	return false;
}

static void shard_put(struct deal *d, const struct cell *c, size_t shard)
{
	for (int by = 0; by < COUNTS; by++) {
		if (by != BY_VICTIM)
			++*counted(d, c, by, 0, shard);
		for (size_t i = 0; by == BY_VICTIM && i < c->n_victims; i++)
			++*counted(d, c, by, c->victims[i], shard);
	}
}

/* Workload by workload, fault by fault: while one group is dealt out, no other changes the counts,
 * so that all its rounds end even. */
static int by_group(const void *a, const void *b)
{
	const struct cell *x = *(const struct cell *const *)a, *y = *(const struct cell *const *)b;

	if (x->workload != y->workload)
		return x->workload < y->workload ? -1 : 1;
	if (x->fault != y->fault)
		return x->fault < y->fault ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void deal_cells(struct deal *d, const struct plan *p, size_t n_servers)
{
	auto_free const struct cell **cells = alloc_zero(p->n, sizeof(*cells));
	size_t n = 0, values;

	for (size_t i = 0; i < p->n; i++)
		if (!p->cells[i].training)
			cells[n++] = &p->cells[i];
	qsort(cells, n, sizeof(*cells), by_group);
	for (int by = 0; by < COUNTS; by++) {
		shard_value_of(d->s, p->cells, by, &values);
		d->counts[by] = alloc_zero(
			(by == BY_VICTIM ? n_servers : values) * d->shards, sizeof(unsigned));
	}
	for (size_t i = 0; i < n; i++) {
		size_t least = 0;

		for (size_t k = 1; k < d->shards; k++)
			if (is_emptier(d, cells[i], k, least))
				least = k;
		shard_put(d, cells[i], least);
		d->to[cells[i] - p->cells] = least;
	}
	for (int by = 0; by < COUNTS; by++)
		free(d->counts[by]);
}

/* Repeats of run times stay whole: the n-th that the plan still has goes to shard n. */
static size_t deal_repeats(struct deal *d, const struct plan *p)
{
	auto_free size_t *place = alloc_zero((size_t)d->s->repeats + 1, sizeof(*place));
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		size_t *of = &place[p->cells[i].repeat];

		if (p->cells[i].training)
			continue;
		if (!*of)
			*of = ++n;
		d->to[i] = (*of - 1) % d->shards;
	}
	return n;
}

int shard_take(struct plan *p, const struct scenario *s, struct shard shard, struct err *e)
{
	const bool runtime = s->measure == MEASURE_RUNTIME;
	auto_free size_t *to = alloc_zero(p->n, sizeof(*to));
	struct deal d = {.s = s, .shards = (size_t)shard.of, .to = to};
	size_t kept = 0, servers = 0, units = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct cell *c = &p->cells[i];

		units += !c->training;
		for (size_t k = 0; k < c->n_victims; k++)
			servers = c->victims[k] >= servers ? c->victims[k] + 1 : servers;
	}
	if (runtime)
		units = deal_repeats(&d, p);
	else
		deal_cells(&d, p, servers);
	if (units < d.shards)
		return err_set(e, -EINVAL,
			"--shard %ld/%ld: the plan has %zu %s to deal out, fewer than shards%s",
			shard.index, shard.of, units, runtime ? "repeats" : "scored cells",
			runtime ? " (the cells of a repeat are compared with each other and stay "
				  "together)"
				: "");
	for (size_t i = 0; i < p->n; i++)
		if (p->cells[i].training || to[i] == (size_t)shard.index - 1)
			p->cells[kept++] = p->cells[i];
	p->n = kept;
	return 0;
}

void shard_digest(const struct plan *p, const struct scenario *s, char hex[65])
{
	size_t size;
	char *text;
	FILE *f = alloc_text(&text, &size);

	for (size_t i = 0; i < p->n; i++) {
		const struct cell *c = &p->cells[i];

		fprintf(f, "%zu %d %s\n%s\n%s\n%ld", c->number, c->training,
			s->workloads[c->workload].label, cell_fault(s, c),
			s->tracers[c->tracer].label, c->repeat);
		for (size_t k = 0; k < c->n_victims; k++)
			fprintf(f, " %zu", c->victims[k]);
		fputc('\n', f);
	}
	fclose(f);
	sha256_hex(text, size, hex);
	free(text);
}
