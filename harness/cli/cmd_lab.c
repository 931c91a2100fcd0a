/* The command 'lab': builds, shows, enters and removes the embedded cluster. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/lab/lab.h"

struct options {
	struct lab_options lab;
	const char *name;
	bool json;
};

static int up(const struct call *c)
{
	struct options *o = c->options;
	struct lab_options *l = &o->lab;
	struct err e;
	int rc = lab_up(l, &e);

	if (rc < 0)
		return cmd_error("lab up", &e, ERR_HARNESS);
	printf("%s: %s, %u server%s, %u client%s, %u outsider%s; inventory %s/inventory.lua\n",
		rc ? "the lab is up already" : "the lab is up", l->fs, l->servers,
		l->servers == 1 ? "" : "s", l->clients, l->clients == 1 ? "" : "s", l->outsiders,
		l->outsiders == 1 ? "" : "s", l->dir);
	return CULPRIT_EXIT_OK;
}

static int down(const struct call *c)
{
	const struct options *o = c->options;
	struct err e;
	int rc = lab_down(o->lab.dir, &e);

	if (rc < 0)
		return cmd_error("lab down", &e, ERR_HARNESS);
	puts(rc ? "no lab" : "the lab is down");
	return CULPRIT_EXIT_OK;
}

static void print_options(const json_t *o)
{
	static const struct {
		const char *key, *label;
		enum unit unit;
	} rows[] = {
		{"disk_rate", "disk", UNIT_BYTE_RATE},
		{"disk_seek_s", "seek", UNIT_SECONDS},
		{"storage_bytes", "storage", UNIT_BYTES},
		{"spare_bytes", "spare", UNIT_BYTES},
		{"nic_rate", "NIC", UNIT_BYTE_RATE},
		{"nic_queue_s", "its queue", UNIT_SECONDS},
	};

	printf("%s, %s", jget_text(o, "file_system"), jget_text(o, "layout"));
	if (*jget_text(o, "settings"))
		printf(", %s", jget_text(o, "settings"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[32];

		printf("; %s %s", rows[i].label,
			unit_format(rows[i].unit, jget_real(o, rows[i].key), text, sizeof(text)));
	}
	if (json_is_true(jget(o, "no_offload")))
		printf("; no offload");
	if (jget_real(o, "cpus") > 0)
		printf("; a node has %g processors", jget_real(o, "cpus"));
	if (jget_real(o, "memory_bytes") > 0) {
		char text[32];

		printf("; a node has %s of memory",
			unit_format(UNIT_BYTES, jget_real(o, "memory_bytes"), text, sizeof(text)));
	}
	puts(json_is_true(jget(o, "tcp_2009")) ? "; TCP recovers losses as in 2009" : "");
}

static void print_status(const json_t *s)
{
	const char *state = jget_text(s, "state"), *why = jget_text(s, "why");
	json_t *node;
	size_t i;

	if (!strcmp(state, "none")) {
		puts("no lab");
		return;
	}
	printf("the lab in %s is %s%s%s\n", jget_text(s, "dir"), state, why ? ": " : "",
		why ? why : "");
	if (jget(s, "options"))
		print_options(jget(s, "options"));
	json_array_foreach(jget(s, "nodes"), i, node) {
		printf("  %-4s %-9s %-15s %s\n", jget_text(node, "name"), jget_text(node, "role"),
			jget_text(node, "address"),
			json_is_null(jget(node, "pid")) ? "dead" : "up");
	}
	if (jget(s, "inventory"))
		printf("inventory %s\n", jget_text(s, "inventory"));
	if (!strcmp(state, "broken"))
		puts("'culprit lab down' removes it, 'culprit lab up' builds it anew");
}

static int status(const struct call *c)
{
	const struct options *o = c->options;
	struct err e;
	json_t *s;
	bool broken;

	if (lab_status(o->lab.dir, &s, &e) < 0)
		return cmd_error("lab status", &e, ERR_HARNESS);
	broken = !strcmp(jget_text(s, "state"), "broken");
	if (o->json)
		cmd_print_json(json_incref(s));
	else
		print_status(s);
	json_decref(s);
	return broken ? CULPRIT_EXIT_INVALID : CULPRIT_EXIT_OK;
}

static int enter(const struct call *c)
{
	const struct options *o = c->options;
	char **command = c->args + 1;
	struct err e;
	int rc;

	if (*command && !strcmp(*command, "--"))
		command++;
	else if (*command && **command == '-')
		return cmd_fail("lab exec", CULPRIT_EXIT_USAGE,
			"'%s' after the node is no command; options come before it: 'culprit lab "
			"exec --dir DIR %s -- COMMAND'",
			*command, c->args[0]);
	if (!*command)
		return cmd_fail("lab exec", CULPRIT_EXIT_USAGE,
			"which command? 'culprit lab exec %s -- COMMAND'", c->args[0]);
	rc = lab_exec(o->lab.dir, c->args[0], command, &e);
	return rc < 0 ? cmd_error("lab exec", &e, ERR_HARNESS) : rc;
}

/* The lab's own processes; only lab_up starts them, and it sets LAB_TAG. */
static int part(const struct call *c)
{
	const struct options *o = c->options;
	const char *what = strchr(c->command->name, ' ') + 1;
	bool of_node = !strcmp(what, "node") || !strcmp(what, "disk");

	return getenv(LAB_TAG) && !of_node == !o->name ? lab_child_main(what, o->lab.dir, o->name)
						       : CULPRIT_EXIT_USAGE;
}

