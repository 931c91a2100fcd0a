/* Adds up where the time of requests went. */
#include "diag/slow/slow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/slow/slow_impl.h"
#include "harness/base/stat.h"

const char *slow_phase_name(enum slow_phase p)
{
	static const char *const names[] = {"before", "during", "after"};

	return p < SLOW_PHASES ? names[p] : "?";
}

const char *slow_part_name(enum slow_part p)
{
	static const char *const names[] = {
		"there", "waiting", "queue", "disk", "answering", "back"};

	return p < SLOW_PARTS ? names[p] : "?";
}

const char *slow_part_words(enum slow_part p)
{
	static const char *const words[] = {"on the way there", "waiting in the server",
		"waiting for its disk", "in its disk", "answering", "on the way back"};

	return p < SLOW_PARTS ? words[p] : "?";
}

const char *slow_compared_name(enum slow_compared what)
{
	static const char *const names[] = {"servers", "halves"};

	return what < SLOW_COMPARISONS ? names[what] : "?";
}

void slow_new(const struct slow_spec *spec, struct slow **out)
{
	struct slow *s = alloc_zero(1, sizeof(*s));

	s->spec = *spec;
	s->top = alloc_zero(spec->top + 1, sizeof(*s->top));
	s->clock_error_node = FLOW_NO_NODE;
	*out = s;
}

void slow_free(struct slow *s)
{
	if (!s)
		return;
	for (int i = 0; i < SLOW_COMPARISONS; i++)
		free(s->comparisons[i].sentence);
	for (size_t i = 0; i < s->n_top; i++)
		free(s->top[i].path);
	free(s->top);
	free(s->items);
	free(s->kinds);
	for (size_t i = 0; i < s->n_disks; i++)
		free(s->disks[i].v);
	free(s->disks);
	free(s->threads);
	free(s->calls);
	free(s->servers);
	free(s->clocks);
	free(s);
}

/* ---- what is asked for ---- */

struct slow_server *slow_server_of(struct slow *s, uint32_t node)
{
	size_t i = 0;

	while (i < s->n_servers && s->servers[i].node < node)
		i++;
	if (i < s->n_servers && s->servers[i].node == node)
		return &s->servers[i];
	s->servers = alloc_room(s->servers, s->n_servers, sizeof(*s->servers));
	memmove(s->servers + i + 1, s->servers + i, (s->n_servers - i) * sizeof(*s->servers));
	s->n_servers++;
	s->servers[i] = (struct slow_server){
		.node = node, .p = 1, .slowness = 1, .needed = 1, .peers = 1};
	return &s->servers[i];
}

static uint32_t slow_kind_of(struct slow *s, const struct flow_request *r)
{
	for (size_t i = s->n_kinds; i-- > 0;)
		if (s->kinds[i].program == r->program && s->kinds[i].procedure == r->procedure)
			return (uint32_t)i;
	s->kinds = alloc_room(s->kinds, s->n_kinds, sizeof(*s->kinds));
	s->kinds[s->n_kinds] = (struct slow_kind){r->program, r->procedure};
	return (uint32_t)s->n_kinds++;
}

static bool is_asked_for(const struct slow *s, const struct flow_request *r)
{
	const struct slow_spec *spec = &s->spec;
	const char *name = spec->node_name(spec->ctx, r->server);
	char number[16];

	if (spec->server && (!name || strcmp(name, spec->server) != 0))
		return false;
	if (!spec->procedure)
		return true;
	snprintf(number, sizeof(number), "%u", r->procedure);
	return !strcasecmp(r->name ? r->name : number, spec->procedure);
}

static bool is_in_time(const struct slow *s, double at_s)
{
	return at_s >= s->spec.from_s && (s->spec.to_s <= 0 || at_s < s->spec.to_s);
}

/* When it began, on its server's clock. */
static int64_t begin_of(const struct flow_request *r)
{
	if (r->sent.how && r->width_ns >= 0)
		return r->sent.begin_ns + r->offset_ns;
	return r->received.how ? r->received.begin_ns : r->sent.begin_ns;
}

/* ---- the slowest ---- */

static int64_t total_of(const struct slow_request *r)
{
	return r->parts.total;
}

static void swap(struct slow_request *a, struct slow_request *b)
{
	struct slow_request t = *a;

	*a = *b;
	*b = t;
}

static void sink_down(struct slow *s)
{
	for (size_t i = 0, k; (k = 2 * i + 1) < s->n_top; i = k) {
		if (k + 1 < s->n_top && total_of(&s->top[k + 1]) < total_of(&s->top[k]))
			k++;
		if (total_of(&s->top[i]) <= total_of(&s->top[k]))
			return;
		swap(&s->top[i], &s->top[k]);
	}
}

