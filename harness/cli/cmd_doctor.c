/*
 * culprit doctor: what is needed here and on the nodes, tried rather than looked up, each with
 * what to do about it.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/proc.h"
#include "harness/cli/cmd.h"
#include "harness/cli/contact.h"
#include "harness/lab/lab.h"
#include "harness/run/needs.h"
#include "harness/run/scenario.h"

/* Peer comparison goes by the second: clocks that differ by more than this blur it. */
#define CLOCK_LIMIT_S	  0.1
#define SPACE_LIMIT_BYTES 1e9

static void usage(FILE *f)
{
	fputs("usage: culprit doctor [--inventory FILE] [--json] [SCENARIO]\n\n"
	      "Says whether culprit can work here and, with an inventory, on its nodes, and what\n"
	      "to do where it cannot. 'note' is for what only some of its uses need. Of a node, a\n"
	      "line and what is not well; --json has every check. The programs that workloads run,\n"
	      "the scenario's or else all of culprit's own, are looked for on every client (without\n"
	      "an inventory, here: the embedded lab uses this machine's).\n\n"
	      "  -i, --inventory FILE  try every node of it, too\n"
	      "      --json            every check, as JSON\n\n"
	      "Exit codes: 0 nothing is bad; 3 something is.\n",
	      f);
}

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_BAD };

static const char *const levels[] = {"ok", "note", "BAD"};

struct report {
	json_t *checks;	   /* {where, what, level, text} in order */
	const char *where; /* "here", or the node's name */
	bool bad;
	json_t *needs;	   /* programs of workloads, see harness/run/needs.h */
	bool asked;	   /* ... of a scenario that was named: bad if they are missing */
};

__attribute__((format(printf, 4, 5))) static void add(struct report *r, enum level level, const char *what,
						      const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(r->checks,
			      json_pack("{s:s, s:s, s:s, s:s}", "where", r->where, "what", what, "level",
					level == LEVEL_BAD ? "bad" : levels[level], "text", text));
	r->bad |= level == LEVEL_BAD;
}

/* 'text' in the columns from 'indent' to 80; the cursor is at 'indent' already. */
static void print_wrapped(const char *text, size_t indent)
{
	size_t room = 80 - indent, len, cut;

	for (len = strlen(text); len > room; len = strlen(text)) {
		for (cut = room; cut && text[cut] != ' '; cut--)
			;
		if (!cut)
			cut = strcspn(text, " ");
		if (cut == len)
			break;
		printf("%.*s\n%*s", (int)cut, text, (int)indent, "");
		text += cut + 1;
	}
	puts(text);
}

static void print_line(const char *level, const char *indent, const char *what, const char *text)
{
	printf("  %-4s  %s%-*s  ", strcmp(level, "bad") ? level : "BAD", indent, (int)(14 - strlen(indent)), what);
	print_wrapped(text, 24);
}

/* What is here, all of it; of a node one line, and what is not well. */
static void print_report(const json_t *checks)
{
	const char *where = "";
	size_t i;

	puts("here");
	for (i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i);
		const char *level = json_string_value(json_object_get(c, "level"));
		const char *what = json_string_value(json_object_get(c, "what"));
		const char *text = json_string_value(json_object_get(c, "text"));
		const char *there = json_string_value(json_object_get(c, "where"));

		if (!strcmp(there, "here")) {
			print_line(level, "", what, text);
			continue;
		}
		if (!*where)
			puts("\nnodes");
		if (strcmp(where, there))
			print_line(level, "", there, text);
		else if (strcmp(level, "ok"))
			print_line(level, "  ", what, text);
		where = there;
	}
}

/* ---- here ---- */

