/*
 * Offsets between the nodes' clocks. A receive ends after the send of its bytes began, whatever the
 * clocks say. With o the offset of a clock from true time:
 *
 *     received - o(to) >= sent - o(from)
 *
 * so messages from a to b bound o(b) - o(a) from above, and those from b to a from below. Two
 * clocks may diverge by 'drift_ppm': a bound that was found some time ago is so much weaker. Bounds
 * over other nodes add up. That is what is known while logs are read; afterwards, track.c says what
 * all messages together tell of a moment.
 */
#include "diag/flow/flow_impl.h"

#include <math.h>
#include <stdlib.h>

/* Hostile logs have any times: what would be larger is half of the largest, so that the difference
 * of two is still a number. */
static int64_t sum(int64_t a, int64_t b)
{
	int64_t out;

	if (__builtin_add_overflow(a, b, &out))
		return a > 0 ? INT64_MAX / 2 : -(INT64_MAX / 2);
	return out > INT64_MAX / 2       ? INT64_MAX / 2
		: out < -(INT64_MAX / 2) ? -(INT64_MAX / 2)
					 : out;
}

static int64_t difference(int64_t a, int64_t b)
{
	return sum(a, b == INT64_MIN ? INT64_MAX : -b);
}

static int64_t widened(const struct flow *f, int64_t at_ns, int64_t then_ns)
{
	return (int64_t)(fabs((double)at_ns - (double)then_ns) * f->spec.drift_ppm * 1e-6);
}

/* a < b */
static bool direct(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, int64_t *low, int64_t *high)
{
	const struct pair *p = &f->pairs[a * f->n_nodes + b];

	if (!p->has_low || !p->has_high)
		return false;
	*low = difference(p->low_ns, widened(f, at_ns, p->at_low_ns));
	*high = sum(p->high_ns, widened(f, at_ns, p->at_high_ns));
	return true;
}

static void narrow(
	struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, bool is_low, int64_t value)
{
	struct pair *p = &f->pairs[a * f->n_nodes + b];
	int64_t low, high;

	track_edge(&p->track, at_ns, is_low, value, f->spec.drift_ppm * 1e-6);
	if (is_low &&
		(!p->has_low || value >= difference(p->low_ns, widened(f, at_ns, p->at_low_ns)))) {
		p->has_low = true;
		p->low_ns = value;
		p->at_low_ns = at_ns;
	} else if (!is_low &&
		(!p->has_high || value <= sum(p->high_ns, widened(f, at_ns, p->at_high_ns)))) {
		p->has_high = true;
		p->high_ns = value;
		p->at_high_ns = at_ns;
	} else {
		return;
	}
	if (!direct(f, a, b, at_ns, &low, &high))
		return;
	if (low > high) { /* a clock was set: only what is new holds */
		f->counts.clock_steps++;
		*(is_low ? &p->has_high : &p->has_low) = false;
		p->narrowest_ns = 0;
	} else if (!p->narrowest_ns || high - low < p->narrowest_ns) {
		p->narrowest_ns = high - low;
	}
}

void clock_edge(struct flow *f, uint32_t from, uint32_t to, int64_t sent_ns, int64_t received_ns)
{
	if (from == to || from == FLOW_NO_NODE || to == FLOW_NO_NODE)
		return;
	if (from < to)
		narrow(f, from, to, sent_ns, false, difference(received_ns, sent_ns));
	else
		narrow(f, to, from, received_ns, true, difference(sent_ns, received_ns));
}

/* The way from 'a' to all nodes whose intervals are narrowest in sum: arrays of n_nodes. */
struct ways {
	bool tracked; /* by the pairs' tracks; else by what was known when it was asked */
	bool *reached, *done;
	struct flow_offset *to;
};

static bool clocks_step(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, int64_t *low, int64_t *high)
{
	const struct pair *p;
	int64_t l, h;

	if (a < b)
		return direct(f, a, b, at_ns, low, high);
	p = &f->pairs[b * f->n_nodes + a]; /* its moments are of b's clock */
	if (!direct(f, b, a, difference(at_ns, p->low_ns / 2 + p->high_ns / 2), &l, &h))
		return false;
	*low = -h;
	*high = -l;
	return true;
}

