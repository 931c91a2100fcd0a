/* culprit capture: a parallel application's calls on files, with compute time and causality. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "diag/causal/causal.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/units.h"
#include "harness/cli/capture.h"
#include "harness/cli/cmd.h"
#include "harness/run/signals.h"
#include "harness/live/job.h"

static const char default_launcher[] = "sshd";

struct options {
	const char *out, *root, *memory;
	const char *inventory, *from, *launcher;
	double limit_s;
	unsigned method, period, nodes;
	bool check, anonymise;
};

/* In the order of --method's words. */
static const unsigned methods[] = {
	APP_BY_MESSAGES, APP_BY_THROTTLING, APP_BY_MESSAGES | APP_BY_THROTTLING};

/* What one capture needs. */
struct capture {
	const struct options *o;
	char **command;
	char root[PATH_MAX], cwd[PATH_MAX], comment[2048], kernel[160], node[APP_NAME];
	char *work;         /* folder of what is under way */
	struct job *remote; /* on the clients of an inventory; NULL: here */
	struct job_options how;
	uint8_t salt[APP_SALT];
};

static int set_root(struct capture *c, struct err *e)
{
	const char *root = c->o->root ? c->o->root : ".";
	struct stat st;

	if (!realpath(root, c->root) || stat(c->root, &st))
		return err_errno(e, -errno, "cannot use '%s' as --root", root);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "--root takes a folder, and '%s' is none", root);
	if (!getcwd(c->cwd, sizeof(c->cwd)))
		return err_errno(e, -errno, "cannot find the current folder");
	return 0;
}

static int set_work(struct capture *c, struct err *e)
{
	auto_free char *out = alloc_copy(c->o->out);
	struct stat st;

	if (!lstat(c->o->out, &st))
		return err_set(e, -EEXIST, "'%s' exists: remove it, or give another name by --out",
			c->o->out);
	c->work = alloc_format("%s/.culprit-capture-XXXXXX", dirname(out));
	if (mkdtemp(c->work))
		return 0;
	free(c->work);
	c->work = NULL;
	return err_errno(e, -errno, "cannot write beside '%s'", c->o->out);
}

static void capture_describe(struct capture *c)
{
	struct utsname u;
	size_t n = 0;

	uname(&u);
	snprintf(c->kernel, sizeof(c->kernel), "%s %s", u.release, u.machine);
	snprintf(c->node, sizeof(c->node), "%.63s", u.nodename);
	for (char **a = c->command; *a && n < sizeof(c->comment) - 2; a++)
		n += (size_t)snprintf(
			c->comment + n, sizeof(c->comment) - n, "%s%s", n ? " " : "", *a);
}

static void capture_say(const char *sentence)
{
	cmd_fail("capture", 0, "%s", sentence);
}

/* Until 'remote' is closed, signals are for it. */
static int open_remote(struct capture *c, struct err *e)
{
	c->how = (struct job_options){.inventory = c->o->inventory,
		.from = c->o->from,
		.root = c->o->root,
		.launcher = c->o->launcher,
		.argv = c->command,
		.limit_s = c->o->limit_s,
		.tell = capture_say};
	if (unit_parse(UNIT_BYTES, c->o->memory, &c->how.memory_bytes, e))
		return err_prefix(e, -EINVAL, "--memory");
	if (c->how.memory_bytes < 65536 || c->how.memory_bytes > 1ull << 32)
		return err_set(e, -EINVAL, "--memory takes 64KiB to 4GiB, not '%s'", c->o->memory);
	c->how.interrupted = signals_catch();
	return job_open(&c->how, &c->remote, e);
}

static int capture_prepare(struct capture *c, struct err *e)
{
	int rc = c->o->inventory ? 0 : set_root(c, e);

	rc = rc ?: set_work(c, e);
	if (rc)
		return rc;
	capture_describe(c);
	if (getrandom(c->salt, sizeof(c->salt), 0) != sizeof(c->salt))
		return err_errno(e, -errno, "cannot draw a salt");
	return 0;
}

static int64_t size_before(void *sizes, const char *path)
{
	return capture_files_size(((struct capture_files **)sizes)[0], path);
}

static int64_t size_after(void *sizes, const char *path)
{
	return capture_files_size(((struct capture_files **)sizes)[1], path);
}

