/* Which server and layer took the time that a fault added (slow.h says by which rule, and why). */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/slow/slow_impl.h"
#include "harness/base/stat.h"

static const double level = 0.05; /* of false alarms, for all servers and layers together */

/* ---- a server against others ---- */

/* A variance with its degrees of freedom. */
struct variance {
	double v, df;
};

static double df_of(const struct slow_layer *y, const struct slow_rate *r)
{
	return r->n / y->memory_s - 1;
}

/* Has it two seconds in each phase that do not depend on each other? Then it can be tested. */
static bool slow_judge_is_known(const struct slow_layer *y, size_t i)
{
	for (int p = SLOW_BEFORE; p <= (int)y->last; p++)
		if (!y->rates[p][i].seconds || df_of(y, &y->rates[p][i]) < 1)
			return false;
	return true;
}

/* A peer may have less: while all wait for a slow server, the others have little to do. */
static bool is_peer(const struct slow_layer *y, size_t i)
{
	return y->rates[SLOW_BEFORE][i].seconds && y->rates[y->last][i].seconds;
}

/* Of one phase: by how much its demand differs from the usual one. */
static double change_of(const struct slow_layer *y, size_t i)
{
	if (y->last == SLOW_BEFORE)
		return y->rates[SLOW_BEFORE][i].log;
	return y->rates[SLOW_DURING][i].log - y->rates[SLOW_BEFORE][i].log;
}

/* Of a second of some servers in both phases, each weighted by how much is known of it. */
static struct variance pooled(const struct slow_layer *y, const size_t *servers, size_t n)
{
	struct variance out = {0};

	for (int p = SLOW_BEFORE; p <= (int)y->last; p++)
		for (size_t i = 0; i < n; i++) {
			const struct slow_rate *r = &y->rates[p][servers[i]];
			const double df = fmax(0, df_of(y, r));

			out.v += r->s2 * df;
			out.df += df;
		}
	out.v = out.df > 0 ? out.v / out.df : 0;
	return out;
}

/* Seconds within the time for which they depend on each other are one. */
static struct variance of_mean(
	const struct slow_layer *y, const struct slow_rate *r, struct variance second)
{
	second.v *= fmin(1, y->memory_s / r->n);
	return second;
}

/* Cochran's Q: by how much more than their variances say some values differ. */
struct cochran {
	double weights, sum, squares;
	size_t n;
};

static void slow_judge_note(struct cochran *q, double value, double v)
{
	if (v <= 0)
		return;
	q->weights += 1 / v;
	q->sum += value / v;
	q->squares += value * value / v;
	q->n++;
}

/* Adds it, and its degrees of freedom. */
static void slow_judge_conclude(const struct cochran *q, struct variance *sum)
{
	if (q->n < 2)
		return;
	sum->v += q->squares - q->sum * q->sum / q->weights;
	sum->df += (double)(q->n - 1);
}

/* What the peers changed by: their median, the variance of one's second, and of one's change by it,
 * and the factor by which changes of servers differ more than that; at least 1. */
struct peers {
	double middle;
	struct variance second, within, excess;
	size_t n;
};

static void note_halves(
	const struct slow_layer *y, int phase, size_t i, struct variance second, struct cochran *q)
{
	const struct slow_rate *a = &y->halves[phase][0][i], *b = &y->halves[phase][1][i];

	if (a->seconds && b->seconds)
		slow_judge_note(
			q, b->log - a->log, of_mean(y, a, second).v + of_mean(y, b, second).v);
}

/* Three times servers can be compared with each other without the fault's effect: the peers'
 * changes, the halves of the phase before, and the peers' halves of the phase during. */
static void peers_make(const struct slow_layer *y, size_t candidate, const size_t *servers,
	size_t n, struct peers *out)
{
	const struct variance second = pooled(y, servers, n);
	double *changes = alloc_zero(n, sizeof(*changes));
	struct cochran q[3] = {0};

	*out = (struct peers){.n = n, .second = second, .within.df = second.df};
	note_halves(y, SLOW_BEFORE, candidate, second, &q[SLOW_BEFORE]);
	for (size_t i = 0; i < n; i++) {
		double v = 0;

		for (int p = SLOW_BEFORE; p <= (int)y->last; p++) {
			v += of_mean(y, &y->rates[p][servers[i]], second).v;
			note_halves(y, p, servers[i], second, &q[p]);
		}
		out->within.v += v / (double)n;
		slow_judge_note(&q[2], changes[i] = change_of(y, servers[i]), v);
	}
	for (int k = 0; k < 3; k++)
		slow_judge_conclude(&q[k], &out->excess);
	out->excess.v = out->excess.df > 0 ? fmax(1, out->excess.v / out->excess.df) : 1;
	out->middle = stat_median(changes, n);
	free(changes);
}

