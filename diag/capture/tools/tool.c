/* Starts, watches and stops an external tracer. */
#include "diag/capture/tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"

#define POLL_NS 5000000
#define CALM_S 5

char *external_find(const char *program, const char *const *folders)
{
	const char *path = getenv("PATH"), *next;
	char *file;

	for (; path && *path; path = *next ? next + 1 : next) {
		next = path + strcspn(path, ":");
		if (asprintf(&file, "%.*s/%s", (int)(next - path), path, program) < 0)
			return NULL;
		if (!access(file, X_OK))
			return file;
		free(file);
	}
	for (; folders && *folders; folders++) {
		if (asprintf(&file, "%s/%s", *folders, program) < 0)
			return NULL;
		if (!access(file, X_OK))
			return file;
		free(file);
	}
	return NULL;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

static int tool_complain(const struct external *x, int code, const char *what, int errnum)
{
	char text[512];

	snprintf(text, sizeof(text), "%s: %s '%.300s': %s", x->name, what,
		x->request->command ? x->request->command[0] : x->request->out, strerror(errnum));
	return trace_complain(code, text);
}

int external_begin(struct external *x)
{
	const struct trace_request *r = x->request;
	struct err e;
	int fd;

	x->launch.go = x->launch.failed = -1;
	for (size_t i = 0; i < r->n_pids; i++) {
		char text[64];

		snprintf(text, sizeof(text), "there is no process %d", (int)r->pids[i]);
		if (kill(r->pids[i], 0) < 0 && errno == ESRCH)
			return trace_complain(TRACE_EXIT_USAGE, text);
	}
	fd = open(r->out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		fprintf(stderr, "culprit-agent trace: cannot create '%s': %s\n", r->out,
			strerror(errno));
		return TRACE_EXIT_USAGE;
	}
	close(fd);
	x->pids = r->pids;
	x->n_pids = r->n_pids;
	trace_signals();
	if (!r->command)
		return 0;
	if (launch_fork(&x->launch, r->command, NULL, &e) < 0) {
		launch_close(&x->launch);
		unlink(r->out);
		return trace_complain(TRACE_EXIT_USAGE, e.text);
	}
	x->command = x->launch.pid;
	x->pids = &x->command;
	x->n_pids = 1;
	return 0;
}

static _Noreturn void be_tool(const struct external *x, pid_t keeper)
{
	/* A terminal's signals are for us and the command, not for the tool. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, x->death_signal);
	if (getppid() != keeper)
		_exit(126);
	usual_signals();
	dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execv(x->argv[0], (char *const *)x->argv);
	fprintf(stderr, "culprit-agent trace: cannot run '%s': %s\n", x->argv[0], strerror(errno));
	_exit(126);
}

/* Reports the tool's pid, and ends with its exit code when the tool ends. */
static _Noreturn void be_keeper(const struct external *x, pid_t maker, int tell)
{
	const int deaf[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t held, old;
	pid_t me = getpid(), tool;
	int status = 0;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != maker)
		_exit(126);
	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(deaf) / sizeof(deaf[0]); i++)
		sigaddset(&held, deaf[i]);
	sigprocmask(SIG_BLOCK, &held, &old);
	tool = fork();
	if (tool == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		be_tool(x, me);
	}
	if (tool < 0 || write(tell, &tool, sizeof(tool)) != sizeof(tool))
		_exit(126);
	/* The keeper must not hold other descriptors open. */
	close(tell);
	launch_close((struct launch *)&x->launch);
	if (x->request->ready_fd >= 0)
		close(x->request->ready_fd);
	waitpid(tool, &status, 0);
	_exit(trace_exit_code(status));
}

static int start_tool(struct external *x)
{
	pid_t me = getpid();
	int tell[2], rc = 0;

	if (pipe2(tell, O_CLOEXEC) < 0)
		return -errno;
	x->keeper = fork();
	if (x->keeper == 0)
		be_keeper(x, me, tell[1]);
	if (x->keeper < 0) {
		rc = -errno;
		x->keeper = 0;
	}
	close(tell[1]);
	while (!rc && read(tell[0], &x->tool, sizeof(x->tool)) != sizeof(x->tool))
		if (errno != EINTR)
			rc = -ECHILD;
	close(tell[0]);
	return rc;
}

/* Takes the tool's status if it has ended. */
static bool tool_ended(struct external *x, int *status)
{
	if (x->keeper && waitpid(x->keeper, status, WNOHANG) == x->keeper)
		x->keeper = x->tool = 0;
	return !x->keeper;
}

static bool all_gone(const struct external *x)
{
	for (size_t i = 0; i < x->n_pids; i++)
		if (kill(x->pids[i], 0) == 0 || errno == EPERM)
			return false;
	return true;
}

/* Cleans up before the tool ran. */
static int abandon(struct external *x, int code)
{
	launch_close(&x->launch);
	if (x->command)
		waitpid(x->command, NULL, 0);
	if (x->tool)
		kill(x->tool, SIGKILL);
	if (x->keeper)
		waitpid(x->keeper, NULL, 0);
	unlink(x->request->out);
	return code;
}

static void stop_tool(struct external *x, int *status)
{
	double deadline = clock_mono_s() + CALM_S;

	while (x->is_calm && !tool_ended(x, status) && !x->is_calm(x) && clock_mono_s() < deadline)
		nap();
	if (x->tool)
		kill(x->tool, x->stop_signal);
}

/* Waits until command and tool have ended; returns whether the tool was sent the stop signal. */
static bool tool_watch(struct external *x, int *command_status, int *status)
{
	const struct trace_request *r = x->request;
	bool stopped = false;

	while (x->keeper || x->command) {
		int s = 0, stop;
		pid_t pid = waitpid(-1, &s, 0);

		if (pid > 0 && pid == x->command) {
			*command_status = s;
			x->command = 0;
		} else if (pid > 0 && pid == x->keeper) {
			*status = s;
			x->keeper = x->tool = 0;
		}
		stop = trace_take_stop();
		if (stop == TRACE_LEAVE)
			x->command = 0;
		if (stop > 0 && x->command)
			trace_pass_stop(x->command, stop, false);
		if (x->tool && !stopped &&
			((stop && (!r->command || stop == TRACE_LEAVE)) ||
				(!x->ends_by_itself && (r->command ? !x->command : all_gone(x))))) {
			stop_tool(x, status);
			stopped = true;
		}
	}
	return stopped;
}

int external_run(struct external *x)
{
	const struct trace_request *r = x->request;
	int command_status = 0, status = 0, code, rc;
	struct err e;
	bool stopped;

	rc = start_tool(x);
	if (rc)
		return abandon(x, tool_complain(x, TRACE_EXIT_USAGE, "cannot record to", -rc));
	while (!x->is_ready(x)) {
		if (tool_ended(x, &status)) {
			/* With a code from 1 to 127 the tool has printed the reason, which must be
			 * the last line. */
			if (!WEXITSTATUS(status) || WEXITSTATUS(status) > 128)
				trace_complain(
					TRACE_EXIT_USAGE, "the tracer ended before it was ready");
			return abandon(x, TRACE_EXIT_USAGE);
		}
		if (trace_take_stop())
			return abandon(x, TRACE_EXIT_OK);
		nap();
	}
	trace_ready(r);
	if (r->command && launch_go(&x->launch, &e) < 0)
		return abandon(x, trace_complain(TRACE_EXIT_NO_PROGRAM, e.text));
	stopped = tool_watch(x, &command_status, &status);
	code = r->command ? trace_exit_code(command_status) : TRACE_EXIT_OK;
	if (!stopped && trace_exit_code(status))
		rc = err_set(
			&e, -EIO, "%s ended by itself with %d", x->name, trace_exit_code(status));
	if (!rc && x->finish)
		rc = x->finish(x, trace_exit_code(status), stopped, &e);
	return rc ? trace_complain(TRACE_EXIT_NOT_WHOLE, e.text) : code;
}
