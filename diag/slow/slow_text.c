/* Writes the answer of 'culprit slow' as text. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/text.h"
#include "diag/slow/slow_impl.h"
#include "harness/base/text_columns.h"

enum { WIDTH = 100 };

static void cell(struct text_columns *g, size_t column, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void cell(struct text_columns *g, size_t column, const char *fmt, ...)
{
	char text[4200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_columns_cell(g, column, text);
}

/* Milliseconds with three digits that count. */
static void cell_ms(struct text_columns *g, size_t column, double s)
{
	const double ms = s * 1e3;

	cell(g, column, "%.*f", ms < 9.995 ? 2 : ms < 99.95 ? 1 : 0, ms);
}

static void cell_bytes(struct text_columns *g, size_t column, double v)
{
	static const char units[] = " kMGT";
	size_t k = 0;

	for (; v >= 9999.5 && k + 2 < sizeof(units); k++)
		v /= 1024;
	cell(g, column, "%.0f%.*s", v, k > 0, &units[k]);
}

static void cell_pct(struct text_columns *g, size_t column, double share)
{
	cell(g, column, "%.0f", share * 100);
}

static double share_of(double part, double all)
{
	return all > 0 ? part / all : 0;
}

static const char *slow_text_name_of(const struct slow *s, uint32_t node)
{
	return s->spec.node_name(s->spec.ctx, node) ?: "?";
}

/* ---- the sentence ---- */

static double part_share(const struct slow_server *v, enum slow_phase p, enum slow_part part)
{
	return share_of(v->phases[p].parts_s[part], v->phases[p].time_s) * 100;
}

/* "its disk needs", of the layer that the figures are of. */
static const char *who_needs(const struct slow_server *v)
{
	static const char *const words[SLOW_PARTS] = {"a request needs on its way there",
		"waiting in it takes", "waiting for its disk takes", "its disk needs",
		"its answers need", "an answer needs on its way back"};

	return v->whole || !v->part_known ? "it needs" : words[v->worst];
}

static int digits(double ratio)
{
	return ratio < 1.995 ? 2 : 1;
}

/* "its disk needs 2.3x the time for the same work (peers 1.02x), mostly ..." */
static void say_needs(const struct slow_server *v, const char *who, FILE *out)
{
	fprintf(out, "%s %.*fx the time for the same work (peers %.*fx)", who, digits(v->slowness),
		v->slowness, digits(v->peers), v->peers);
	if (v->whole && v->part_known)
		fprintf(out, ", mostly %s", slow_part_words(v->worst));
}

static double all_excess(const struct slow *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n_servers; i++)
		sum += s->servers[i].excess_s;
	return sum;
}

/* Its share of all request time, and of what. */
static void say_share(const struct slow_server *v, FILE *out)
{
	const double before = v->phases[SLOW_BEFORE].share * 100;

	fprintf(out, "it took %.0f %% of all request time", v->phases[SLOW_DURING].share * 100);
	if (v->part_known)
		fprintf(out, ", %.0f %% of it %s (before: %.0f %%, %.0f %%)",
			part_share(v, SLOW_DURING, v->worst), slow_part_words(v->worst), before,
			part_share(v, SLOW_BEFORE, v->worst));
	else
		fprintf(out,
			" (before: %.0f %%); in which part is not known: %llu of its %llu "
			"requests with data have no disk call bound to them",
			before, (unsigned long long)v->unbound, (unsigned long long)v->data);
}

static void say_found(const struct slow *s, FILE *out)
{
	const struct slow_server *found[16];
	size_t n = slow_found(s, found, 16);

	for (size_t i = 0; i < n; i++) {
		const struct slow_server *v = found[i];

		fprintf(out, "%s%s is slow: ", i ? "; " : "", slow_text_name_of(s, v->node));
		say_needs(v, who_needs(v), out);
		fprintf(out, ", which explains %.0f %% of the added time; ",
			share_of(v->layer_excess_s, all_excess(s)) * 100);
		say_share(v, out);
	}
}