/* Sets the absolute path of --dir, without slashes at its end. */
static int set_dir(void *field, const char *text, struct err *e)
{
	char cwd[PATH_MAX] = "", path[2 * PATH_MAX];
	size_t n;

	if (*text != '/' && !getcwd(cwd, sizeof(cwd)))
		return err_errno(e, -errno, "cannot be resolved");
	n = (size_t)snprintf(path, sizeof(path), "%s%s%s", cwd, *cwd ? "/" : "", text);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (!*text || n >= sizeof((struct lab_options){0}.dir))
		return err_set(e, -EINVAL, "takes the path of a folder, not '%.100s'", text);
	memcpy(field, path, n + 1);
	return 0;
}

static int set_subnet(void *field, const char *text, struct err *e)
{
	if (strlen(text) >= sizeof((struct lab_options){0}.subnet))
		return err_set(
			e, -EINVAL, "takes a network such as 10.77.0.0/24, not '%.60s'", text);
	strcpy(field, text);
	return 0;
}

/* A name or a path, and after the first comma the settings. */
static int set_fs(void *field, const char *text, struct err *e)
{
	char *fs = field,
	     *settings = fs + offsetof(struct lab_options, settings) -
		offsetof(struct lab_options, fs);
	size_t n = strcspn(text, ",");
	const char *rest = text[n] ? text + n + 1 : "";

	if (!n || n >= sizeof((struct lab_options){0}.fs) ||
		strlen(rest) >= sizeof((struct lab_options){0}.settings) || strpbrk(text, "\"\\\n"))
		return err_set(e, -EINVAL,
			"takes the name of a file system or the path of its file, and KEY=VALUE, "
			"..., not '%.100s'",
			text);
	memcpy(fs, text, n);
	fs[n] = '\0';
	strcpy(settings, rest);
	return 0;
}

static int set_layout(void *field, const char *text, struct err *e)
{
	if (!*text || strlen(text) >= sizeof((struct lab_options){0}.layout))
		return err_set(e, -EINVAL, "takes the name of a layout, not '%.60s'", text);
	strcpy(field, text);
	return 0;
}

#define AT(field) offsetof(struct options, field)
#define LAB(field) offsetof(struct options, lab.field)
#define DIR_ROW                                                                                    \
	{                                                                                          \
		"dir", 0, OPTION_CALL, LAB(dir), "DIR", "the lab's folder (default: " LAB_DIR ")", \
			.set = set_dir                                                             \
	}

