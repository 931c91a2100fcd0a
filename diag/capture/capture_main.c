/* The agent's command 'trace': its options, the table of tracers, and signals. */
#include "diag/capture/capture.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/capture/choice.h"
#include "diag/record/calls.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"

enum { MAX_PIDS = 1024, MAX_CALLS = 512, MAX_PATHS = 16, MAX_PID = 1 << 22, COMMAND_ENDS_S = 5 };

struct trace_options {
	struct trace_request r;
	pid_t pids[MAX_PIDS], tids[MAX_PIDS];
	uint32_t calls[MAX_CALLS];
	const char *paths[MAX_PATHS];
	struct choice choice;
};

#define EVENTS (1u << TRACE_EVENTS)
#define SUMS (1u << TRACE_SUMS)
#define FLOW (1u << TRACE_FLOW)

const struct trace_kind trace_kinds[] = {
	{"ebpf", ebpf_trace, EVENTS | SUMS | FLOW,
		FILTER_CALLS | FILTER_TIDS | FILTER_CGROUP | FILTER_PATHS | TAKES_CONTROL |
			FILTER_CHOICE,
		OUTPUT_LOG, true, NULL},
	{"ptrace", ptrace_trace, EVENTS, FILTER_CALLS | FILTER_TIDS, OUTPUT_LOG, true,
		"ptrace has no sums and no flows, cannot filter by cgroup, path, process, kind "
		"or client, and has no --ring and no --control-fd: use ebpf"},
	{"strace", strace_trace, EVENTS, 0, OUTPUT_OTHER, false,
		"strace, as a tracer here, records every call: no sums, no filters, no --ring"},
	{"sysstat", sysstat_trace, EVENTS, 0, OUTPUT_OTHER, false,
		"sysstat looks at the whole machine: it has no modes, no filters and no --ring"},
	{"sampler", sampler_trace, EVENTS, FILTER_PATHS, OUTPUT_LOG, false,
		"the sampler records no calls: it has no modes and no --ring, and its only filter "
		"is --path, the disk to read"},
	{0},
};

const struct trace_kind *trace_kind(const char *name)
{
	const struct trace_kind *k = trace_kinds;

	while (k->name && strcmp(k->name, name))
		k++;
	return k->name ? k : NULL;
}

int trace_run(const struct trace_kind *k, const struct trace_request *r, struct err *why)
{
	const struct trace_filter *f = &r->filter;
	unsigned filters = (f->n_calls ? FILTER_CALLS : 0) | (f->n_tids ? FILTER_TIDS : 0) |
		(f->cgroup ? FILTER_CGROUP : 0) | (f->n_paths ? FILTER_PATHS : 0) |
		(f->choice ? FILTER_CHOICE : 0) | (r->ring_ns || r->control_fd ? TAKES_CONTROL : 0);

	if (!(k->modes & 1u << r->mode) || filters & ~k->filters)
		return err_set(why, -EOPNOTSUPP, "%s", k->limits);
	if (r->bound_bytes && k->output != OUTPUT_LOG)
		return err_set(why, -EOPNOTSUPP,
			"--bound is for trace logs, which %s does not write", k->name);
	return k->trace(r, why);
}

static volatile sig_atomic_t stop_signal, ticked, write_asked;

static void on_stop(int signo, siginfo_t *info, void *context)
{
	(void)context;
	/* A terminal's signals also reach the command directly. */
	if (info->si_code != SI_KERNEL)
		stop_signal = signo;
	else if (!stop_signal)
		stop_signal = -signo;
}

static void on_tick(int signo)
{
	(void)signo;
	ticked = 1;
}

static void on_write(int signo)
{
	(void)signo;
	write_asked = 1;
}

void trace_signals(void)
{
	const int stops[] = {SIGTERM, SIGINT, SIGHUP, TRACE_LEAVE};
	struct sigaction stop = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO};
	struct sigaction tick = {.sa_handler = on_tick}, keep = {.sa_handler = on_write};
	struct itimerval every = {{0, 250000}, {0, 250000}};

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		sigaction(stops[i], &stop, NULL);
	sigaction(SIGALRM, &tick, NULL);
	sigaction(SIGUSR1, &keep, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	setitimer(ITIMER_REAL, &every, NULL);
}

