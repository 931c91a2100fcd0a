/* culprit trace: runs a tracer of the node agent here or on all nodes; orders to a capture. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/cli/trace_cluster.h"
#include "harness/live/orders.h"

static volatile pid_t tracer;

/* A terminal's Ctrl-C (SI_KERNEL) reaches the tracer directly. */
static void trace_pass_on(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_KERNEL && tracer > 0)
		kill(tracer, signo);
}

/* SIGPIPE, as from 'culprit trace -p PID | head', must end the tracer as well. */
static void nobody_reads(int signo)
{
	if (tracer > 0)
		kill(tracer, SIGTERM);
	signal(signo, SIG_DFL);
	raise(signo);
}

static void handle_signals(void)
{
	struct sigaction on = {.sa_sigaction = trace_pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGHUP, &on, NULL);
	signal(SIGPIPE, nobody_reads);
}

/* Starts the tracer; '*ready' becomes readable when it has attached or ended. */
static pid_t trace_start(char **args, int *ready)
{
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(p[1], 3);
		if (p[1] == 3)
			fcntl(3, F_SETFD, 0);
		execv(args[0], args);
		_exit(CULPRIT_EXIT_INVALID);
	}
	close(p[1]);
	*ready = p[0];
	return pid < 0 ? -errno : pid;
}

static int trace_wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Copies what is appended to 'log' until 'pidfd' reports the end of its writer. */
static void follow(int log, int pidfd, int to)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	bool last = false;
	char data[65536];
	ssize_t n;

	for (;;) {
		n = read(log, data, sizeof(data));
		if (n > 0 && fd_write_all(to, data, (size_t)n) == 0)
			continue;
		if (n != 0 || last)
			return;
		last = poll(&ended, 1, 200) > 0;
	}
}

/* Returns a descriptor that delivers the growing log, and ends with the tracer. */
static int live(int log)
{
	int p[2], pidfd = (int)syscall(SYS_pidfd_open, tracer, 0);
	pid_t pid;

	if (pidfd < 0 || pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(p[0]);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGINT, SIG_IGN);
		follow(log, pidfd, p[1]);
		_exit(0);
	}
	close(p[1]);
	close(pidfd);
	return pid < 0 ? -errno : p[0];
}

static int trace_print(int log, bool summary)
{
	char *args[] = {(char *)"log", (char *)(summary ? "-c" : "-"), (char *)"-", NULL};

	if (log < 0 || dup2(log, STDIN_FILENO) < 0)
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot read the log: %s",
			strerror(log < 0 ? -log : errno));
	args[summary ? 3 : 2] = NULL;
	return command_run(&log_command, summary ? 3 : 2, args);
}

/* Runs the tracer and prints its log, while it grows or afterwards. */
static int trace_and_print(
	char **args, const char *out, const char *dir, bool as_it_goes, bool summary)
{
	int ready = -1, log, code, rc;
	char line[8];

	handle_signals();
	tracer = trace_start(args, &ready);
	if (tracer < 0) {
		rmdir(dir);
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot start the tracer: %s",
			strerror(-tracer));
	}
	while (read(ready, line, sizeof(line)) < 0 && errno == EINTR)
		;
	close(ready);
	log = open(out, O_RDONLY | O_CLOEXEC);
	unlink(out);
	rmdir(dir);
	if (log < 0) /* it could not attach, and reported why */
		return trace_wait_for(tracer);
	if (as_it_goes) {
		setlinebuf(stdout);
		rc = trace_print(live(log), summary);
		if (rc)
			kill(tracer, SIGTERM); /* the reader is gone */
		code = trace_wait_for(tracer);
	} else {
		code = trace_wait_for(tracer);
		rc = trace_print(log, summary);
	}
	close(log);
	return code ? code : rc;
}

