/* The command 'replay': repeats a captured application. */
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/replay/replay_rows.h"
#include "harness/run/signals.h"
#include "harness/replay/replay.h"
#include "harness/replayer/replayer.h"

struct options {
	const char *inventory;
	const char *output;
	unsigned mode, passes, clients, copies;
	double speed, cpu_pct, stall_s, limit_s;
	bool keep, json;
};

static void replay_say(const char *sentence)
{
	cmd_fail("replay", 0, "%s", sentence);
}

static void print_rows(const json_t *r)
{
	struct replay_row rows[REPLAY_ROWS_MAX];
	size_t n = replay_rows(r, rows), passes = json_array_size(jget(r, "passes"));

	printf("  %-22s %14s %14s %11s\n", "", "application", "replay", "difference");
	for (size_t i = 0; i < n; i++)
		printf("  %-22s %14s %14s %11s\n", rows[i].what,
			*rows[i].application ? rows[i].application : "-",
			*rows[i].replay ? rows[i].replay : "-", rows[i].difference);
	if (passes > 1)
		printf("  of the replay, means of %zu passes\n", passes);
	if (replay_crowding(r) >= 2)
		printf("  computing took %.1f times the processor time that it needs: the clients' "
		       "processors were busy\n",
			replay_crowding(r));
}

/* Calls that did not do what they did when captured. */
static long long print_errors(const json_t *r)
{
	long long all = 0, shorts = (long long)round(replay_mean(r, "short"));
	const char *name;
	json_t *n;

	json_object_foreach(jget(r, "errors"), name, n) {
		printf("  failed: %s, %lld times; it succeeded when captured\n", name,
			(long long)json_integer_value(n));
		all += json_integer_value(n);
	}
	if (shorts)
		printf("  short: %lld reads or writes a pass moved fewer bytes than when "
		       "captured\n",
			shorts);
	return all + shorts;
}

static int print_result(const json_t *r, bool json)
{
	size_t n = json_array_size(jget(r, "clients"));

	if (json) {
		cmd_print_json(json_incref((json_t *)r));
		return json_object_size(jget(r, "errors")) > 0 || replay_mean(r, "short") > 0
			? CULPRIT_EXIT_SHORT
			: CULPRIT_EXIT_OK;
	}
	text_print_clean(stdout, jget_text(r, "trace"));
	printf(": %lld ranks on %zu clients, %s\n", (long long)jget_int(r, "ranks"), n,
		jget_text(r, "mode"));
	print_rows(r);
	if (n > 1)
		printf("  %-22s %.3f ms from client to client and back\n", "messages",
			jget_real(r, "round_trip_s") * 1e3);
	return print_errors(r) ? CULPRIT_EXIT_SHORT : CULPRIT_EXIT_OK;
}

/* What would fail only after the replay. */
static int check_output(const char *path, struct err *e)
{
	auto_free char *copy = path ? alloc_copy(path) : NULL;
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) == 0 ? access(path, W_OK) : access(dirname(copy), W_OK))
		return err_errno(e, -errno, "cannot write '%s'", path);
	return S_ISDIR(stat(path, &st) == 0 ? st.st_mode : 0)
		? err_set(e, -EISDIR, "'%s' is a folder", path)
		: 0;
}

static int save(const json_t *r, const char *path, struct err *e)
{
	struct file_text t;
	int rc = path ? file_text_open(&t, e) : 0;

	if (rc || !path)
		return rc;
	json_dumpf(r, t.f, JSON_COMPACT | JSON_REAL_PRECISION(9));
	fputc('\n', t.f);
	return file_text_save(&t, path, 0644, e);
}