static void check_agent(struct report *r)
{
	char *dir = NULL, *path = NULL, *output = NULL;
	struct err e = {""};

	if (home_agent_dir(&dir, &e) < 0) {
		add(r, LEVEL_BAD, "agent", "%s", e.text);
		return;
	}
	if (asprintf(&path, "%s/culprit-agent", dir) < 0)
		path = NULL;
	if (path) {
		const char *const argv[] = {path, "--version", NULL};

		if (proc_run_ok(argv, 10, &output, &e))
			add(r, LEVEL_BAD, "agent", "%s; try 'make' anew", e.text);
		else
			add(r, LEVEL_OK, "agent", "%.*s in %s", (int)strcspn(output, "\n"), output, dir);
	}
	free(output);
	free(path);
	free(dir);
}

static void check_lab(struct report *r)
{
	struct err e = {""};

	if (lab_prerequisites(&e) < 0)
		add(r, LEVEL_NOTE, "lab", "no embedded lab: %s", e.text);
	else
		add(r, LEVEL_OK, "lab", "privileges, devices and programs for the embedded lab are there");
}

/* Whether a key is found without being named; nothing to say where every host names one. */
static void check_keys(struct report *r, const struct inventory *inv)
{
	static const char *const names[] = {"id_ed25519", "id_ecdsa", "id_rsa"};
	const char *home = getenv("HOME");
	char path[4096];
	size_t i;

	for (i = 0; inv && i < inv->n_hosts && inv->hosts[i].ssh.identity; i++)
		;
	if (inv && i == inv->n_hosts)
		return;
	if (getenv("SSH_AUTH_SOCK") && !access(getenv("SSH_AUTH_SOCK"), R_OK | W_OK)) {
		add(r, LEVEL_OK, "ssh keys", "ssh-agent at %s", getenv("SSH_AUTH_SOCK"));
		return;
	}
	for (i = 0; home && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/.ssh/%s", home, names[i]);
		if (!access(path, R_OK)) {
			add(r, LEVEL_OK, "ssh keys", "%s", path);
			return;
		}
	}
	add(r, LEVEL_NOTE, "ssh keys",
	    "no ssh-agent and no default key: hosts in an inventory need their 'identity'");
}

static void check_space(struct report *r)
{
	struct statvfs v;
	double free_bytes;

	if (statvfs(".", &v) < 0) {
		add(r, LEVEL_BAD, "disk space", "cannot look at this folder: %s", strerror(errno));
		return;
	}
	free_bytes = (double)v.f_bavail * (double)v.f_frsize;
	add(r, free_bytes < SPACE_LIMIT_BYTES ? LEVEL_NOTE : LEVEL_OK, "disk space",
	    "%.1f GB free for runs in this folder%s", free_bytes / 1e9,
	    free_bytes < SPACE_LIMIT_BYTES ? ": traces may need more" : "");
}

/* 'n' is a client, or NULL: this machine, for the lab. */
static void check_programs(struct report *r, struct node *n)
{
	json_t *missing = NULL, *entry;
	char text[1100] = "";
	size_t i, len = 0;
	struct err e = {""};

	if (needs_missing(n, r->needs, &missing, &e) < 0) {
		add(r, LEVEL_BAD, "programs", "%s", e.text);
		return;
	}
	json_array_foreach(missing, i, entry)
		add(r, r->asked ? LEVEL_BAD : LEVEL_NOTE, "programs", "there is no %s",
		    needs_text(entry, text, sizeof(text)));
	json_array_foreach(r->needs, i, entry)
		if (len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
						json_string_value(json_object_get(entry, "program")));
	if (!json_array_size(missing))
		add(r, LEVEL_OK, "programs", "workloads have all theirs: %s", text);
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
		check_programs(r, NULL);
}

/* ---- a node ---- */