/* A sum of variances, and its degrees of freedom after Welch and Satterthwaite. */
static void slow_judge_add(struct variance *sum, double *error, double factor, struct variance one)
{
	sum->v += factor * one.v;
	*error += pow(factor * one.v, 2) / one.df;
}

/* Of the change of server i against its peers' median. Its own seconds count where they vary more
 * than those of its peers. */
static struct variance variance_of(const struct slow_layer *y, size_t i, const struct peers *h)
{
	/* A median's variance is pi/2 that of a mean, or less; of two it is their mean. */
	const double share = h->n < 3 ? 1 / (double)h->n : M_PI / 2 / (double)h->n;
	struct variance sum = {0};
	double error = 0;

	for (int p = SLOW_BEFORE; p <= (int)y->last; p++) {
		const struct slow_rate *r = &y->rates[p][i];
		const struct variance own = {r->s2, df_of(y, r)};

		slow_judge_add(
			&sum, &error, 1, of_mean(y, r, own.v > h->second.v ? own : h->second));
	}
	slow_judge_add(&sum, &error, share, h->within);
	sum.df = error > 0 ? sum.v * sum.v / error : 1;
	if (h->excess.v > 1) {
		sum.v *= h->excess.v;
		sum.df = 1 / (1 / sum.df + 1 / h->excess.df);
	}
	return sum;
}

struct outcome {
	bool known, marked;
	double p;      /* for all servers and layers together */
	double change; /* logarithms: its own, and at least 0: its peers' */
	double peers;
	double needed; /* what its change has to exceed the peers' by */
	double excess_s;
};

static void slow_judge_compare(const struct slow_layer *y, size_t i, const size_t *servers,
	size_t n, double tests, struct outcome *out)
{
	struct peers h;
	struct variance v;
	double t;

	peers_make(y, i, servers, n, &h);
	v = variance_of(y, i, &h);
	out->change = change_of(y, i);
	out->peers = y->last == SLOW_BEFORE ? h.middle : fmax(0, h.middle);
	t = (out->change - out->peers) / sqrt(v.v);
	out->p = v.v > 0 ? fmin(1, tests * gsl_cdf_tdist_Q(t, v.df))
			 : (double)(out->change <= out->peers);
	out->needed = gsl_cdf_tdist_Qinv(level / tests, v.df) * sqrt(v.v);
	out->excess_s = fmax(0, y->rates[y->last][i].busy_s * (1 - exp(out->peers - out->change)));
}

/* ---- all servers of a layer ---- */

/* Servers of which enough is known, the one that changed most first; '*all' with those behind them
 * that can only be peers. */
static size_t order(const struct slow_layer *y, size_t n_servers, size_t *out, size_t *all)
{
	size_t n = 0, at;

	for (size_t i = 0; i < n_servers; i++) {
		if (!slow_judge_is_known(y, i))
			continue;
		for (at = n++; at && change_of(y, out[at - 1]) < change_of(y, i); at--)
			out[at] = out[at - 1];
		out[at] = i;
	}
	*all = n;
	for (size_t i = 0; i < n_servers; i++)
		if (!slow_judge_is_known(y, i) && is_peer(y, i))
			out[(*all)++] = i;
	return n;
}

/* How many differ from those that remain, fewer than half: the most for which the last one of them
 * does (Rosner 1983: one that is mistaken for a peer would hide the others). */
static size_t count_outliers(
	const struct slow_layer *y, const size_t *servers, size_t n, size_t all, double weight)
{
	struct outcome o;
	size_t k = all > 2 ? (all - 1) / 2 : 1;

	for (k = k < n ? k : n; k; k--) {
		slow_judge_compare(y, servers[k - 1], servers + k, all - k,
			(double)(all - k + 1) / weight, &o);
		if (o.p <= level)
			return k;
	}
	return 0;
}

static void judge_layer(
	const struct slow_layer *y, size_t n_servers, double weight, struct outcome *out)
{
	size_t *servers = alloc_zero(n_servers + 1, sizeof(*servers));
	size_t *others = alloc_zero(n_servers + 1, sizeof(*others));
	size_t all, n = order(y, n_servers, servers, &all), marked, m;

	marked = all > 1 ? count_outliers(y, servers, n, all, weight) : 0;
	for (size_t i = 0; i < n; i++) {
		m = 0;
		for (size_t k = marked; k < all; k++)
			if (k != i)
				others[m++] = servers[k];
		out[servers[i]].known = m > 0;
		out[servers[i]].marked = i < marked;
		if (m)
			slow_judge_compare(y, servers[i], others, m, (double)(m + 1) / weight,
				&out[servers[i]]);
	}
	free(servers);
	free(others);
}

