/*
 * Disk calls of threads, until a request takes them: that which the thread answers next, or, by
 * content, one that has ended. By content that may be long after: where a request may have further
 * messages it has ended only when none has come for a while (request.c).
 */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

enum { LOOK = 1024 };
/* A request is known so long after its first record at most (as in request.c: one whose call is not
 * known is given up then). */
#define LAG_NS 10000000000

void disk_alone(struct flow *f, uint32_t node, const struct flow_disk *d, enum flow_reason why)
{
	struct flow_disk one = *d;

	f->counts.reasons[why] += d->class != CALL_OTHER;
	one.how = FLOW_UNBOUND;
	if (!f->rc && f->sink.disk)
		f->rc = f->sink.disk(f->sink.ctx, node, &one, f->error);
}

/* Takes 'n' from 'i' on away, and moves the fewer of those before and behind them. */
static void cut(struct flow *f, struct thread *t, uint32_t i, uint32_t n)
{
	const uint32_t behind = t->n_disks - i - n;

	if (i < behind) {
		if (i)
			memmove(disk_at(t, n), disk_at(t, 0), i * sizeof(*t->disks));
		t->first_disk += n;
	} else if (behind) {
		memmove(disk_at(t, i), disk_at(t, i + n), behind * sizeof(*t->disks));
	}
	t->n_disks -= n;
	f->n_disks -= n;
	if (!t->n_disks)
		t->first_disk = 0;
}

void disks_remove(struct flow *f, struct thread *t, uint32_t i)
{
	cut(f, t, i, 1);
}

/* The oldest 'n' have no request. */
static void disks_forget(struct flow *f, struct thread *t, uint32_t n, enum flow_reason why)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct disk *d = disk_at(t, i);

		disk_alone(f, t->node, &d->pub, d->passed ? FLOW_BEFORE_REQUEST : why);
	}
	if (n)
		cut(f, t, 0, n);
}

/* Forgets those that came before any request which is not over, and then, if there are too many,
 * the older half. */
static void look_through(struct flow *f, struct thread *t)
{
	const int64_t since = (f->eldest ? f->eldest->begun_ns : f->now_ns) - LAG_NS;
	uint32_t n = 0;

	while (n < t->n_disks && disk_at(t, n)->seen_ns < since)
		n++;
	disks_forget(f, t, n, FLOW_NOT_ANSWERING);
	if (f->n_disks >= f->spec.limit && t->n_disks >= LOOK)
		disks_forget(f, t, t->n_disks / 2, FLOW_OVER_LIMIT);
	t->disks_look = t->n_disks < LOOK / 2 ? LOOK : t->n_disks * 2;
}

static void disks_make_room(struct thread *t)
{
	if (t->first_disk >= t->disk_room / 2 && t->first_disk) {
		memmove(t->disks, disk_at(t, 0), t->n_disks * sizeof(*t->disks));
		t->first_disk = 0;
		return;
	}
	t->disk_room = t->disk_room ? t->disk_room * 2 : 8;
	t->disks = alloc_resize(t->disks, t->disk_room, sizeof(*t->disks));
}

void disks_put(struct flow *f, struct thread *t, const struct disk *d)
{
	if (!t->disks_look)
		t->disks_look = LOOK;
	if (t->n_disks >= t->disks_look || (f->n_disks >= f->spec.limit && t->n_disks >= LOOK))
		look_through(f, t);
	if (t->first_disk + t->n_disks == t->disk_room)
		disks_make_room(t);
	*disk_at(t, t->n_disks++) = *d;
	f->n_disks++;
}

void disks_clear(struct flow *f, struct thread *t)
{
	disks_forget(f, t, t->n_disks, FLOW_NOT_ANSWERING);
	free(t->disks);
	t->disks = NULL;
	t->disk_room = 0;
}

/* In the order in which they ended. */
static void put_in_order(struct flow *f, struct thread *t, const struct disk *d)
{
	uint32_t at;

	disks_put(f, t, d);
	for (at = t->n_disks - 1; at && disk_at(t, at - 1)->pub.end_ns > d->pub.end_ns; at--)
		*disk_at(t, at) = *disk_at(t, at - 1);
	*disk_at(t, at) = *d;
}

void disks_return(struct flow *f, uint32_t node, const struct flow_disk *d)
{
	const struct disk one = {.pub = *d, .seen_ns = f->now_ns, .passed = true};

	if (d->class == CALL_READ || d->class == CALL_WRITE)
		put_in_order(f, thread_of(f, node, NO_THREAD), &one);
	else
		disk_alone(f, node, d, FLOW_BEFORE_REQUEST);
}

void disks_bequeath(struct flow *f, struct thread *t, struct thread *heir)
{
	for (uint32_t i = 0; i < t->n_disks; i++) {
		const struct disk d = *disk_at(t, i);

		if (d.pub.class != CALL_READ && d.pub.class != CALL_WRITE) {
			disk_alone(f, t->node, &d.pub, FLOW_NOT_ANSWERING);
			continue;
		}
		put_in_order(f, heir, &d);
	}
	if (t->n_disks)
		cut(f, t, 0, t->n_disks);
}

uint32_t disks_after(const struct thread *t, int64_t ns)
{
	uint32_t low = 0, high = t->n_disks;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (disk_at(t, mid)->pub.end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- of a thread that sends ---- */

/* Those before a send are side by side; what is before them waits for earlier ones or is passed. */
static uint32_t disks_find(const struct thread *t, uint64_t send, uint32_t *n)
{
	uint32_t first = t->n_disks;

	while (first && disk_at(t, first - 1)->send > send)
		first--;
	*n = 0;
	while (first && disk_at(t, first - 1)->send == send && !disk_at(t, first - 1)->passed) {
		first--;
		++*n;
	}
	return first;
}

/* What began before the request came is of one that another thread has answered, or will. */
void thread_give(struct flow *f, struct thread *t, uint64_t send, struct request *r)
{
	const struct flow_span *received = &r->pub.received;
	uint32_t n, first = disks_find(t, send, &n);

	for (; n && received->how && disk_at(t, first)->pub.begin_ns < received->end_ns; n--)
		disk_at(t, first++)->passed = true;
	if (!n)
		return;
	if (r->pub.n_disks + n > r->disk_room) {
		r->disk_room = (uint32_t)r->pub.n_disks + n;
		r->disks = alloc_resize(r->disks, r->disk_room, sizeof(*r->disks));
	}
	for (uint32_t i = 0; i < n; i++)
		r->disks[r->pub.n_disks++] = disk_at(t, first + i)->pub;
	cut(f, t, first, n);
}

void thread_defer(struct thread *t, uint64_t send)
{
	uint32_t n, first = disks_find(t, send, &n);

	for (uint32_t i = 0; i < n; i++)
		disk_at(t, first + i)->send++;
}

void thread_drop(struct flow *f, struct thread *t, uint64_t send, enum flow_reason why)
{
	uint32_t n, first = disks_find(t, send, &n);

	for (uint32_t i = 0; i < n; i++)
		disk_alone(f, t->node, &disk_at(t, first + i)->pub, why);
	if (n)
		cut(f, t, first, n);
}
