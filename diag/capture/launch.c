/* Starts a command that waits until the tracer is ready for it. */
#include "diag/capture/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/capture/capture.h"

void usual_signals(void)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGTTOU, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

static _Noreturn void wait_and_run(struct launch *l, int go, int failed, void (*body)(void))
{
	char c;
	int code;

	close(l->go);
	while ((code = (int)read(go, &c, 1)) < 0 && errno == EINTR)
		;
	if (code != 1)
		_exit(TRACE_EXIT_NO_PROGRAM);
	if (body) {
		body();
		_exit(0);
	}
	usual_signals();
	execvp(l->command[0], l->command);
	code = errno;
	if (write(failed, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(TRACE_EXIT_NO_PROGRAM);
}

int launch_fork(struct launch *l, char **command, void (*body)(void), struct err *e)
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, rc = 0;

	*l = (struct launch){.command = command, .go = -1, .failed = -1};
	if (pipe2(go, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0) {
		l->go = go[1];
		l->failed = failed[0];
		l->pid = fork();
		if (l->pid == 0)
			wait_and_run(l, go[0], failed[1], body);
	} else {
		l->pid = -1;
	}
	if (l->pid < 0) {
		rc = err_errno(e, -errno, "cannot start '%s'", command ? command[0] : "a process");
		l->pid = 0;
	}
	if (go[0] >= 0)
		close(go[0]);
	if (failed[1] >= 0)
		close(failed[1]);
	return rc;
}

int launch_go(struct launch *l, struct err *e)
{
	int code = 0;

	if (write(l->go, "g", 1) != 1)
		return err_errno(e, -errno, "cannot start '%s'", l->command[0]);
	while (read(l->failed, &code, sizeof(code)) < 0 && errno == EINTR)
		;
	launch_close(l);
	return code ? err_errno(e, -code, "cannot run '%s'", l->command[0]) : 0;
}

void launch_close(struct launch *l)
{
	if (l->go >= 0)
		close(l->go);
	if (l->failed >= 0)
		close(l->failed);
	l->go = l->failed = -1;
}