/* The lists are passed to the agent. */
struct options {
	struct option_list pid, tid, mode, tracer, call, process, calls, client, path, cgroup,
		memory, ring, ring_memory;
	struct option_list applications; /* of a cluster, as the following */
	const char *out, *inventory, *trigger, *control;
	double for_s, bound, bandwidth;
	bool summary, heads, live;
};

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"pid", 'p', OPTION_LIST, AT(pid), "PID",
		"attach to this process and its descendants; may be repeated"},
	{"out", 'o', OPTION_TEXT, AT(out), "FILE",
		"write the log to FILE, which must not exist; 'culprit log FILE' prints it"},
	{"summary", 'c', OPTION_FLAG, AT(summary), NULL, "print the sums of all calls, at the end"},
	{"mode", 0, OPTION_LIST, AT(mode), "MODE",
		"events (default): every call; sums: per second, process, class of call (read, "
		"write, open ...) and of descriptor (disk, server socket, client socket) count, "
		"errors, bytes, time and its spread, added up in the kernel at almost no cost; "
		"flow: events with what ties them together (ebpf only): positions in the byte "
		"streams of TCP connections, requests to FUSE mounts"},
	{"heads", 0, OPTION_FLAG, AT(heads), NULL,
		"with --mode flow: also the first bytes, 32 at most, that each call moved on a TCP "
		"socket or /dev/fuse"},
	{"tracer", 0, OPTION_LIST, AT(tracer), "NAME",
		"ebpf: in the kernel, cheap, needs root; ptrace: works anywhere, also on your "
		"own processes without root, but slows them down; auto (default): ebpf where the "
		"kernel allows it, else ptrace; sampler: no calls, but each second the TCP "
		"sockets, processor time, memory and reads of the processes, the node's "
		"interfaces and processors and, with --path, its disk"},
	{"call", 0, OPTION_LIST, AT(call), "NAME,...", "record only these system calls"},
	{"process", 0, OPTION_LIST, AT(process), "NAME|PID,...",
		"record only these of the processes, by the name of their main thread or by number "
		"(ebpf only)"},
	{"calls", 0, OPTION_LIST, AT(calls), "KIND,...",
		"record only these kinds of calls (ebpf only): network: on sockets; disk: reads, "
		"writes and syncs of files and block devices; fuse: on /dev/fuse, and requests to "
		"FUSE mounts; metadata: calls that name a path, and others on files and folders; "
		"other"},
	{"client", 0, OPTION_LIST, AT(client), "ADDRESS,...",
		"of calls on TCP and UDP sockets, record only those connected to these IP "
		"addresses (ebpf only)"},
	{"tid", 0, OPTION_LIST, AT(tid), "TID", "record only this thread; may be repeated"},
	{"path", 0, OPTION_LIST, AT(path), "PREFIX",
		"record only calls on files at or below this path, or that name one; may be "
		"repeated (ebpf only)"},
	{"cgroup", 0, OPTION_LIST, AT(cgroup), "DIR",
		"record only processes in this cgroup (v2) or below (ebpf only)"},
	{"memory", 0, OPTION_LIST, AT(memory), "SIZE",
		"limit of the buffers in the kernel (default: 64MiB)"},
	{"ring", 0, OPTION_LIST, AT(ring), "TIME",
		"a flight recorder: keep only the last so many seconds, in memory, and write them "
		"to --out FILE at the end; on SIGUSR1 also to FILE.1, FILE.2 ... (ebpf only)"},
	{"ring-memory", 0, OPTION_LIST, AT(ring_memory), "SIZE",
		"most that --ring may take (default: 256MiB); then fewer seconds are kept"},
	{"inventory", 0, OPTION_TEXT, AT(inventory), "FILE",
		"capture on all servers and clients of this inventory: their file system's "
		"processes, into the folder --out (ebpf only; needs root there)"},
	{"application", 0, OPTION_LIST, AT(applications), "PROGRAM",
		"with --inventory: also processes of this program on clients; may be repeated"},
	{"trigger", 0, OPTION_TEXT, AT(trigger), "FILE",
		"with --inventory and --ring: a Lua file whose function 'when' looks at the nodes' "
		"load each second and says when to write (harness/live/capture.md)"},
	{"live", 0, OPTION_FLAG, AT(live), NULL,
		"with --inventory: logs come while they are written; 'culprit query', 'serve', "
		"'findings' and 'ship --follow' read FOLDER meanwhile"},
	{"bound", 0, OPTION_QUANTITY, AT(bound), "SIZE",
		"with --live: most of a log that may wait on its node; beyond it records are "
		"dropped and counted (default: 64MiB)",
		.min = 1 << 18, .max = 1ll << 40, .unit = UNIT_BYTES},
	{"bandwidth", 0, OPTION_QUANTITY, AT(bandwidth), "SIZE",
		"with --live: most that is taken of each log in a second (default: all)",
		.min = 4096, .max = 1ll << 40, .unit = UNIT_BYTES},
	{"for", 0, OPTION_QUANTITY, AT(for_s), "TIME",
		"with --inventory: end after so long (default: with Ctrl-C)", .min = 1, .max = 1e6,
		.unit = UNIT_SECONDS},
	{"control", 0, OPTION_TEXT, AT(control), "FOLDER",
		"give an order to the 'culprit trace --inventory' that writes to FOLDER, and wait "
		"until it is done on all nodes",
		.allows = ""},
	{0},
};

