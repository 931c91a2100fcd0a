/* Writes the answer of 'culprit slow' as JSON. */
#include <math.h>
#include <stdlib.h>

#include "harness/base/text.h"
#include "diag/slow/slow_impl.h"

/* What is not UTF-8 is escaped. */
static json_t *slow_json_text(const char *s)
{
	char clean[4 * 4096];
	json_t *v = s ? json_string(s) : json_null();

	if (v)
		return v;
	text_clean(s, clean, sizeof(clean));
	return json_string(clean);
}

static json_t *slow_json_name_of(const struct slow *s, uint32_t node)
{
	return slow_json_text(s->spec.node_name(s->spec.ctx, node));
}

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *ns(int64_t v)
{
	return v < 0 ? json_real(0) : json_real((double)v * 1e-9);
}

static json_t *parts(const double *v)
{
	json_t *o = json_object();

	for (int k = 0; k < SLOW_PARTS; k++)
		json_object_set_new(o, slow_part_name((enum slow_part)k), real(v[k]));
	return o;
}

static json_t *phase(const struct slow_cell *c)
{
	json_t *o = json_pack("{s:I, s:f, s:f, s:o}", "requests", (json_int_t)c->requests, "time_s",
		c->time_s, "share", c->share, "parts_s", parts(c->parts_s));

	json_object_set_new(o, "median_s", c->requests ? real(c->median_s) : json_null());
	json_object_set_new(o, "p99_s", c->requests ? real(c->p99_s) : json_null());
	return o;
}

static json_t *server(const struct slow *s, const struct slow_server *v)
{
	json_t *phases = json_object(), *o;

	for (int p = 0; p < (s->spec.onset_ns ? SLOW_PHASES : 1); p++)
		json_object_set_new(phases,
			s->spec.onset_ns ? slow_phase_name((enum slow_phase)p) : "all",
			phase(&v->phases[p]));
	o = json_pack("{s:o, s:o, s:I, s:I, s:b}", "server", slow_json_name_of(s, v->node),
		"phases", phases, "unanswered", (json_int_t)v->unanswered, "partial",
		(json_int_t)v->partial, "stands_out", v->stands_out);
	if (!s->spec.onset_ns)
		return o;
	json_object_set_new(o, "added_s", real(v->added_s));
	json_object_set_new(o, "added_parts_s", parts(v->added_parts_s));
	json_object_set_new(o, "excess_s", real(v->excess_s));
	json_object_set_new(o, "excess_share", real(v->excess_share));
	json_object_set_new(o, "tested", json_boolean(v->tested));
	if (!v->tested)
		return o;
	json_object_set_new(o, "layer_excess_s", real(v->layer_excess_s));
	json_object_set_new(o, "slowness", real(v->slowness));
	json_object_set_new(o, "peers", real(v->peers));
	json_object_set_new(o, "needed", real(v->needed));
	json_object_set_new(o, "p", real(v->p));
	json_object_set_new(
		o, "worst", v->part_known ? json_string(slow_part_name(v->worst)) : json_null());
	json_object_set_new(o, "whole", json_boolean(v->whole));
	json_object_set_new(o, "data", json_integer((json_int_t)v->data));
	json_object_set_new(o, "unbound", json_integer((json_int_t)v->unbound));
	return o;
}

static json_t *how(uint8_t h)
{
	return h ? json_string(flow_how_name(h)) : json_null();
}

static json_t *caller(const struct slow *s, const struct slow_request *t)
{
	const struct flow_fuse *u = t->r.fuse;

	if (!u || !u->call.how)
		return json_null();
	return json_pack("{s:o, s:i, s:i, s:o, s:o, s:I, s:I}", "thread", slow_json_text(u->thread),
		"pid", (int)u->call.pid, "tid", (int)u->call.tid, "call",
		slow_json_text(flow_call_name(s->flow, u->call.node, u->nr)), "path",
		slow_json_text(u->path), "offset", (json_int_t)u->offset, "result",
		(json_int_t)u->result);
}

static json_t *request(const struct slow *s, const struct slow_request *t)
{
	const struct flow_parts *p = &t->parts;
	json_t *o = json_pack("{s:f, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "at_s", t->at_s, "client",
		slow_json_name_of(s, t->r.client), "server", slow_json_name_of(s, t->r.server),
		"procedure", slow_json_text(t->r.name), "number", (json_int_t)t->r.procedure,
		"call_bytes", (json_int_t)t->r.call_bytes, "answer_bytes",
		(json_int_t)t->r.answer_bytes, "total_s", ns(p->total));
	json_t *times = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "there", ns(p->there),
		"waiting", ns(p->waiting - t->queue_ns), "queue", ns(t->queue_ns), "disk",
		ns(p->disk), "answering", ns(p->answering), "back", ns(p->back));

	json_object_set_new(o, "parts_s", times);
	json_object_set_new(o, "disk_bound", how(t->disk_how));
	json_object_set_new(o, "fuse_bound", how(t->r.fuse ? t->r.fuse_how : 0));
	json_object_set_new(o, "doubtful", json_boolean(t->r.doubtful));
	json_object_set_new(o, "application", caller(s, t));
	return o;
}