/* ---- the time that was added ---- */

/* What requests took more than those of the same procedures before. */
static void add_up(struct slow *s, struct slow_server *v)
{
	struct slow_usual *own = slow_usual_of(s, v->node), *all = slow_usual_of(s, FLOW_NO_NODE);

	for (size_t i = 0; i < s->n_items; i++) {
		const struct slow_item *it = &s->items[i];
		const struct slow_usual *u = own[it->kind].n ? &own[it->kind] : &all[it->kind];

		if (it->node != v->node || it->phase > SLOW_DURING || !u->n ||
			slow_end_ns(it) <= s->spec.onset_ns)
			continue;
		v->added_s += (double)it->total_s - u->time_s / (double)u->n;
		for (int k = 0; k < SLOW_PARTS; k++)
			v->added_parts_s[k] += (double)it->parts_s[k] -
				u->parts_s[k] / (double)u->n;
	}
	free(own);
	free(all);
}

/* Of the requests that are judged, how many must have a disk call, and how many have none? */
static void count_data(const struct slow *s, struct slow_server *v)
{
	const enum slow_phase judged = s->spec.onset_ns ? SLOW_DURING : SLOW_BEFORE;

	v->data = v->unbound = 0;
	for (size_t i = 0; i < s->n_items; i++) {
		const struct slow_item *it = &s->items[i];

		if (it->node != v->node || it->phase != judged || !it->data)
			continue;
		v->data++;
		v->unbound += !it->bound;
	}
}

/* On the way there or back it does not matter whether the disk calls are known. */
static bool is_part_known(const struct slow_server *v)
{
	return v->worst == SLOW_THERE || v->worst == SLOW_BACK || 2 * v->unbound <= v->data;
}

/* Requests that wait for others' disk calls wait for the disk: which of both was more? */
static void name_part(struct slow_server *v, size_t layer, const double parts_s[SLOW_PARTS])
{
	v->worst = slow_layer_part(layer);
	if (v->worst == SLOW_DISK && parts_s[SLOW_QUEUE] > parts_s[SLOW_DISK])
		v->worst = SLOW_QUEUE;
	v->part_known = is_part_known(v);
}

/* The server's layer with the most excess; without any excess, the one that changed most. */
static void choose_layer(struct slow_server *v, const struct outcome *layers, size_t stride,
	const double parts_s[SLOW_PARTS])
{
	const struct outcome *best = NULL, *whole = &layers[SLOW_WHOLE * stride];
	size_t at = 0;

	for (size_t l = 0; l < SLOW_LAYERS; l++) {
		const struct outcome *o = &layers[l * stride];

		if (!o->known)
			continue;
		v->excess_s += o->excess_s;
		if (!best || o->excess_s > best->excess_s ||
			(o->excess_s <= 0 && best->excess_s <= 0 &&
				o->change - o->peers > best->change - best->peers)) {
			best = o;
			at = l;
		}
	}
	if (!best)
		return;
	name_part(v, at, parts_s);
	v->whole = !best->marked && whole->known && whole->p < best->p;
	best = v->whole ? whole : best;
	v->tested = true;
	v->differs = best->marked;
	v->p = best->p;
	v->slowness = exp(best->change);
	v->peers = exp(best->peers);
	v->needed = exp(best->needed);
	v->layer_excess_s = best->excess_s;
}

/* Those that differ and took an equal part of the added time at least, if they took most of it. */
static bool mark(struct slow *s)
{
	double all = 0, named = 0;

	for (size_t i = 0; i < s->n_servers; i++)
		all += s->servers[i].excess_s;
	for (size_t i = 0; i < s->n_servers; i++) {
		struct slow_server *v = &s->servers[i];

		v->excess_share = all > 0 ? v->excess_s / all : 0;
		v->stands_out = v->differs && v->excess_share * (double)s->n_servers >= 1;
		named += v->stands_out ? v->excess_share : 0;
	}
	for (size_t i = 0; i < s->n_servers && named <= 0.5; i++)
		s->servers[i].stands_out = false;
	return named > 0.5;
}

/* Shares of the level: the whole, one of six, has a sixth of it, each layer of the rest its share
 * of all servers' time before the fault. */
