/* culprit-agent loop: a command that ends is started again, so that it fills a phase. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/agent/agent.h"
#include "harness/base/clock.h"

/* A line of JSON for the run that has just ended. */
static int note_times(int fd, int64_t real_ns, double mono_s, int code)
{
	return fd < 0 ||
			dprintf(fd, "{\"start_ns\":%lld,\"seconds\":%.9f,\"exit\":%d}\n",
				(long long)real_ns, clock_mono_s() - mono_s, code) > 0
		? 0
		: -errno;
}

static int run_once(
	char **argv, int times, const sigset_t *watched, const sigset_t *old, bool *told, int *code)
{
	int64_t real_ns = clock_real_ns();
	double mono_s = clock_mono_s();
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, old, NULL);
		execvp(argv[0], argv);
		fprintf(stderr, "culprit-agent loop: cannot run '%s': %s\n", argv[0],
			strerror(errno));
		_exit(127);
	}
	for (;;) {
		siginfo_t si;
		int signo = sigwaitinfo(watched, &si);

		if (signo == SIGINT || signo == SIGTERM) {
			*told = true;
			/* SIGINT is what dd and its like end on with a report. */
			kill(pid, SIGINT);
		} else if (signo == SIGCHLD && waitpid(pid, &status, WNOHANG) == pid) {
			break;
		}
	}
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return note_times(times, real_ns, mono_s, *code);
}

int loop_main(int argc, char **argv)
{
	static const struct option options[] = {{"max-runs", required_argument, NULL, 'm'},
		{"times", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
	static const char usage[] =
		"usage: culprit-agent loop [--max-runs N] [--times FILE] -- COMMAND [ARGUMENT ...]\n\n"
		"Runs COMMAND again each time it ends with 0, until SIGTERM or SIGINT, which it\n"
		"passes on as SIGINT and then waits. A failure of COMMAND ends it with that code.\n"
		"With --times a line is written to FILE for each run: when it began, how long it took.\n"
		"If standard input is a file, every run reads it from its start.\n";
	unsigned long max_runs = 0, runs = 0;
	sigset_t watched, old;
	bool told = false;
	int c, code = 0, times = -1;
	char *end = NULL;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c == 't') {
			times = open(
				optarg, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
			if (times < 0) {
				fprintf(stderr, "culprit-agent loop: cannot write '%s': %s\n",
					optarg, strerror(errno));
				return 2;
			}
			continue;
		}
		max_runs = c == 'm' ? strtoul(optarg, &end, 10) : 0;
		if (c != 'm' || *end || !max_runs) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return 2;
	}
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGINT);
	sigaddset(&watched, SIGTERM);
	sigprocmask(SIG_BLOCK, &watched, &old);
	while (!told && !code && (!max_runs || runs < max_runs)) {
		int rc;

		/* Every run reads its input from the start, where it is a file. */
		lseek(STDIN_FILENO, 0, SEEK_SET);
		rc = run_once(argv + optind, times, &watched, &old, &told, &code);

		if (rc) {
			fprintf(stderr, "culprit-agent loop: cannot start '%s': %s\n", argv[optind],
				strerror(-rc));
			return 3;
		}
		runs++;
	}
	/* Told to stop, it did: that it died of the SIGINT is no failure. */
	return told ? 0 : code;
}
