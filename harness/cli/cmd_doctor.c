/*
 * culprit doctor: what is needed here and on the nodes, tried rather than looked up, each with
 * what to do about it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/base/home.h"
#include "harness/base/proc.h"
#include "harness/cli/cmd.h"
#include "harness/cli/doctor.h"
#include "harness/lab/lab.h"
#include "harness/experiment/needs.h"
#include "harness/scenario/scenario.h"

static void usage(FILE *f)
{
	fputs("usage: culprit doctor [--inventory FILE] [--ssh] [--json] [SCENARIO]\n\n"
	      "Says whether culprit can work here and, with an inventory, on its nodes, and what\n"
	      "to do where it cannot: how each node is reached, whether it can drop packets, which\n"
	      "tracers work there (each is tried), disk space, clock, which servers and mounts of the\n"
	      "file system are there, and which faults can run. Nothing on a node is changed. 'note'\n"
	      "is for what only some of culprit's uses need. The programs that workloads run, the\n"
	      "scenario's or else all of culprit's own, are looked for on every client (without an\n"
	      "inventory, here: the embedded lab uses this machine's).\n\n"
	      "  -i, --inventory FILE  try every node of it, too\n"
	      "      --ssh             connect to nobody: say how each node would be reached, and\n"
	      "                        where that is from, inventory or SSH configuration\n"
	      "      --json            every check, as JSON\n\n"
	      "Exit codes: 0 nothing is bad; 2 the inventory is wrong; 3 something is bad.\n",
		f);
}

static void add_all(struct report *r, enum level level, const char *what, const char *brief,
	const char *fmt, va_list ap)
{
	static const char *const levels[] = {"ok", "note", "bad"};
	char text[1400];

	vsnprintf(text, sizeof(text), fmt, ap);
	json_array_append_new(r->checks,
		json_pack("{s:s, s:s, s:s, s:s, s:s*}", "where", r->where, "what", what, "level",
			levels[level], "text", text, "short", brief));
	r->bad |= level == LEVEL_BAD;
}

void doctor_add(struct report *r, enum level level, const char *what, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_all(r, level, what, NULL, fmt, ap);
	va_end(ap);
}

void doctor_add_brief(struct report *r, enum level level, const char *what, const char *brief,
	const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_all(r, level, what, brief, fmt, ap);
	va_end(ap);
}

static void check_agent(struct report *r)
{
	char *dir = NULL, *path = NULL, *output = NULL;
	struct err e = {""};

	if (home_agent_dir(&dir, &e) < 0) {
		doctor_add(r, LEVEL_BAD, "agent", "%s", e.text);
		return;
	}
	if (asprintf(&path, "%s/culprit-agent", dir) < 0)
		path = NULL;
	if (path) {
		const char *const argv[] = {path, "--version", NULL};

		if (proc_run_ok(argv, 10, &output, &e))
			doctor_add(r, LEVEL_BAD, "agent", "%s; try 'make' anew", e.text);
		else
			doctor_add(r, LEVEL_OK, "agent", "%.*s in %s", (int)strcspn(output, "\n"),
				output, dir);
	}
	free(output);
	free(path);
	free(dir);
}

static void check_lab(struct report *r)
{
	struct err e = {""};

	if (lab_prerequisites(&e) < 0)
		doctor_add(r, LEVEL_NOTE, "lab", "no embedded lab: %s", e.text);
	else
		doctor_add(r, LEVEL_OK, "lab",
			"privileges, devices and programs for the embedded lab are there");
}

/* Whether a key is found without being named; nothing to say where every host, or the SSH
 * configuration, names one. */
static void check_keys(struct report *r, const struct inventory *inv)
{
	static const char *const names[] = {"id_ed25519", "id_ecdsa", "id_rsa"};
	const char *home = getenv("HOME");
	char path[4096];
	size_t i;

	for (i = 0; inv && i < inv->n_hosts &&
		(inv->hosts[i].ssh.identity || inv->hosts[i].ssh.identities);
		i++)
		;
	if (inv && i == inv->n_hosts)
		return;
	if (getenv("SSH_AUTH_SOCK") && !access(getenv("SSH_AUTH_SOCK"), R_OK | W_OK)) {
		doctor_add(r, LEVEL_OK, "ssh keys", "ssh-agent at %s", getenv("SSH_AUTH_SOCK"));
		return;
	}
	for (i = 0; home && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/.ssh/%s", home, names[i]);
		if (!access(path, R_OK)) {
			doctor_add(r, LEVEL_OK, "ssh keys", "%s", path);
			return;
		}
	}
	doctor_add(r, LEVEL_NOTE, "ssh keys",
		"no ssh-agent and no default key: hosts in an inventory need their 'identity'");
}