/* The agent's command line. */
static char **make_args(const struct call *c, const struct agent_start *agent, const char *log)
{
	const struct options *o = c->options;
	size_t room = agent->n + 8 + (size_t)c->n, n = agent->n;
	char **args;

	for (const struct option_list *l = &o->pid; l <= &o->ring_memory; l++)
		room += 2 * l->n;
	args = alloc_zero(room, sizeof(*args));
	memcpy(args, agent->words, agent->n * sizeof(*args));
	args[n++] = (char *)"trace";
	args[n++] = (char *)"--out";
	args[n++] = (char *)(o->out ? o->out : log);
	if (!o->out) {
		args[n++] = (char *)"--ready-fd";
		args[n++] = (char *)"3";
	}
	if (o->heads)
		args[n++] = (char *)"--heads";
	for (const struct option_row *r = rows; r->name; r++) {
		const struct option_list *l = (const void *)((const char *)o + r->at);

		for (size_t i = 0; r->type == OPTION_LIST && i < l->n; i++) {
			static char names[sizeof(rows) / sizeof(rows[0])][16];

			snprintf(names[r - rows], sizeof(names[0]), "--%s", r->name);
			args[n++] = names[r - rows];
			args[n++] = (char *)l->v[i];
		}
	}
	if (c->n)
		args[n++] = (char *)"--";
	memcpy(args + n, c->args, (size_t)c->n * sizeof(*args));
	return args;
}

static int trace(const struct call *c, const struct agent_start *agent)
{
	const struct options *o = c->options;
	char dir[] = "/tmp/culprit-trace-XXXXXX", log[64], **args;
	bool sums = o->mode.n && !strcmp(o->mode.v[o->mode.n - 1], "sums");
	int code;

	if (!o->out && !mkdtemp(dir))
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot make '%s': %s", dir,
			strerror(errno));
	snprintf(log, sizeof(log), "%s/log", dir);
	args = make_args(c, agent, log);
	if (o->out) {
		execv(args[0], args);
		code = cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot run '%s': %s", args[0],
			strerror(errno));
	} else {
		code = trace_and_print(args, log, dir, o->pid.n, o->summary || (sums && !o->pid.n));
	}
	free(args);
	return code;
}

/* What an option gave last; NULL: nothing. */
static const char *last(const struct option_list *l)
{
	return l->n ? l->v[l->n - 1] : NULL;
}

static int run_cluster(const struct call *c)
{
	const struct options *o = c->options;
	const struct trace_cluster t = {.inventory = o->inventory,
		.folder = o->out,
		.mode = last(&o->mode),
		.ring = last(&o->ring),
		.memory = last(&o->memory),
		.tracer = last(&o->tracer),
		.trigger = o->trigger,
		.heads = o->heads,
		.live = o->live,
		.bound = o->bound,
		.bandwidth = o->bandwidth,
		.for_s = o->for_s,
		.processes = &o->process,
		.calls = &o->calls,
		.clients = &o->client,
		.paths = &o->path,
		.applications = &o->applications};

	if (c->n || o->pid.n || o->tid.n || o->call.n || o->cgroup.n || o->ring_memory.n ||
		o->summary)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"--inventory traces the file system's processes on all nodes: no -p, no "
			"command, no --tid, --call, --cgroup, --ring-memory or --summary");
	return trace_cluster(&t);
}

/* All nodes write, then their logs are fetched. */
static const double patience_s = 900;

static int trace_control(const struct call *c)
{
	const struct options *o = c->options;
	char *line, answer[ORDER_ANSWER];
	struct err e = {0};
	int rc;

	if (!c->n)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"--control needs an order: write, on, off, filter, status or stop");
	line = alloc_copy(c->args[0]);
	for (int i = 1; i < c->n; i++) {
		char *longer = alloc_format("%s %s", line, c->args[i]);

		free(line);
		line = longer;
	}
	rc = order_send(o->control, line, patience_s, answer, &e);
	free(line);
	if (rc)
		return cmd_error("trace", &e, ERR_USAGE);
	if (!strncmp(answer, "refused: ", 9))
		return cmd_fail("trace", CULPRIT_EXIT_USAGE, "%s", answer + 9);
	if (!strncmp(answer, "failed: ", 8))
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "%s", answer + 8);
	text_print_clean(stdout, answer);
	putchar('\n');
	return CULPRIT_EXIT_OK;
}