static void check_op(struct report *r, struct node *n, const char *op)
{
	json_t *result = NULL;
	const char *reason = "";
	struct err e = {""};
	int rc;

	rc = node_call(n, "check", json_pack("{s:s}", "what", op), 20, &result, &e);
	if (json_is_string(json_object_get(result, "reason")))
		reason = json_string_value(json_object_get(result, "reason"));
	if (rc < 0)
		add(r, LEVEL_BAD, op, "%s", e.text);
	else if (!json_is_true(json_object_get(result, "able")))
		add(r, LEVEL_NOTE, op, "not possible: %s", reason);
	else
		add(r, LEVEL_OK, op, "possible%s%s", *reason ? ", by " : "", reason);
	json_decref(result);
}

/* Runs 'argv' (stolen) there; its output, for the caller to free, if it ended with 0. */
static char *run_there(struct node *n, json_t *argv)
{
	json_t *result = NULL;
	char *output = NULL;
	struct err e;

	if (!node_call(n, "run", json_pack("{s:o}", "argv", argv), 40, &result, &e) &&
	    !json_integer_value(json_object_get(result, "exit")))
		output = strdup(json_string_value(json_object_get(result, "output")));
	json_decref(result);
	return output;
}

static void check_sftp(struct report *r, struct node *n)
{
	char local[] = "/tmp/culprit-doctor-XXXXXX", back[64], *one = NULL, *two = NULL;
	struct node_transfer put = {.node = n, .local = local, .remote = "doctor"};
	struct node_transfer fetch = {.node = n, .local = back, .remote = "doctor"};
	struct err e = {""};
	int fd;

	fd = mkstemp(local);
	snprintf(back, sizeof(back), "%s.back", local);
	if (fd < 0 || write(fd, "there and back", 14) != 14)
		add(r, LEVEL_BAD, "sftp", "cannot write '%s': %s", local, strerror(errno));
	else if (node_put_all(&put, 1, 20, &e) < 0 || node_fetch_all(&fetch, 1, 20, &e) < 0 ||
		 file_read(local, &one, NULL, &e) < 0 || file_read(back, &two, NULL, &e) < 0)
		add(r, LEVEL_BAD, "sftp", "%s", e.text);
	else if (strcmp(one, two))
		add(r, LEVEL_BAD, "sftp", "a file came back changed");
	else
		add(r, LEVEL_OK, "sftp", "a file went there and back");
	free(one);
	free(two);
	if (fd >= 0) {
		close(fd);
		unlink(local);
		unlink(back);
	}
}

static void check_node_space(struct report *r, struct node *n)
{
	char *output = run_there(n, json_pack("[s, s, s]", "df", "-Pk", node_dir(n)));
	char *line = output ? strchr(output, '\n') : NULL;
	double kib;

	if (!line || sscanf(line + 1, "%*s %*s %*s %lf", &kib) != 1) {
		add(r, LEVEL_NOTE, "disk space", "cannot tell: df does not work there");
	} else {
		add(r, kib * 1024 < SPACE_LIMIT_BYTES ? LEVEL_NOTE : LEVEL_OK, "disk space",
		    "%.1f GB free for traces", kib * 1024 / 1e9);
	}
	free(output);
}

static void check_clock(struct report *r, struct node *n)
{
	double offset_s, error_s;
	struct err e = {""};

	if (node_clock_offset(n, &offset_s, &error_s, &e) < 0)
		add(r, LEVEL_BAD, "clock", "%s", e.text);
	else if (fabs(offset_s) > CLOCK_LIMIT_S)
		add(r, LEVEL_NOTE, "clock", "%+.3f s from ours: let chrony or ntpd set it", offset_s);
	else
		add(r, LEVEL_OK, "clock", "%+.3f ms from ours, to within %.3f ms", offset_s * 1e3,
		    error_s * 1e3);
}

static void check_path(struct report *r, struct node *n, const char *what, const char *test, const char *path,
		       const char *missing)
{
	char *output;

	if (!path)
		return;
	output = run_there(n, !strcmp(test, "mountpoint") ? json_pack("[s, s, s]", "mountpoint", "-q", path)
							  : json_pack("[s, s, s]", "test", test, path));
	add(r, output ? LEVEL_OK : LEVEL_BAD, what, output ? "%s" : missing, path);
	free(output);
}

