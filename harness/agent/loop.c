/* culprit-agent loop: a command that ends is started again, so that it fills a phase. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/agent/programs.h"
#include "harness/base/clock.h"

/* What is known of a run when it begins. */
struct run_begin {
	int64_t real_ns;
	double mono_s;
	double parent_s; /* processor time of our parent, a tracer if there is one: its start */
};

/* A line of JSON for the run that has just ended. */
static int note_times(int fd, const struct run_begin *b, int code, const struct rusage *usage)
{
	return fd < 0 ||
			dprintf(fd,
				"{\"start_ns\":%lld,\"seconds\":%.9f,\"exit\":%d,\"cpu_s\":%.6f,"
				"\"parent_cpu_s\":%.9f}\n",
				(long long)b->real_ns, clock_mono_s() - b->mono_s, code,
				clock_rusage_s(usage), b->parent_s) > 0
		? 0
		: -errno;
}

static int run_once(
	char **argv, int times, const sigset_t *watched, const sigset_t *old, bool *told, int *code)
{
	struct run_begin begin = {0};
	struct rusage usage;
	pid_t pid;
	int status;

	if (times >= 0)
		procfs_cpu(getppid(), &begin.parent_s);
	begin.real_ns = clock_real_ns();
	begin.mono_s = clock_mono_s();
	pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, old, NULL);
		execvp(argv[0], argv);
		program_failed("loop", "run", argv[0], errno);
		_exit(127);
	}
	for (;;) {
		siginfo_t si;
		int signo = sigwaitinfo(watched, &si);

		if (signo == SIGINT || signo == SIGTERM) {
			*told = true;
			/* dd and similar programs end on SIGINT with a report. */
			kill(pid, SIGINT);
		} else if (signo == SIGCHLD && wait4(pid, &status, WNOHANG, &usage) == pid) {
			break;
		}
	}
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return note_times(times, &begin, *code, &usage);
}

int loop_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent loop [--max-runs N] [--times FILE] -- COMMAND [ARGUMENT "
		"...]\n\n"
		"Runs COMMAND again each time it ends with 0, until SIGTERM or SIGINT, which it\n"
		"passes on as SIGINT and then waits. A failure of COMMAND ends it with that code.\n"
		"With --times a line is written to FILE for each run: start, duration, exit code,\n"
		"processor time, and the processor time of the loop's parent when the run began.\n"
		"If standard input is a file, every run reads it from its start.\n";
	const char *file = NULL;
	unsigned long max_runs = 0, runs = 0;
	const struct program_option options[] = {
		{"max-runs", option_count, &max_runs}, {"times", option_text, &file}, {0}};
	int code = 0, times = -1, rc, first;
	sigset_t watched, old;
	bool told = false;

	first = program_options(argc, argv, options, -1, usage, &code);
	if (first < 0)
		return code;
	if (file) {
		times = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
		if (times < 0)
			return program_failed("loop", "write", file, errno) + 1;
	}
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGINT);
	sigaddset(&watched, SIGTERM);
	sigprocmask(SIG_BLOCK, &watched, &old);
	for (; !told && !code && (!max_runs || runs < max_runs); runs++) {
		lseek(STDIN_FILENO, 0, SEEK_SET);
		rc = run_once(argv + first, times, &watched, &old, &told, &code);
		if (rc)
			return program_failed("loop", "start", argv[first], -rc) + 2;
	}
	/* That the command died of our SIGINT is no failure. */
	return told ? 0 : code;
}
