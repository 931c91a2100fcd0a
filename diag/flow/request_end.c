/*
 * The end of a request: what is its own, what caused it, how long its parts took; then it goes to
 * the sink, or waits for its FUSE request.
 */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

/* What the last call of a kind moved is all that the messages carry: then those before it are of a
 * request that was answered by another thread (since a socket was full, and it did not wait). */
static size_t first_of_own(const struct request *r, enum call_class class)
{
	const struct flow_request *p = &r->pub;
	const uint64_t bytes = class == CALL_WRITE ? p->call_bytes : p->answer_bytes;
	const uint32_t messages = class == CALL_WRITE ? p->call_messages : p->answer_messages;
	size_t last = p->n_disks;
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_disks; i++)
		if (r->disks[i].class == class && r->disks[i].result > 0) {
			sum += (uint64_t)r->disks[i].result;
			last = i;
		}
	if (last == p->n_disks || sum <= bytes ||
		!content_carries(bytes, messages, r->disks[last].result))
		return 0;
	return last;
}

/* A disk call that began before the request came is not its own. */
static void check_disks(struct flow *f, struct request *r)
{
	struct flow_request *pub = &r->pub;
	const size_t reads = first_of_own(r, CALL_READ), writes = first_of_own(r, CALL_WRITE);
	size_t kept = 0;

	for (size_t i = 0; i < pub->n_disks; i++) {
		const struct flow_disk *d = &r->disks[i];
		bool data = d->class != CALL_OTHER;

		if ((pub->received.how && d->begin_ns < pub->received.end_ns) ||
			(d->class == CALL_READ && i < reads) ||
			(d->class == CALL_WRITE && i < writes)) {
			disks_return(f, pub->server, d);
			continue;
		}
		*(data ? &f->counts.disk_thread : &f->counts.meta_thread) += 1;
		r->disks[kept++] = *d;
	}
	pub->n_disks = kept;
	pub->disks = r->disks;
}

/* An answer that was known before its call may be that of an earlier one. */
static void check_order(struct flow *f, struct request *r)
{
	struct flow_request *p = &r->pub;
	bool wrong = (p->received.how && p->answered.how &&
			     p->answered.begin_ns < p->received.end_ns) ||
		(p->sent.how && p->returned.how && p->returned.end_ns < p->sent.begin_ns);

	if (!r->joined || !wrong)
		return;
	p->answered = p->returned = (struct flow_span){0};
	p->answer_bytes = p->answer_messages = 0;
	r->has_answer = false;
	f->counts.reasons[FLOW_NO_CALL]++;
}

static void request_end_measure(struct flow *f, struct request *r)
{
	struct flow_request *p = &r->pub;
	struct flow_parts parts;
	int64_t low, high;

	if (p->sent.how && p->received.how && p->answered.how && p->returned.how)
		f->counts.requests_whole++;
	if (p->client == FLOW_NO_NODE || p->server == FLOW_NO_NODE)
		return;
	if (p->client == p->server) {
		p->width_ns = 0;
		return;
	}
	if (!clock_pair(f, p->client, p->server,
		    p->sent.how ? p->sent.begin_ns : p->returned.end_ns, &low, &high))
		return;
	p->offset_ns = low + (high - low) / 2;
	p->width_ns = high - low;
	flow_request_parts(p, &parts);
	p->doubtful = (p->sent.how && p->received.how && parts.there * 2 < p->width_ns) ||
		(p->answered.how && p->returned.how && parts.back * 2 < p->width_ns);
}

static bool is_of_fuse(const struct flow *f, const struct request *r)
{
	return r->pub.client != FLOW_NO_NODE && f->nodes[r->pub.client].has_fuse && r->has_call;
}

/* Once, while the FUSE request is under way or was just now. */
static void look_for_size(struct flow *f, struct request *r)
{
	struct fuse *u;

	if (r->looked || fuse_by_serial(f, r->cause) || !is_of_fuse(f, r))
		return;
	r->looked = true;
	u = fuse_by_size(f, r);
	if (u)
		request_caused(f, r, u, FLOW_CONTENT);
}

/* With its cause, as far as that can be known. */
static void request_end_conclude(struct flow *f, struct request *r)
{
	const bool of_fuse = is_of_fuse(f, r);
	struct fuse *u;

	look_for_size(f, r);
	u = fuse_by_serial(f, r->cause);
	request_let_go(f, r);
	f->counts.client_requests += of_fuse;
	if (u) {
		*(r->pub.fuse_how == FLOW_THREAD ? &f->counts.fuse_thread
						 : &f->counts.fuse_content) += of_fuse;
		fuse_hold(f, u, r);
		return;
	}
	if (of_fuse) {
		r->pub.reasons |= 1u << FLOW_NO_FUSE;
		f->counts.reasons[FLOW_NO_FUSE]++;
	}
	request_emit(f, r, NULL);
}