/* The command that was signalled to end, and when to stop waiting for it. */
static pid_t ending;
static double leave_s;

int trace_take_stop(void)
{
	int signo = stop_signal;

	stop_signal = 0;
	if (!ending || clock_mono_s() < leave_s)
		return signo;
	fprintf(stderr,
		"culprit-agent trace: the command, process %d, or a process that it started, has "
		"not ended %d s after the signal; it continues untraced\n",
		(int)ending, COMMAND_ENDS_S);
	ending = 0;
	return TRACE_LEAVE;
}

void trace_pass_stop(pid_t command, int signo, bool by_ptrace)
{
	siginfo_t si = {.si_pid = 0};

	if (!by_ptrace && waitid(P_PID, (id_t)command, &si, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
		si.si_pid && si.si_code == CLD_TRAPPED)
		ptrace(PTRACE_DETACH, command, 0, signo);
	else
		kill(command, signo);
	if (signo != SIGINT && !ending) {
		ending = command;
		leave_s = clock_mono_s() + COMMAND_ENDS_S;
	}
}

bool trace_take_tick(void)
{
	bool was = ticked;

	ticked = 0;
	return was;
}

bool trace_take_write(void)
{
	bool was = write_asked;

	write_asked = 0;
	return was;
}

void trace_ready(const struct trace_request *r)
{
	if (r->ready_fd >= 0 && write(r->ready_fd, "ready\n", 6) == 6)
		close(r->ready_fd);
}

int trace_complain(int code, const char *sentence)
{
	fprintf(stderr, "culprit-agent trace: %s\n", sentence);
	return code;
}

int trace_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void usage(FILE *f)
{
	fputs("usage: culprit-agent trace [OPTIONS] --out FILE (-p PID ... | -- COMMAND ...)\n"
	      "\n"
	      "Writes the system calls, signals and descriptors of the processes, and of\n"
	      "their descendants, to FILE, which must not exist. 'culprit log FILE' prints\n"
	      "it.\n"
	      "\n"
	      "  -p, --pid PID     attach; may be repeated. SIGTERM or SIGINT detaches\n"
	      "  --skip-ended      ebpf, ptrace: no error if some of the processes, but not\n"
	      "                    all, have ended\n"
	      "  --no-descendants  ebpf, ptrace: leave out existing descendants\n"
	      "  -o, --out FILE    the log\n"
	      "  --tracer NAME     ebpf, ptrace, strace, sysstat, sampler; default auto: ebpf\n"
	      "                    if the kernel allows it, else ptrace. strace and sysstat\n"
	      "                    (its sadc, each second) run these programs, and FILE has\n"
	      "                    their format. sampler records no calls: each second it\n"
	      "                    reads the processes' TCP sockets, processor time and\n"
	      "                    memory, and the node's interfaces, processors and disk\n"
	      "  --mode MODE       events (default): one record for each call; sums: one for\n"
	      "                    each second, process, class of call and of descriptor;\n"
	      "                    flow: events, with positions in the byte streams of TCP\n"
	      "                    connections and requests to FUSE mounts (ebpf only)\n"
	      "  --bulk BYTES[,HEADER]  sums: messages of more bytes are bulk data, summed\n"
	      "                    separately; those up to HEADER bytes are not counted\n"
	      "  --heads           flow: with at most the first 32 bytes that each call\n"
	      "                    moved on a TCP socket or /dev/fuse\n"
	      "  --causal          flow: with each thread's processor time, and which Unix\n"
	      "                    sockets are connected, for 'culprit capture'\n"
	      "  --call NAME,...   only these system calls\n"
	      "  --tid TID         only this thread; may be repeated\n"
	      "  --cgroup DIR      only processes in this cgroup (v2) or below\n"
	      "  --path PREFIX     only files at or below this path; may be repeated. sampler:\n"
	      "                    the disk of this path\n"
	      "  --process NAME|PID,...  only these processes, by the name of their main\n"
	      "                    thread or by number (ebpf only, like the next two)\n"
	      "  --calls KIND,...  only these kinds: network, disk, fuse, metadata, other\n"
	      "  --client ADDRESS,...  of calls on sockets, only those connected to these\n"
	      "  --memory SIZE     limit of buffers in the kernel (default 64MiB)\n"
	      "  --ring TIME       keep only the last TIME, such as 60s, in memory, and write\n"
	      "                    it to FILE at the end; on SIGUSR1 also to FILE.1, FILE.2\n"
	      "                    ... (ebpf only)\n"
	      "  --ring-memory SIZE  limit of this memory (default 256MiB)\n"
	      "  --bound SIZE      limit of the data in FILE that its reader has not replaced\n"
	      "                    by a hole; above it records are dropped and counted\n"
	      "  --control-fd N    take lines from descriptor N: off, on (record calls), filter\n"
	      "                    [process=...] [calls=...] [client=...] [path=...] or\n"
	      "                    filter none, write (as SIGUSR1); a socket gets the line back\n"
	      "                    when it is in effect\n"
	      "  --ready-fd N      write the line ready to descriptor N after attaching\n",
		f);
}

static int capture_main_bad(const char *format, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), format, what);
	return trace_complain(TRACE_EXIT_USAGE, text);
}

