/*
 * How long each layer of a server was busy, second by second, and the work that was done meanwhile
 * (slow.h). All times here are seconds since start, on the common clock.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/slow/slow_impl.h"

/* From the deepest on: what a request is in there keeps others waiting further up. */
static const enum slow_part depth[SLOW_LAYERS] = {
	SLOW_DISK, SLOW_WAITING, SLOW_ANSWERING, SLOW_THERE, SLOW_BACK};

enum slow_part slow_layer_part(size_t layer)
{
	return depth[layer];
}

/* ---- what a procedure takes before the fault ---- */

struct slow_usual *slow_usual_of(const struct slow *s, uint32_t node)
{
	struct slow_usual *u = alloc_zero(s->n_kinds + 1, sizeof(*u));

	for (size_t i = 0; i < s->n_items; i++) {
		const struct slow_item *it = &s->items[i];

		if (it->phase != SLOW_BEFORE ||
			(s->spec.onset_ns && slow_end_ns(it) > s->spec.onset_ns) ||
			(node != FLOW_NO_NODE && it->node != node))
			continue;
		u[it->kind].n++;
		u[it->kind].time_s += (double)it->total_s;
		for (int k = 0; k < SLOW_PARTS; k++)
			u[it->kind].parts_s[k] += (double)it->parts_s[k];
	}
	return u;
}

/* ---- times, as lists ---- */

struct times {
	struct span_s {
		double begin, end;
	} * v;
	size_t n;
};

static void slow_demand_put(struct times *t, double begin, double end)
{
	if (end <= begin)
		return;
	t->v = alloc_room(t->v, t->n, sizeof(*t->v));
	t->v[t->n++] = (struct span_s){begin, end};
}

static int by_begin(const void *a, const void *b)
{
	const struct span_s *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorted, without overlaps. */
static void slow_demand_join(struct times *t)
{
	size_t n = 0;

	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_begin);
	for (size_t i = 0; i < t->n; i++) {
		if (!n || t->v[i].begin > t->v[n - 1].end)
			t->v[n++] = t->v[i];
		else
			t->v[n - 1].end = fmax(t->v[n - 1].end, t->v[i].end);
	}
	t->n = n;
}

/* What of 'all' is not in 'taken'; both joined. */
static struct times without(const struct times *all, const struct times *taken)
{
	struct times out = {0};
	size_t k = 0;

	for (size_t i = 0; i < all->n; i++) {
		double at = all->v[i].begin;

		while (k < taken->n && taken->v[k].end <= at)
			k++;
		for (size_t j = k; j < taken->n && taken->v[j].begin < all->v[i].end; j++) {
			slow_demand_put(&out, at, taken->v[j].begin);
			at = fmax(at, taken->v[j].end);
		}
		slow_demand_put(&out, at, all->v[i].end);
	}
	return out;
}

static void take_all(struct times *taken, const struct times *more)
{
	for (size_t i = 0; i < more->n; i++)
		slow_demand_put(taken, more->v[i].begin, more->v[i].end);
	slow_demand_join(taken);
}

/* ---- seconds ---- */

static double second_begin(const struct slow_demand *d, size_t k)
{
	return k < d->n_before ? d->from_s[SLOW_BEFORE] + (double)k
			       : d->from_s[SLOW_DURING] + (double)(k - d->n_before);
}

/* The seconds of a phase that [begin, end) touches. */
static void touched(const struct slow_demand *d, enum slow_phase p, double begin, double end,
	size_t *first, size_t *last)
{
	const size_t base = p == SLOW_BEFORE ? 0 : d->n_before;
	const size_t n = p == SLOW_BEFORE ? d->n_before : d->n - d->n_before;
	const double from = floor(begin - d->from_s[p]), to = ceil(end - d->from_s[p]);

	*first = base + (size_t)fmin(fmax(from, 0), (double)n);
	*last = base + (size_t)fmin(fmax(to, 0), (double)n);
}

static double overlap(const struct slow_demand *d, size_t k, double begin, double end)
{
	const double from = second_begin(d, k);

	return fmax(0, fmin(end, from + 1) - fmax(begin, from));
}

static void lay_busy(const struct slow_demand *d, const struct times *t, struct slow_second *out)
{
	size_t first, last;

	for (int p = SLOW_BEFORE; p <= SLOW_DURING; p++)
		for (size_t i = 0; i < t->n; i++) {
			const struct span_s *v = &t->v[i];

			touched(d, (enum slow_phase)p, v->begin, v->end, &first, &last);
			for (size_t k = first; k < last; k++)
				out[k].busy_s += overlap(d, k, v->begin, v->end);
		}
}

/* A request, in the seconds that count for it. */
struct stay {
	const struct slow_item *it;
	const struct slow_usual *usual;
	double begin, end, whole; /* whole: its length, also outside of these */
};

/* Those that had ended at the onset count before it; the others from it on, since what they took
 * before it cannot be told from what the fault added. */