static double width(const struct flow_offset *o)
{
	return (double)o->highest_ns - (double)o->lowest_ns;
}

static int64_t middle_of(const struct flow_offset *o)
{
	return o->lowest_ns / 2 + o->highest_ns / 2;
}

/* As 'step', by messages before and after the moment. */
static bool tracked_step(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, struct flow_offset *out)
{
	const double drift = f->spec.drift_ppm * 1e-6;
	struct track *t = f->pairs[a < b ? a * f->n_nodes + b : b * f->n_nodes + a].track;
	struct flow_offset o = {0};

	if (a < b)
		return track_at(t, at_ns, drift, out);
	/* The track's moments are of b's clock, which is what is asked for: two better guesses. */
	for (int i = 0; i < 3; i++)
		if (!track_at(t, sum(at_ns, -middle_of(&o)), drift, &o))
			return false;
	*out = (struct flow_offset){.lowest_ns = -o.highest_ns,
		.highest_ns = -o.lowest_ns,
		.least_ppm = -o.most_ppm,
		.most_ppm = -o.least_ppm,
		.doubt = o.doubt,
		.hops = o.hops};
	return true;
}

static bool any_step(const struct flow *f, const struct ways *w, uint32_t a, uint32_t b,
	int64_t at_ns, struct flow_offset *out)
{
	*out = (struct flow_offset){.hops = 1};
	return w->tracked ? tracked_step(f, a, b, at_ns, out)
			  : clocks_step(f, a, b, at_ns, &out->lowest_ns, &out->highest_ns);
}

static void widen_from(const struct flow *f, struct ways *w, uint32_t at, int64_t at_ns)
{
	const struct flow_offset *here = &w->to[at];
	struct flow_offset o;

	for (uint32_t b = 0; b < f->n_nodes; b++) {
		if (w->done[b] || !any_step(f, w, at, b, sum(at_ns, middle_of(here)), &o))
			continue;
		if (w->reached[b] && width(&o) + width(here) >= width(&w->to[b]))
			continue;
		w->reached[b] = true;
		w->to[b] = (struct flow_offset){.lowest_ns = sum(o.lowest_ns, here->lowest_ns),
			.highest_ns = sum(o.highest_ns, here->highest_ns),
			.least_ppm = here->hops ? 0 : o.least_ppm,
			.most_ppm = here->hops ? 0 : o.most_ppm,
			.doubt = o.doubt > here->doubt ? o.doubt : here->doubt,
			.hops = here->hops + 1};
	}
}

static void ways_from(const struct flow *f, uint32_t a, int64_t at_ns, bool tracked, struct ways *w)
{
	size_t n = f->n_nodes;
	uint32_t next;

	*w = (struct ways){tracked, alloc_zero(n, sizeof(bool)), alloc_zero(n, sizeof(bool)),
		alloc_zero(n, sizeof(struct flow_offset))};
	w->reached[a] = true;
	for (;;) {
		next = FLOW_NO_NODE;
		for (uint32_t b = 0; b < n; b++)
			if (w->reached[b] && !w->done[b] &&
				(next == FLOW_NO_NODE || width(&w->to[b]) < width(&w->to[next])))
				next = b;
		if (next == FLOW_NO_NODE)
			return;
		w->done[next] = true;
		widen_from(f, w, next, at_ns);
	}
}

static void ways_clear(struct ways *w)
{
	free(w->reached);
	free(w->done);
	free(w->to);
}

bool clock_pair(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, int64_t *low, int64_t *high)
{
	struct ways w;
	bool found;

	if (clocks_step(f, a, b, at_ns, low, high))
		return true;
	ways_from(f, a, at_ns, false, &w);
	found = w.reached[b];
	*low = w.to[b].lowest_ns;
	*high = w.to[b].highest_ns;
	ways_clear(&w);
	return found;
}

static bool is_pair(const struct flow *f, uint32_t a, uint32_t b)
{
	return a < f->n_nodes && b < f->n_nodes && a != b && f->pairs;
}

