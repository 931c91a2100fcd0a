/* The command 'slow': says where the time of requests went. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/judging/flows.h"
#include "harness/judging/writings.h"
#include "diag/slow/slow.h"

struct options {
	long cell, recording, top;
	const char *server, *procedure, *file_system;
	double from_s, to_s, onset_s, offset_s;
	bool json;
};

/* A cell whose logs are read. */
struct looking {
	const struct options *o;
	const json_t *row;
	struct flows *flows;
	struct slow *slow;
};

static const char *node_name(void *ctx, uint32_t node)
{
	const struct looking *r = ctx;

	return flow_node_name(flows_flow(r->flows), node);
}

static int64_t clock_ns(void *ctx, uint32_t node)
{
	const struct looking *r = ctx;

	return flows_clock_ns(r->flows, node);
}

static bool is_server(void *ctx, uint32_t node)
{
	const struct looking *r = ctx;

	return flows_is_server(r->flows, node);
}

/* Does the run have this server? */
static int check_server(const struct looking *r, struct err *e)
{
	const json_t *servers = jget(jget(jget(r->row, "detail"), "reduction"), "servers");
	json_t *v;
	size_t i;

	if (!r->o->server)
		return 0;
	json_array_foreach(servers, i, v)
		if (jget_text(v, "name") && !strcmp(jget_text(v, "name"), r->o->server))
			return 0;
	return err_set(e, -EINVAL, "the run has no server '%s'", r->o->server);
}

/* The fault's, or what is to be judged as if it were. */
static int64_t cli_slow_moment(const struct looking *r, const char *key, double as_if_s)
{
	if (r->o->onset_s > 0)
		return as_if_s > 0 ? jget_int(r->row, "start_ns") + (int64_t)(as_if_s * 1e9) : 0;
	return jget_int(r->row, key);
}

static int64_t onset_of(const struct looking *r)
{
	return cli_slow_moment(r, "onset_ns", r->o->onset_s);
}

static int64_t offset_of(const struct looking *r)
{
	return cli_slow_moment(r, "offset_ns", r->o->offset_s);
}

static int read_logs(struct looking *r, struct store *s, struct err *e)
{
	const struct options *o = r->o;
	const json_t *written = jget(r->row, "written");
	const double first_s = jget_real(written, "from_s"), last_s = jget_real(written, "to_s");
	const struct slow_spec spec = {.start_ns = jget_int(r->row, "start_ns"),
		.onset_ns = onset_of(r),
		.offset_ns = offset_of(r),
		.seconds = (int32_t)jget_int(r->row, "seconds"),
		.top = (size_t)o->top,
		.server = o->server,
		.procedure = o->procedure,
		.from_s = fmax(o->from_s, first_s),
		.to_s = last_s > 0 && (o->to_s <= 0 || last_s < o->to_s) ? last_s : o->to_s,
		.node_name = node_name,
		.clock_ns = clock_ns,
		.is_server = is_server,
		.ctx = r};
	struct flow_sink sink;
	int rc = check_server(r, e);

	slow_new(&spec, &r->slow);
	sink = slow_sink(r->slow);
	rc = rc ?: flows_new(s, r->row, o->file_system, &sink, &r->flows, e);
	rc = rc ?: flow_run(flows_flow(r->flows), e);
	if (!rc)
		slow_done(r->slow, flows_flow(r->flows));
	return rc;
}

static void looking_clear(struct looking *r)
{
	slow_free(r->slow);
	flows_free(r->flows);
}

/* ---- what is printed ---- */