static const struct option_row up_rows[] = {
	DIR_ROW,
	{"servers", 0, OPTION_COUNT, LAB(servers), "N", "servers s1, s2 ... (default: 4)", 1,
		LAB_MAX_OF_A_ROLE},
	{"clients", 0, OPTION_COUNT, LAB(clients), "N",
		"clients c1, c2 ..., with the file system on /mnt/fs (default: 2)", 1,
		LAB_MAX_OF_A_ROLE},
	{"outsiders", 0, OPTION_COUNT, LAB(outsiders), "N",
		"hosts outside the cluster, o1, o2 ... (default: 1)", 0, LAB_MAX_OF_A_ROLE},
	{"fs", 0, OPTION_CALL, LAB(fs), "NAME|FILE[,KEY=VALUE,...]",
		"the file system, with its settings; 'none': nodes and disks only; 'culprit list "
		"file-systems' shows all (default: glusterfs)",
		.set = set_fs},
	{"layout", 0, OPTION_CALL, LAB(layout), "NAME",
		"how it spreads files over the servers (default: its first layout)",
		.set = set_layout},
	{"disk-rate", 0, OPTION_QUANTITY, LAB(disk_rate), "RATE",
		"sequential throughput of a server's disk, at least 100kB/s (default: 8MB/s)", 1e5,
		0, UNIT_BYTE_RATE},
	{"disk-seek", 0, OPTION_QUANTITY, LAB(disk_seek_s), "TIME",
		"time of one seek, at most 1s (default: 4ms)", 0, 1, UNIT_SECONDS},
	{"storage", 0, OPTION_QUANTITY, LAB(storage_bytes), "SIZE",
		"partition for the server's data, at least 64MiB (default: 1GiB)", 64 << 20, 0x1p44,
		UNIT_BYTES},
	{"spare", 0, OPTION_QUANTITY, LAB(spare_bytes), "SIZE",
		"second partition on the same disk, for disk hogs, at least 1MiB (default: 512MiB)",
		1 << 20, 0x1p44, UNIT_BYTES},
	{"nic", 0, OPTION_QUANTITY, LAB(nic_rate), "RATE",
		"network rate of servers and clients, each way, at least 100kB/s (default: "
		"100Mbit/s)",
		1e5, 0, UNIT_BYTE_RATE},
	{"nic-queue", 0, OPTION_QUANTITY, LAB(nic_queue_s), "TIME",
		"how long a packet waits for a NIC before it is dropped, at most 1s (default: "
		"50ms)",
		0, 1, UNIT_SECONDS},
	{"no-offload", 0, OPTION_FLAG, LAB(no_offload), NULL,
		"packets of 1500 bytes, so that a fault drops such packets, at more processor "
		"time; else up to 64 KiB are one packet, as NICs with offload do"},
	{"tcp-2009", 0, OPTION_FLAG, LAB(tcp_2009), NULL,
		"nodes recover lost packets as in 2009: no tail loss probes, no RACK, no F-RTO"},
	{"cpus", 0, OPTION_QUANTITY, LAB(cpus), "N",
		"processors of a node, at least 0.05: 0.5 is half of one (default: this machine's, "
		"shared)",
		0.05, 0, UNIT_NONE},
	{"memory", 0, OPTION_QUANTITY, LAB(memory_bytes), "SIZE",
		"memory of a node, at least 64MiB (default: this machine's, shared)", 64 << 20,
		0x1p44, UNIT_BYTES},
	{"subnet", 0, OPTION_CALL, LAB(subnet), "NETWORK",
		"the nodes' addresses, /8 to /26; this machine takes the first (default: "
		"10.77.0.0/24)",
		.set = set_subnet},
	{0},
};
static const struct option_row dir_rows[] = {DIR_ROW, {0}};
static const struct option_row status_rows[] = {
	DIR_ROW, {"json", 0, OPTION_FLAG, AT(json), NULL, "print as JSON"}, {0}};
static const struct option_row part_rows[] = {
	DIR_ROW, {"name", 0, OPTION_TEXT, AT(name), "NAME", "the node"}, {0}};

static const struct options defaults = {.lab = LAB_DEFAULTS};
#define SUBCOMMAND(rows) OPTIONS(rows, struct options), .defaults = &defaults

static const struct command *const parts[] = {
	&(const struct command){"lab up", "build the lab; changes nothing if it is up already",
		.about = "Builds the lab and writes DIR/inventory.lua. A half-built or broken lab "
			 "is removed and built anew.",
		SUBCOMMAND(up_rows), .run = up},
	&(const struct command){"lab down", "remove the lab, also a half-built one",
		SUBCOMMAND(dir_rows), .run = down},
	&(const struct command){"lab status", "show what the lab is made of and what is alive",
		SUBCOMMAND(status_rows), .run = status},
	&(const struct command){"lab exec",
		"run a command on a node; its exit code is the command's",
		"NODE -- COMMAND [ARGUMENT ...]", ARGUMENTS(1, INT_MAX), .in_order = true,
		SUBCOMMAND(dir_rows), .run = enter},
	&(const struct command){"lab build", .hidden = true, SUBCOMMAND(part_rows), .run = part},
	&(const struct command){"lab switch", .hidden = true, SUBCOMMAND(part_rows), .run = part},
	&(const struct command){"lab node", .hidden = true, SUBCOMMAND(part_rows), .run = part},
	&(const struct command){"lab disk", .hidden = true, SUBCOMMAND(part_rows), .run = part},
	NULL,
};

const struct command lab_command = {.name = "lab",
	.summary = "run a small cluster here",
	.about = "Runs a small real storage cluster on this machine, as root: every node has its "
		 "own address, host name, processes, mounts and sshd; every server a modelled disk "
		 "and a shaped NIC. 'culprit run' uses its inventory like any other cluster's.",
	.examples = "culprit lab up\n"
		    "culprit lab up --dir /run/culprit/other --subnet 10.78.0.0/24 --servers 8\n"
		    "culprit lab up --fs orangefs\n"
		    "culprit lab exec c1 -- ls /mnt/fs",
	.exits = "0 done, or nothing to do; 2 it cannot be done as asked; 3 it failed, and what "
		 "was made is removed again, but for the logs. 'status': 3 if the lab is broken. "
		 "'exec': the command's own.",
	.parts = parts};