/* Here: its log is 'name'.log in the folder of work. */
static int run_here(struct capture *c, const char *log, const struct capture_delays *d,
	struct capture_files *sizes[2], struct err *e)
{
	return capture_files_new(c->root, &sizes[0], e)
		?: capture_run(c->command, log, c->o->memory, c->o->limit_s, d, e);
}

static int run_there(
	struct capture *c, const char *folder, struct capture_files *sizes[2], struct err *e)
{
	auto_free char *before = alloc_format("%s/before", folder);
	auto_free char *after = alloc_format("%s/after", folder);

	return job_run(c->remote, folder, e) ?: capture_files_read(before, &sizes[0], e)
		?: capture_files_read(after, &sizes[1], e);
}

/* Runs the command once; its trace is 'name' in the folder of work. 'd' may be NULL. */
static int capture_once(struct capture *c, const char *name, const struct capture_delays *d,
	struct causal_counts *counts, struct err *e)
{
	auto_free char *log = alloc_format("%s/%s.log", c->work, name);
	auto_free char *out = alloc_format("%s/%s", c->work, name);
	const struct causal_log one = {
		.path = log, .node = c->node, .root = c->root, .cwd = c->cwd};
	struct capture_files *sizes[2] = {NULL, NULL};
	struct causal_spec spec = {.logs = &one,
		.n_logs = 1,
		.comment = c->comment,
		.kernel = c->kernel,
		.salt = c->o->anonymise ? c->salt : NULL,
		.before = size_before,
		.ctx = sizes};
	int rc = c->remote ? run_there(c, log, sizes, e) : run_here(c, log, d, sizes, e);

	if (c->remote) {
		spec.logs = job_logs(c->remote, &spec.n_logs);
		spec.kernel = job_kernel(c->remote);
		spec.after = size_after;
	}
	rc = rc ?: causal_make(out, &spec, counts, e);
	capture_files_free(sizes[0]);
	capture_files_free(sizes[1]);
	file_remove_tree(log, NULL);
	return rc;
}

static int capture_compare(const struct capture *c, struct err *e)
{
	auto_free char *first = alloc_format("%s/first", c->work);
	auto_free char *second = alloc_format("%s/second", c->work);
	struct app_trace *a = NULL, *b = NULL;
	int rc = app_open(first, &a, e) ?: app_open(second, &b, e) ?: app_compare(a, b, e);

	app_free(a);
	app_free(b);
	return rc;
}

/* 'messages': they alone say who waited for whom. 'here': throttling would be possible. */
static void warn(const struct causal_counts *n, bool messages, bool here)
{
	if (n->shared_memory && messages)
		fprintf(stderr,
			"culprit capture: warning: %u processes share memory, and waits through it "
			"are not in the trace%s%s. Open MPI by messages: mpirun --mca btl "
			"tcp,self --mca pml ob1 --mca mpi_yield_when_idle 1, with "
			"PMIX_MCA_gds=hash in the environment\n",
			n->sharing,
			n->alone == n->sharing ? " (no wait of any of them is)"
				: n->alone     ? " (for some of them, no wait at all is)"
					       : "",
			here ? ": --method throttle finds them" : "");
	if (n->not_captured)
		fprintf(stderr,
			"culprit capture: warning: %llu calls that map files, copy between them "
			"or are asynchronous are not in the trace\n",
			(unsigned long long)n->not_captured);
	if (n->forced)
		fprintf(stderr,
			"culprit capture: warning: of %llu messages nothing is known of their "
			"sender\n",
			(unsigned long long)n->forced);
}

static int capture_keep(const struct capture *c, const char *name, struct err *e)
{
	auto_free char *first = alloc_format("%s/%s", c->work, name);
	struct app_trace *t;
	int rc = app_open(first, &t, e);

	if (rc)
		return err_prefix(e, rc, "what was captured does not hold together");
	rc = app_print_summary(t, stdout, e);
	app_free(t);
	if (!rc && rename(first, c->o->out))
		rc = err_errno(e, -errno, "cannot write '%s'", c->o->out);
	return rc;
}