static void print_head(const struct looking *r)
{
	const json_t *victims = jget(r->row, "victims");
	const char *fault = jget_text(r->row, "fault");
	json_t *v;
	size_t i;

	printf("cell %lld  ", (long long)jget_int(r->row, "cell"));
	text_print_clean(stdout, jget_text(r->row, "workload") ?: "?");
	fputs(", ", stdout);
	text_print_clean(stdout, fault && strcmp(fault, "none") != 0 ? fault : "no fault");
	json_array_foreach(victims, i, v) {
		fputs(i ? ", " : " on ", stdout);
		text_print_clean(stdout, json_string_value(v) ?: "?");
	}
	if (r->o->cell && onset_of(r)) {
		printf(", %sfrom %.1f s ", r->o->onset_s > 0 ? "as if " : "",
			(double)(onset_of(r) - jget_int(r->row, "start_ns")) * 1e-9);
		if (offset_of(r))
			printf("to %.1f s ",
				(double)(offset_of(r) - jget_int(r->row, "start_ns")) * 1e-9);
		printf("of %lld s", (long long)jget_int(r->row, "seconds"));
	}
	putchar('\n');
}

/* Which of its recordings, and of which part of the cell. */
static void print_written(const json_t *written)
{
	auto_free char *text = alloc_format(
		"recording %lld of %lld, which holds %.1f s to %.1f s at most: %s",
		(long long)jget_int(written, "number"), (long long)jget_int(written, "of"),
		jget_real(written, "from_s"), jget_real(written, "to_s"),
		jget_text(written, "why"));

	if (!written)
		return;
	fputs("  ", stdout);
	print_wrapped(stdout, 2, text);
}

static void print_sentence(const struct looking *r)
{
	auto_free char *sentence = slow_sentence(r->slow);

	fputs("  ", stdout);
	print_wrapped(stdout, 2, sentence);
}

static void print_tables(const struct looking *r)
{
	putchar('\n');
	slow_text_phases(r->slow, stdout);
	putchar('\n');
	slow_text_layers(r->slow, stdout);
	if (r->o->top) {
		putchar('\n');
		slow_text_top(r->slow, stdout);
	}
	putchar('\n');
	slow_text_coverage(r->slow, stdout);
}

static json_t *cell_json(const struct looking *r, const char *missing)
{
	json_t *o = slow_json(r->slow), *troubles = json_array();
	const char *what;

	json_object_set_new(o, "cell", json_integer(jget_int(r->row, "cell")));
	json_object_set_new(o, "attempt", json_integer(jget_int(r->row, "number")));
	json_object_set(o, "workload", jget(r->row, "workload"));
	json_object_set(o, "fault", jget(r->row, "fault"));
	json_object_set(o, "victims", jget(r->row, "victims"));
	json_object_set(o, "recording", jget(r->row, "written"));
	for (size_t i = 0; (what = flows_trouble(r->flows, i)); i++)
		json_array_append_new(troubles, json_string(what) ?: json_null());
	if (missing)
		json_array_append_new(troubles, json_string(missing));
	json_object_set_new(o, "troubles", troubles);
	return o;
}

/* 'last': the complaint of the cell before, which need not be repeated. */
static int print_cell(struct store *s, const struct options *o, const json_t *row, json_t *cells,
	struct err *last)
{
	struct looking r = {.o = o, .row = row};
	char why[512] = "";
	struct err e;
	int code = CULPRIT_EXIT_OK;
	bool complete;

	if (read_logs(&r, s, &e)) {
		if (strcmp(e.text, last->text) != 0)
			code = cmd_error("slow", &e, ERR_DAMAGED);
		*last = e;
		looking_clear(&r);
		return CULPRIT_EXIT_USAGE;
	}
	complete = flows_complete(r.flows, why, sizeof(why));
	if (cells) {
		json_array_append_new(cells, cell_json(&r, complete ? NULL : why));
	} else if (complete || o->cell) {
		print_head(&r);
		print_written(jget(row, "written"));
		print_sentence(&r);
		if (o->cell)
			print_tables(&r);
	}
	for (size_t i = 0; flows_trouble(r.flows, i); i++)
		code = cmd_fail("slow", CULPRIT_EXIT_USAGE, "%s", flows_trouble(r.flows, i));
	if (!complete) {
		if (strcmp(why, last->text) != 0)
			cmd_fail("slow", 0, "%s", why);
		err_set(last, -EINVAL, "%s", why);
		code = CULPRIT_EXIT_USAGE;
	}
	looking_clear(&r);
	return code;
}