static void rise(struct slow *s)
{
	for (size_t i = s->n_top - 1; i && total_of(&s->top[i]) < total_of(&s->top[(i - 1) / 2]);
		i = (i - 1) / 2)
		swap(&s->top[i], &s->top[(i - 1) / 2]);
}

static void slow_fill(struct slow_request *out, const struct flow_request *r,
	const struct flow_parts *parts, double at_s)
{
	free(out->path);
	*out = (struct slow_request){
		.at_s = at_s, .r = *r, .parts = *parts, .disk_how = r->n_disks ? FLOW_THREAD : 0};
	for (size_t i = 0; i < r->n_disks; i++)
		if (r->disks[i].how == FLOW_CONTENT)
			out->disk_how = FLOW_CONTENT;
	out->r.disks = NULL;
	out->r.first_thread = NULL;
	if (!r->fuse)
		return;
	out->fuse = *r->fuse;
	out->path = r->fuse->path ? alloc_copy(r->fuse->path) : NULL;
	out->fuse.path = out->path;
}

static void note_top(
	struct slow *s, const struct flow_request *r, const struct flow_parts *parts, double at_s)
{
	if (s->n_top < s->spec.top) {
		slow_fill(&s->top[s->n_top++], r, parts, at_s);
		rise(s);
	} else if (s->spec.top && parts->total > total_of(&s->top[0])) {
		slow_fill(&s->top[0], r, parts, at_s);
		sink_down(s);
	}
}

static int by_total(const void *a, const void *b)
{
	const struct slow_request *x = a, *y = b;

	if (x->parts.total != y->parts.total)
		return x->parts.total < y->parts.total ? 1 : -1;
	return (x->r.number > y->r.number) - (x->r.number < y->r.number);
}

/* ---- requests ---- */

static void note_item(struct slow *s, const struct flow_request *r, const struct flow_parts *parts)
{
	const int64_t v[] = {
		parts->there, parts->waiting, 0, parts->disk, parts->answering, parts->back};
	struct slow_item *it;

	s->items = alloc_room(s->items, s->n_items, sizeof(*s->items));
	it = &s->items[s->n_items++];
	*it = (struct slow_item){.begin_ns = begin_of(r),
		.node = r->server,
		.kind = slow_kind_of(s, r),
		.from_ns = r->received.end_ns,
		.held_s = (float)((double)(parts->waiting + parts->disk) * 1e-9),
		.data = r->call_bytes >= 4096 || r->answer_bytes >= 4096,
		.bound = r->n_disks > 0,
		.total_s = (float)((double)parts->total * 1e-9)};
	/* A clock's offset is known to lie in an interval, so a way may seem to take less than
	 * nothing. */
	for (int i = 0; i < SLOW_PARTS; i++)
		it->parts_s[i] = v[i] > 0 ? (float)((double)v[i] * 1e-9) : 0;
}

static int note_request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct slow *s = ctx;
	struct flow_parts parts;
	double at_s;

	(void)e;
	slow_callers_note(s, r);
	if (r->server == FLOW_NO_NODE || !s->spec.is_server(s->spec.ctx, r->server))
		return 0;
	slow_queue_note(s, r);
	if (!is_asked_for(s, r))
		return 0;
	at_s = (double)(begin_of(r) - s->spec.clock_ns(s->spec.ctx, r->server) - s->spec.start_ns) *
		1e-9;
	if (r->reasons & 1u << FLOW_NO_ANSWER) {
		slow_server_of(s, r->server)->unanswered += is_in_time(s, at_s);
		return 0;
	}
	flow_request_parts(r, &parts);
	if (parts.total < 0 || parts.there == -1 || parts.disk < 0 || parts.back == -1) {
		slow_server_of(s, r->server)->partial += is_in_time(s, at_s);
		return 0;
	}
	slow_server_of(s, r->server);
	note_item(s, r, &parts);
	if (is_in_time(s, at_s))
		note_top(s, r, &parts, at_s);
	return 0;
}

struct flow_sink slow_sink(struct slow *s)
{
	return (struct flow_sink){.request = note_request, .ctx = s};
}

/* ---- clocks ---- */

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The first node's clock at a moment, of SLOW_MOMENTS all along. */
static int64_t slow_moment(const struct slow *s, int m)
{
	return s->spec.start_ns + s->spec.clock_ns(s->spec.ctx, 0) +
		(int64_t)s->spec.seconds * 1000000000 / (SLOW_MOMENTS - 1) * m;
}

/* How far each clock is ahead of the first node's, at each moment: between[moment * n + node]. A
 * moment of which nothing is known is as the one before. known[node]: messages tell at all. */