static int add_number(const char *text, pid_t *list, size_t *n)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (*end || end == text || v <= 0 || v >= MAX_PID)
		return capture_main_bad("'%s' is not a process number", text);
	if (*n == MAX_PIDS)
		return capture_main_bad("too many processes, from '%s' on", text);
	list[(*n)++] = (pid_t)v;
	return 0;
}

static int add_calls(struct trace_options *o, char *names)
{
	struct utsname u;
	char *save = NULL;

	uname(&u);
	for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		int nr = call_number(u.machine, name);

		if (nr < 0)
			return capture_main_bad("there is no system call '%s' here", name);
		if (o->r.filter.n_calls == MAX_CALLS)
			return capture_main_bad("too many calls, from '%s' on", name);
		o->calls[o->r.filter.n_calls++] = (uint32_t)nr;
	}
	return 0;
}

static int set_memory(struct trace_options *o, const char *text)
{
	struct err e;
	double bytes;

	if (unit_parse(UNIT_BYTES, text, &bytes, &e))
		return trace_complain(TRACE_EXIT_USAGE, e.text);
	if (bytes < 65536 || bytes > 1ull << 32)
		return capture_main_bad("--memory takes 64KiB to 4GiB, not '%s'", text);
	o->r.memory_bytes = (uint64_t)bytes;
	return 0;
}

static int set_mode(struct trace_options *o, const char *text)
{
	static const char *const names[] = {
		[TRACE_EVENTS] = "events", [TRACE_SUMS] = "sums", [TRACE_FLOW] = "flow"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) {
			o->r.mode = (enum trace_mode)i;
			return 0;
		}
	return capture_main_bad("--mode takes events, sums or flow, not '%s'", text);
}

static int set_fd(int *out, int least, const char *refusal, const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (*end || end == text || fd < least || fd > 1 << 20)
		return capture_main_bad(refusal, text);
	*out = (int)fd;
	return 0;
}

static int set_ring(struct trace_options *o, const char *text)
{
	struct err e;
	double s;

	if (unit_parse(UNIT_SECONDS, text, &s, &e))
		return trace_complain(TRACE_EXIT_USAGE, e.text);
	if (s < 1 || s > 86400)
		return capture_main_bad("--ring takes 1s to 24h, not '%s'", text);
	o->r.ring_ns = (int64_t)(s * 1e9);
	return 0;
}

static int set_ring_memory(struct trace_options *o, const char *text)
{
	struct err e;
	double bytes;

	if (unit_parse(UNIT_BYTES, text, &bytes, &e))
		return trace_complain(TRACE_EXIT_USAGE, e.text);
	if (bytes < 1 << 20 || bytes > 1ull << 36)
		return capture_main_bad("--ring-memory takes 1MiB to 64GiB, not '%s'", text);
	o->r.ring_bytes = (uint64_t)bytes;
	return 0;
}