bool flow_clock(const struct flow *f, uint32_t a, uint32_t b, struct flow_clock *out)
{
	const struct pair *p;
	struct ways w;
	bool found;

	if (!is_pair(f, a, b))
		return false;
	ways_from(f, a, f->now_ns + f->nodes[a].hint_ns, false, &w);
	found = w.reached[b];
	p = &f->pairs[a < b ? a * f->n_nodes + b : b * f->n_nodes + a];
	if (found)
		*out = (struct flow_clock){.lowest_ns = w.to[b].lowest_ns,
			.highest_ns = w.to[b].highest_ns,
			.narrowest_ns = w.to[b].hops == 1 ? p->narrowest_ns
							  : (int64_t)width(&w.to[b]),
			.hops = w.to[b].hops};
	ways_clear(&w);
	return found;
}

void flow_clocks_at(
	const struct flow *f, uint32_t a, int64_t at_ns, struct flow_offset *out, bool *known)
{
	struct ways w;

	memset(out, 0, f->n_nodes * sizeof(*out));
	memset(known, 0, f->n_nodes * sizeof(*known));
	if (a >= f->n_nodes || !f->pairs)
		return;
	ways_from(f, a, at_ns, true, &w);
	memcpy(out, w.to, f->n_nodes * sizeof(*out));
	memcpy(known, w.reached, f->n_nodes * sizeof(*known));
	ways_clear(&w);
}

bool flow_clock_at(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, struct flow_offset *out)
{
	struct ways w;
	bool found;

	if (!is_pair(f, a, b))
		return false;
	ways_from(f, a, at_ns, true, &w);
	found = w.reached[b];
	if (found)
		*out = w.to[b];
	ways_clear(&w);
	return found;
}

size_t flow_clock_steps(const struct flow *f, uint32_t a, uint32_t b, const struct flow_step **out)
{
	if (!is_pair(f, a, b) || a > b)
		return 0;
	return track_steps(f->pairs[a * f->n_nodes + b].track, f->spec.drift_ppm * 1e-6, out);
}

enum { MOMENTS = 33 };

bool flow_clock_over(const struct flow *f, uint32_t a, uint32_t b, int64_t from_ns, int64_t to_ns,
	struct flow_clock_summary *out)
{
	struct flow_offset o, first = {0}, last = {0};
	int64_t first_ns = 0, last_ns = 0;

	*out = (struct flow_clock_summary){.narrowest_ns = INT64_MAX / 2};
	for (int i = 0; i < MOMENTS; i++) {
		const int64_t at = from_ns + (to_ns - from_ns) / (MOMENTS - 1) * i;

		if (!flow_clock_at(f, a, b, at, &o))
			continue;
		first = out->moments ? first : o;
		first_ns = out->moments ? first_ns : at;
		last = o;
		last_ns = at;
		out->moments++;
		out->rate += o.doubt == FLOW_DOUBT_RATE;
		out->step += o.doubt == FLOW_DOUBT_STEP;
		out->hops = o.hops > out->hops ? o.hops : out->hops;
		if (o.doubt)
			continue;
		out->narrowest_ns = (int64_t)fmin(width(&o), (double)out->narrowest_ns);
		out->widest_ns = (int64_t)fmax(width(&o), (double)out->widest_ns);
	}
	if (out->narrowest_ns == INT64_MAX / 2)
		out->narrowest_ns = 0;
	if (last_ns > first_ns) {
		out->least_ppm = ((double)last.lowest_ns - (double)first.highest_ns) /
			(double)(last_ns - first_ns) * 1e6;
		out->most_ppm = ((double)last.highest_ns - (double)first.lowest_ns) /
			(double)(last_ns - first_ns) * 1e6;
	}
	return out->moments;
}

void clocks_update(struct flow *f)
{
	struct ways w;

	ways_from(f, 0, f->now_ns + f->nodes[0].hint_ns, false, &w);
	for (uint32_t b = 1; b < f->n_nodes; b++)
		if (w.reached[b])
			f->nodes[b].hint_ns = sum(f->nodes[0].hint_ns, middle_of(&w.to[b]));
	ways_clear(&w);
}
