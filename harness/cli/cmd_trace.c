/* culprit trace: the agent's tracer, by hand, on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/cli/cmd.h"

static void usage(FILE *f)
{
	fputs("usage: culprit trace [-o FILE] (-p PID ... | -- COMMAND ...)\n"
	      "\n"
	      "Traces processes with all their threads and all that they start. -p may be repeated; ^C ends it\n"
	      "and leaves them running. Without -o the log is printed afterwards; with it, 'culprit log\n"
	      "FILE' prints it. With a command, its exit code is this one's.\n",
	      f);
}

/* The agent program beside this one (a build tree), or where it is installed. */
static int find_agent(char path[PATH_MAX])
{
	char self[PATH_MAX - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		snprintf(path, PATH_MAX, "%s/agent/culprit-agent", dirname(self));
		if (access(path, X_OK) == 0)
			return 0;
	}
	snprintf(path, PATH_MAX, "%s", CULPRIT_PREFIX "/lib/culprit/agent/culprit-agent");
	return access(path, X_OK) == 0 ? 0 : -errno;
}

/* Runs the tracer and then prints its log; signals are the tracer's to handle. */
static int trace_and_print(char **args, char *out, char *dir)
{
	char *print[] = {(char *)"log", (char *)"-", NULL};
	int status = 0, code, log;
	pid_t pid;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		execv(args[0], args);
		_exit(CULPRIT_EXIT_INVALID);
	}
	if (pid < 0)
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot fork: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	/* Removed before it is printed: 'culprit trace ... | head' ends us in the middle. */
	log = open(out, O_RDONLY | O_CLOEXEC);
	unlink(out);
	rmdir(dir);
	if (log >= 0 && dup2(log, STDIN_FILENO) >= 0) {
		int rc;

		optind = 0; /* getopt begins anew */
		rc = cmd_log(2, print);
		if (code == 0)
			code = rc;
	}
	if (log >= 0)
		close(log);
	return code;
}

int cmd_trace(int argc, char **argv)
{
	static const struct option longs[] = {
		{"out", required_argument, NULL, 'o'}, {"pid", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'}, {0},
	};
	char agent[PATH_MAX], dir[] = "/tmp/culprit-trace-XXXXXX", log[64], *out = NULL, **args;
	int c, n = 0;

	args = calloc((size_t)argc * 2 + 8, sizeof(*args));
	if (!args)
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "out of memory");
	n = 4;
	while ((c = getopt_long(argc, argv, "+o:p:h", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			out = optarg;
			break;
		case 'p':
			args[n++] = (char *)"-p";
			args[n++] = optarg;
			break;
		case 'h':
			usage(stdout);
			free(args);
			return CULPRIT_EXIT_OK;
		default:
			goto bad;
		}
	}
	if ((n == 4) == (optind == argc))
		goto bad;
	if (optind < argc) {
		args[n++] = (char *)"--";
		while (optind < argc)
			args[n++] = argv[optind++];
	}
	if (find_agent(agent) < 0) {
		free(args);
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "there is no '%s': run 'make' or 'make install'", agent);
	}
	if (!out && !mkdtemp(dir)) {
		free(args);
		return cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot make '%s': %s", dir, strerror(errno));
	}
	snprintf(log, sizeof(log), "%s/log", dir);
	args[0] = agent;
	args[1] = (char *)"trace";
	args[2] = (char *)"--out";
	args[3] = out ? out : log;
	if (!out)
		c = trace_and_print(args, log, dir);
	else {
		execv(agent, args);
		c = cmd_fail("trace", CULPRIT_EXIT_INVALID, "cannot run '%s': %s", agent, strerror(errno));
	}
	free(args);
	return c;
bad:
	free(args);
	usage(stderr);
	return CULPRIT_EXIT_USAGE;
}