/* ---- cells ---- */

/* Is it in the plan? */
static bool is_planned(struct store *s, long cell)
{
	json_auto_t *tally = NULL;
	struct err e;
	json_t *v;
	size_t i;

	if (store_tally(s, &tally, &e))
		return false;
	json_array_foreach(jget(tally, "cells"), i, v)
		if (jget_int(v, "number") == cell)
			return true;
	return false;
}

/* A cell, or what its flight recorder wrote, each time or the one time that is asked for. */
static int print_row(struct store *s, const struct options *o, const json_t *row, json_t *cells,
	struct err *last)
{
	bool never;
	const size_t n = writing_count(row, &never), one = (size_t)o->recording;
	auto_free char *why = written_never(row);
	int code = CULPRIT_EXIT_OK, rc;

	if (never)
		return cmd_fail("slow", o->cell ? CULPRIT_EXIT_USAGE : CULPRIT_EXIT_OK,
			"cell %lld: %s", (long long)jget_int(row, "cell"), why);
	if (one > n)
		return cmd_fail("slow", CULPRIT_EXIT_USAGE, "cell %lld has %zu recordings",
			(long long)jget_int(row, "cell"), n);
	if (!n)
		return print_cell(s, o, row, cells, last);
	for (size_t i = one ? one : 1; i <= (one ? one : n); i++) {
		auto_json json_t *written = writing_row(row, i);

		rc = print_cell(s, o, written, cells, last);
		code = rc ? rc : code;
	}
	return code;
}

static int print_cells(struct store *s, const struct options *o, json_t *rows)
{
	json_t *cells = o->json ? json_array() : NULL, *row;
	struct err last = {.text = ""};
	int code = CULPRIT_EXIT_OK, one;
	size_t i, n = 0;

	json_array_foreach(rows, i, row) {
		if (o->cell ? jget_int(row, "cell") != o->cell : jget_true(row, "training"))
			continue;
		one = print_row(s, o, row, cells, &last);
		code = one ? one : code;
		n++;
	}
	if (!n && o->cell)
		code = is_planned(s, o->cell)
			? cmd_fail("slow", CULPRIT_EXIT_USAGE,
				  "cell %ld has no confirmed attempt; 'culprit status' says why",
				  o->cell)
			: cmd_fail("slow", CULPRIT_EXIT_USAGE, "the run has no cell %ld", o->cell);
	else if (!n)
		code = cmd_fail("slow", CULPRIT_EXIT_USAGE, "the run has no confirmed cell");
	if (cells && n)
		cmd_print_json(json_pack("{s:s, s:o}", "run", store_run_id(s), "cells", cells));
	else
		json_decref(cells);
	return code;
}

