/* Aligns the nodes' clocks to one axis, within the bounds set by messages between them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/timeline/cell_impl.h"

void cell_note(struct filling *c, const char *term, const char *fmt, ...)
{
	char text[1024], named[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(named, sizeof(named), "cell %lld, %s", (long long)jget_int(c->row, "cell"), term);
	timeline_note(c->t, c->o->several ? named : term, text);
}

/* ---- shifts ---- */

int64_t cell_ahead(const struct cell_node *n, int64_t raw_ns)
{
	const struct cell_knot *k = n->knots;
	size_t low = 0, high = n->n_knots - 1, mid;
	double part;

	if (raw_ns <= k[low].raw_ns || !high)
		return k[low].ahead_ns;
	if (raw_ns >= k[high].raw_ns)
		return k[high].ahead_ns;
	while (high - low > 1) {
		mid = (low + high) / 2;
		*(k[mid].raw_ns <= raw_ns ? &low : &high) = mid;
	}
	part = ((double)raw_ns - (double)k[low].raw_ns) /
		((double)k[high].raw_ns - (double)k[low].raw_ns);
	return k[low].ahead_ns +
		(int64_t)(part * (double)cell_difference(k[high].ahead_ns, k[low].ahead_ns));
}

bool cell_doubts(const struct cell_node *n, int64_t raw_ns)
{
	size_t i = 0;

	if (!n->bounded)
		return true;
	while (i + 1 < n->n_knots && n->knots[i + 1].raw_ns <= raw_ns)
		i++;
	return n->knots[i].doubtful || (i + 1 < n->n_knots && n->knots[i + 1].doubtful);
}

static void move_all(struct cell_node *n, int64_t ahead_ns)
{
	n->knots = alloc_zero(1, sizeof(*n->knots));
	n->knots[0].ahead_ns = ahead_ns;
	n->n_knots = 1;
}

/* ---- the reference ---- */

/* The node from which most others are known best, at a moment of the orchestrator's clock. */
static uint32_t cell_clocks_choose(
	const struct filling *c, const struct flow *f, int64_t at_ns, uint32_t *most)
{
	const uint32_t n = (uint32_t)flow_nodes(f);
	struct flow_offset *to = alloc_zero(n, sizeof(*to));
	bool *known = alloc_zero(n, sizeof(*known));
	double least = 0, width;
	uint32_t best = 0, reached;

	*most = 0;
	for (uint32_t i = 0; i < n; i++) {
		flow_clocks_at(f, i, at_ns + c->nodes[i].place->offset_ns, to, known);
		width = 0;
		reached = 0;
		for (uint32_t k = 0; k < n; k++) {
			if (k == i || !known[k])
				continue;
			width += (double)to[k].highest_ns - (double)to[k].lowest_ns;
			reached++;
		}
		if (reached > *most || (reached == *most && reached && width < least)) {
			best = i;
			*most = reached;
			least = width;
		}
	}
	free(to);
	free(known);
	return best;
}

/* ---- one node ---- */

enum { KNOTS = 33 };

/* The time range of the logs, on the reference's clock. */
struct span {
	const struct flow *f;
	uint32_t reference;
	int64_t from_ns, to_ns;
	int64_t measured_ns; /* the reference's clock minus the orchestrator's */
};