/* Of a capture on several nodes. */
static void warn_of_nodes(const struct capture *c, const struct causal_counts *n)
{
	if (n->outside[0])
		fprintf(stderr,
			"culprit capture: warning: processes on %s have received messages from "
			"processes on %s that are not in the trace: '%s' has not started these "
			"there since the command began (--launcher names what does)\n",
			n->outside[0], n->outside[1], c->o->launcher);
	else if (n->nodes == 1)
		fprintf(stderr,
			"culprit capture: all its processes with calls ran on one client: those "
			"that '%s' has not started since the command began are not seen\n",
			c->o->launcher);
	if (n->running)
		fprintf(stderr,
			"culprit capture: warning: %u processes on other nodes still ran when the "
			"command had ended: what they did later is not in the trace\n",
			n->running);
}

static int by_messages(struct capture *c, struct err *e)
{
	struct causal_counts counts, again;
	int rc = c->o->inventory ? open_remote(c, e) : 0;

	rc = rc ?: capture_once(c, "first", NULL, &counts, e);
	if (!rc && c->remote)
		warn_of_nodes(c, &counts);
	if (!rc && c->o->check)
		rc = capture_once(c, "second", NULL, &again, e) ?: capture_compare(c, e);
	if (rc)
		return rc;
	warn(&counts, true, !c->remote);
	if (!c->o->check)
		fputs("culprit capture: captured once; --check captures it twice, and says if it "
		      "does not do the same again\n",
			stderr);
	return capture_keep(c, "first", e);
}

/* Of the first run, what is missing from it is said. */
static int delayed_once(void *ctx, const char *name, const struct capture_delays *d, struct err *e)
{
	struct causal_counts counts;
	int rc = capture_once(ctx, name, d, &counts, e);

	if (!rc && !d->thread)
		warn(&counts, false, true);
	return rc;
}

static int by_throttling(struct capture *c, struct err *e)
{
	struct capture_throttle t = {.root = c->root,
		.work = c->work,
		.method = methods[c->o->method],
		.period = c->o->period ? c->o->period : 1,
		.nodes = c->o->nodes,
		.once = delayed_once,
		.ctx = c};

	return capture_throttle(&t, e) ?: capture_keep(c, "final", e);
}

static int check_options(const struct options *o, struct err *e)
{
	if (!o->out)
		return err_set(e, -EINVAL, "say where the trace goes: --out FILE");
	if (o->inventory && methods[o->method] != APP_BY_MESSAGES)
		return err_set(e, -EINVAL,
			"--method throttle and both delay processes of this machine: with "
			"--inventory there is only --method messages");
	if (!o->inventory && (o->from || strcmp(o->launcher, default_launcher)))
		return err_set(e, -EINVAL, "--%s is for captures on other hosts: add --inventory",
			o->from ? "from" : "launcher");
	if (methods[o->method] == APP_BY_MESSAGES && (o->period || o->nodes))
		return err_set(e, -EINVAL,
			"--%s is for captures that delay calls: add --method throttle or both",
			o->period ? "period" : "nodes");
	return 0;
}

