/* The command 'status': shows how far a run is. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/clock.h"
#include "harness/cli/cmd.h"
#include "harness/store/lock.h"
#include "harness/store/store.h"

/* A running run writes once a second. One that is silent for so long hangs, or was stopped. */
#define SILENT_S 120
#define FAILED_SHOWN 3

/* The last status that the run's process wrote; an empty object if there is none. */
static json_t *read_status(const char *folder)
{
	char *path = alloc_format("%s/status.json", folder);
	struct err e;
	json_t *v = file_check_readable(path, &e) ? NULL : json_load_file(path, 0, NULL);

	free(path);
	return json_is_object(v) ? v : json_object();
}

/* Replaces the status of a run that is not going on by what its store has. */
static int add_tally(const char *folder, json_t *status, struct err *e)
{
	static const char *const of_running[] = {
		"failed", "eta_s", "cell", "phase", "left_s", "phase_for_s", "nodes"};
	json_auto_t *tally = NULL;
	json_t *attempts;
	struct store *s = NULL;
	int rc = store_open(folder, &s, e);
	json_int_t left;

	rc = rc ?: store_tally(s, &tally, e);
	store_close(s);
	if (rc)
		return rc;
	attempts = jget(tally, "attempts");
	left = (json_int_t)json_array_size(jget(tally, "missing"));
	json_object_set(status, "cells", jget(tally, "planned"));
	json_object_set(status, "done", jget(tally, "confirmed"));
	json_object_set(status, "invalid", jget(attempts, "invalid"));
	json_object_set(status, "error", jget(attempts, "error"));
	json_object_set(status, "aborted", jget(attempts, "aborted"));
	json_object_set(status, "not_confirmed", jget(tally, "failed"));
	json_object_set_new(status, "state", json_string(left ? "stopped" : "complete"));
	for (size_t i = 0; i < sizeof(of_running) / sizeof(of_running[0]); i++)
		json_object_del(status, of_running[i]);
	return 0;
}

static long long whole(const json_t *v, const char *key)
{
	return (long long)jget_int(v, key);
}

/* "  serving, traced by ebpf: s1 s3" */
static void show_nodes(const json_t *nodes)
{
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *doing = jget(json_array_get(nodes, i), "doing");
		size_t k = 0;

		while (k < i && !json_equal(jget(json_array_get(nodes, k), "doing"), doing))
			k++;
		if (k < i)
			continue;
		printf("  %s:", json_string_value(doing));
		for (; k < json_array_size(nodes); k++)
			if (json_equal(jget(json_array_get(nodes, k), "doing"), doing))
				printf(" %s", jget_text(json_array_get(nodes, k), "name"));
		putchar('\n');
	}
}

static void show_running(const char *folder, const json_t *s)
{
	const json_t *cell = jget(s, "cell");
	const char *phase = jget_text(s, "phase");
	double left = jget_real(s, "left_s"), eta = jget_real(s, "eta_s");
	double silent = (double)clock_real_ns() / 1e9 - jget_real(s, "updated_s");
	char at[32];

	clock_text((double)time(NULL) + eta, true, "%a %H:%M", at, sizeof(at));
	printf("%s: running (process %lld): %lld of %lld cells done", folder, whole(s, "pid"),
		whole(s, "done"), whole(s, "cells"));
	if (whole(s, "failed"))
		printf(", %lld without a result", whole(s, "failed"));
	printf("; %lld attempts invalid\n", whole(s, "invalid"));
	if (cell)
		printf("now: cell %lld %s, attempt %lld: %s", whole(cell, "number"),
			jget_text(cell, "title"), whole(cell, "attempt"), phase ? phase : "");
	else
		printf("now: %s", phase ? phase : "");
	if (left >= 1)
		printf(" (%.0f s left)", left);
	else if (jget_real(s, "phase_for_s") >= 1)
		printf(" (for %.0f s)", jget_real(s, "phase_for_s"));
	/* Before the first cell nobody knows how long preparing takes. */
	printf(cell ? "\nleft: %d:%02d:%02d, until about %s\n"
		    : "\nthen: cells of %d:%02d:%02d, until about %s at the earliest\n",
		(int)eta / 3600, (int)eta / 60 % 60, (int)eta % 60, at);
	if (json_array_size(jget(s, "nodes")))
		puts("nodes:");
	show_nodes(jget(s, "nodes"));
	if (silent > SILENT_S)
		printf("it has not written its status for %.0f s\n", silent);
}

static void show_stopped(const char *folder, const json_t *s)
{
	const json_t *failed = jget(s, "not_confirmed");
	size_t n = json_array_size(failed);
	bool complete = !strcmp(jget_text(s, "state"), "complete");

	printf("%s: %s: %lld of %lld cells have a confirmed attempt; %lld attempts invalid, "
	       "%lld in error",
		folder, complete ? "complete" : "not running", whole(s, "done"), whole(s, "cells"),
		whole(s, "invalid"), whole(s, "error"));
	if (whole(s, "aborted"))
		printf(", %lld aborted", whole(s, "aborted"));
	putchar('\n');
	if (complete)
		printf("'culprit table %s' prints its scores\n", folder);
	else
		printf("'culprit resume %s' goes on with it\n", folder);
	for (size_t i = n > FAILED_SHOWN ? n - FAILED_SHOWN : 0; i < n; i++) {
		const json_t *row = json_array_get(failed, i);
		const char *reason = jget_text(row, "reason");

		printf("cell %lld, attempt %lld %s: %s\n", whole(row, "cell"), whole(row, "number"),
			jget_text(row, "outcome"), reason ? reason : "no reason given");
	}
}

static void status_show(const char *folder, const json_t *s, bool running)
{
	const json_t *line;
	size_t i;

	if (running)
		show_running(folder, s);
	else
		show_stopped(folder, s);
	json_array_foreach(jget(s, "last"), i, line)
		printf("%s%s\n", i ? "  " : "last:\n  ", json_string_value(line));
}

struct options {
	bool json;
};

static int status_run(const struct call *c)
{
	const struct options *o = c->options;
	const char *folder = c->args[0];
	int code = CULPRIT_EXIT_OK;
	pid_t pid = 0;
	bool running = run_is_locked(folder, &pid);
	json_t *status = read_status(folder);
	struct err e;

	json_object_set_new(status, "running", json_boolean(running));
	if (running) {
		json_object_set_new(status, "state", json_string("running"));
		json_object_set_new(status, "pid", json_integer(pid));
	} else if (add_tally(folder, status, &e)) {
		code = cmd_error("status", &e, ERR_USAGE);
	}
	if (!code && !o->json)
		status_show(folder, status, running);
	if (!code && o->json)
		cmd_print_json(status);
	else
		json_decref(status);
	return code;
}

static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL, "print as JSON"},
	{0},
};

const struct command status_command = {.name = "status",
	.summary = "show how far a run is",
	.arguments = "RUN",
	.about = "Shows whether a run is going on and how far it is: cells done and left, the "
		 "current cell and its phase, the remaining time, what each node does, and the "
		 "last lines of its log. It does not disturb the run: it reads status.json, not "
		 "the store.",
	.examples = "culprit status runs/NAME",
	.exits = "0 whatever the run's state; 2 there is no such run.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.run = status_run};