void request_resolved(struct flow *f, struct request *r, struct fuse *u)
{
	if (u->alone)
		request_caused(f, r, u, FLOW_THREAD);
	request_end_conclude(f, r);
	u->open--;
	fuse_check(f, u);
}

/* Its disk calls are what they are. */
static void decided(struct flow *f, struct request *r)
{
	struct fuse *u;

	*(r->elder ? &r->elder->younger : &f->eldest) = r->younger;
	*(r->younger ? &r->younger->elder : &f->youngest) = r->elder;
	u = fuse_by_serial(f, r->maybe);
	if (!u) {
		request_end_conclude(f, r);
	} else if (u->resolved) {
		request_resolved(f, r, u);
	} else {
		r->next_held = NULL;
		*u->maybes_end = r;
		u->maybes_end = &r->next_held;
	}
}

static bool must_wait(const struct flow *f, const struct request *r)
{
	const struct request *q = f->eldest;

	while (q && q->undecided)
		q = q->younger;
	return q && q->number <= r->wait_for && f->n_undecided < f->spec.limit;
}

void requests_decide(struct flow *f, bool all)
{
	struct request *r;

	while ((r = f->undecided) && (all || !must_wait(f, r))) {
		f->undecided = r->next_undecided;
		f->n_undecided--;
		content_disks(f, r);
		decided(f, r);
	}
}

void request_finish(struct flow *f, struct request *r)
{
	check_order(f, r);
	if (!r->has_answer) {
		r->pub.reasons |= 1u << FLOW_NO_ANSWER;
		f->counts.reasons[FLOW_NO_ANSWER]++;
	}
	if (!r->has_call) {
		r->pub.reasons |= 1u << FLOW_NO_CALL;
		f->counts.reasons[FLOW_NO_CALL]++;
	}
	check_disks(f, r);
	request_end_measure(f, r);
	if (!fuse_by_serial(f, r->maybe))
		look_for_size(f, r);
	if (!content_may_have(r)) {
		decided(f, r);
	} else {
		if (!f->undecided)
			f->undecided_end = &f->undecided;
		*f->undecided_end = r;
		f->undecided_end = &r->next_undecided;
		r->undecided = true;
		f->n_undecided++;
		if (!f->spec.protocol->parts)
			r->wait_for = f->born;
	}
	requests_decide(f, false);
}

void request_emit(struct flow *f, struct request *r, struct fuse *u)
{
	r->pub.fuse = u ? &u->pub : NULL;
	r->pub.number = ++f->done;
	f->counts.requests++;
	depth_request(f, &r->pub);
	if (!f->rc && f->sink.request) {
		r->pub.first_thread = !r->pub.sent.how
			? ""
			: flow_thread_name(f, r->pub.client, r->pub.first_pid, r->pub.first_tid);
		f->rc = f->sink.request(f->sink.ctx, &r->pub, f->error);
	}
	f->n_requests--;
	free(r->disks);
	free(r);
}

/* ---- parts ---- */

static int64_t disk_time(const struct flow_request *r, int64_t *last)
{
	int64_t sum = 0, until = INT64_MIN;

	for (size_t i = 0; i < r->n_disks; i++) {
		const struct flow_disk *d = &r->disks[i];
		int64_t from = d->begin_ns > until ? d->begin_ns : until;

		if (d->end_ns > from)
			sum += d->end_ns - from;
		if (d->end_ns > until)
			until = d->end_ns;
	}
	*last = until;
	return sum;
}

void flow_request_parts(const struct flow_request *r, struct flow_parts *out)
{
	const bool both = r->width_ns >= 0;
	int64_t last;

	*out = (struct flow_parts){-1, -1, -1, -1, -1, -1};
	if (r->sent.how && r->returned.how)
		out->total = r->returned.end_ns - r->sent.begin_ns;
	if (r->sent.how && r->received.how && both)
		out->there = r->received.end_ns - r->offset_ns - r->sent.begin_ns;
	if (r->answered.how && r->returned.how && both)
		out->back = r->returned.end_ns - (r->answered.begin_ns - r->offset_ns);
	if (!r->received.how || !r->answered.how)
		return;
	out->disk = disk_time(r, &last);
	out->answering = r->n_disks ? r->answered.begin_ns - last : 0;
	out->waiting = r->answered.begin_ns - r->received.end_ns - out->disk - out->answering;
}
