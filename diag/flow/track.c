/*
 * The offset of two clocks over time. Each message bounds it at its moment (clocks.c); of these
 * bounds the tightest of each window of time are kept, from above and from below. Windows become
 * longer as time continues, so that there are TRACK_WINDOWS at most.
 *
 * Rates. The bounds of the windows before a moment leave a convex set of lines, offset plus rate
 * (Duda et al. 1987, there for all of a trace), and so an interval of rates; those behind it leave
 * another. About the moment the rate is taken to lie between the two, and a bound that was found a
 * while ago is so much weaker; the nearest bounds give the interval. Where no line fits, the rate
 * has changed; then all that is assumed is that it is no more than 'drift', which makes intervals
 * wider. Where even that contradicts the bounds, a clock was set: the windows fall apart into runs,
 * and nothing is concluded across. A clock that is set by less than the interval's width is not
 * noticed.
 */
#include "diag/flow/flow_impl.h"

#include <math.h>
#include <stdlib.h>

enum { TRACK_WINDOWS = 128, TRACK_NEAR = 8, TRACK_NEAREST = 3, LOW = 0, HIGH = 1 };

#define FIRST_WINDOW_NS 1000000000
#define NO_RUN UINT8_MAX /* a clock was set within this window */

struct point {
	int64_t at_ns, value_ns;
};

struct window {
	int64_t number; /* at_ns / length */
	struct point p[2];
	bool has[2];
	uint8_t run;
};

struct track {
	int64_t length_ns;
	int64_t begin_ns, end_ns; /* of the last window */
	double rate;              /* so far: which of two bounds is the tighter one */
	uint32_t n, n_steps;
	bool settled;
	struct window w[TRACK_WINDOWS];
	struct flow_step steps[TRACK_WINDOWS]; /* between run i and run i + 1 */
};

/* Hostile logs have any times. */
static double difference(int64_t a, int64_t b)
{
	return (double)a - (double)b;
}

static int64_t in_range(double ns)
{
	const double most = (double)(INT64_MAX / 4);

	return ns > most ? INT64_MAX / 4 : ns < -most ? -(INT64_MAX / 4) : (int64_t)ns;
}

/* ---- edges ---- */

static int64_t track_number_of(const struct track *t, int64_t at_ns)
{
	return at_ns / t->length_ns - (at_ns % t->length_ns < 0);
}

static void keep_tighter(const struct track *t, struct window *w, int kind, const struct point *p)
{
	const struct point *q = &w->p[kind];
	double above = difference(p->value_ns, q->value_ns) -
		t->rate * difference(p->at_ns, q->at_ns);

	if (w->has[kind] && (kind == HIGH ? above >= 0 : above <= 0))
		return;
	w->p[kind] = *p;
	w->has[kind] = true;
}

static void track_make_room(struct track *t)
{
	while (t->n == TRACK_WINDOWS) {
		uint32_t n = 0;

		t->length_ns *= 2;
		for (uint32_t i = 0; i < t->n; i++) {
			const struct window w = t->w[i];
			const int64_t number = track_number_of(t, w.number * (t->length_ns / 2));

			if (!n || t->w[n - 1].number != number)
				t->w[n++] = (struct window){.number = number};
			for (int k = LOW; k <= HIGH; k++)
				if (w.has[k])
					keep_tighter(t, &t->w[n - 1], k, &w.p[k]);
		}
		t->n = n;
	}
}

static double middle(const struct window *w)
{
	return (double)w->p[LOW].value_ns / 2 + (double)w->p[HIGH].value_ns / 2;
}

/* By the last windows that are complete. */
static void guess_rate(struct track *t, double drift)
{
	const struct window *last = NULL, *first = NULL;
	double rate;

	for (uint32_t i = t->n; i-- && t->n - i < 4 * TRACK_NEAR;) {
		if (!t->w[i].has[LOW] || !t->w[i].has[HIGH])
			continue;
		last = last ? last : &t->w[i];
		first = &t->w[i];
	}
	if (first == last)
		return;
	rate = (middle(last) - middle(first)) / difference(last->p[LOW].at_ns, first->p[LOW].at_ns);
	if (fabs(rate) <= drift)
		t->rate = rate;
}