static int cli_replay_run(const struct call *c)
{
	const struct options *o = c->options;
	struct replay_options r = {.inventory = o->inventory,
		.trace = c->args[0],
		.mode = replay_mode_names[o->mode],
		.speed = o->speed,
		.cpu = o->cpu_pct / 100,
		.stall_s = o->stall_s,
		.limit_s = o->limit_s,
		.passes = o->passes ? o->passes : 1,
		.clients = o->clients,
		.copies = o->copies ? o->copies : 1,
		.keep = o->keep,
		.tell = replay_say};
	json_t *result = NULL;
	struct err e = {0};
	int code;

	if (!o->inventory)
		return cmd_fail(
			"replay", CULPRIT_EXIT_USAGE, "on which clients? give --inventory FILE");
	if (o->output && !strcmp(o->output, "-"))
		return cmd_fail("replay", CULPRIT_EXIT_USAGE,
			"--output takes a file; --json prints the result");
	if (check_output(o->output, &e))
		return cmd_error("replay", &e, ERR_USAGE);
	r.interrupted = signals_catch();
	if (replay_run(&r, &result, &e))
		return cmd_error("replay", &e, ERR_CLUSTER);
	code = print_result(result, o->json);
	if (save(result, o->output, &e))
		code = cmd_error("replay", &e, ERR_HARNESS);
	json_decref(result);
	return code;
}

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, offsetof(struct options, inventory), NULL, "",
		.group = inventory_rows},
	{"mode", 0, OPTION_CHOICE, offsetof(struct options, mode), "causal|afap|think|wall",
		"causal (the default): compute as captured, wait for the ranks that were waited "
		"for; afap: neither; think: pauses as long as captured; wall: calls at the times "
		"as captured"},
	{"speed", 0, OPTION_QUANTITY, offsetof(struct options, speed), "X",
		"divide computing and pauses by this (1)", 0.001, 1e6, UNIT_NONE},
	{"cpu", 0, OPTION_QUANTITY, offsetof(struct options, cpu_pct), "SHARE",
		"this share of the computing keeps a processor busy, the rest sleeps (100%)", 0,
		100, UNIT_PERCENT},
	{"passes", 0, OPTION_COUNT, offsetof(struct options, passes), "N",
		"replay it so many times (1)", 1, 100000},
	{"clients", 0, OPTION_COUNT, offsetof(struct options, clients), "N",
		"use the first N clients only", 1, 4096},
	{"scale-ranks", 0, OPTION_COUNT, offsetof(struct options, copies), "N",
		"replay N copies of the application at once, each with all ranks and files of its "
		"own; none waits for another (1)",
		1, 65536},
	{"stall", 0, OPTION_QUANTITY, offsetof(struct options, stall_s), "TIME",
		"end with an error when nothing goes on for so long (60s)", 1, 86400, UNIT_SECONDS},
	{"limit", 0, OPTION_QUANTITY, offsetof(struct options, limit_s), "TIME",
		"stop it after so long, with an error (12h)", 1, 1e6, UNIT_SECONDS},
	{"keep", 0, OPTION_FLAG, offsetof(struct options, keep), NULL,
		"leave the dummy files for the next replay of this trace with --keep"},
	{"output", 'o', OPTION_TEXT, offsetof(struct options, output), "FILE",
		"write the result, with the bytes over time, to FILE; 'culprit timeline TRACE "
		"--replay FILE' draws it"},
	{"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL, "print as JSON"},
	{0},
};

const struct command replay_command = {.name = "replay",
	.summary = "do again what was captured",
	.arguments = "TRACE --inventory FILE",
	.about =
		"Does again, in closed loop, what 'culprit capture' recorded: each rank's calls on "
		"files, its computing, and its waiting for other ranks. Neither the application "
		"nor its data nor MPI is needed: dummy files of the right sizes are made in a "
		"folder of their own on the file system, and removed afterwards. Ranks are dealt "
		"to the clients in blocks. Prints a table of application against replay: run time, "
		"where it went, bytes, latencies by call; and calls that failed though they had "
		"succeeded when captured.",
	.examples =
		"culprit replay app.app --inventory my-hosts.lua\n"
		"culprit replay app.app --inventory my-hosts.lua -o replay.json\n"
		"culprit timeline app.app --replay replay.json -o app.html\n"
		"culprit replay app.app --inventory my-hosts.lua --scale-ranks 4\n"
		"culprit replay app.app --inventory my-hosts.lua --mode afap --passes 5 --keep\n"
		"culprit replay app.app --inventory my-hosts.lua --speed 2 --cpu 50% --json",
	.exits = "0 replayed; 1 calls failed, or moved less, that had not when captured; 2 "
		 "usage error, "
		 "or the trace or the inventory cannot be used; 3 it could not be replayed.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.defaults = &(
		const struct options){.speed = 1, .cpu_pct = 100, .stall_s = 60, .limit_s = 43200},
	.run = cli_replay_run};