static void say_most(const struct slow *s, FILE *out)
{
	const struct slow_server *most = NULL;
	int part = 0;

	for (size_t i = 0; i < s->n_servers; i++)
		if (!most ||
			s->servers[i].phases[SLOW_BEFORE].time_s > most->phases[SLOW_BEFORE].time_s)
			most = &s->servers[i];
	for (int k = 1; most && k < SLOW_PARTS; k++)
		if (most->phases[SLOW_BEFORE].parts_s[k] > most->phases[SLOW_BEFORE].parts_s[part])
			part = k;
	fprintf(out,
		"there was no fault, so the cell was compared with itself; server with server: "
		"%s; second half with first: %s",
		s->comparisons[SLOW_SERVERS].sentence, s->comparisons[SLOW_HALVES].sentence);
	if (most)
		fprintf(out, "; %s took the most, %.0f %% of all request time, %.0f %% of it %s",
			slow_text_name_of(s, most->node), most->phases[SLOW_BEFORE].share * 100,
			part_share(most, SLOW_BEFORE, (enum slow_part)part),
			slow_part_words((enum slow_part)part));
}

static void say_nothing(const struct slow *s, FILE *out)
{
	const struct slow_server *most = NULL;

	for (size_t i = 0; i < s->n_servers; i++)
		if (!most || s->servers[i].excess_s > most->excess_s)
			most = &s->servers[i];
	fputs("no server stands out: ", out);
	if (!most || most->excess_s <= 0) {
		fputs("none needs longer for the same work than before and than its peers", out);
		return;
	}
	fprintf(out, "%s is the slowest, and ", slow_text_name_of(s, most->node));
	say_needs(most, who_needs(most), out);
	if (most->differs)
		fprintf(out, "; but that explains %.0f %% of the added time, not most of it",
			most->excess_share * 100);
	else
		fprintf(out, "; up to %.*fx its peers' may be chance, as seconds and peers differ",
			digits(most->needed), most->needed);
}

static void say_compared(
	const struct slow *s, const struct slow_server *v, enum slow_compared what, FILE *out)
{
	auto_free char *who = alloc_format("%s: %s", slow_text_name_of(s, v->node), who_needs(v));

	say_needs(v, who, out);
	fprintf(out, ", against %s", what == SLOW_HALVES ? "before" : "all on average");
}

char *slow_comparison_sentence(const struct slow *s, enum slow_compared what)
{
	const struct slow_server *found[16], *most = NULL;
	size_t size, n = slow_found(s, found, 16);
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < s->n_servers; i++)
		if (s->servers[i].tested && (!most || s->servers[i].excess_s > most->excess_s))
			most = &s->servers[i];
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "; " : "", out);
		say_compared(s, found[i], what, out);
	}
	if (s->verdict == SLOW_NO_PEERS) {
		fputs("requests went to one server only", out);
	} else if (s->verdict == SLOW_TOO_SHORT) {
		fputs("too few seconds with requests to tell", out);
	} else if (!n && most) {
		fputs("none stands out (the slowest is ", out);
		say_compared(s, most, what, out);
		if (most->differs)
			fprintf(out, ", but explains only %.0f %% of the excess",
				most->excess_share * 100);
		else
			fprintf(out, "; up to %.*fx its peers' may be chance", digits(most->needed),
				most->needed);
		fputs(")", out);
	}
	fclose(out);
	return text;
}

char *slow_sentence(const struct slow *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	switch (s->verdict) {
	case SLOW_NO_REQUESTS: fputs("no request is whole in what was asked for", out); break;
	case SLOW_NO_FAULT: say_most(s, out); break;
	case SLOW_NO_PEERS:
		fputs("requests went to one server only, so there is none to compare it with", out);
		break;
	case SLOW_TOO_SHORT:
		fputs("too few seconds with requests before or during the fault to tell", out);
		break;
	case SLOW_NOTHING: say_nothing(s, out); break;
	case SLOW_FOUND: say_found(s, out); break;
	}
	fclose(out);
	return text;
}