static void check_contact(struct report *r, struct contact *c)
{
	const struct host *h = c->host;
	const json_t *hello, *unclean;
	size_t i;

	r->where = h->ssh.name;
	if (c->rc < 0) {
		add(r, LEVEL_BAD, "connection", "%s", c->err.text);
		return;
	}
	hello = node_hello(c->node);
	add(r, LEVEL_OK, "connection", "%s, %s@%s:%u, host key %s", role_name(h->role),
	    h->ssh.user ? h->ssh.user : "root", h->ssh.address, h->ssh.port ? h->ssh.port : 22,
	    h->ssh.host_key ? "as pinned" : "in known_hosts");
	if (json_is_true(json_object_get(hello, "root")))
		add(r, LEVEL_OK, "agent", "%s, as root",
		    json_string_value(json_object_get(hello, "version")));
	else
		add(r, LEVEL_NOTE, "agent", "%s, not as root: most faults and tracers need root there",
		    json_string_value(json_object_get(hello, "version")));
	unclean = json_object_get(hello, "unclean");
	for (i = 0; i < json_array_size(unclean); i++)
		add(r, LEVEL_BAD, "left over", "%s", json_string_value(json_array_get(unclean, i)));
	check_op(r, c->node, "packets.drop");
	check_op(r, c->node, "trace.start");
	check_sftp(r, c->node);
	check_node_space(r, c->node);
	check_clock(r, c->node);
	check_path(r, c->node, "storage", "-d", h->storage, "there is no folder %s there: correct 'storage'");
	check_path(r, c->node, "spare", "-e", h->spare, "there is no %s there: correct 'spare'");
	check_path(r, c->node, "mount", "mountpoint", h->mount,
		   "nothing is mounted on %s there: mount the file system, or correct 'mount'");
	if (h->role == ROLE_CLIENT)
		check_programs(r, c->node);
}

static int check_inventory(struct report *r, const struct inventory *inv, struct err *e)
{
	struct contact *contacts = NULL;
	size_t i;
	int rc;

	rc = contacts_new(inv, &contacts, e);
	for (i = 0; i < inv->n_hosts && !rc; i++)
		check_contact(r, &contacts[i]);
	contacts_free(contacts, inv->n_hosts);
	return rc;
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
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct report r = {0};
	struct inventory *inv = NULL;
	const char *path = NULL;
	struct err e = {""};
	bool json = false;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "hi:", longs, NULL)) != -1) {
		switch (opt) {
		case 'h':
			usage(stdout);
			return CULPRIT_EXIT_OK;
		case 'i':
			path = optarg;
			break;
		case 'j':
			json = true;
			break;
		default:
			usage(stderr);
			return CULPRIT_EXIT_USAGE;
		}
	}
	if (optind + 1 < argc)
		return cmd_fail("doctor", CULPRIT_EXIT_USAGE, "what is '%s'? try 'culprit doctor --help'",
				argv[optind + 1]);
	if (find_needs(&r, argv[optind], &e) < 0)
		return cmd_fail("doctor", CULPRIT_EXIT_USAGE, "%s", e.text);
	if (path && inventory_load(path, &inv, &e) < 0)
		return cmd_fail("doctor", CULPRIT_EXIT_USAGE, "%s", e.text);
	r.checks = json_array();
	check_here(&r, inv);
	if (inv && check_inventory(&r, inv, &e) < 0)
		code = cmd_fail("doctor", CULPRIT_EXIT_INVALID, "%s", e.text);
	if (r.bad)
		code = CULPRIT_EXIT_INVALID;
	if (json) {
		json_t *all = json_pack("{s:b, s:O}", "able", !r.bad, "checks", r.checks);

		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(all);
	} else {
		print_report(r.checks);
	}
	json_decref(r.checks);
	json_decref(r.needs);
	inventory_free(inv);
	return code;
}