static void check_space(struct report *r)
{
	struct statvfs v;
	double free_bytes;

	if (statvfs(".", &v) < 0) {
		doctor_add(r, LEVEL_BAD, "disk space", "cannot look at this folder: %s",
			strerror(errno));
		return;
	}
	free_bytes = (double)v.f_bavail * (double)v.f_frsize;
	doctor_add(r, free_bytes < DOCTOR_SPACE_LIMIT_BYTES ? LEVEL_NOTE : LEVEL_OK, "disk space",
		"%.1f GB free for runs in this folder%s", free_bytes / 1e9,
		free_bytes < DOCTOR_SPACE_LIMIT_BYTES ? ": traces may need more" : "");
}

void doctor_programs(struct report *r, struct node *n)
{
	json_t *missing = NULL, *entry;
	char text[1100] = "";
	size_t i, len = 0;
	struct err e = {""};

	if (needs_missing(n, r->needs, &missing, &e) < 0) {
		doctor_add(r, LEVEL_BAD, "programs", "%s", e.text);
		return;
	}
	json_array_foreach(missing, i, entry) doctor_add(r, r->asked ? LEVEL_BAD : LEVEL_NOTE,
		"programs", "there is no %s", needs_text(entry, text, sizeof(text)));
	json_array_foreach(r->needs, i, entry) if (len < sizeof(text))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
			json_string_value(json_object_get(entry, "program")));
	if (!json_array_size(missing))
		doctor_add(r, LEVEL_OK, "programs", "workloads have all theirs: %s", text);
	json_decref(missing);
}

static void check_here(struct report *r, const struct inventory *inv)
{
	r->where = "here";
	check_agent(r);
	check_lab(r);
	check_keys(r, inv);
	check_space(r);
	if (!inv)
		doctor_programs(r, NULL);
}

static int add_needs(void *list, lua_State *L, const struct part *p)
{
	struct err ignored;

	return needs_add(L, p, list, &ignored);
}

/* Those of the scenario's workloads, or of all our own. */
static int find_needs(struct report *r, const char *path, struct err *e)
{
	struct scenario *s = NULL;
	int rc;

	r->needs = json_array();
	r->asked = path;
	if (!path)
		return part_each(PART_WORKLOAD, add_needs, r->needs, e);
	rc = scenario_load(path, &s, e);
	for (size_t i = 0; !rc && i < s->n_workloads; i++)
		rc = needs_add(s->L, &s->workloads[i], r->needs, e);
	scenario_free(s);
	return rc;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option longs[] = {{"inventory", required_argument, NULL, 'i'},
		{"ssh", no_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct report r = {0};
	struct inventory *inv = NULL;
	const char *path = NULL;
	struct err e = {""};
	bool json = false, ssh = false;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "hi:", longs, NULL)) != -1) {
		switch (opt) {
		case 'h': usage(stdout); return CULPRIT_EXIT_OK;
		case 'i': path = optarg; break;
		case 's': ssh = true; break;
		case 'j': json = true; break;
		default: usage(stderr); return CULPRIT_EXIT_USAGE;
		}
	}
	if (optind + 1 < argc)
		return cmd_fail("doctor", CULPRIT_EXIT_USAGE,
			"what is '%s'? try 'culprit doctor --help'", argv[optind + 1]);
	if (find_needs(&r, argv[optind], &e) < 0 || (path && inventory_load(path, &inv, &e) < 0)) {
		json_decref(r.needs);
		return cmd_fail("doctor", CULPRIT_EXIT_USAGE, "%s", e.text);
	}
	if (ssh && !inv)
		return cmd_fail(
			"doctor", CULPRIT_EXIT_USAGE, "--ssh needs an inventory: --inventory FILE");
	if (ssh) {
		doctor_print_ssh(inv, json);
		json_decref(r.needs);
		inventory_free(inv);
		return CULPRIT_EXIT_OK;
	}
	r.checks = json_array();
	check_here(&r, inv);
	if (inv && doctor_nodes(&r, inv, &e) < 0)
		code = cmd_fail("doctor", CULPRIT_EXIT_INVALID, "%s", e.text);
	else if (inv && !r.bad)
		doctor_cluster(&r, path);
	if (r.bad)
		code = CULPRIT_EXIT_INVALID;
	if (json) {
		json_t *all = json_pack("{s:b, s:O}", "able", !r.bad, "checks", r.checks);

		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(all);
	} else {
		doctor_print(r.checks);
	}
	json_decref(r.checks);
	json_decref(r.needs);
	inventory_free(inv);
	return code;
}