/* The window of this number, which may be new. */
static struct window *window_of(struct track *t, int64_t number, double drift)
{
	uint32_t at = t->n;

	while (at && t->w[at - 1].number > number)
		at--;
	if (at && t->w[at - 1].number == number)
		return &t->w[at - 1];
	if (at == t->n)
		guess_rate(t, drift);
	memmove(&t->w[at + 1], &t->w[at], (t->n - at) * sizeof(*t->w));
	t->w[at] = (struct window){.number = number};
	t->n++;
	return &t->w[at];
}

void track_edge(struct track **slot, int64_t at_ns, bool is_low, int64_t value_ns, double drift)
{
	const struct point p = {at_ns, value_ns};
	const int kind = is_low ? LOW : HIGH;
	struct track *t = *slot;

	if (t && at_ns >= t->begin_ns && at_ns < t->end_ns) {
		t->settled = false;
		keep_tighter(t, &t->w[t->n - 1], kind, &p);
		return;
	}
	if (at_ns > INT64_MAX / 2 || at_ns < -(INT64_MAX / 2))
		return;
	if (!t) {
		t = *slot = alloc_zero(1, sizeof(*t));
		t->length_ns = FIRST_WINDOW_NS;
	}
	track_make_room(t);
	t->settled = false;
	keep_tighter(t, window_of(t, track_number_of(t, at_ns), drift), kind, &p);
	t->begin_ns = t->w[t->n - 1].number * t->length_ns;
	t->end_ns = t->begin_ns + t->length_ns;
}

/* ---- runs: between two settings of a clock ---- */

/* Can no clock that diverges by 'drift' at most have been both? */
static bool contradict(const struct window *low, const struct window *high, double drift)
{
	const struct point *l = &low->p[LOW], *h = &high->p[HIGH];

	return low->has[LOW] && high->has[HIGH] &&
		difference(l->value_ns, h->value_ns) > drift * fabs(difference(l->at_ns, h->at_ns));
}

/* The last moment of a run that shows what the new bound contradicts: bounds of the other kind are
 * only weaker after the clock was set. */
static int64_t last_of(const struct track *t, uint32_t before, uint8_t run, int kind)
{
	for (uint32_t i = before; i--;)
		if (t->w[i].run == run && t->w[i].has[kind])
			return t->w[i].p[kind].at_ns;
	return t->w[before].number * t->length_ns;
}

static void add_step(struct track *t, uint8_t *run, bool *any, int64_t from_ns, int64_t to_ns)
{
	struct flow_step *last = t->n_steps ? &t->steps[t->n_steps - 1] : NULL;

	if (last && !*any) { /* nothing held in between: it is the same one */
		last->to_ns = to_ns > last->to_ns ? to_ns : last->to_ns;
		return;
	}
	t->steps[t->n_steps++] = (struct flow_step){.from_ns = from_ns, .to_ns = to_ns};
	++*run;
	*any = false;
}

static void track_settle(struct track *t, double drift)
{
	uint8_t run = 0;
	bool any = false;

	if (t->settled)
		return;
	t->settled = true;
	t->n_steps = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		struct window *w = &t->w[i];
		const int64_t low = w->p[LOW].at_ns, high = w->p[HIGH].at_ns;
		bool up = false, down = false;

		w->run = NO_RUN;
		for (uint32_t k = 0; k < i; k++) {
			up |= t->w[k].run == run && contradict(w, &t->w[k], drift);
			down |= t->w[k].run == run && contradict(&t->w[k], w, drift);
		}
		if (contradict(w, w, drift)) {
			add_step(t, &run, &any, low < high ? low : high, low < high ? high : low);
			continue;
		}
		if (up || down)
			add_step(t, &run, &any, last_of(t, i, run, up ? LOW : HIGH),
				up ? low : high);
		w->run = run;
		any = true;
	}
}

/* ---- the interval at a moment ---- */

struct bounds {
	double at[2][TRACK_WINDOWS], value[2][TRACK_WINDOWS]; /* ns from the moment; ns */
	int n[2];
};

enum towards { BEHIND = 1, AHEAD = 2 };