static int cli_trace_run(const struct call *c)
{
	const struct options *o = c->options;
	struct agent_start agent;
	struct err e;
	int code;

	if (o->control)
		return trace_control(c);
	if (o->inventory)
		return run_cluster(c);
	if (o->applications.n || o->for_s > 0 || o->trigger || o->live || o->bound > 0 ||
		o->bandwidth > 0)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"--application, --trigger, --live, --bound, --bandwidth and --for need "
			"--inventory");
	if (!o->pid.n == !c->n)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"give processes (-p PID) or a command (-- COMMAND ...)%s",
			c->n ? ", not both" : "; see 'culprit trace --help'");
	if (o->summary && o->out)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"--summary prints, --out does not: use 'culprit log -c FILE' afterwards");
	if (o->ring.n && !o->out)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"--ring writes at the end, or when told: give --out FILE");
	if (agent_start_init(&agent, &e) < 0)
		return cmd_error("trace", &e, ERR_HARNESS);
	code = trace(c, &agent);
	agent_start_clear(&agent);
	return code;
}

const struct command trace_command = {.name = "trace",
	.summary = "trace processes or all nodes",
	.arguments = "[OPTION ...] -p PID ...\n[OPTION ...] -- COMMAND [ARGUMENT ...]\n"
		     "--inventory FILE [OPTION ...] -o FOLDER\n"
		     "--control FOLDER write [REASON]|on|off|status|stop\n"
		     "--control FOLDER filter WORD ...",
	.about = "Traces processes with all their threads and children: every system call with "
		 "its paths, what its descriptors mean, its result and service time.\n\n"
		 "-p prints while the processes run, until Ctrl-C or until the last one ends; the "
		 "processes themselves continue. A command's log is printed when the command has "
		 "ended. Several filters must all match.\n\n"
		 "--inventory captures on all servers and clients until Ctrl-C, --for, or the "
		 "order to stop. FOLDER becomes a run, which other commands read.\n\n"
		 "Orders of --control. write: what the tracers keep now (--ring) becomes "
		 "FOLDER/cells/NNNN.1. off, on: no calls are recorded, or they are again; "
		 "processes and descriptors are followed all the time. filter: which calls are "
		 "recorded from now on, in place of those before: process=NAME|PID,... "
		 "calls=network,disk,fuse,metadata,other client=ADDRESS,... path=PREFIX,... or "
		 "none (everything); all words must hold; %20 is a blank in a path, %2c a comma. "
		 "The logs say what was recorded since when. status: how it goes. stop: the "
		 "capture ends, and writes.",
	.examples = "culprit trace -- ls /tmp                       like strace, with named files\n"
		    "culprit trace -p 1234 --path /var/log          who touches these files\n"
		    "culprit trace -p 1234 --mode sums              one line per second and class\n"
		    "culprit trace -p 1234 --tracer sampler --path /srv/brick\n"
		    "culprit trace -p 1234 --mode flow --heads -o LOG   what ties calls together\n"
		    "culprit trace -p 1234 --ring 60s -o LOG        the last minute, when told\n"
		    "culprit trace --inventory hosts.lua --mode flow --ring 60s -o DIR\n"
		    "culprit trace --inventory hosts.lua --live -o DIR   all nodes, as it happens\n"
		    "culprit trace --control DIR write              what the ring keeps now\n"
		    "culprit trace --control DIR filter calls=disk,network client=10.0.0.7\n"
		    "culprit trace -c -- make                       where a command's time goes\n"
		    "culprit trace -p 1234 -o LOG; culprit log LOG  keep the log",
	.exits = "the command's own; 2 usage error; 3 the tracer failed. With --control: 0 done; 2 "
		 "refused, or no such capture runs; 3 it failed on a node: nodes may record "
		 "different things then, as their logs say.",
	ARGUMENTS(0, INT_MAX),
	.in_order = true,
	OPTIONS(rows, struct options),
	.run = cli_trace_run};