static bool stay_of(const struct slow *s, const struct slow_usual *usual,
	const struct slow_item *it, struct stay *out)
{
	const double onset = (double)(s->spec.onset_ns - s->spec.start_ns) * 1e-9;
	const double begin = (double)(it->begin_ns - s->spec.start_ns) * 1e-9;

	*out = (struct stay){
		it, &usual[it->kind], begin, begin + (double)it->total_s, (double)it->total_s};
	if (it->phase > SLOW_DURING || !out->usual->n || out->whole <= 0)
		return false;
	if (out->end > onset)
		out->begin = fmax(begin, onset);
	return true;
}

/* The usual work of a request is spread evenly over the time that it took. */
static void lay_work(const struct slow_demand *d, const struct stay *r, size_t server)
{
	const enum slow_phase p = r->begin < d->from_s[SLOW_DURING] ? SLOW_BEFORE : SLOW_DURING;
	size_t first, last;

	touched(d, p, r->begin, r->end, &first, &last);
	for (size_t k = first; k < last; k++) {
		const double share = overlap(d, k, r->begin, r->end) / r->whole;

		for (size_t l = 0; l < SLOW_LAYERS; l++)
			slow_seconds_of(d, l, server)[k].work_s += share *
				r->usual->parts_s[depth[l]] / (double)r->usual->n;
	}
}

/* When the request was in each layer, but for the disk. */
static void put_layers(const struct slow *s, const struct stay *r, struct times lists[SLOW_LAYERS])
{
	const struct slow_item *it = r->it;
	const double begin = (double)(it->begin_ns - s->spec.start_ns) * 1e-9;
	double at = begin;

	for (int part = SLOW_THERE; part < SLOW_PARTS; part++) {
		const double length = (double)(part == SLOW_WAITING ? it->held_s
								    : it->parts_s[part]);

		if (part == SLOW_QUEUE || part == SLOW_DISK)
			continue; /* in held_s */
		for (size_t l = 0; l < SLOW_LAYERS; l++)
			if (depth[l] == (enum slow_part)part)
				slow_demand_put(&lists[l], fmax(at, r->begin), at + length);
		at += length;
	}
}

static void put_disk(const struct slow *s, uint32_t node, struct times *out)
{
	for (size_t i = 0; i < s->n_disks; i++)
		for (size_t k = 0; s->disks[i].node == node && k < s->disks[i].n; k++) {
			const struct slow_span *v = &s->disks[i].v[k];
			const int64_t zero = s->spec.start_ns + slow_clock_of(s, node, v->begin_ns);

			slow_demand_put(out, (double)(v->begin_ns - zero) * 1e-9,
				(double)(v->end_ns - zero) * 1e-9);
		}
}

static void slow_demand_measure(
	const struct slow *s, struct slow_demand *d, const struct slow_usual *usual, size_t server)
{
	const uint32_t node = s->servers[server].node;
	struct times lists[SLOW_LAYERS] = {0}, taken = {0}, own;
	struct stay r;

	for (size_t i = 0; i < s->n_items; i++) {
		if (s->items[i].node != node || !stay_of(s, usual, &s->items[i], &r))
			continue;
		lay_work(d, &r, server);
		put_layers(s, &r, lists);
	}
	put_disk(s, node, &lists[0]);
	for (size_t l = 0; l < SLOW_LAYERS; l++) {
		slow_demand_join(&lists[l]);
		own = without(&lists[l], &taken);
		lay_busy(d, &own, slow_seconds_of(d, l, server));
		take_all(&taken, &lists[l]);
		free(own.v);
		free(lists[l].v);
	}
	free(taken.v);
	for (size_t l = 0; l < SLOW_LAYERS; l++) /* disjoint, so that they add up */
		for (size_t k = 0; k < d->n; k++) {
			const struct slow_second *v = &slow_seconds_of(d, l, server)[k];
			struct slow_second *whole = &slow_seconds_of(d, SLOW_WHOLE, server)[k];

			whole->busy_s += v->busy_s;
			whole->work_s += v->work_s;
		}
}

static size_t length_of(const struct slow *s, enum slow_phase p)
{
	double from, to;

	slow_phase_ends(s, p, &from, &to);
	return to > from ? (size_t)(to - from) : 0; /* whole ones */
}

void slow_demand_make(const struct slow *s, struct slow_demand *d)
{
	struct slow_usual *usual = slow_usual_of(s, FLOW_NO_NODE);
	double to;

	*d = (struct slow_demand){.n_servers = s->n_servers, .n_before = length_of(s, SLOW_BEFORE)};
	d->n = d->n_before + length_of(s, SLOW_DURING);
	for (int p = SLOW_BEFORE; p <= SLOW_DURING; p++)
		slow_phase_ends(s, (enum slow_phase)p, &d->from_s[p], &to);
	d->all = alloc_zero(SLOW_JUDGED * s->n_servers * d->n + 1, sizeof(*d->all));
	for (size_t i = 0; i < s->n_servers; i++)
		slow_demand_measure(s, d, usual, i);
	free(usual);
}

void slow_demand_clear(struct slow_demand *d)
{
	free(d->all);
	*d = (struct slow_demand){0};
}