static void add_bound(struct bounds *b, int kind, const struct point *p, int64_t at_ns)
{
	b->at[kind][b->n[kind]] = difference(p->at_ns, at_ns);
	b->value[kind][b->n[kind]++] = (double)p->value_ns;
}

/* Of each kind the 'most' nearest bounds of the run on these sides of the moment, the window of the
 * moment itself being behind. */
static void track_gather(const struct track *t, uint8_t run, int64_t at_ns, unsigned sides,
	int most, struct bounds *b)
{
	uint32_t middle = 0;

	b->n[LOW] = b->n[HIGH] = 0;
	while (middle < t->n && t->w[middle].number <= track_number_of(t, at_ns))
		middle++;
	for (int kind = LOW; kind <= HIGH; kind++) {
		int left = sides & BEHIND ? most : 0, right = sides & AHEAD ? most : 0;
		uint32_t i;

		for (i = middle; i-- && left;)
			if (t->w[i].run == run && t->w[i].has[kind] && left--)
				add_bound(b, kind, &t->w[i].p[kind], at_ns);
		for (i = middle; i < t->n && right; i++)
			if (t->w[i].run == run && t->w[i].has[kind] && right--)
				add_bound(b, kind, &t->w[i].p[kind], at_ns);
	}
}

struct rates {
	double least, most;
};

/* The rates of the lines that lie below all bounds from above and above all from below. */
static bool rates_of(const struct bounds *b, double drift, struct rates *out)
{
	*out = (struct rates){-drift, drift};
	for (int h = 0; h < b->n[HIGH]; h++)
		for (int l = 0; l < b->n[LOW]; l++) {
			const double dt = b->at[HIGH][h] - b->at[LOW][l],
				     room = b->value[HIGH][h] - b->value[LOW][l];

			if (dt > 0)
				out->most = fmin(out->most, room / dt);
			else if (dt < 0)
				out->least = fmax(out->least, room / dt);
			else if (room < 0)
				return false;
		}
	return out->least <= out->most;
}

/* 1: the rates on one side; 0: there is too little to tell; -1: no line fits. */
static int side_rates(const struct track *t, uint8_t run, int64_t at_ns, enum towards side,
	double drift, struct rates *out)
{
	struct bounds b;

	for (int near = TRACK_NEAR; near >= TRACK_NEAREST; near = near * 2 / 3) {
		track_gather(t, run, at_ns, side, near, &b);
		if (near == TRACK_NEAR && (b.n[LOW] <= near / 2 || b.n[HIGH] <= near / 2))
			return 0;
		if (rates_of(&b, drift, out))
			return 1;
	}
	return -1;
}

/* The rates about this moment: from those before it to those after it, and half as much again on
 * either side. False: no steady rate fits. */
static bool rates_about(
	const struct track *t, uint8_t run, int64_t at_ns, double drift, struct rates *out)
{
	struct rates before = {-drift, drift}, after = before;
	const int left = side_rates(t, run, at_ns, BEHIND, drift, &before),
		  right = side_rates(t, run, at_ns, AHEAD, drift, &after);
	struct bounds b;
	double more;

	*out = (struct rates){-drift, drift};
	if (left < 0 || right < 0)
		return false;
	if (!left && !right) {
		track_gather(t, run, at_ns, BEHIND | AHEAD, TRACK_WINDOWS, &b);
		return rates_of(&b, drift, out);
	}
	before = left ? before : after;
	after = right ? after : before;
	*out = (struct rates){fmin(before.least, after.least), fmax(before.most, after.most)};
	more = (out->most - out->least) / 2;
	*out = (struct rates){fmax(out->least - more, -drift), fmin(out->most + more, drift)};
	return true;
}

/* What the bounds nearest to the moment leave at these rates, which may change within them. */
static bool between(const struct bounds *b, const struct rates *r, struct flow_offset *out)
{
	double low = -INFINITY, high = INFINITY;

	for (int i = 0; i < b->n[LOW]; i++)
		low = fmax(low,
			b->value[LOW][i] - fmax(b->at[LOW][i] * r->least, b->at[LOW][i] * r->most));
	for (int i = 0; i < b->n[HIGH]; i++)
		high = fmin(high,
			b->value[HIGH][i] -
				fmin(b->at[HIGH][i] * r->least, b->at[HIGH][i] * r->most));
	*out = (struct flow_offset){.lowest_ns = in_range(floor(low)),
		.highest_ns = in_range(ceil(high)),
		.least_ppm = r->least * 1e6,
		.most_ppm = r->most * 1e6,
		.hops = 1};
	return low <= high;
}

