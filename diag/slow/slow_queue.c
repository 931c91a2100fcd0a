/*
 * Who waited while a server's disk was busy with others. All disk calls that are bound to requests,
 * of one server, make up the times in which its disk was busy; a request's own calls are taken off.
 */
#include <stdlib.h>

#include "diag/slow/slow_impl.h"

static struct slow_spans *spans_of(struct slow *s, uint32_t node)
{
	for (size_t i = 0; i < s->n_disks; i++)
		if (s->disks[i].node == node)
			return &s->disks[i];
	s->disks = alloc_room(s->disks, s->n_disks, sizeof(*s->disks));
	s->disks[s->n_disks] = (struct slow_spans){.node = node};
	return &s->disks[s->n_disks++];
}

void slow_queue_note(struct slow *s, const struct flow_request *r)
{
	struct slow_spans *d = r->n_disks ? spans_of(s, r->server) : NULL;

	for (size_t i = 0; i < r->n_disks; i++) {
		d->v = alloc_room(d->v, d->n, sizeof(*d->v));
		d->v[d->n++] = (struct slow_span){r->disks[i].begin_ns, r->disks[i].end_ns};
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct slow_span *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static void slow_queue_join(struct slow_spans *d)
{
	size_t n = 0;

	if (d->n)
		qsort(d->v, d->n, sizeof(*d->v), by_begin);
	for (size_t i = 0; i < d->n; i++) {
		if (!n || d->v[i].begin_ns > d->v[n - 1].end_ns)
			d->v[n++] = d->v[i];
		else if (d->v[i].end_ns > d->v[n - 1].end_ns)
			d->v[n - 1].end_ns = d->v[i].end_ns;
	}
	d->n = n;
}

/* Nanoseconds of an interval in which the server's disk was busy. */
static int64_t busy(const struct slow *s, uint32_t node, int64_t from, int64_t to)
{
	const struct slow_spans *d = NULL;
	size_t low = 0, high;
	int64_t sum = 0;

	for (size_t i = 0; i < s->n_disks && !d; i++)
		d = s->disks[i].node == node ? &s->disks[i] : NULL;
	for (high = d ? d->n : 0; low < high;) {
		size_t mid = (low + high) / 2;

		if (d->v[mid].end_ns <= from)
			low = mid + 1;
		else
			high = mid;
	}
	for (; d && low < d->n && d->v[low].begin_ns < to; low++) {
		int64_t a = d->v[low].begin_ns > from ? d->v[low].begin_ns : from;
		int64_t b = d->v[low].end_ns < to ? d->v[low].end_ns : to;

		sum += b - a;
	}
	return sum;
}

/* Of 'waiting' in an interval that also holds 'disk' of the request's own. */
static int64_t queue_of(const struct slow *s, uint32_t node, int64_t from, int64_t held,
	int64_t waiting, int64_t disk)
{
	int64_t q = busy(s, node, from, from + held) - disk;

	return q < 0 ? 0 : q > waiting ? waiting : q;
}

void slow_queue_done(struct slow *s)
{
	for (size_t i = 0; i < s->n_disks; i++)
		slow_queue_join(&s->disks[i]);
	for (size_t i = 0; i < s->n_items; i++) {
		struct slow_item *it = &s->items[i];
		int64_t waiting = (int64_t)((double)it->parts_s[SLOW_WAITING] * 1e9);
		int64_t q = queue_of(s, it->node, it->from_ns, (int64_t)((double)it->held_s * 1e9),
			waiting, (int64_t)((double)it->parts_s[SLOW_DISK] * 1e9));

		it->parts_s[SLOW_QUEUE] = (float)((double)q * 1e-9);
		it->parts_s[SLOW_WAITING] = (float)((double)(waiting - q) * 1e-9);
	}
	for (size_t i = 0; i < s->n_top; i++) {
		struct slow_request *t = &s->top[i];

		t->queue_ns = queue_of(s, t->r.server, t->r.received.end_ns,
			t->parts.waiting + t->parts.disk, t->parts.waiting, t->parts.disk);
	}
}
