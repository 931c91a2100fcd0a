#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/units.h"
#include "harness/cli/cmd.h"
#include "harness/lab/lab.h"

static const char help[] =
	"usage: culprit lab up [OPTION ...]\n"
	"       culprit lab down [--dir DIR]\n"
	"       culprit lab status [--dir DIR] [--json]\n"
	"       culprit lab exec [--dir DIR] NODE -- COMMAND [ARGUMENT ...]\n"
	"\n"
	"A small real GlusterFS cluster on this machine: every node has its own address, host\n"
	"name, processes, mounts and sshd; every server a modelled disk and a shaped NIC.\n"
	"'up' writes DIR/inventory.lua, which 'culprit run' takes as it takes any cluster's.\n"
	"\n"
	"  --dir DIR           the lab's folder; all it names lies there (" LAB_DIR ")\n"
	"\n"
	"up:\n"
	"  --servers N         servers, s1 s2 ... (4)\n"
	"  --clients N         clients, c1 c2 ..., with the file system on /mnt/fs (2)\n"
	"  --outsiders N       hosts that are neither, o1 o2 ... (1)\n"
	"  --layout LAYOUT     distribute (files in pieces of 4 MB, each on one server), or\n"
	"                      disperse (every stripe over all servers, one redundant) (distribute)\n"
	"  --disk-rate RATE    what a server's disk moves, alone and in sequence (8MB/s)\n"
	"  --disk-seek TIME    what it costs to go on elsewhere on the disk (4ms)\n"
	"  --storage SIZE      the partition that the server keeps its data on (1GiB)\n"
	"  --spare SIZE        another one on the same disk, for hogs (512MiB)\n"
	"  --nic RATE          of servers and clients, each way (100Mbit/s)\n"
	"  --no-cache          keep the clients' page cache out of the way of programs that do not ask\n"
	"                      for O_DIRECT, too; their requests then go one at a time\n"
	"  --subnet NETWORK    its addresses, /8 to /26; this machine takes the first (10.77.0.0/24)\n"
	"\n"
	"status:\n"
	"  --json              as one JSON object\n"
	"\n"
	"'up' of a lab that is up changes nothing; of a half-built or broken one it begins anew.\n"
	"Exit codes: 0 done (or nothing to do); 2 it cannot be done as asked; 3 it failed, and what\n"
	"was made is removed again. 'status': 3 if the lab is broken. 'exec': the command's own.\n";

enum {
	OPT_DIR = 256,
	OPT_SERVERS,
	OPT_CLIENTS,
	OPT_OUTSIDERS,
	OPT_LAYOUT,
	OPT_DISK_RATE,
	OPT_DISK_SEEK,
	OPT_STORAGE,
	OPT_SPARE,
	OPT_NIC,
	OPT_SUBNET,
	OPT_NO_CACHE,
	OPT_JSON,
	OPT_NAME
};

static const struct option up_options[] = {
	{"dir", required_argument, NULL, OPT_DIR},
	{"servers", required_argument, NULL, OPT_SERVERS},
	{"clients", required_argument, NULL, OPT_CLIENTS},
	{"outsiders", required_argument, NULL, OPT_OUTSIDERS},
	{"layout", required_argument, NULL, OPT_LAYOUT},
	{"disk-rate", required_argument, NULL, OPT_DISK_RATE},
	{"disk-seek", required_argument, NULL, OPT_DISK_SEEK},
	{"storage", required_argument, NULL, OPT_STORAGE},
	{"spare", required_argument, NULL, OPT_SPARE},
	{"nic", required_argument, NULL, OPT_NIC},
	{"subnet", required_argument, NULL, OPT_SUBNET},
	{"no-cache", no_argument, NULL, OPT_NO_CACHE},
	{"help", no_argument, NULL, 'h'},
	{0},
};
static const struct option dir_options[] = {
	{"dir", required_argument, NULL, OPT_DIR},
	{"help", no_argument, NULL, 'h'},
	{0},
};
static const struct option status_options[] = {
	{"dir", required_argument, NULL, OPT_DIR},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{0},
};
static const struct option part_options[] = {
	{"dir", required_argument, NULL, OPT_DIR},
	{"name", required_argument, NULL, OPT_NAME},
	{0},
};

struct parsed {
	struct lab_options o;
	const char *name;
	int json;
};

static int count(const char *option, const char *text, unsigned *n, struct err *e)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value > 1000)
		return err_set(e, -EINVAL, "--%s '%s' is not a number of nodes", option, text);
	*n = (unsigned)value;
	return 0;
}

static int quantity(
	const char *option, enum unit unit, const char *text, double *value, struct err *e)
{
	int rc = unit_parse(unit, text, value, e);

	return rc ? err_prefix(e, rc, "--%s", option) : 0;
}

