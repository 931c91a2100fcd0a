/*
 * In-flight depth: spans summed by layer, node and second. The sum of the parts of spans that lie
 * in a second, divided by it, is the time-average of how many were in flight.
 */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

#define SECOND_NS 1000000000

static struct bin *bin_at(const struct flow *f, size_t layer, uint32_t node, int32_t second)
{
	return &f->bins[((size_t)second * f->spec.protocol->n_layers + layer) * f->n_nodes + node];
}

static void depth_make_room(struct flow *f, int32_t seconds)
{
	size_t one = f->spec.protocol->n_layers * f->n_nodes;

	f->bins = alloc_resize(f->bins, (size_t)seconds * one, sizeof(*f->bins));
	memset(f->bins + (size_t)f->n_seconds * one, 0,
		(size_t)(seconds - f->n_seconds) * one * sizeof(*f->bins));
	f->n_seconds = seconds;
}

static void depth_add(struct flow *f, size_t layer, uint32_t node, int64_t begin, int64_t end)
{
	const int64_t until = (int64_t)f->spec.seconds * SECOND_NS;
	int64_t from = begin < 0 ? 0 : begin, next;

	if (end > until)
		end = until;
	if (from >= end || node >= f->n_nodes)
		return;
	if ((end - 1) / SECOND_NS >= f->n_seconds)
		depth_make_room(f, (int32_t)((end - 1) / SECOND_NS) + 1);
	if (begin >= 0)
		bin_at(f, layer, node, (int32_t)(begin / SECOND_NS))->entered++;
	for (; from < end; from = next) {
		next = (from / SECOND_NS + 1) * SECOND_NS;
		bin_at(f, layer, node, (int32_t)(from / SECOND_NS))
			->busy_s += (double)((next < end ? next : end) - from) / SECOND_NS;
	}
}

void depth_span(
	struct flow *f, enum flow_source source, uint32_t node, int64_t begin_ns, int64_t end_ns)
{
	const struct flow_protocol *p = f->spec.protocol;
	int64_t back;

	if (!p || node >= f->n_nodes)
		return;
	back = f->nodes[node].hint_ns - f->nodes[0].hint_ns + f->spec.start_ns;
	for (size_t i = 0; i < p->n_layers; i++)
		if (p->layers[i].source == source)
			depth_add(f, i, node, begin_ns - back, end_ns - back);
}

/* What lies between the disk calls, up to the last one. */
static void waiting(struct flow *f, const struct flow_request *r)
{
	int64_t from = r->received.end_ns;

	for (size_t i = 0; i < r->n_disks; i++) {
		if (r->disks[i].begin_ns > from)
			depth_span(f, LAYER_WAITING, r->server, from, r->disks[i].begin_ns);
		if (r->disks[i].end_ns > from)
			from = r->disks[i].end_ns;
	}
	if (!r->n_disks)
		depth_span(f, LAYER_WAITING, r->server, from, r->answered.begin_ns);
}

void depth_request(struct flow *f, const struct flow_request *r)
{
	if (r->sent.how && r->returned.how)
		depth_span(f, LAYER_CALL, r->client, r->sent.begin_ns, r->returned.end_ns);
	if (!r->received.how || !r->answered.how)
		return;
	depth_span(f, LAYER_REQUEST, r->server, r->received.end_ns, r->answered.end_ns);
	waiting(f, r);
	if (r->call_messages + r->answer_messages > 2)
		depth_span(f, LAYER_DATA, r->server, r->received.end_ns, r->answered.end_ns);
}

void depth_message(struct flow *f, const struct half *h, const struct flow_message *m)
{
	const bool to_server = !m->request || h == m->request->half;
	const uint32_t from = h->side[SENT].node, to = h->side[RECEIVED].node;
	int64_t shift;

	if (!m->legs[SENT].calls || !m->legs[RECEIVED].calls || from == FLOW_NO_NODE ||
		to == FLOW_NO_NODE)
		return;
	/* Both ends on one clock. */
	shift = f->nodes[to].hint_ns - f->nodes[from].hint_ns;
	if (to_server)
		depth_span(f, LAYER_WIRE, to, m->legs[SENT].begin_ns + shift,
			m->legs[RECEIVED].end_ns);
	else
		depth_span(f, LAYER_WIRE, from, m->legs[SENT].begin_ns,
			m->legs[RECEIVED].end_ns - shift);
}

size_t flow_layers(const struct flow *f)
{
	return f->spec.protocol ? f->spec.protocol->n_layers : 0;
}

const char *flow_layer_name(const struct flow *f, size_t layer)
{
	return layer < flow_layers(f) ? f->spec.protocol->layers[layer].name : NULL;
}

int32_t flow_seconds(const struct flow *f)
{
	return f->n_seconds;
}

struct flow_depth flow_depth(const struct flow *f, size_t layer, uint32_t node, int32_t second)
{
	const struct bin *b;

	if (layer >= flow_layers(f) || node >= f->n_nodes || second < 0 || second >= f->n_seconds)
		return (struct flow_depth){0};
	b = bin_at(f, layer, node, second);
	return (struct flow_depth){.average = b->busy_s, .entered = b->entered};
}

void flow_depth_total(
	const struct flow *f, size_t layer, uint32_t node, double *average, double *per_request_s)
{
	double busy = 0, entered = 0;
	struct flow_depth d;

	for (int32_t s = 0; s < f->n_seconds; s++) {
		d = flow_depth(f, layer, node, s);
		busy += d.average;
		entered += d.entered;
	}
	*average = f->n_seconds ? busy / f->n_seconds : 0;
	*per_request_s = entered > 0 ? busy / entered : 0;
}
