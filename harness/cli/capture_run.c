/* Runs a command under the tracer, with a limit on its time. */
#include "harness/cli/capture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/throttle/supervisor.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/home.h"
#include "harness/base/proc.h"

enum { GRACE_S = 5 };

#define TAG "CULPRIT_CAPTURE"

/* Adds 'words', at most 'max', to the list; NULL stands at its end. */
static char **capture_run_add(char **list, size_t *n, char *const *words, size_t max)
{
	for (size_t i = 0; i < max && words[i]; i++) {
		list = alloc_resize(list, *n + 2, sizeof(*list));
		list[(*n)++] = words[i];
		list[*n] = NULL;
	}
	return list;
}

/* 'socket': for the supervisor's listener; or NULL. */
static char **make_args(const struct agent_start *agent, char **command, const char *log,
	const char *memory, const char *socket)
{
	const char *const trace[] = {"trace", "--tracer", "ebpf", "--mode", "flow", "--causal",
		"--memory", memory, "--out", log, "--", NULL};
	const char *const throttled[] = {"throttled", "--fd", socket, "--", NULL};
	char **args = NULL;
	size_t n = 0;

	args = capture_run_add(args, &n, agent->words, agent->n);
	args = capture_run_add(args, &n, (char *const *)trace, SIZE_MAX);
	if (socket) {
		args = capture_run_add(args, &n, agent->words, agent->n);
		args = capture_run_add(args, &n, (char *const *)throttled, SIZE_MAX);
	}
	return capture_run_add(args, &n, command, SIZE_MAX);
}

static pid_t capture_run_start(char **args, const char *tag, const sigset_t *before)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, before, NULL);
	setenv(TAG, tag, 1);
	execv(args[0], args);
	_exit(127);
}

/* Waits for the tracer's end: 1; or a signal's number, negative; or 0 after 'limit_s'. */
static int capture_run_wait_for(int pidfd, int signals, double limit_s, struct supervisor *s)
{
	struct pollfd on[4] = {{.fd = pidfd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	double end = clock_mono_s() + limit_s, left;
	struct signalfd_siginfo got;

	while ((left = end - clock_mono_s()) > 0) {
		int ms = left > 1000 ? 1000000 : (int)(left * 1000) + 1;
		int own = s ? supervisor_poll(s, on + 2) : ms;

		if (poll(on, s ? 4 : 2, own < ms ? own : ms) < 0 && errno != EINTR)
			return 0;
		if (s)
			supervisor_step(s);
		if (on[0].revents)
			return 1;
		if (on[1].revents && read(signals, &got, sizeof(got)) == sizeof(got))
			return -(int)got.ssi_signo;
	}
	return 0;
}

/* The command is told to end; after a while it, and all that it started, is killed. */
static void capture_run_end(
	pid_t pid, int pidfd, int signals, const char *tag, struct supervisor *s)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	pid_t *left;
	int n;

	if (s)
		supervisor_stop(s);
	kill(pid, SIGTERM);
	if (capture_run_wait_for(pidfd, signals, GRACE_S, s) != 1) {
		/* The tracer itself ends when the last process has. */
		n = proc_find_tagged(TAG, tag, false, &left);
		for (int i = 0; i < n; i++)
			if (left[i] != pid)
				kill(left[i], SIGKILL);
		if (n >= 0)
			free(left);
		poll(&ended, 1, GRACE_S * 1000);
		kill(pid, SIGKILL);
	}
	proc_kill_tagged(TAG, tag, false, GRACE_S, NULL);
}

static int outcome(int status, char **command, struct err *e)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	if (!code)
		return 0;
	return err_set(e, -ECANCELED,
		"'%s' ended with exit code %d: nothing is written (the command must succeed)",
		command[0], code);
}

static int supervise(pid_t pid, int signals, const char *tag, char **command, double limit_s,
	struct supervisor *s, struct err *e)
{
	auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int status = 0, how = pidfd < 0 ? 0 : capture_run_wait_for(pidfd, signals, limit_s, s);

	if (how != 1)
		capture_run_end(pid, pidfd, signals, tag, s);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (how == 1)
		return outcome(status, command, e);
	if (how < 0) {
		err_set(e, -EINTR, "interrupted: the command has been ended, nothing is written");
		return err_blame(e, ERR_INTERRUPTED, -EINTR);
	}
	return err_set(e, -ETIMEDOUT,
		"'%s' ran for more than %.0f s and has been ended: --time-limit gives it more",
		command[0], limit_s);
}

static int capture_run_supervised(char **args, char **command, double limit_s, struct supervisor *s,
	int socket, struct err *e)
{
	auto_fd int signals = -1;
	sigset_t taken, before;
	char tag[64];
	pid_t pid;
	int rc;

	snprintf(tag, sizeof(tag), "%d-%lld", getpid(), (long long)clock_real_ns());
	sigemptyset(&taken);
	sigaddset(&taken, SIGINT);
	sigaddset(&taken, SIGTERM);
	sigaddset(&taken, SIGHUP);
	sigprocmask(SIG_BLOCK, &taken, &before);
	signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	pid = signals < 0 ? -1 : capture_run_start(args, tag, &before);
	if (socket >= 0)
		close(socket);
	rc = pid < 0 ? err_errno(e, -errno, "cannot start the tracer")
		     : supervise(pid, signals, tag, command, limit_s, s, e);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int capture_run(char **command, const char *log, const char *memory, double limit_s,
	const struct capture_delays *d, struct err *e)
{
	struct supervisor *s = d ? d->supervisor : NULL;
	struct agent_start agent;
	auto_free char **args = NULL;
	char text[16];
	int socket = -1, rc = agent_start_init(&agent, e);

	if (!rc && s)
		rc = supervisor_begin(s, d->thread, d->period, &socket, e);
	if (rc)
		goto out;
	snprintf(text, sizeof(text), "%d", socket);
	args = make_args(&agent, command, log, memory, s ? text : NULL);
	rc = capture_run_supervised(args, command, limit_s, s, socket, e);
	if (s)
		supervisor_end(s);
out:
	agent_start_clear(&agent);
	return rc;
}
