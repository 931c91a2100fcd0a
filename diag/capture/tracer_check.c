/* Can a tracer run here? Tried, not guessed: kernels refuse in too many ways. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/capture/capture.h"
#include "harness/base/clock.h"

/* Well below the shortest lease in use: the agent answers nobody meanwhile. */
#define PATIENCE_S 4

static void be_tracer(const char *tracer, char *out, int said)
{
	char *argv[] = {(char *)"trace", (char *)"--tracer", (char *)tracer, (char *)"--out", out,
		(char *)"--", (char *)"true", NULL};
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	/* The agent takes its signals from a descriptor; a tracer, and what it starts, must get
	 * theirs. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	optind = 0; /* getopt begins anew */
	_exit(trace_main(7, argv));
}

/* What the child says, until it closes its end; it is killed when it takes too long. */
static void listen_to(pid_t pid, int fd, char *text, size_t size)
{
	double end = clock_mono_s() + PATIENCE_S;
	size_t n = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		double left = end - clock_mono_s();
		ssize_t got;

		if (left <= 0 || (poll(&p, 1, (int)(left * 1000) + 1) < 0 && errno != EINTR))
			break;
		if (!p.revents)
			continue;
		got = read(fd, text + n, size - 1 - n);
		if (got <= 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	text[n] = '\0';
	if (clock_mono_s() >= end)
		kill(pid, SIGKILL);
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

int trace_able(const char *tracer, const char *dir, struct err *why)
{
	int said[2], status = 0, rc = 0;
	char text[1024] = "", *out;
	pid_t pid;

	if (asprintf(&out, "%s/able.%d", dir, (int)getpid()) < 0)
		return err_errno(why, -ENOMEM, "cannot try the tracer '%s'", tracer);
	if (pipe2(said, O_CLOEXEC) < 0) {
		free(out);
		return err_errno(why, -errno, "cannot try the tracer '%s'", tracer);
	}
	pid = fork();
	if (pid == 0)
		be_tracer(tracer, out, said[1]);
	close(said[1]);
	if (pid > 0) {
		listen_to(pid, said[0], text, sizeof(text));
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFSIGNALED(status))
			rc = err_set(why, -EOPNOTSUPP, "%s was killed by signal %d", tracer,
				WTERMSIG(status));
		else if (WEXITSTATUS(status))
			rc = err_set(why, -EOPNOTSUPP, "%s",
				*text ? last_line(text) : "it does not say why");
	} else {
		rc = err_errno(why, -errno, "cannot try the tracer '%s'", tracer);
	}
	close(said[0]);
	unlink(out);
	free(out);
	return rc;
}