static void weigh(const struct slow_layer layers[SLOW_JUDGED], size_t n_servers, double *out)
{
	double all = 0;

	out[SLOW_WHOLE] = 1.0 / SLOW_JUDGED;
	for (size_t l = 0; l < SLOW_LAYERS; l++) {
		out[l] = 0;
		for (size_t i = 0; i < n_servers; i++)
			out[l] += layers[l].rates[SLOW_BEFORE][i].busy_s;
		all += out[l];
	}
	for (size_t l = 0; l < SLOW_LAYERS && all > 0; l++)
		out[l] *= (1 - out[SLOW_WHOLE]) / all;
}

/* Returns whether any server could be tested. */
static bool slow_judge_it(struct slow *s)
{
	struct outcome *outcomes = alloc_zero(SLOW_JUDGED * s->n_servers, sizeof(*outcomes));
	struct slow_layer layers[SLOW_JUDGED] = {0};
	struct slow_demand d;
	double weights[SLOW_JUDGED];
	bool tested = false;

	slow_demand_make(s, &d);
	for (size_t l = 0; l < SLOW_JUDGED; l++) {
		layers[l].last = s->spec.onset_ns ? SLOW_DURING : SLOW_BEFORE;
		slow_layer_make(&d, l, &layers[l]);
	}
	weigh(layers, s->n_servers, weights);
	for (size_t l = 0; l < SLOW_JUDGED; l++)
		judge_layer(&layers[l], s->n_servers, weights[l], outcomes + l * s->n_servers);
	for (size_t i = 0; i < s->n_servers; i++) {
		struct slow_server *v = &s->servers[i];

		count_data(s, v);
		choose_layer(v, outcomes + i, s->n_servers,
			s->spec.onset_ns ? v->added_parts_s : v->phases[SLOW_BEFORE].parts_s);
		tested |= v->tested;
	}
	for (size_t l = 0; l < SLOW_JUDGED; l++)
		slow_layer_clear(&layers[l]);
	slow_demand_clear(&d);
	free(outcomes);
	return tested;
}

static enum slow_verdict judge_and_mark(struct slow *s)
{
	for (size_t i = 0; i < s->n_servers && s->spec.onset_ns; i++)
		add_up(s, &s->servers[i]);
	if (s->n_servers < 2)
		return SLOW_NO_PEERS;
	return !slow_judge_it(s) ? SLOW_TOO_SHORT : mark(s) ? SLOW_FOUND : SLOW_NOTHING;
}

/* Judges a cell without a fault by itself. The servers' own figures stay those of the cell. */
static void compare_with_itself(struct slow *s, enum slow_compared what)
{
	struct slow_comparison *c = &s->comparisons[what];
	struct slow_server *servers = s->servers;
	const struct slow_server *found[16];
	const struct slow_spec spec = s->spec;
	double from, to;

	s->servers = alloc_zero(s->n_servers + 1, sizeof(*servers));
	memcpy(s->servers, servers, s->n_servers * sizeof(*servers));
	if (what == SLOW_HALVES) {
		slow_phase_ends(s, SLOW_BEFORE, &from, &to);
		s->spec.onset_ns = s->spec.start_ns + (int64_t)((from + to) / 2 * 1e9);
		s->spec.offset_ns = 0;
		slow_classify(s);
	}
	c->verdict = judge_and_mark(s);
	s->verdict = c->verdict;
	c->sentence = slow_comparison_sentence(s, what);
	c->n_found = slow_found(s, found, 16);
	for (size_t i = 0; i < c->n_found; i++)
		c->found[i] = found[i]->node;
	free(s->servers);
	s->servers = servers;
	s->spec = spec;
	slow_classify(s);
}

void slow_judge(struct slow *s)
{
	if (s->n_items && s->spec.onset_ns) {
		s->verdict = judge_and_mark(s);
		return;
	}
	for (int i = 0; i < SLOW_COMPARISONS && s->n_items; i++)
		compare_with_itself(s, (enum slow_compared)i);
	s->verdict = s->n_items ? SLOW_NO_FAULT : SLOW_NO_REQUESTS;
}

size_t slow_found(const struct slow *s, const struct slow_server *out[], size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_servers; i++) {
		const struct slow_server *v = &s->servers[i];
		size_t at = n;

		if (!v->stands_out || n == size)
			continue;
		for (; at && out[at - 1]->excess_s < v->excess_s; at--)
			out[at] = out[at - 1];
		out[at] = v;
		n++;
	}
	return n;
}