/* ---- tables ---- */

static void phase_row(const struct slow *s, struct text_columns *g, enum slow_phase p,
	const struct slow_server *v)
{
	const struct slow_cell *c = &v->phases[p];

	text_columns_cell(g, 0, s->spec.onset_ns ? slow_phase_name(p) : "all");
	text_columns_cell(g, 1, slow_text_name_of(s, v->node));
	cell(g, 2, "%llu", (unsigned long long)c->requests);
	if (c->time_s <= 0) {
		for (size_t k = 3; k < 6 + SLOW_PARTS; k++)
			text_columns_cell(g, k, "-");
		return;
	}
	cell_pct(g, 3, c->share);
	if (c->requests) {
		cell_ms(g, 4, c->median_s);
		cell_ms(g, 5, c->p99_s);
	} else {
		text_columns_cell(g, 4, "-");
		text_columns_cell(g, 5, "-");
	}
	for (size_t k = 0; k < SLOW_PARTS; k++)
		cell_pct(g, 6 + k, share_of(c->parts_s[k], c->time_s));
}

static void put_counts(const struct slow *s, const char *what, size_t at, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < s->n_servers; i++) {
		const struct slow_server *v = &s->servers[i];
		uint64_t n = *(const uint64_t *)((const char *)v + at);

		if (!n)
			continue;
		fputs(any ? ", " : what, out);
		any = true;
		text_print_clean(out, slow_text_name_of(s, v->node));
		fprintf(out, " %llu", (unsigned long long)n);
	}
	if (any)
		fputc('\n', out);
}

void slow_text_phases(const struct slow *s, FILE *out)
{
	struct text_columns g = {0};

	text_columns_add(&g, "phase", false, false);
	text_columns_add(&g, "server", false, true);
	text_columns_add(&g, "requests", true, false);
	text_columns_add(&g, "time%", true, false);
	text_columns_add(&g, "median ms", true, false);
	text_columns_add(&g, "p99 ms", true, false);
	for (int k = 0; k < SLOW_PARTS; k++)
		text_columns_add(&g, slow_part_name((enum slow_part)k), true, false);
	for (int p = 0; p < (s->spec.onset_ns ? SLOW_PHASES : 1); p++)
		for (size_t i = 0; i < s->n_servers; i++)
			phase_row(s, &g, (enum slow_phase)p, &s->servers[i]);
	text_columns_put(&g, WIDTH, out);
	put_counts(s,
		"calls without an answer until the end: ", offsetof(struct slow_server, unanswered),
		out);
	put_counts(s, "requests left out, since a leg is in no log: ",
		offsetof(struct slow_server, partial), out);
}

static double depth_of(const struct slow *s, size_t layer, uint32_t node, enum slow_phase p)
{
	double from, to, sum = 0;
	int n = 0;

	slow_phase_ends(s, p, &from, &to);
	for (int32_t k = (int32_t)ceil(from); k + 1 <= to; k++, n++)
		sum += flow_depth(s->flow, layer, node, k).average;
	return n ? sum / n : NAN;
}

void slow_text_layers(const struct slow *s, FILE *out)
{
	const int phases = s->spec.onset_ns ? SLOW_PHASES : 1;
	const size_t layers = flow_layers(s->flow);
	struct text_columns g = {0};
	double d;

	if (!layers)
		return;
	text_columns_add(&g, "phase", false, false);
	text_columns_add(&g, "in flight", false, true);
	for (size_t l = 0; l < layers && l + 2 < TEXT_COLUMNS_MAX; l++)
		text_columns_add(&g, flow_layer_name(s->flow, l), true, false);
	for (int p = 0; p < phases; p++)
		for (uint32_t i = 0; i < flow_nodes(s->flow); i++) {
			text_columns_cell(
				&g, 0, phases > 1 ? slow_phase_name((enum slow_phase)p) : "all");
			text_columns_cell(&g, 1, slow_text_name_of(s, i));
			for (size_t l = 0; l < layers && l + 2 < TEXT_COLUMNS_MAX; l++) {
				d = depth_of(s, l, i, (enum slow_phase)p);
				if (d > 0)
					cell(&g, l + 2, "%.2f", d);
				else
					text_columns_cell(&g, l + 2, "-");
			}
		}
	text_columns_put(&g, WIDTH, out);
}