static int slow_run(const struct call *c)
{
	const struct options *o = c->options;
	json_auto_t *rows = NULL;
	struct store *s = NULL;
	struct err e;
	int code, rc = store_open(c->args[0], &s, &e);

	if (!rc && store_is_corpus(s) && store_has_requests(s, 0, &e) != 1)
		rc = err_set(&e, -EINVAL, "'%s' is a corpus: the traces are not in it", c->args[0]);
	if (!rc && o->to_s > 0 && o->to_s <= o->from_s)
		rc = err_set(&e, -EINVAL, "--to must be after --from");
	if (!rc && o->offset_s > 0 && o->offset_s <= o->onset_s)
		rc = err_set(&e, -EINVAL, "--offset must be after --onset");
	if (!rc && o->offset_s > 0 && o->onset_s <= 0)
		rc = err_set(&e, -EINVAL, "--offset needs --onset");
	rc = rc ?: store_rows(s, ROWS_TRACED, 0, &rows, &e);
	code = rc ? cmd_error("slow", &e, ERR_USAGE) : print_cells(s, o, rows);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"cell", 0, OPTION_WHOLE, offsetof(struct options, cell), "N",
		"this cell, with its tables (default: a sentence for each scored cell)", 1, 1e6},
	{"recording", 0, OPTION_WHOLE, offsetof(struct options, recording), "N",
		"of cells with a flight recorder: only what it wrote the N-th time (default: each)",
		1, 1e3},
	{"top", 0, OPTION_WHOLE, offsetof(struct options, top), "N",
		"how many of the slowest requests (default 10)", 0, 1e5},
	{"server", 0, OPTION_TEXT, offsetof(struct options, server), "NAME",
		"only requests to this server"},
	{"procedure", 0, OPTION_TEXT, offsetof(struct options, procedure), "NAME",
		"only requests of this procedure, by name or number: WRITE"},
	{"from", 0, OPTION_QUANTITY, offsetof(struct options, from_s), "TIME",
		"only requests that began so long after the cell's start: 5s",
		.unit = UNIT_SECONDS},
	{"to", 0, OPTION_QUANTITY, offsetof(struct options, to_s), "TIME",
		"... and before this time", .unit = UNIT_SECONDS},
	{"onset", 0, OPTION_QUANTITY, offsetof(struct options, onset_s), "TIME",
		"judge as if a fault had begun so long after the cell's start: for a cell "
		"without one, or for what happened by itself",
		.unit = UNIT_SECONDS},
	{"offset", 0, OPTION_QUANTITY, offsetof(struct options, offset_s), "TIME",
		"... and had ended at this time (default: it lasted)", .unit = UNIT_SECONDS},
	{"file-system", 0, OPTION_TEXT, offsetof(struct options, file_system), "NAME|FILE",
		"whose messages they are, for a run that did not record it"},
	{"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL,
		"print all of it as JSON: {run, cells: [{cell, recording, verdict, sentence, "
		"found, servers, layers, slowest, coverage, clocks, comparisons, troubles}]}; "
		"times in seconds"},
	{0},
};

const struct command slow_command = {.name = "slow",
	.summary = "where requests spent time",
	.arguments = "RUN",
	.about =
		"Follows the requests of a run whose tracer, or flight recorder, recorded flows "
		"(tracer = { \"ebpf\", mode = \"flow\", heads = true }) and says which server, and "
		"which part of its requests, took most of the time that the fault added: compared "
		"with the time before it and with the other servers, and only where the "
		"difference is more than chance at 5 %. Else it says what the slowest did and what "
		"would be needed. A cell without a fault is compared with itself, by the same "
		"rule: each server with the others, and the second half with the first.\n\n"
		"The requests are those that were stored when the run was measured, also in a "
		"whole corpus; of older runs, and with --file-system, they are followed through "
		"the logs.\n\n"
		"Parts: there (from the client's send until the server has read the call), waiting "
		"(in the server), queue (waiting there while another request was in its disk), "
		"disk, answering (from the last disk call to the answer's send), back. They add "
		"up to the request's time at the client. With --cell, tables: by phase and "
		"server the requests, the server's share of all request time, median and 99th "
		"percentile, and each part's share of the server's time in percent; requests in "
		"flight by layer; the slowest requests; and how much was bound to what, what "
		"was not and why.",
	.examples = "culprit slow runs/NAME\n"
		    "culprit slow runs/NAME --cell 2 --top 20\n"
		    "culprit slow runs/NAME --cell 2 --procedure WRITE --from 8s --to 20s --json\n"
		    "culprit slow runs/NAME --cell 1 --onset 10s --offset 24s",
	.exits = "0 printed; 2 usage or input error, also where a log is missing or cut short and "
		 "the rest was printed.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.top = 10},
	.run = slow_run};