static void slow_compare(const struct slow *s, size_t n, int64_t *between, bool *known)
{
	struct flow_offset *to = alloc_zero(n, sizeof(*to));
	bool *now = alloc_zero(n, sizeof(*now));

	for (int m = 0; m < SLOW_MOMENTS; m++) {
		flow_clocks_at(s->flow, 0, slow_moment(s, m), to, now);
		for (size_t i = 0; i < n; i++) {
			const int64_t middle = to[i].lowest_ns / 2 + to[i].highest_ns / 2;

			between[(size_t)m * n + i] = now[i] ? middle
				: m                         ? between[(size_t)(m - 1) * n + i]
							    : 0;
			for (int k = 0; now[i] && !known[i] && k < m; k++)
				between[(size_t)k * n + i] = middle;
			known[i] = known[i] || now[i];
		}
	}
	free(to);
	free(now);
}

/* Messages say how far the nodes' clocks are apart at each moment, the run's measurements where all
 * of them lie at the start: the median over the nodes, so that one node's wrong measurement moves
 * none. */
static void reconcile(struct slow *s)
{
	const size_t n = flow_nodes(s->flow);
	int64_t *between = alloc_zero(n * SLOW_MOMENTS, sizeof(*between)),
		*base = alloc_zero(n, sizeof(*base));
	bool *known = alloc_zero(n, sizeof(*known));
	size_t n_known = 0;

	s->clocks = alloc_zero(n * SLOW_MOMENTS, sizeof(*s->clocks));
	s->n_clocks = n;
	slow_compare(s, n, between, known);
	for (size_t i = 0; i < n; i++)
		if (known[i])
			base[n_known++] = s->spec.clock_ns(s->spec.ctx, (uint32_t)i) - between[i];
	if (n_known > 1)
		qsort(base, n_known, sizeof(*base), by_value);
	for (size_t i = 0; i < n; i++) {
		const int64_t measured = s->spec.clock_ns(s->spec.ctx, (uint32_t)i);
		const bool move = known[i] && n_known > 1;
		double error;

		for (int m = 0; m < SLOW_MOMENTS; m++)
			s->clocks[i * SLOW_MOMENTS + (size_t)m] = move
				? base[n_known / 2] + between[(size_t)m * n + i]
				: measured;
		error = fabs((double)(s->clocks[i * SLOW_MOMENTS] - measured) * 1e-9);
		if (!move || (s->clock_error_node != FLOW_NO_NODE && error <= s->clock_error_s))
			continue;
		s->clock_error_s = error;
		s->clock_error_node = (uint32_t)i;
	}
	free(between);
	free(base);
	free(known);
}

bool slow_clock_over(const struct slow *s, uint32_t node, struct flow_clock_summary *out)
{
	const int64_t start = slow_moment(s, 0);
	const double to_s = s->spec.to_s > 0 ? s->spec.to_s : s->spec.seconds;

	return flow_clock_over(s->flow, 0, node, start + (int64_t)(s->spec.from_s * 1e9),
		start + (int64_t)(to_s * 1e9), out);
}

double slow_clock_error(const struct slow *s, uint32_t *node)
{
	*node = s->clock_error_node;
	return s->clock_error_s;
}

int64_t slow_clock_of(const struct slow *s, uint32_t node, int64_t raw_ns)
{
	const int64_t *k;
	double at;
	int m;

	if (node >= s->n_clocks)
		return s->spec.clock_ns(s->spec.ctx, node);
	k = s->clocks + (size_t)node * SLOW_MOMENTS;
	at = ((double)raw_ns - (double)k[0] - (double)s->spec.start_ns) * (SLOW_MOMENTS - 1) /
		(fmax(s->spec.seconds, 1) * 1e9);
	at = fmin(fmax(at, 0), SLOW_MOMENTS - 1);
	m = at < SLOW_MOMENTS - 1 ? (int)at : SLOW_MOMENTS - 2;
	return k[m] + (int64_t)((at - m) * (double)(k[m + 1] - k[m]));
}

/* ---- phases ---- */

static double since_start(const struct slow *s, int64_t ns)
{
	return (double)(ns - s->spec.start_ns) * 1e-9;
}

void slow_phase_ends(const struct slow *s, enum slow_phase p, double *from, double *to)
{
	const struct slow_spec *spec = &s->spec;
	const double end = spec->to_s > 0 ? spec->to_s : spec->seconds;
	const double onset = spec->onset_ns ? since_start(s, spec->onset_ns) : end;
	const double offset = spec->offset_ns ? since_start(s, spec->offset_ns) : end;

	*from = p == SLOW_BEFORE ? 0 : p == SLOW_DURING ? onset : offset;
	*to = p == SLOW_BEFORE ? onset : p == SLOW_DURING ? offset : end;
	*from = fmax(*from, spec->from_s);
	*to = fmin(*to, end);
}

