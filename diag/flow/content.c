/*
 * Disk calls of servers whose threads do not answer themselves: by content. A request may take a
 * call that lies between its receipt and its answer and moves as many bytes as its messages carry,
 * if no other call fits it, and no other request fits the call.
 */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

enum { HEADERS = 512 /* bytes of a message that are no data, at most */ };

bool content_carries(uint64_t message_bytes, uint32_t messages, int64_t data)
{
	return message_bytes >= (uint64_t)data &&
		message_bytes - (uint64_t)data <= (uint64_t)HEADERS * messages;
}

/* A request that is not over yet may still get more bytes. */
static bool may_take(const struct flow_request *r, const struct flow_disk *d, bool over)
{
	if (d->result <= 0 || !r->received.how || d->begin_ns < r->received.end_ns)
		return false;
	if (over && (!r->answered.how || d->end_ns > r->answered.begin_ns))
		return false;
	if (!over)
		return true;
	return d->class == CALL_WRITE
		? content_carries(r->call_bytes, r->call_messages, d->result)
		: content_carries(r->answer_bytes, r->answer_messages, d->result);
}

static bool has_data(const struct request *r)
{
	for (size_t i = 0; i < r->pub.n_disks; i++)
		if (r->disks[i].class == CALL_READ || r->disks[i].class == CALL_WRITE)
			return true;
	return false;
}

/* Could another request have caused it? Of those that have ended, only one without a call of its
 * own. */
static bool has_rival(const struct flow *f, const struct request *r, const struct flow_disk *d)
{
	for (const struct request *q = f->youngest; q; q = q->elder)
		if (q != r && q->half->side[RECEIVED].node == r->pub.server && q->has_call &&
			may_take(&q->pub, d, q->undecided))
			return true;
	return false;
}

static void content_take(struct flow *f, struct thread *t, uint32_t at, struct request *r)
{
	r->disks = alloc_resize(r->disks, r->pub.n_disks + 1, sizeof(*r->disks));
	r->disk_room = (uint32_t)r->pub.n_disks + 1;
	r->disks[r->pub.n_disks] = disk_at(t, at)->pub;
	r->disks[r->pub.n_disks++].how = FLOW_CONTENT;
	r->pub.disks = r->disks;
	f->counts.disk_content++;
	disks_remove(f, t, at);
}

bool content_may_have(const struct request *r)
{
	const struct flow_request *p = &r->pub;

	return p->server != FLOW_NO_NODE && p->received.how && p->answered.how &&
		(p->call_bytes > HEADERS || p->answer_bytes > HEADERS) && !has_data(r);
}

void content_disks(struct flow *f, struct request *r)
{
	const struct flow_request *p = &r->pub;
	struct thread *thread = NULL;
	uint32_t at = 0, n = 0;
	bool doubtful = false;
	struct flow_node *node;

	node = &f->nodes[p->server];
	for (size_t k = 0; k < map_room(&node->threads); k++) {
		struct thread *t = thread_at(&node->threads, k);

		for (uint32_t i = t ? disks_after(t, p->answered.begin_ns) : 0; i-- > 0;) {
			struct disk *d = disk_at(t, i);

			if (d->pub.end_ns <= p->received.end_ns)
				break;
			if ((d->pub.class != CALL_READ && d->pub.class != CALL_WRITE) ||
				!may_take(p, &d->pub, true))
				continue;
			doubtful = doubtful || d->doubtful || n || has_rival(f, r, &d->pub);
			d->doubtful = true; /* unless it is taken now */
			thread = t;
			at = i;
			n++;
		}
	}
	if (n == 1 && !doubtful)
		content_take(f, thread, at, r);
	else if (n)
		f->counts.reasons[FLOW_SEVERAL_FIT]++;
}
