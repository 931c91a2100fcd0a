/* Runs 'culprit trace' on the hosts of an inventory. */
#include "harness/cli/trace_cluster.h"

#include <errno.h>
#include <string.h>

#include "diag/capture/choice.h"
#include "harness/base/auto.h"
#include "harness/base/units.h"
#include "harness/cli/cmd.h"
#include "harness/run/signals.h"
#include "harness/live/recording.h"

#define LIVE_BOUND (64 << 20)

static void trace_cluster_say(const char *sentence)
{
	cmd_fail("trace", 0, "%s", sentence);
}

static void add_list(json_t *args, const char *key, const struct option_list *l)
{
	json_t *texts = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(texts, json_string(l->v[i]));
	if (l->n)
		json_object_set_new(args, key, texts);
	else
		json_decref(texts);
}

/* "--ring" and the like: a number in the unit's base, or nothing. */
static int add_quantity(json_t *args, const char *key, const char *option, enum unit unit,
	const char *text, bool whole, struct err *e)
{
	double v;
	int rc = text ? unit_parse(unit, text, &v, e) : 0;

	if (rc)
		return err_prefix(e, rc, option);
	if (text)
		json_object_set_new(args, key, whole ? json_integer((json_int_t)v) : json_real(v));
	return 0;
}

/* Arguments of trace.start; what is wrong with them the agents say. */
static int make_args(const struct trace_cluster *t, json_t **out, struct err *e)
{
	auto_json json_t *args = json_pack(
		"{s:s, s:s}", "tracer", "ebpf", "mode", t->mode ? t->mode : "events");
	int rc = add_quantity(args, "ring_s", "--ring", UNIT_SECONDS, t->ring, false, e)
		?: add_quantity(args, "memory_bytes", "--memory", UNIT_BYTES, t->memory, true, e);

	if (rc)
		return rc;
	if (t->heads)
		json_object_set_new(args, "heads", json_true());
	if (t->live)
		json_object_set_new(args, "bound_bytes",
			json_integer((json_int_t)(t->bound > 0 ? t->bound : LIVE_BOUND)));
	add_list(args, "processes", t->processes);
	add_list(args, "calls", t->calls);
	add_list(args, "clients", t->clients);
	add_list(args, "paths", t->paths);
	*out = AUTO_TAKE(args);
	return 0;
}

/* Here as well, so that a mistake costs no connection. */
static int check_filters(const struct trace_cluster *t, struct err *e)
{
	const struct {
		const char *word;
		const struct option_list *list;
	} all[] = {{"process", t->processes}, {"calls", t->calls}, {"client", t->clients},
		{"path", t->paths}};
	struct choice c = {0};
	int rc = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t k = 0; k < all[i].list->n && !rc; k++)
			rc = choice_add(&c, all[i].word, all[i].list->v[k], e);
	return rc;
}

static int trace_cluster_complain(const char *sentence)
{
	return cmd_fail("trace", CULPRIT_EXIT_USAGE, "%s", sentence);
}

int trace_cluster(const struct trace_cluster *t)
{
	auto_json json_t *args = NULL;
	struct recording_options o = {.inventory = t->inventory,
		.folder = t->folder,
		.applications = t->applications->v,
		.n_applications = t->applications->n,
		.trigger = t->trigger,
		.live = t->live,
		.bandwidth = t->bandwidth,
		.for_s = t->for_s,
		.tell = trace_cluster_say};
	size_t cells = 0;
	struct err e = {0};
	int code;

	if (!t->folder)
		return trace_cluster_complain(
			"say where the logs go: --out FOLDER, which must not exist");
	if (t->tracer && strcmp(t->tracer, "ebpf"))
		return trace_cluster_complain("--inventory has the tracer ebpf only");
	if (t->mode && strcmp(t->mode, "events") && strcmp(t->mode, "flow"))
		return trace_cluster_complain("--inventory has the modes events and flow");
	if (t->heads && (!t->mode || strcmp(t->mode, "flow")))
		return trace_cluster_complain("--heads needs --mode flow");
	if (t->trigger && !t->ring)
		return trace_cluster_complain(
			"--trigger writes what --ring keeps: give --ring TIME");
	if (t->live && t->ring)
		return trace_cluster_complain(
			"--live sends all that is recorded, --ring keeps the last seconds: "
			"give one of them");
	if (!t->live && (t->bound > 0 || t->bandwidth > 0))
		return trace_cluster_complain("--bound and --bandwidth are for --live");
	if (check_filters(t, &e) || make_args(t, &args, &e))
		return cmd_error("trace", &e, ERR_USAGE);
	o.tracing = args;
	o.interrupted = signals_catch();
	code = recording_run(&o, &cells, &e) ? cmd_error("trace", &e, ERR_CLUSTER)
					     : CULPRIT_EXIT_OK;
	if (cells)
		printf("%s: %zu written\n", t->folder, cells);
	return code;
}