static bool in_run(
	const struct track *t, uint8_t run, int64_t at_ns, double drift, struct flow_offset *out)
{
	const struct rates any = {-drift, drift};
	struct rates r;
	struct bounds b;

	track_gather(t, run, at_ns, BEHIND | AHEAD, TRACK_NEAREST, &b);
	if (b.n[LOW] && b.n[HIGH] && rates_about(t, run, at_ns, drift, &r) && between(&b, &r, out))
		return true;
	track_gather(t, run, at_ns, BEHIND | AHEAD, TRACK_WINDOWS, &b);
	if (!b.n[LOW] || !b.n[HIGH] || !between(&b, &any, out))
		return false;
	out->doubt = FLOW_DOUBT_RATE;
	return true;
}

bool track_at(struct track *t, int64_t at_ns, double drift, struct flow_offset *out)
{
	struct flow_offset after;
	uint8_t run = 0;
	bool known;

	if (!t)
		return false;
	track_settle(t, drift);
	while (run < t->n_steps && t->steps[run].to_ns < at_ns)
		run++;
	known = in_run(t, run, at_ns, drift, out);
	if (run == t->n_steps || at_ns < t->steps[run].from_ns)
		return known;
	/* A clock was set about now: it is one or the other. */
	if (!in_run(t, run + 1, at_ns, drift, &after))
		return false;
	if (!known)
		*out = after;
	if (after.lowest_ns < out->lowest_ns)
		out->lowest_ns = after.lowest_ns;
	if (after.highest_ns > out->highest_ns)
		out->highest_ns = after.highest_ns;
	out->doubt = FLOW_DOUBT_STEP;
	return true;
}

size_t track_steps(struct track *t, double drift, const struct flow_step **out)
{
	struct flow_offset before, after;

	if (!t)
		return 0;
	track_settle(t, drift);
	for (uint32_t i = 0; i < t->n_steps; i++) {
		struct flow_step *s = &t->steps[i];

		s->known = in_run(t, (uint8_t)i, s->from_ns, drift, &before) &&
			in_run(t, (uint8_t)(i + 1), s->to_ns, drift, &after);
		s->least_ns = s->known ? after.lowest_ns - before.highest_ns : 0;
		s->most_ns = s->known ? after.highest_ns - before.lowest_ns : 0;
	}
	*out = t->steps;
	return t->n_steps;
}

/* ---- kept and given back ---- */

int64_t track_length(const struct track *t)
{
	return t ? t->length_ns : 0;
}

bool track_get(const struct track *t, size_t i, struct track_row *out)
{
	if (!t || i >= t->n)
		return false;
	*out = (struct track_row){.number = t->w[i].number};
	for (int k = LOW; k <= HIGH; k++) {
		out->has[k] = t->w[i].has[k];
		out->at_ns[k] = t->w[i].p[k].at_ns;
		out->value_ns[k] = t->w[i].p[k].value_ns;
	}
	return true;
}

bool track_put(struct track **slot, int64_t length_ns, const struct track_row *row)
{
	struct track *t = *slot;
	struct window *w;

	if (length_ns < FIRST_WINDOW_NS || row->number > INT64_MAX / 2 / length_ns ||
		row->number < -(INT64_MAX / 2 / length_ns))
		return false;
	if (!t) {
		t = *slot = alloc_zero(1, sizeof(*t));
		t->length_ns = length_ns;
	}
	if (t->n == TRACK_WINDOWS || (t->n && t->w[t->n - 1].number >= row->number))
		return false;
	w = &t->w[t->n++];
	w->number = row->number;
	for (int k = LOW; k <= HIGH; k++) {
		w->has[k] = row->has[k];
		w->p[k] = (struct point){row->at_ns[k], row->value_ns[k]};
	}
	return true;
}