static int set_dir(struct lab_options *o, const char *text, struct err *e)
{
	char cwd[PATH_MAX], path[2 * PATH_MAX];
	size_t n;

	if (*text == '/')
		snprintf(path, sizeof(path), "%s", text);
	else if (getcwd(cwd, sizeof(cwd)))
		snprintf(path, sizeof(path), "%s/%s", cwd, text);
	else
		return err_errno(e, -errno, "cannot tell the current folder");
	for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	if (!*text || n >= sizeof(o->dir))
		return err_set(e, -EINVAL, "--dir '%.100s' is no path of a folder", text);
	memcpy(o->dir, path, n + 1);
	return 0;
}

static int set_layout(struct lab_options *o, const char *text, struct err *e)
{
	if (!strcmp(text, "distribute"))
		o->layout = LAB_DISTRIBUTE;
	else if (!strcmp(text, "disperse"))
		o->layout = LAB_DISPERSE;
	else
		return err_set(
			e, -EINVAL, "--layout '%s' is neither distribute nor disperse", text);
	return 0;
}

/* 0, or -EINVAL with a sentence; 1 if help was asked for and given. */
static int parse(
	int argc, char **argv, const struct option *options, struct parsed *p, struct err *e)
{
	struct lab_options *o = &p->o;
	int c, rc = 0;

	lab_options_init(o);
	opterr = 0;
	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (c) {
		case OPT_DIR: rc = set_dir(o, optarg, e); break;
		case OPT_SERVERS: rc = count("servers", optarg, &o->servers, e); break;
		case OPT_CLIENTS: rc = count("clients", optarg, &o->clients, e); break;
		case OPT_OUTSIDERS: rc = count("outsiders", optarg, &o->outsiders, e); break;
		case OPT_LAYOUT: rc = set_layout(o, optarg, e); break;
		case OPT_DISK_RATE:
			rc = quantity("disk-rate", UNIT_BYTE_RATE, optarg, &o->disk_rate, e);
			break;
		case OPT_DISK_SEEK:
			rc = quantity("disk-seek", UNIT_SECONDS, optarg, &o->disk_seek_s, e);
			break;
		case OPT_STORAGE:
			rc = quantity("storage", UNIT_BYTES, optarg, &o->storage_bytes, e);
			break;
		case OPT_SPARE:
			rc = quantity("spare", UNIT_BYTES, optarg, &o->spare_bytes, e);
			break;
		case OPT_NIC: rc = quantity("nic", UNIT_BYTE_RATE, optarg, &o->nic_rate, e); break;
		case OPT_SUBNET:
			if (strlen(optarg) >= sizeof(o->subnet))
				rc = err_set(e, -EINVAL, "--subnet '%.60s' is too long", optarg);
			else
				strcpy(o->subnet, optarg);
			break;
		case OPT_NO_CACHE: o->no_cache = true; break;
		case OPT_NAME: p->name = optarg; break;
		case OPT_JSON: p->json = 1; break;
		case 'h': fputs(help, stdout); return 1;
		case ':': rc = err_set(e, -EINVAL, "'%s' needs a value", argv[optind - 1]); break;
		default:
			rc = err_set(e, -EINVAL,
				"there is no option '%s'; see 'culprit lab --help'",
				argv[optind - 1]);
		}
	}
	return rc;
}

/* What the user can set right is 2, what went wrong is 3. */
static int exit_code(int rc)
{
	switch (rc) {
	case -EINVAL:
	case -EPERM:
	case -ENODEV:
	case -ENOENT:
	case -ESRCH:
	case -EBUSY:
	case -EEXIST:
	case -EADDRINUSE: return CULPRIT_EXIT_USAGE;
	default: return CULPRIT_EXIT_INVALID;
	}
}

static int up(const struct parsed *p)
{
	struct err e;
	int rc = lab_up(&p->o, &e);

	if (rc < 0)
		return cmd_fail("lab up", exit_code(rc), "%s", e.text);
	printf("%s: %u server%s, %u client%s, %u outsider%s; inventory %s/inventory.lua\n",
		rc ? "the lab is up already" : "the lab is up", p->o.servers,
		p->o.servers == 1 ? "" : "s", p->o.clients, p->o.clients == 1 ? "" : "s",
		p->o.outsiders, p->o.outsiders == 1 ? "" : "s", p->o.dir);
	return CULPRIT_EXIT_OK;
}

static int down(const struct parsed *p)
{
	struct err e;
	int rc = lab_down(p->o.dir, &e);

	if (rc < 0)
		return cmd_fail("lab down", exit_code(rc), "%s", e.text);
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
	};

	printf("glusterfs, %s", json_string_value(json_object_get(o, "layout")));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[32];

		printf("; %s %s", rows[i].label,
			unit_format(rows[i].unit,
				json_number_value(json_object_get(o, rows[i].key)), text,
				sizeof(text)));
	}
	putchar('\n');
}