static int cli_capture_run(const struct call *call)
{
	const struct options *o = call->options;
	struct capture *c;
	struct err e = {.text = ""};
	int rc;

	if (check_options(o, &e))
		return cmd_fail("capture", CULPRIT_EXIT_USAGE, "%s", e.text);
	c = alloc_zero(1, sizeof(*c));
	c->o = o;
	c->command = call->args;
	rc = capture_prepare(c, &e);
	if (rc)
		err_blame(&e, ERR_USAGE, rc);
	else if (methods[o->method] == APP_BY_MESSAGES)
		rc = by_messages(c, &e);
	else
		rc = by_throttling(c, &e);
	job_close(c->remote);
	if (c->work)
		file_remove_tree(c->work, NULL);
	free(c->work);
	free(c);
	return rc ? cmd_error("capture", &e, ERR_HARNESS) : CULPRIT_EXIT_OK;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"out", 'o', OPTION_TEXT, AT(out), "FILE",
		"write the trace to FILE, which must not exist; 'culprit log FILE' prints it"},
	{"root", 0, OPTION_TEXT, AT(root), "DIR",
		"capture calls on files at or below DIR, such as a mount (default: the current "
		"folder; with --inventory: the mount of each client)"},
	{"inventory", 0, OPTION_TEXT, AT(inventory), "FILE",
		"run the command on a client of this inventory, and capture its processes on all "
		"clients (needs root there)"},
	{"from", 0, OPTION_TEXT, AT(from), "CLIENT",
		"with --inventory: the client that runs the command, in the folder --root "
		"(default: the first)"},
	{"launcher", 0, OPTION_TEXT, AT(launcher), "PROGRAM",
		"with --inventory: what starts processes on a client for another one, such as "
		"slurmd (default: sshd)"},
	{"method", 0, OPTION_CHOICE, AT(method), "messages|throttle|both",
		"how it is found out who waits for whom: by the messages of one run; by delaying "
		"one process after the other, in a run for each; by both, with the difference. "
		"With --inventory: messages only"},
	{"period", 0, OPTION_COUNT, AT(period), "P",
		"throttle: delay every P-th call on a file only: faster, and waits are found "
		"within P calls (default: 1)",
		1, 1e9},
	{"nodes", 0, OPTION_COUNT, AT(nodes), "M",
		"throttle: delay only M of the processes, evenly chosen (default: all)", 1,
		APP_RANKS},
	{"time-limit", 0, OPTION_QUANTITY, AT(limit_s), "TIME",
		"end a run of the command after so long, and write nothing (default: 1h)", .min = 1,
		.max = 1e7, .unit = UNIT_SECONDS},
	{"check", 0, OPTION_FLAG, AT(check), NULL,
		"run the command a second time, and refuse it if its processes do not make the "
		"same calls"},
	{"anonymise", 0, OPTION_FLAG, AT(anonymise), NULL,
		"write salted hashes in place of names of files and folders, and neither the "
		"command nor the host's name; sizes stay"},
	{"memory", 0, OPTION_TEXT, AT(memory), "SIZE",
		"limit of the tracer's buffers in the kernel (default: 256MiB)"},
	{0},
};

const struct command capture_command = {.name = "capture",
	.summary = "record a parallel program",
	.arguments = "[OPTION ...] -o FILE -- COMMAND [ARGUMENT ...]",
	.about = "Runs a command, such as mpirun, and writes what its processes did: each call on "
		 "a file below --root, the processor time before it, and which calls of other "
		 "processes it waited for. 'culprit replay' does the same again on another storage "
		 "system.\n\n"
		 "Who waited for whom comes from the messages that the processes sent: on TCP and "
		 "Unix sockets, pipes, by wait and, between threads, by futex. Shared memory is "
		 "not seen: what maps it together is told. No data is recorded.\n\n"
		 "--method throttle sees all waits, by whatever means. It runs the command once "
		 "as it is, and once more for each thread that makes calls on files, whose calls "
		 "are held up until all others have ended or are blocked: who is blocked waits for "
		 "that call. This takes some 20 ms a call. The runs must make the same calls; a "
		 "delay that tells nothing is counted and said.\n\n"
		 "With --inventory the command runs on a client, over SSH, and its processes on "
		 "other clients are captured there: those that 'sshd' (--launcher) starts while "
		 "it runs, and that messages tie to it. Edges between nodes come from messages on "
		 "TCP, never from clocks; a path below the mount is the same file on every "
		 "client.\n\n"
		 "Needs root and a kernel that allows eBPF, here or on the clients.",
	.examples = "culprit capture -o fitness.app --root /mnt/fs -- mpirun -n 4 \\\n"
		    "    --mca btl tcp,self --mca pml ob1 --mca mpi_yield_when_idle 1 fitness\n"
		    "culprit capture --method throttle -o shared.app -- ./job.sh\n"
		    "culprit capture --check --anonymise -o share.app -- ./job.sh\n"
		    "culprit capture --inventory hosts.lua -o both.app -- mpirun --host c1,c2 \\\n"
		    "    --mca btl tcp,self --mca pml ob1 --mca mpi_yield_when_idle 1 fitness\n"
		    "culprit log fitness.app                        the calls, as text\n"
		    "culprit log -c fitness.app                     a row per process",
	.exits = "0 written; 2 usage error; 3 the command failed, was not the same twice, or could "
		 "not be captured: then nothing is written.",
	ARGUMENTS(1, INT_MAX),
	.in_order = true,
	.options = rows,
	.size = sizeof(struct options),
	.defaults = &(const struct options){.limit_s = 3600,
		.memory = "256MiB",
		.launcher = default_launcher},
	.run = cli_capture_run};
