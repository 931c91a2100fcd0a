/* culprit trace: the node agent's tracers, by hand, on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/cli/cmd.h"

static void usage(FILE *f)
{
	fputs("usage: culprit trace [OPTIONS] (-p PID ... | -- COMMAND [ARGUMENT ...])\n"
	      "\n"
	      "Traces processes with all their threads and all that they start: every system call with its paths, what\n"
	      "its descriptors mean, result and service time. -p prints as it goes, until ^C or the last process has\n"
	      "ended; the processes go on as if nothing had been. A command's log is printed when it has ended, and its\n"
	      "exit code is this one's.\n"
	      "\n"
	      "  -p, --pid PID     attach to a process; may be repeated\n"
	      "  -o, --out FILE    write the log there instead (it may not exist); culprit log FILE prints it\n"
	      "  -c, --summary     print what the calls came to instead, at the end\n"
	      "  --mode MODE       events (default): every call; sums: per second, process, class of call (read, write,\n"
	      "                    open ...) and of descriptor (disk, server socket, client socket): count, errors,\n"
	      "                    bytes, time and its spread. Added up in the kernel: costs nearly nothing\n"
	      "  --tracer NAME     ebpf: in the kernel, cheap, needs root; ptrace: anywhere, for one's own processes\n"
	      "                    too, but slows them down. Default auto: ebpf where the kernel allows it, else ptrace.\n"
	      "                    sampler: no calls, but each second what their TCP sockets, processor time, memory and\n"
	      "                    reads came to, and the node's interfaces, processors and, with --path, its disk\n"
	      "\n"
	      "Only what all of these say is recorded (cgroup and path: ebpf only):\n"
	      "  --call NAME,...   these system calls\n"
	      "  --tid TID         this thread; may be repeated\n"
	      "  --path PREFIX     calls on files at or below this path, or that name one; may be repeated\n"
	      "  --cgroup DIR      processes in this cgroup (v2) or below\n"
	      "  --memory SIZE     most that buffers in the kernel may take (default 64MiB)\n"
	      "\n"
	      "examples:\n"
	      "  culprit trace -- ls /tmp                       like strace, with what descriptors mean\n"
	      "  culprit trace -p 1234 --path /var/log          who touches these files, live\n"
	      "  culprit trace -p 1234 --mode sums              a line a second and class, live\n"
	      "  culprit trace -p 1234 --tracer sampler --path /srv/brick   sockets and disk each second, live\n"
	      "  culprit trace -c -- make                       where a command's time goes\n"
	      "  culprit trace -p 1234 -o LOG; culprit log LOG  to keep\n",
		f);
}

/* The agent program, which is the tracer too. */
static int find_agent(char path[PATH_MAX], struct err *e)
{
	char *folder;
	int rc = home_agent_dir(&folder, e);

	if (rc)
		return rc;
	snprintf(path, PATH_MAX, "%s/culprit-agent", folder);
	free(folder);
	return 0;
}

static volatile pid_t tracer;

/* A terminal's ^C reaches the tracer by itself. */
static void pass_on(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_KERNEL && tracer > 0)
		kill(tracer, signo);
}

/* 'culprit trace -p PID | head' ends the tracer, too. */
static void nobody_reads(int signo)
{
	if (tracer > 0)
		kill(tracer, SIGTERM);
	signal(signo, SIG_DFL);
	raise(signo);
}

static void handle_signals(void)
{
	struct sigaction on = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGHUP, &on, NULL);
	signal(SIGPIPE, nobody_reads);
}

/* Starts the tracer; '*ready' becomes readable when it has attached, or is at its end. */
static pid_t start(char **args, int *ready)
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

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Hands on what is written to 'log' until 'pidfd' says that its writer has ended. */
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

/* A descriptor to read the log from while it grows, ending where the tracer ends. */
static int live(int log)
{
	int p[2], pidfd = (int)syscall(SYS_pidfd_open, tracer, 0);
	pid_t pid;

	if (pidfd < 0)
		return -errno;
	if (pipe2(p, O_CLOEXEC) < 0)
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

static int print(int log, bool summary)
{
	char *args[] = {(char *)"log", (char *)(summary ? "-c" : "-"), (char *)"-", NULL};

	if (log < 0 || dup2(log, STDIN_FILENO) < 0)
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot read the log: %s",
			strerror(log < 0 ? -log : errno));
	optind = 0; /* getopt begins anew */
	return cmd_log(summary ? 3 : 2, args);
}

