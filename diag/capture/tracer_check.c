/* Checks whether a tracer can run here, by trying it: kernels refuse in too many ways to
 * predict. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/capture/capture.h"

/* Loading the eBPF programs takes 5 s on a processor shared by twenty processes. Less than the 30 s
 * that the orchestrator waits for an answer. */
#define PATIENCE_S 20

enum { TRIED_WORDS = 12 };

static void be_tracer(const struct tracer_try *t, char *out, int said)
{
	char *argv[TRIED_WORDS + 1] = {(char *)"trace", (char *)"--tracer", (char *)t->tracer,
		(char *)"--out", out},
				 memory[32];
	int null = open("/dev/null", O_RDWR), n = 5;
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (t->mode) {
		argv[n++] = (char *)"--mode";
		argv[n++] = (char *)t->mode;
	}
	if (t->heads)
		argv[n++] = (char *)"--heads";
	if (t->memory_bytes > 0) {
		snprintf(memory, sizeof(memory), "%lldB", (long long)t->memory_bytes);
		argv[n++] = (char *)"--memory";
		argv[n++] = memory;
	}
	argv[n++] = (char *)"--";
	argv[n++] = (char *)"true";
	/* The agent receives signals from a descriptor; a tracer and its command must receive
	 * theirs directly. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	optind = 0; /* makes getopt start again */
	_exit(trace_main(n, argv));
}

/* The last line, without the program's name. */
static const char *last_line(char *text)
{
	static const char name[] = "culprit-agent trace: ";
	size_t n = strlen(text);
	char *line;

	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	return strncmp(line, name, sizeof(name) - 1) ? line : line + sizeof(name) - 1;
}

int trace_able(const struct tracer_try *t, const char *dir, struct err *why)
{
	int said = memfd_create("said", MFD_CLOEXEC), status = 0;
	struct pollfd p = {.fd = -1, .events = POLLIN};
	char text[1024] = "", out[4096];
	bool late;
	pid_t pid;

	snprintf(out, sizeof(out), "%s/able.%d", dir, (int)getpid());
	pid = said < 0 ? -1 : fork();
	if (pid == 0)
		be_tracer(t, out, said);
	if (pid < 0) {
		status = err_errno(why, -errno, "cannot try the tracer '%s'", t->tracer);
		close(said);
		return status;
	}
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	late = p.fd < 0 || poll(&p, 1, PATIENCE_S * 1000) <= 0;
	if (late)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pread(said, text, sizeof(text) - 1, 0) < 0)
		*text = '\0';
	close(p.fd);
	close(said);
	unlink(out);
	if (late)
		return err_set(
			why, -EOPNOTSUPP, "%s did not end within %d s", t->tracer, PATIENCE_S);
	if (WIFSIGNALED(status))
		return err_set(why, -EOPNOTSUPP, "%s was killed by signal %d", t->tracer,
			WTERMSIG(status));
	if (WEXITSTATUS(status))
		return err_set(why, -EOPNOTSUPP, "%s",
			*text ? last_line(text) : "the tracer failed without a reason");
	return 0;
}
