/* culprit doctor: tries what culprit needs, on this machine and on the nodes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/home.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"
#include "harness/cli/cmd.h"
#include "harness/cli/doctor.h"
#include "harness/cli/tables.h"
#include "harness/cli/list.h"
#include "harness/lab/lab.h"
#include "harness/run/needs.h"
#include "harness/scenario/scenario.h"

void doctor_add_brief(struct report *r, enum level level, const char *what, const char *brief,
	const char *fmt, ...)
{
	static const char *const levels[] = {"ok", "note", "bad"};
	char text[1400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(r->checks,
		json_pack("{s:s, s:s, s:s, s:s, s:s*}", "where", r->where, "what", what, "level",
			levels[level], "text", text, "short", brief));
	r->bad |= level == LEVEL_BAD;
}

static void check_agent(struct report *r)
{
	const char *args[sizeof(((struct agent_start *)0)->words) / sizeof(char *) + 2] = {NULL};
	struct agent_start agent;
	char *output = NULL;
	struct err e;
	int rc = agent_start_init(&agent, &e);

	if (!rc) {
		memcpy(args, agent.words, agent.n * sizeof(*args));
		args[agent.n] = "--version";
		rc = proc_run_ok(args, 10, &output, &e);
	}
	if (rc)
		doctor_add(r, LEVEL_BAD, "agent", "%s; build or install culprit again", e.text);
	else
		doctor_add(r, LEVEL_OK, "agent", "%.*s: %s", (int)strcspn(output, "\n"), output,
			agent.words[agent.n - 1]);
	free(output);
	agent_start_clear(&agent);
}

static void check_lab(struct report *r)
{
	struct err e;

	if (lab_prerequisites("glusterfs", &e) < 0)
		doctor_add(r, LEVEL_NOTE, "lab", "no embedded lab: %s", e.text);
	else
		doctor_add(r, LEVEL_OK, "lab",
			"privileges, devices and programs for the embedded lab are there");
}

/* Looks for a default key, unless inventory or SSH configuration name one for every host. */
static void check_keys(struct report *r)
{
	static const char *const names[] = {"id_ed25519", "id_ecdsa", "id_rsa"};
	const char *home = getenv("HOME"), *agent = getenv("SSH_AUTH_SOCK");
	const struct inventory *inv = r->inventory;
	size_t named = 0;

	while (inv && named < inv->n_hosts &&
		(inv->hosts[named].ssh.identity || inv->hosts[named].ssh.identities))
		named++;
	if (inv && named == inv->n_hosts)
		return;
	if (agent && !access(agent, R_OK | W_OK)) {
		doctor_add(r, LEVEL_OK, "ssh keys", "ssh-agent at %s", agent);
		return;
	}
	for (size_t i = 0; home && i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = alloc_format("%s/.ssh/%s", home, names[i]);
		bool there = !access(path, R_OK);

		if (there)
			doctor_add(r, LEVEL_OK, "ssh keys", "%s", path);
		free(path);
		if (there)
			return;
	}
	doctor_add(r, LEVEL_NOTE, "ssh keys",
		"no ssh-agent and no default key: hosts in an inventory need their 'identity'");
}

static void check_space(struct report *r)
{
	struct statvfs v;
	double free_bytes;
	bool little;

	if (statvfs(".", &v) < 0) {
		doctor_add(r, LEVEL_BAD, "disk space", "cannot look at this folder: %s",
			strerror(errno));
		return;
	}
	free_bytes = (double)v.f_bavail * (double)v.f_frsize;
	little = free_bytes < DOCTOR_SPACE_LIMIT_BYTES;
	doctor_add(r, little ? LEVEL_NOTE : LEVEL_OK, "disk space",
		"%.1f GB free for runs in this folder%s", free_bytes / 1e9,
		little ? ": traces may need more" : "");
}

void doctor_programs(struct report *r, struct node *n)
{
	json_t *missing, *entry;
	char text[1100] = "";
	size_t i, len = 0;
	struct err e;

	if (needs_missing(n, r->needs, &missing, &e) < 0) {
		doctor_add(r, LEVEL_BAD, "programs", "%s", e.text);
		return;
	}
	json_array_foreach(missing, i, entry) {
		doctor_add(r, r->scenario ? LEVEL_BAD : LEVEL_NOTE, "programs", "there is no %s",
			needs_text(entry, text, sizeof(text)));
	}
	json_array_foreach(r->needs, i, entry) {
		if (len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
				i ? " " : "", jget_text(entry, "program"));
	}
	if (!json_array_size(missing))
		doctor_add(r, LEVEL_OK, "programs", "workloads have all theirs: %s", text);
	json_decref(missing);
}

static int add_needs(void *list, lua_State *L, const struct part *p)
{
	struct err ignored;

	return needs_add(L, p, list, &ignored);
}

struct options {
	const char *inventory;
	bool ssh, json, learn_errnos;
	long max_victims;
	struct option_list never;
};

static int doctor_look(struct report *r, bool json)
{
	struct err e;
	int code = CULPRIT_EXIT_OK;

	r->checks = json_array();
	r->where = "here";
	check_agent(r);
	check_lab(r);
	check_keys(r);
	check_space(r);
	if (r->scenario)
		doctor_add(r, LEVEL_OK, "scenario",
			"'%s' and its files can be loaded: %zu workloads, %zu faults, %zu "
			"detectors",
			r->scenario->path, r->scenario->n_workloads, r->scenario->n_faults,
			r->scenario->n_detectors);
	if (!r->inventory)
		doctor_programs(r, NULL);
	else if (doctor_nodes(r, &e) < 0)
		code = cmd_error("doctor", &e, ERR_HARNESS);
	else if (doctor_fs(r), !r->bad)
		doctor_cluster(r);
	if (json)
		cmd_print_json(json_pack("{s:b, s:O}", "able", !r->bad, "checks", r->checks));
	else
		doctor_print(r->checks);
	json_decref(r->checks);
	return r->bad ? CULPRIT_EXIT_INVALID : code;
}

