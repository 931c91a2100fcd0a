/* Measures how much a ptrace stop adds to the time of a call. */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "diag/capture/ptrace/tracer.h"
#include "harness/base/clock.h"

enum { CALLS = 200 };

static int bias_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Traces 'pid' to its end; returns the number of calls in 'service'. */
static size_t follow(pid_t pid, int64_t *service)
{
	struct __ptrace_syscall_info info;
	int64_t entry_ns = 0;
	size_t n = 0;
	int status;

	while (wait_event(pid, &status) == pid && WIFSTOPPED(status)) {
		int64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
			ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0) {
			if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
				entry_ns = info.entry.nr == SYS_getppid ? clock_ns(CLOCK_MONOTONIC)
									: 0;
			else if (entry_ns && n < CALLS)
				service[n++] = now_ns - entry_ns;
		}
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
	}
	return n;
}

int64_t bias_measure_ns(void)
{
	int64_t service[CALLS];
	size_t n = 0;
	int go[2];
	pid_t pid;
	char c;

	if (pipe(go) < 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			for (int i = 0; i < CALLS; i++)
				syscall(SYS_getppid);
		_exit(0);
	}
	close(go[0]);
	if (pid > 0 &&
		ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0 &&
		ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && write(go[1], "", 1) == 1)
		n = follow(pid, service);
	close(go[1]);
	if (pid > 0 && !n)
		waitpid(pid, NULL, __WALL);
	if (!n)
		return 0;
	qsort(service, n, sizeof(service[0]), bias_compare);
	return service[n / 2];
}