static json_t *layers(const struct slow *s)
{
	json_t *all = json_array(), *nodes;
	double average, each;

	for (size_t l = 0; l < flow_layers(s->flow); l++) {
		nodes = json_array();
		for (uint32_t i = 0; i < flow_nodes(s->flow); i++) {
			flow_depth_total(s->flow, l, i, &average, &each);
			if (average > 0)
				json_array_append_new(nodes,
					json_pack("{s:o, s:f, s:f}", "node",
						slow_json_name_of(s, i), "in_flight", average,
						"each_s", each));
		}
		json_array_append_new(all,
			json_pack("{s:o, s:o}", "layer",
				slow_json_text(flow_layer_name(s->flow, l)), "nodes", nodes));
	}
	return all;
}

static void set_count(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static json_t *threads(const struct slow *s)
{
	json_t *all = json_array();
	size_t n;
	const struct slow_thread *t = slow_threads(s, &n);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(all,
			json_pack("{s:o, s:I, s:I}", "thread", slow_json_text(t[i].name), "sent",
				(json_int_t)t[i].sent, "bound", (json_int_t)t[i].bound));
	return all;
}

static json_t *coverage(const struct slow *s)
{
	const struct flow_counts *c = flow_counts(s->flow);
	const struct slow_calls calls = slow_calls(s);
	json_t *o = json_object(), *reasons = json_object();

	set_count(o, "records", c->records);
	set_count(o, "receives", c->receives);
	set_count(o, "receives_bound", c->receives_bound);
	set_count(o, "requests", c->requests);
	set_count(o, "requests_whole", c->requests_whole);
	set_count(o, "disk_calls", c->disk_calls);
	set_count(o, "disk_calls_by_thread", c->disk_thread);
	set_count(o, "disk_calls_by_content", c->disk_content);
	set_count(o, "metadata_calls", c->meta_calls);
	set_count(o, "metadata_calls_by_thread", c->meta_thread);
	set_count(o, "client_requests", c->client_requests);
	set_count(o, "client_requests_by_thread", c->fuse_thread);
	set_count(o, "client_requests_by_content", c->fuse_content);
	set_count(o, "fuse_requests", c->fuse);
	set_count(o, "fuse_requests_in_calls", c->fuse_in_call);
	set_count(o, "data_requests", calls.data);
	set_count(o, "data_requests_in_calls", calls.data_in_call);
	set_count(o, "other_requests", calls.others);
	set_count(o, "other_requests_in_calls", calls.others_in_call);
	set_count(o, "own_requests", calls.own);
	json_object_set_new(o, "sending_threads", threads(s));
	for (int i = 0; i < FLOW_REASONS; i++)
		if (c->reasons[i])
			set_count(reasons, flow_reason_name((enum flow_reason)i), c->reasons[i]);
	json_object_set_new(o, "not_bound", reasons);
	return o;
}

static json_t *clocks(const struct slow *s)
{
	json_t *all = json_array(), *one;
	struct flow_clock_summary over;
	struct flow_clock c;

	for (uint32_t i = 1; i < flow_nodes(s->flow); i++) {
		if (!flow_clock(s->flow, 0, i, &c) || !slow_clock_over(s, i, &over))
			continue;
		one = json_pack("{s:o, s:o, s:f, s:f, s:f, s:i}", "node", slow_json_name_of(s, i),
			"against", slow_json_name_of(s, 0), "lowest_s", (double)c.lowest_ns * 1e-9,
			"highest_s", (double)c.highest_ns * 1e-9, "narrowest_s",
			(double)c.narrowest_ns * 1e-9, "hops", (int)c.hops);
		json_object_update_new(one,
			json_pack("{s:f, s:f, s:f, s:i, s:i, s:i}", "least_ppm", over.least_ppm,
				"most_ppm", over.most_ppm, "widest_s",
				(double)over.widest_ns * 1e-9, "moments", (int)over.moments,
				"moments_without_steady_rate", (int)over.rate, "moments_when_set",
				(int)over.step));
		json_array_append_new(all, one);
	}
	return all;
}

static const char *const verdicts[] = {
	"no requests", "no fault", "no peers", "too short", "nothing", "found"};

static json_t *comparisons(const struct slow *s)
{
	json_t *all = json_object();

	for (int i = 0; i < SLOW_COMPARISONS; i++) {
		const struct slow_comparison *c = slow_comparison(s, (enum slow_compared)i);
		json_t *names = json_array();

		for (size_t k = 0; k < c->n_found; k++)
			json_array_append_new(names, slow_json_name_of(s, c->found[k]));
		json_object_set_new(all, slow_compared_name((enum slow_compared)i),
			json_pack("{s:s, s:o, s:o}", "verdict", verdicts[c->verdict], "sentence",
				slow_json_text(c->sentence), "found", names));
	}
	return all;
}

json_t *slow_json(const struct slow *s)
{
	const struct slow_server *found[16];
	size_t n = slow_found(s, found, 16);
	json_t *names = json_array(), *servers = json_array(), *slowest = json_array();
	char *sentence = slow_sentence(s);
	json_t *o;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(names, slow_json_name_of(s, found[i]->node));
	for (size_t i = 0; i < s->n_servers; i++)
		json_array_append_new(servers, server(s, &s->servers[i]));
	for (size_t i = 0; i < s->n_top; i++)
		json_array_append_new(slowest, request(s, &s->top[i]));
	o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "verdict", verdicts[s->verdict],
		"sentence", slow_json_text(sentence), "found", names, "servers", servers, "layers",
		layers(s), "slowest", slowest, "coverage", coverage(s), "clocks", clocks(s));
	if (s->verdict == SLOW_NO_FAULT)
		json_object_set_new(o, "comparisons", comparisons(s));
	free(sentence);
	return o;
}