void slow_classify(struct slow *s)
{
	const struct slow_spec *spec = &s->spec;

	for (size_t i = 0; i < s->n_items; i++) {
		struct slow_item *it = &s->items[i];
		const int64_t at = it->begin_ns;

		if (!is_in_time(s, since_start(s, at)))
			it->phase = SLOW_PHASES;
		else if (!spec->onset_ns || at < spec->onset_ns)
			it->phase = SLOW_BEFORE;
		else if (!spec->offset_ns || at < spec->offset_ns)
			it->phase = SLOW_DURING;
		else
			it->phase = SLOW_AFTER;
	}
}

static void set_phases(struct slow *s)
{
	for (size_t i = 0; i < s->n_items; i++)
		s->items[i].begin_ns -= slow_clock_of(s, s->items[i].node, s->items[i].begin_ns);
	slow_classify(s);
	for (size_t i = 0; i < s->n_top; i++) {
		struct slow_request *t = &s->top[i];

		t->at_s = since_start(
			s, begin_of(&t->r) - slow_clock_of(s, t->r.server, begin_of(&t->r)));
		t->r.fuse = t->r.fuse ? &t->fuse : NULL;
	}
}

/* The smallest value that 'q' of all do not exceed. */
static double quantile(const float *sorted, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	return n ? (double)sorted[rank ? rank - 1 : 0] : 0;
}

/* The parts of a request that lie between two moments: those that follow each other in their
 * order, and what waits in between as it is spread over the time from receipt to the last disk
 * call's end. */
static void clip(const struct slow_item *it, double begin, double from, double to, double *parts)
{
	static const enum slow_part order[] = {SLOW_THERE, SLOW_WAITING, SLOW_ANSWERING, SLOW_BACK};
	double at = begin;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const bool held = order[i] == SLOW_WAITING;
		const double length = (double)(held ? it->held_s : it->parts_s[order[i]]);
		const double share = length > 0
			? fmax(0, fmin(to, at + length) - fmax(from, at)) / length
			: 0;

		at += length;
		parts[order[i]] += share * (double)it->parts_s[order[i]];
		if (!held)
			continue;
		parts[SLOW_QUEUE] += share * (double)it->parts_s[SLOW_QUEUE];
		parts[SLOW_DISK] += share * (double)it->parts_s[SLOW_DISK];
	}
}

static void slow_measure(struct slow *s, struct slow_server *v, enum slow_phase p, float *room)
{
	struct slow_cell *c = &v->phases[p];
	double from, to;
	size_t n = 0;

	slow_phase_ends(s, p, &from, &to);
	for (size_t i = 0; i < s->n_items; i++) {
		const struct slow_item *it = &s->items[i];

		if (it->node != v->node || it->phase == SLOW_PHASES)
			continue;
		if (it->phase == p)
			room[n++] = it->total_s;
		clip(it, since_start(s, it->begin_ns), from, to, c->parts_s);
	}
	for (int k = 0; k < SLOW_PARTS; k++)
		c->time_s += c->parts_s[k];
	qsort(room, n, sizeof(*room), stat_compare_float);
	c->requests = n;
	c->median_s = quantile(room, n, 0.5);
	c->p99_s = quantile(room, n, 0.99);
}

static void measure_all(struct slow *s)
{
	float *room = alloc_zero(s->n_items + 1, sizeof(*room));

	for (int p = 0; p < SLOW_PHASES; p++) {
		double all = 0;

		for (size_t i = 0; i < s->n_servers; i++) {
			slow_measure(s, &s->servers[i], p, room);
			all += s->servers[i].phases[p].time_s;
		}
		for (size_t i = 0; i < s->n_servers && all > 0; i++)
			s->servers[i].phases[p].share = s->servers[i].phases[p].time_s / all;
	}
	free(room);
}

void slow_done(struct slow *s, const struct flow *f)
{
	s->flow = f;
	reconcile(s);
	set_phases(s);
	qsort(s->top, s->n_top, sizeof(*s->top), by_total);
	for (size_t i = 0; i < s->n_top; i++)
		s->top[i].r.fuse = s->top[i].r.fuse ? &s->top[i].fuse : NULL;
	slow_queue_done(s);
	measure_all(s);
	slow_judge(s);
}

/* ---- questions ---- */

const struct slow_server *slow_servers(const struct slow *s, size_t *n)
{
	*n = s->n_servers;
	return s->servers;
}

const struct slow_request *slow_top(const struct slow *s, size_t *n)
{
	*n = s->n_top;
	return s->top;
}

const struct slow_comparison *slow_comparison(const struct slow *s, enum slow_compared what)
{
	return &s->comparisons[what];
}

enum slow_verdict slow_verdict(const struct slow *s)
{
	return s->verdict;
}