static int status(const struct parsed *p)
{
	const char *state, *why;
	json_t *s, *node;
	struct err e;
	size_t i;
	int rc = lab_status(p->o.dir, &s, &e), code;

	if (rc < 0)
		return cmd_fail("lab status", exit_code(rc), "%s", e.text);
	state = json_string_value(json_object_get(s, "state"));
	code = strcmp(state, "broken") ? CULPRIT_EXIT_OK : CULPRIT_EXIT_INVALID;
	if (p->json) {
		json_dumpf(s, stdout, JSON_INDENT(2));
		putchar('\n');
		goto out;
	}
	if (!strcmp(state, "none")) {
		puts("no lab");
		goto out;
	}
	why = json_string_value(json_object_get(s, "why"));
	printf("the lab in %s is %s%s%s\n", p->o.dir, state, why ? ": " : "", why ? why : "");
	if (json_object_get(s, "options"))
		print_options(json_object_get(s, "options"));
	json_array_foreach(json_object_get(s, "nodes"), i, node)
	{
		printf("  %-4s %-9s %-15s %s\n", json_string_value(json_object_get(node, "name")),
			json_string_value(json_object_get(node, "role")),
			json_string_value(json_object_get(node, "address")),
			json_is_null(json_object_get(node, "pid")) ? "dead" : "up");
	}
	if (json_object_get(s, "inventory"))
		printf("inventory %s\n", json_string_value(json_object_get(s, "inventory")));
	if (code)
		puts("'culprit lab down' clears it away, 'culprit lab up' begins anew");
out:
	json_decref(s);
	return code;
}

static int enter(const struct parsed *p, int argc, char **argv)
{
	struct err e;
	int rc, first;

	if (optind >= argc)
		return cmd_fail(
			"lab exec", CULPRIT_EXIT_USAGE, "which node? see 'culprit lab --help'");
	first = optind + 1;
	if (first < argc && !strcmp(argv[first], "--"))
		first++;
	if (first >= argc)
		return cmd_fail(
			"lab exec", CULPRIT_EXIT_USAGE, "which command? see 'culprit lab --help'");
	rc = lab_exec(p->o.dir, argv[optind], argv + first, &e);
	return rc < 0 ? cmd_fail("lab exec", exit_code(rc), "%s", e.text) : rc;
}

/* The lab's own processes; nobody but lab_up starts them. */
static int part(const char *what, int argc, char **argv)
{
	struct parsed p = {0};
	struct err e;

	if (!getenv(LAB_TAG) || parse(argc, argv, part_options, &p, &e))
		return CULPRIT_EXIT_USAGE;
	if (!strcmp(what, "build"))
		return lab_build_main(p.o.dir);
	if (!strcmp(what, "switch"))
		return lab_switch_main(p.o.dir);
	if (!p.name)
		return CULPRIT_EXIT_USAGE;
	return strcmp(what, "disk") ? lab_node_main(p.o.dir, p.name)
				    : lab_disk_main(p.o.dir, p.name);
}

int cmd_lab(int argc, char **argv)
{
	static const char *const parts[] = {"build", "switch", "node", "disk"};
	const char *what = argc > 1 ? argv[1] : "";
	const struct option *options = dir_options;
	struct parsed p = {0};
	struct err e;
	int rc;

	if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		fputs(help, stdout);
		return CULPRIT_EXIT_OK;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(what, parts[i]))
			return part(what, argc - 1, argv + 1);
	if (strcmp(what, "up") && strcmp(what, "down") && strcmp(what, "status") &&
		strcmp(what, "exec"))
		return cmd_fail("lab", CULPRIT_EXIT_USAGE,
			"'%s' is none of up, down, status, exec; see 'culprit lab --help'", what);
	if (!strcmp(what, "up"))
		options = up_options;
	else if (!strcmp(what, "status"))
		options = status_options;
	rc = parse(argc - 1, argv + 1, options, &p, &e);
	if (rc > 0)
		return CULPRIT_EXIT_OK;
	argc--;
	argv++;
	if (!rc && options != dir_options && optind < argc)
		rc = err_set(&e, -EINVAL, "'%s' is one argument too many", argv[optind]);
	if (rc < 0) {
		char name[16];

		snprintf(name, sizeof(name), "lab %s", what);
		return cmd_fail(name, CULPRIT_EXIT_USAGE, "%s", e.text);
	}
	if (!strcmp(what, "up"))
		return up(&p);
	if (!strcmp(what, "down"))
		return down(&p);
	if (!strcmp(what, "status"))
		return status(&p);
	return enter(&p, argc, argv);
}