/* ---- the slowest ---- */

static char how_letter(uint8_t how)
{
	return how == FLOW_EXACT ? 'e' : how == FLOW_THREAD ? 't' : how == FLOW_CONTENT ? 'c' : '-';
}

static void top_row(const struct slow *s, struct text_columns *g, const struct slow_request *t)
{
	const struct flow_parts *p = &t->parts;
	const int64_t v[] = {
		p->there, p->waiting - t->queue_ns, t->queue_ns, p->disk, p->answering, p->back};
	const struct flow_fuse *u = t->r.fuse;
	const char *path = u && u->path ? u->path : "";
	const char *slash = strrchr(path, '/');

	cell(g, 0, "%.2f", t->at_s);
	cell(g, 1, "%s>%s", slow_text_name_of(s, t->r.client), slow_text_name_of(s, t->r.server));
	if (t->r.name)
		text_columns_cell(g, 2, t->r.name);
	else
		cell(g, 2, "%u", t->r.procedure);
	cell_bytes(g, 3, (double)(t->r.call_bytes + t->r.answer_bytes));
	cell_ms(g, 4, (double)p->total * 1e-9);
	for (size_t k = 0; k < SLOW_PARTS; k++)
		cell_ms(g, 5 + k, fmax(0, (double)v[k] * 1e-9));
	cell(g, 5 + SLOW_PARTS, "%c%c%c%s %s%s%s%s%s", how_letter(t->disk_how),
		how_letter(u ? t->r.fuse_how : 0), how_letter(u ? u->call.how : 0),
		t->r.doubtful ? "?" : "", u && u->call.how ? u->thread : "",
		u && u->call.how ? " " : "",
		u && u->call.how ? flow_call_name(s->flow, u->call.node, u->nr) ?: "call" : "",
		*path ? " " : "", slash && slash[1] ? slash + 1 : path);
}

void slow_text_top(const struct slow *s, FILE *out)
{
	static const char *const short_names[] = {"there", "wait", "queue", "disk", "answ", "back"};
	struct text_columns g = {0};

	if (!s->n_top)
		return;
	text_columns_add(&g, "at s", true, false);
	text_columns_add(&g, "from>to", false, true);
	text_columns_add(&g, "request", false, true);
	text_columns_add(&g, "bytes", true, false);
	text_columns_add(&g, "ms", true, false);
	for (int k = 0; k < SLOW_PARTS; k++)
		text_columns_add(&g, short_names[k], true, false);
	text_columns_add(&g, "bound, caller", false, true);
	for (size_t i = 0; i < s->n_top; i++)
		top_row(s, &g, &s->top[i]);
	text_columns_put(&g, WIDTH, out);
	fputs("bound: its disk calls, its FUSE request, the application's call; t by thread, c by "
	      "content,\n- not; ?: the clocks leave the way there or back in doubt\n",
		out);
}

/* ---- coverage ---- */

static void put_share(const char *what, uint64_t part, uint64_t all, FILE *out)
{
	fprintf(out, "%-46s %9llu of %9llu", what, (unsigned long long)part,
		(unsigned long long)all);
	if (all)
		fprintf(out, "  %6.2f %%", 100.0 * (double)part / (double)all);
	fputc('\n', out);
}