static int set_bound(struct trace_options *o, const char *text)
{
	struct err e;
	double bytes;

	if (unit_parse(UNIT_BYTES, text, &bytes, &e))
		return trace_complain(TRACE_EXIT_USAGE, e.text);
	if (bytes < 1 << 18 || bytes > 1ull << 40)
		return capture_main_bad("--bound takes 256KiB to 1TiB, not '%s'", text);
	o->r.bound_bytes = (uint64_t)bytes;
	return 0;
}

static int set_bulk(struct trace_options *o, const char *text)
{
	char *end;
	unsigned long long above = strtoull(text, &end, 10), header = 0;

	if (isdigit((unsigned char)*text) && *end == ',' && isdigit((unsigned char)end[1]))
		header = strtoull(end + 1, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || !above || above > 1ull << 32 ||
		header >= above)
		return capture_main_bad(
			"--bulk takes 1 to 4294967296 bytes and, after a comma, the smaller size "
			"of a header, not '%s'",
			text);
	o->r.bulk_above = above;
	o->r.bulk_header = (uint32_t)header;
	return 0;
}

static int add_path(struct trace_options *o, const char *path)
{
	if (*path != '/')
		return capture_main_bad("--path takes an absolute path, not '%s'", path);
	if (o->r.filter.n_paths == MAX_PATHS)
		return capture_main_bad("too many paths, from '%s' on", path);
	o->paths[o->r.filter.n_paths++] = path;
	return 0;
}

static int capture_main_choose(struct trace_options *o, const char *word, const char *list)
{
	struct err e;

	return choice_add(&o->choice, word, list, &e) ? trace_complain(TRACE_EXIT_USAGE, e.text)
						      : 0;
}

static int capture_main_finish(struct trace_options *o, int argc, char **argv)
{
	o->r.pids = o->pids;
	o->r.filter.calls = o->calls;
	o->r.filter.tids = o->tids;
	o->r.filter.paths = o->paths;
	if (!choice_is_all(&o->choice))
		o->r.filter.choice = &o->choice;
	if (optind < argc)
		o->r.command = argv + optind;
	if (o->r.causal && o->r.mode != TRACE_FLOW)
		return trace_complain(TRACE_EXIT_USAGE, "--causal needs --mode flow");
	if (o->r.bulk_above && o->r.mode != TRACE_SUMS)
		return trace_complain(TRACE_EXIT_USAGE, "--bulk needs --mode sums");
	if (o->r.heads && o->r.mode != TRACE_FLOW)
		return trace_complain(TRACE_EXIT_USAGE, "--heads needs --mode flow");
	if (o->r.bound_bytes && o->r.ring_ns)
		return trace_complain(TRACE_EXIT_USAGE,
			"--bound has no effect with --ring, which writes at the end: drop one");
	if (!o->r.out)
		return trace_complain(TRACE_EXIT_USAGE, "say where the log goes: --out FILE");
	if (!o->r.n_pids == !o->r.command)
		return trace_complain(TRACE_EXIT_USAGE,
			"give processes (-p PID) or a command (-- COMMAND ...), not both");
	return 0;
}

