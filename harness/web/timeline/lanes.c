/* Lays out the slices of a track in lanes. */
#include "harness/web/timeline/lanes.h"

#include <stdlib.h>

#include "harness/base/alloc.h"

static void lanes_show(struct lanes *l, const struct shown *s)
{
	l->list = alloc_room(l->list, l->n, sizeof(*l->list));
	l->list[l->n++] = *s;
}

/* The sum to which 's' belongs, or NULL. A sum of an earlier window has ended. */
static struct shown *sum_of(struct lanes *l, const struct stored *s)
{
	for (unsigned i = 0; i < l->n_sums; i++) {
		struct shown *sum = &l->sums[i];

		if (sum->s.category != s->category || sum->s.flags != s->flags)
			continue;
		if (ns_between(l->from_ns, sum->s.start_ns) / l->window_ns ==
			ns_between(l->from_ns, s->start_ns) / l->window_ns)
			return sum;
		lanes_show(l, sum);
		*sum = l->sums[--l->n_sums];
		return NULL;
	}
	return NULL;
}

void lanes_add(struct lanes *l, const struct stored *s)
{
	struct shown one = {.s = *s, .n = 1, .busy_ns = (uint64_t)s->duration_ns};
	struct shown *sum;

	if (detail_keeps(l->detail, s)) {
		lanes_show(l, &one);
		return;
	}
	sum = sum_of(l, s);
	if (sum) {
		sum->n++;
		sum->busy_ns += one.busy_ns;
		if (stored_end(s) > stored_end(&sum->s))
			sum->s.duration_ns = stored_end(s) - sum->s.start_ns;
		return;
	}
	if (l->n_sums == SUMS_MAX)
		lanes_show(l, &l->sums[--l->n_sums]);
	l->sums[l->n_sums++] = one;
}

static int compare_starts(const void *pa, const void *pb)
{
	const struct shown *a = pa, *b = pb;

	if (a->s.start_ns != b->s.start_ns)
		return a->s.start_ns < b->s.start_ns ? -1 : 1;
	if (a->s.duration_ns != b->s.duration_ns)
		return a->s.duration_ns > b->s.duration_ns ? -1 : 1;
	return (a->s.number > b->s.number) - (a->s.number < b->s.number);
}

static int compare_lanes(const void *pa, const void *pb)
{
	const struct shown *a = pa, *b = pb;

	return a->lane != b->lane ? a->lane - b->lane : compare_starts(pa, pb);
}

static void assign(struct lanes *l)
{
	int64_t ends[LANES_MAX];

	for (size_t i = 0; i < l->n; i++) {
		struct shown *s = &l->list[i];
		unsigned lane = 0;

		while (lane < l->n_lanes && ends[lane] > s->s.start_ns)
			lane++;
		if (lane == LANES_MAX)
			lane--;
		if (lane == l->n_lanes)
			l->n_lanes++;
		ends[lane] = stored_end(&s->s);
		s->lane = (uint16_t)lane;
		l->in_lane[lane]++;
	}
}

void lanes_end(struct lanes *l)
{
	while (l->n_sums)
		lanes_show(l, &l->sums[--l->n_sums]);
	if (!l->n)
		return; /* 'list' may be NULL */
	qsort(l->list, l->n, sizeof(*l->list), compare_starts);
	assign(l);
	qsort(l->list, l->n, sizeof(*l->list), compare_lanes);
}

void lanes_reset(struct lanes *l)
{
	for (unsigned i = 0; i < l->n_lanes; i++)
		l->in_lane[i] = 0;
	l->n = l->n_lanes = l->n_sums = 0;
}

void lanes_clear(struct lanes *l)
{
	free(l->list);
	l->list = NULL;
}