static int by_time(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int by_raw(const void *a, const void *b)
{
	const struct cell_knot *x = a, *y = b;

	return (x->raw_ns > y->raw_ns) - (x->raw_ns < y->raw_ns);
}

/* Steps of the node's clock against the reference's; 'of' is the clock of their times. */
static size_t steps_of(const struct span *s, uint32_t i, const struct flow_step **out, uint32_t *of)
{
	*of = i < s->reference ? i : s->reference;
	return flow_clock_steps(s->f, *of, i < s->reference ? s->reference : i, out);
}

/* Moments on the reference's clock: evenly spaced, and just before and after each step. */
static size_t moments(const struct span *s, uint32_t i, int64_t **out)
{
	const struct flow_step *steps;
	uint32_t of;
	const size_t n_steps = steps_of(s, i, &steps, &of);
	int64_t *list = alloc_zero(KNOTS + 2 * n_steps, sizeof(*list));
	struct flow_offset o;
	size_t n = 0;

	for (int k = 0; k < KNOTS; k++)
		list[n++] = s->from_ns + (s->to_ns - s->from_ns) / (KNOTS - 1) * k;
	for (size_t k = 0; k < 2 * n_steps; k++) {
		int64_t at = k & 1 ? steps[k / 2].to_ns + 1 : steps[k / 2].from_ns - 1;

		if (of == i && !flow_clock_at(s->f, i, s->reference, at, &o))
			continue;
		if (of == i)
			at += o.lowest_ns / 2 + o.highest_ns / 2;
		if (at > s->from_ns && at < s->to_ns)
			list[n++] = at;
	}
	qsort(list, n, sizeof(*list), by_time);
	*out = list;
	return n;
}

static void find_knots(const struct span *s, struct cell_node *n, uint32_t i)
{
	auto_free int64_t *at = NULL;
	const size_t most = moments(s, i, &at);
	struct flow_offset o;

	n->knots = alloc_zero(most + 1, sizeof(*n->knots));
	for (size_t k = 0; k < most; k++) {
		int64_t middle;

		if (!flow_clock_at(s->f, s->reference, i, at[k], &o))
			continue;
		middle = o.lowest_ns / 2 + o.highest_ns / 2;
		n->knots[n->n_knots++] = (struct cell_knot){
			at[k] + middle, s->measured_ns + middle, o.doubt != FLOW_DOUBT_NONE};
	}
	qsort(n->knots, n->n_knots, sizeof(*n->knots), by_raw);
}

static void tell_steps(struct filling *c, const struct span *s, uint32_t i, const char *term)
{
	const struct flow_step *steps;
	uint32_t of;
	const size_t n = steps_of(s, i, &steps, &of);
	const double sign = of == i ? -1e-9 : 1e-9;
	char by[96];

	for (size_t k = 0; k < n; k++) {
		const int64_t start = c->start_ns + c->nodes[of].place->offset_ns;

		snprintf(by, sizeof(by), "an unknown amount");
		if (steps[k].known)
			snprintf(by, sizeof(by), "%+.6f s",
				sign * (double)(steps[k].least_ns / 2 + steps[k].most_ns / 2));
		cell_note(c, term,
			"its clock, or that of %s, was set between %.3f s and %.3f s after the "
			"start: it then was %s ahead; times in between are doubtful",
			c->nodes[s->reference].name,
			(double)cell_difference(steps[k].from_ns, start) / 1e9,
			(double)cell_difference(steps[k].to_ns, start) / 1e9, by);
	}
}

static void move(struct filling *c, const struct span *s, uint32_t i)
{
	struct cell_node *n = &c->nodes[i];
	struct flow_clock_summary over;
	char term[96], doubt[160] = "";

	snprintf(term, sizeof(term), "clock of %s", n->name);
	find_knots(s, n, i);
	if (!n->n_knots) {
		free(n->knots);
		move_all(n, n->place->offset_ns);
		cell_note(c, term,
			"%.6f s ahead of the orchestrator, as measured over SSH; no messages went "
			"both ways, so comparing its times with other nodes is doubtful",
			(double)n->place->offset_ns / 1e9);
		return;
	}
	n->bounded = true;
	flow_clock_over(s->f, s->reference, i, s->from_ns, s->to_ns, &over);
	if (over.rate + over.step)
		snprintf(doubt, sizeof(doubt),
			"; at %u of %u moments it is doubtful (%u: no steady rate fits, %u: it was "
			"set)",
			over.rate + over.step, over.moments, over.rate, over.step);
	cell_note(c, term,
		"%.3f ms ahead of %s by messages at the start, %.3f ms at the end, gaining %.2f to "
		"%.2f ppm (width %.3f ms, at most %.3f ms%s); raw times are moved by %.3f ms to "
		"%.3f ms%s",
		(double)(n->knots[0].ahead_ns - s->measured_ns) / 1e6, c->nodes[s->reference].name,
		(double)(n->knots[n->n_knots - 1].ahead_ns - s->measured_ns) / 1e6, over.least_ppm,
		over.most_ppm, (double)over.narrowest_ns / 1e6, (double)over.widest_ns / 1e6,
		over.hops > 1 ? ", over other nodes" : "", (double)-n->knots[0].ahead_ns / 1e6,
		(double)-n->knots[n->n_knots - 1].ahead_ns / 1e6, doubt);
	tell_steps(c, s, i, term);
}

static void as_measured(struct filling *c, uint32_t from)
{
	for (uint32_t i = from; i < c->n_nodes; i++)
		move_all(&c->nodes[i], c->nodes[i].place->offset_ns);
}

void cell_clocks(struct filling *c)
{
	const struct flow *f = flows_flow(c->flows);
	const int64_t end_ns = c->start_ns + jget_int(c->row, "seconds") * 1000000000;
	const int64_t from_ns = c->start_ns + (int64_t)(c->logs_from_s * 1e9);
	const int64_t to_ns = c->logs_to_s > 0 ? c->start_ns + (int64_t)(c->logs_to_s * 1e9)
					       : end_ns;
	struct span s = {.f = f};
	uint32_t reached;

	s.reference = cell_clocks_choose(c, f, from_ns / 2 + to_ns / 2, &reached);
	if (!reached) {
		as_measured(c, 0);
		for (uint32_t i = 0; i < c->n_nodes; i++)
			c->nodes[i].bounded = true; /* no message contradicts the drawing */
		cell_note(c, "clocks",
			"as the run measured them over SSH; the logs hold no messages to compare "
			"them by");
		return;
	}
	s.measured_ns = c->nodes[s.reference].place->offset_ns;
	s.from_ns = from_ns + s.measured_ns;
	s.to_ns = to_ns + s.measured_ns;
	cell_note(c, "clocks",
		"the reference is %s, whose messages bound the others best; it is "
		"%.3f ms ahead of the orchestrator, as measured over SSH, and the axis is the "
		"orchestrator's",
		c->nodes[s.reference].name, (double)s.measured_ns / 1e6);
	for (uint32_t i = 0; i < (uint32_t)flow_nodes(f); i++)
		if (i != s.reference)
			move(c, &s, i);
	c->nodes[s.reference].bounded = true;
	move_all(&c->nodes[s.reference], s.measured_ns);
	as_measured(c, (uint32_t)flow_nodes(f));
}