/* 0, an exit code, or -1: help was printed. */
static int parse(int argc, char **argv, struct trace_options *o)
{
	static const struct option longs[] = {
		{"out", required_argument, NULL, 'o'},
		{"ready-fd", required_argument, NULL, 'r'},
		{"pid", required_argument, NULL, 'p'},
		{"skip-ended", no_argument, NULL, 'e'},
		{"no-descendants", no_argument, NULL, 'D'},
		{"tracer", required_argument, NULL, 't'},
		{"mode", required_argument, NULL, 'm'},
		{"call", required_argument, NULL, 'c'},
		{"tid", required_argument, NULL, 'T'},
		{"cgroup", required_argument, NULL, 'g'},
		{"path", required_argument, NULL, 'P'},
		{"process", required_argument, NULL, 's'},
		{"calls", required_argument, NULL, 'k'},
		{"client", required_argument, NULL, 'l'},
		{"memory", required_argument, NULL, 'M'},
		{"bulk", required_argument, NULL, 'u'},
		{"heads", no_argument, NULL, 'H'},
		{"causal", no_argument, NULL, 'A'},
		{"ring", required_argument, NULL, 'R'},
		{"ring-memory", required_argument, NULL, 'B'},
		{"bound", required_argument, NULL, 'b'},
		{"control-fd", required_argument, NULL, 'C'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, code = 0;

	o->r.ready_fd = -1;
	o->r.ring_bytes = 256 << 20;
	o->r.tracer = "auto";
	while (!code && (c = getopt_long(argc, argv, "+o:p:h", longs, NULL)) != -1) {
		switch (c) {
		case 'o': o->r.out = optarg; break;
		case 'r':
			code = set_fd(&o->r.ready_fd, 0,
				"--ready-fd takes the number of a descriptor, not '%s'", optarg);
			if (!code)
				fcntl(o->r.ready_fd, F_SETFD, FD_CLOEXEC); /* not for the command */
			break;
		case 'C':
			code = set_fd(&o->r.control_fd, 0,
				"--control-fd takes the number of a descriptor, not '%s'", optarg);
			/* 0 means no descriptor, so 0 itself is moved. */
			if (!code && !o->r.control_fd)
				o->r.control_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
			break;
		case 'R': code = set_ring(o, optarg); break;
		case 'B': code = set_ring_memory(o, optarg); break;
		case 'b': code = set_bound(o, optarg); break;
		case 'p': code = add_number(optarg, o->pids, &o->r.n_pids); break;
		case 'e': o->r.skip_ended = true; break;
		case 'D': o->r.no_descendants = true; break;
		case 't': o->r.tracer = optarg; break;
		case 'm': code = set_mode(o, optarg); break;
		case 'c': code = add_calls(o, optarg); break;
		case 'T': code = add_number(optarg, o->tids, &o->r.filter.n_tids); break;
		case 'g': o->r.filter.cgroup = optarg; break;
		case 'P': code = add_path(o, optarg); break;
		case 'u': code = set_bulk(o, optarg); break;
		case 'H': o->r.heads = true; break;
		case 'A': o->r.causal = true; break;
		case 's': code = capture_main_choose(o, "process", optarg); break;
		case 'k': code = capture_main_choose(o, "calls", optarg); break;
		case 'l': code = capture_main_choose(o, "client", optarg); break;
		case 'M': code = set_memory(o, optarg); break;
		case 'h': usage(stdout); return -1;
		default: usage(stderr); return TRACE_EXIT_USAGE;
		}
	}
	return code ? code : capture_main_finish(o, argc, argv);
}

/* Runs the first tracer that this kernel allows. */
static int trace_auto(const struct trace_request *r, struct err *why)
{
	int code = -EOPNOTSUPP;

	for (const struct trace_kind *k = trace_kinds; k->name && code == -EOPNOTSUPP; k++) {
		if (!k->automatic)
			continue;
		if (k > trace_kinds)
			fprintf(stderr, "culprit-agent trace: %s; using %s\n", why->text, k->name);
		code = trace_run(k, r, why);
	}
	return code;
}

int trace_main(int argc, char **argv)
{
	static struct trace_options o;
	const struct trace_kind *kind;
	struct err why = {""};
	int code;

	code = parse(argc, argv, &o);
	if (code)
		return code < 0 ? 0 : code;
	kind = trace_kind(o.r.tracer);
	if (!kind && strcmp(o.r.tracer, "auto"))
		return capture_main_bad(
			"there is no tracer '%s'; there are ebpf, ptrace, strace, sysstat and "
			"sampler",
			o.r.tracer);
	code = kind ? trace_run(kind, &o.r, &why) : trace_auto(&o.r, &why);
	return code == -EOPNOTSUPP ? trace_complain(TRACE_EXIT_USAGE, why.text) : code;
}