static int check_never(const struct inventory *inv, const struct plan_limits *limits)
{
	for (size_t i = 0; i < limits->n_never; i++) {
		size_t k = 0;

		while (k < inv->n_hosts && strcmp(inv->hosts[k].ssh.name, limits->never[i]))
			k++;
		if (k == inv->n_hosts)
			return cmd_fail("doctor", CULPRIT_EXIT_USAGE,
				"--never: there is no node '%s' in the inventory '%s'",
				limits->never[i], inv->path);
	}
	return CULPRIT_EXIT_OK;
}

static int doctor_run(const struct call *c)
{
	const struct options *o = c->options;
	struct inventory *inv = NULL;
	struct scenario *scenario = NULL;
	struct report r = {0};
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (o->ssh && !o->inventory)
		return cmd_fail(
			"doctor", CULPRIT_EXIT_USAGE, "--ssh needs an inventory: --inventory FILE");
	if (o->learn_errnos && (o->ssh || o->json || c->n))
		return cmd_fail("doctor", CULPRIT_EXIT_USAGE,
			"--learn-errnos is a run of its own: --ssh, --json and a scenario mean "
			"nothing to it");
	if (o->learn_errnos)
		return doctor_learn_errnos(o->inventory);
	r.needs = json_array();
	if (c->args[0])
		code = doctor_scenario(c->args[0], o->inventory, r.needs, &scenario);
	else if (part_each(PART_WORKLOAD, add_needs, r.needs, &e))
		code = cmd_error("doctor", &e, ERR_USAGE);
	if (!code && o->inventory && inventory_load(o->inventory, &inv, &e) < 0)
		code = cmd_error("doctor", &e, ERR_USAGE);
	r.limits = (struct plan_limits){
		.max_victims = o->max_victims, .never = o->never.v, .n_never = o->never.n};
	if (!code && inv)
		code = check_never(inv, &r.limits);
	if (!code && scenario && plan_check_faults(scenario, &r.limits, &e))
		code = cmd_error("doctor", &e, ERR_USAGE);
	if (!code && o->ssh) {
		doctor_print_ssh(inv, o->json);
	} else if (!code) {
		r.inventory = inv;
		r.scenario = scenario;
		code = doctor_look(&r, o->json);
	}
	json_decref(r.needs);
	scenario_free(scenario);
	inventory_free(inv);
	return code;
}

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, offsetof(struct options, inventory), NULL, "",
		.group = inventory_rows},
	{"ssh", 0, OPTION_FLAG, offsetof(struct options, ssh), NULL,
		"connect to no node: print how each would be reached, and whether inventory or SSH "
		"configuration says so"},
	{"max-victims", 0, OPTION_WHOLE, offsetof(struct options, max_victims), "N",
		"reject a scenario in which a fault hits more than N servers at once", 1,
		MAX_VICTIMS},
	{"never", 0, OPTION_LIST, offsetof(struct options, never), "NODE",
		"check faults as 'culprit run --never NODE' would make them. May be repeated"},
	{"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL, "print every check as JSON"},
	{"learn-errnos", 0, OPTION_FLAG, offsetof(struct options, learn_errnos), NULL,
		"kill, stop and limit a server, once each, while clients call; print what they "
		"saw, and lines for the file system's Lua file (some minutes)"},
	{0},
};

const struct command doctor_command = {.name = "doctor",
	.summary = "check machine and nodes",
	.arguments = "[SCENARIO]",
	.about =
		"Checks whether culprit can work on this machine and, with an inventory, on its "
		"nodes, and says what to do where it cannot.\n\n"
		"For each node it tries: the connection, file transfer, dropping packets, every "
		"tracer, disk space, the clock, whether the disk under each server's storage "
		"answers, every function of the file system's Lua file, and "
		"the check of every fault, with how it would be made on each host and what its "
		"undo does not promise. It changes nothing on a node, but for the files that "
		"the file system's probe writes and removes. A 'note' marks what only "
		"some uses need.\n\n"
		"With a scenario, its files are loaded first: the scenario, its workloads, faults "
		"and detectors, the inventory and the file system's Lua file. The first mistake of "
		"each is printed with file and line. On the nodes, its faults are checked first, "
		"then the built-in ones.\n\n"
		"It looks for the programs of the scenario's workloads, or of all built-in ones, "
		"on every client; without an inventory on this machine, since the embedded lab "
		"uses its programs.\n\n"
		"--learn-errnos is different: it is a run without a fault, then one with faults, "
		"on the inventory's hosts or the lab's, undone as in any run. It gives up when the "
		"first fails, or when a fault leaves a node that is not well again within half a "
		"minute; then it shows what it has learned. Its files are removed in any case. "
		"Faults that need a restart are skipped unless the inventory allows it.",
	.examples = "culprit doctor\n"
		    "culprit doctor my-scenario.lua\n"
		    "culprit doctor --inventory my-hosts.lua quick\n"
		    "culprit doctor --inventory my-hosts.lua --ssh\n"
		    "culprit doctor --learn-errnos",
	.exits = "0 nothing is bad; 2 usage error, or a file of the scenario or the inventory is "
		 "wrong; 3 something is bad.",
	ARGUMENTS(0, 1),
	OPTIONS(rows, struct options),
	.offers = list_scenario_names,
	.run = doctor_run};