static void put_drift(const struct flow_clock_summary *o, FILE *out)
{
	fprintf(out, "  all along: gains %.2f to %.2f ppm, known to %.3f ms, at worst %.3f ms",
		o->least_ppm, o->most_ppm, (double)o->narrowest_ns * 1e-6,
		(double)o->widest_ns * 1e-6);
	if (o->rate)
		fprintf(out, "; %u of %u moments: no steady rate", o->rate, o->moments);
	if (o->step)
		fprintf(out, "%sit was set: in doubt at %u of %u moments", o->rate ? "\n  " : "; ",
			o->step, o->moments);
	fputc('\n', out);
}

static void put_clocks(const struct slow *s, FILE *out)
{
	struct flow_clock_summary over;
	struct flow_clock c;
	uint32_t node;
	double error;

	for (uint32_t i = 1; i < flow_nodes(s->flow); i++) {
		fprintf(out, "clock of %s against %s: ", slow_text_name_of(s, i),
			slow_text_name_of(s, 0));
		if (flow_clock(s->flow, 0, i, &c))
			fprintf(out, "%+.3f ms, known to %.3f ms (at best %.3f), %u hop%s\n",
				(double)(c.lowest_ns + c.highest_ns) * 5e-7,
				(double)(c.highest_ns - c.lowest_ns) * 1e-6,
				(double)c.narrowest_ns * 1e-6, c.hops, c.hops == 1 ? "" : "s");
		else
			fputs("not known: no messages went both ways\n", out);
		if (slow_clock_over(s, i, &over))
			put_drift(&over, out);
	}
	error = slow_clock_error(s, &node);
	if (node != FLOW_NO_NODE)
		fprintf(out,
			"messages and the run's measurement of clocks differ by %.3f ms at most "
			"(%s)\n",
			error * 1e3, slow_text_name_of(s, node));
}

/* Threads that began requests without a FUSE request behind them. */
static void put_threads(const struct slow *s, FILE *out)
{
	size_t n;
	const struct slow_thread *t = slow_threads(s, &n);

	for (size_t i = 0; i < n; i++) {
		if (t[i].bound == t[i].sent)
			continue;
		fputs("  begun by ", out);
		text_print_clean(out, *t[i].name ? t[i].name : "others");
		fprintf(out, ": %llu of %llu%s\n", (unsigned long long)(t[i].sent - t[i].bound),
			(unsigned long long)t[i].sent,
			t[i].bound ? "" : ", so the thread works for the client itself");
	}
}

void slow_text_coverage(const struct slow *s, FILE *out)
{
	const struct flow_counts *c = flow_counts(s->flow);
	const struct slow_calls calls = slow_calls(s);

	put_share("receives bound to their sends", c->receives_bound, c->receives, out);
	put_share("requests with all four legs", c->requests_whole, c->requests, out);
	put_share("servers' data calls, syncs bound to requests", c->disk_thread + c->disk_content,
		c->disk_calls, out);
	if (c->disk_content)
		put_share("  by content", c->disk_content, c->disk_calls, out);
	put_share("servers' metadata calls bound to requests", c->meta_thread, c->meta_calls, out);
	put_share("clients' requests bound to FUSE requests", c->fuse_thread + c->fuse_content,
		c->client_requests, out);
	if (c->fuse_content)
		put_share("  by content", c->fuse_content, c->client_requests, out);
	put_share("FUSE requests bound to applications' calls", c->fuse_in_call, c->fuse, out);
	put_share(
		"data requests bound to applications' calls", calls.data_in_call, calls.data, out);
	put_share("others, but for the client's own threads'", calls.others_in_call, calls.others,
		out);
	for (int i = 0; i < FLOW_REASONS; i++)
		if (c->reasons[i])
			fprintf(out, "not bound: %-58s %9llu\n",
				flow_reason_name((enum flow_reason)i),
				(unsigned long long)c->reasons[i]);
	if (c->reasons[FLOW_NO_FUSE])
		put_threads(s, out);
	put_clocks(s, out);
}