/* Runs the tracer and prints its log: as it grows, or afterwards. */
static int trace_and_print(
	char **args, const char *out, const char *dir, bool as_it_goes, bool summary)
{
	int ready = -1, log, code, rc;
	char line[8];

	handle_signals();
	tracer = start(args, &ready);
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
	if (log < 0) /* it could not attach, and has said why */
		return wait_for(tracer);
	if (as_it_goes) {
		setlinebuf(stdout);
		rc = print(live(log), summary);
		if (rc)
			kill(tracer, SIGTERM); /* nobody reads any more */
		code = wait_for(tracer);
	} else {
		code = wait_for(tracer);
		rc = print(log, summary);
	}
	close(log);
	return code ? code : rc;
}

struct options {
	char **args; /* for the agent */
	int n;
	char *out;
	bool summary, pids, sums;
};

static void pass(struct options *o, const char *name, char *value)
{
	o->args[o->n++] = (char *)name;
	if (value)
		o->args[o->n++] = value;
}

/* An exit code, or -1: go on. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"out", required_argument, NULL, 'o'},
		{"pid", required_argument, NULL, 'p'},
		{"summary", no_argument, NULL, 'c'},
		{"mode", required_argument, NULL, 'm'},
		{"tracer", required_argument, NULL, 't'},
		{"call", required_argument, NULL, 'C'},
		{"tid", required_argument, NULL, 'T'},
		{"cgroup", required_argument, NULL, 'g'},
		{"path", required_argument, NULL, 'P'},
		{"memory", required_argument, NULL, 'M'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "+o:p:ch", longs, NULL)) != -1) {
		switch (c) {
		case 'o': o->out = optarg; break;
		case 'c': o->summary = true; break;
		case 'p':
			pass(o, "-p", optarg);
			o->pids = true;
			break;
		case 'm':
			pass(o, "--mode", optarg);
			o->sums = !strcmp(optarg, "sums");
			break;
		case 't': pass(o, "--tracer", optarg); break;
		case 'C': pass(o, "--call", optarg); break;
		case 'T': pass(o, "--tid", optarg); break;
		case 'g': pass(o, "--cgroup", optarg); break;
		case 'P': pass(o, "--path", optarg); break;
		case 'M': pass(o, "--memory", optarg); break;
		case 'h': usage(stdout); return CULPRIT_EXIT_OK;
		default: usage(stderr); return CULPRIT_EXIT_USAGE;
		}
	}
	if (o->pids == (optind < argc))
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"give processes (-p PID) or a command (-- COMMAND ...)%s",
			o->pids ? ", not both" : "; culprit trace --help says more");
	if (o->summary && o->out)
		return cmd_fail("trace", CULPRIT_EXIT_USAGE,
			"--summary is printed: with --out, use culprit log -c FILE");
	if (!o->pids) {
		pass(o, "--", NULL);
		while (optind < argc)
			pass(o, argv[optind++], NULL);
	}
	return -1;
}

int cmd_trace(int argc, char **argv)
{
	enum { FIRST = 6 }; /* room for our own arguments before the user's */
	char agent[PATH_MAX], dir[] = "/tmp/culprit-trace-XXXXXX", log[64], **args;
	struct options o = {
		.args = calloc((size_t)argc * 2 + FIRST + 2, sizeof(char *)), .n = FIRST};
	struct err e;
	int code;

	if (!o.args)
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "out of memory");
	code = parse(argc, argv, &o);
	if (code >= 0)
		goto out;
	if (find_agent(agent, &e) < 0) {
		code = cmd_fail("trace", CULPRIT_EXIT_INVALID, "%s", e.text);
		goto out;
	}
	if (!o.out && !mkdtemp(dir)) {
		code = cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot make '%s': %s", dir,
			strerror(errno));
		goto out;
	}
	snprintf(log, sizeof(log), "%s/log", dir);
	args = o.args + (o.out ? 2 : 0);
	args[0] = agent;
	args[1] = (char *)"trace";
	args[2] = (char *)"--out";
	args[3] = o.out ? o.out : log;
	if (!o.out) {
		args[4] = (char *)"--ready-fd";
		args[5] = (char *)"3";
		code = trace_and_print(args, log, dir, o.pids, o.summary || (o.sums && !o.pids));
		goto out;
	}
	execv(agent, args);
	code = cmd_fail(
		"trace", CULPRIT_EXIT_INVALID, "cannot run '%s': %s", agent, strerror(errno));
out:
	free(o.args);
	return code;
}
