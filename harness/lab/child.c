#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

#define FDS_MAX 8

/* Moves src[i] to LAB_CONTROL_FD + i; first out of the way, since the ranges may overlap. */
static int hand_over(const int *src, int n)
{
	int high[FDS_MAX];

	for (int i = 0; i < n; i++) {
		high[i] = fcntl(src[i], F_DUPFD_CLOEXEC, LAB_CONTROL_FD + FDS_MAX);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < n; i++)
		if (dup2(high[i], LAB_CONTROL_FD + i) < 0)
			return -errno;
	return 0;
}

static void __attribute__((noreturn))
become(const char *dir, const char *what, const char *name, const int *src, int n, const char *log)
{
	const char *argv[] = {
		"culprit", "lab", what, "--dir", dir, name ? "--name" : NULL, name, NULL};
	int null = open("/dev/null", O_RDONLY);
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	setsid();
	if (null < 0 || out < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
		hand_over(src, n))
		_exit(126);
	execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

int child_start(struct child *c, const char *dir, const char *what, const char *name, int flags,
	const int *fds, const char *log, struct err *e)
{
	int pair[2], src[FDS_MAX], n = 1;
	pid_t pid;

	snprintf(c->name, sizeof(c->name), "%s%s", strcmp(what, "disk") ? "" : "disk of ",
		name ? name : what);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "cannot start %s", c->name);
	src[0] = pair[1];
	for (; fds && n < FDS_MAX && fds[n - 1] >= 0; n++)
		src[n] = fds[n - 1];
	pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		become(dir, what, name, src, n, log);
	close(pair[1]);
	if (pid < 0) {
		int code = -errno;

		close(pair[0]);
		return err_errno(e, code, "cannot start %s", c->name);
	}
	c->pid = pid;
	c->sock = pair[0];
	c->waiting = true;
	return 0;
}

int child_go(struct child *c, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (send(c[i].sock, "go", 2, MSG_NOSIGNAL) < 0)
			return err_errno(e, -errno, "%s is gone", c[i].name);
		c[i].waiting = true;
	}
	return 0;
}

/* Receives one word of a child: 0 if it is "ready". */
static int hear(struct child *c, struct err *e)
{
	char word[LAB_LINE_ROOM + 1];
	ssize_t n = recv(c->sock, word, sizeof(word) - 1, 0);

	if (n <= 0)
		return err_set(e, -EIO, "%s died while it was being set up", c->name);
	word[n] = '\0';
	/* What the builder reports names another process already. */
	if (strcmp(word, "ready"))
		return err_set(e, -EIO, "%s%s%s", strcmp(c->name, "build") ? c->name : "",
			strcmp(c->name, "build") ? ": " : "", word);
	c->waiting = false;
	return 0;
}

int child_wait_ready(struct child *c, size_t n, double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;
	struct pollfd *fds = alloc_zero(n, sizeof(*fds));
	int rc = 0;

	for (;;) {
		const struct child *late = NULL;
		double left = deadline - clock_mono_s();

		for (size_t i = 0; i < n; i++) {
			fds[i] = (struct pollfd){
				.fd = c[i].waiting ? c[i].sock : -1, .events = POLLIN};
			if (c[i].waiting)
				late = &c[i];
		}
		if (!late)
			break;
		if (left <= 0) {
			rc = err_set(e, -ETIMEDOUT, "%s was not ready within %g s", late->name,
				timeout_s);
			break;
		}
		if (poll(fds, n, (int)(left * 1000) + 1) < 0 && errno != EINTR) {
			rc = err_errno(e, -errno, "cannot wait for the nodes");
			break;
		}
		for (size_t i = 0; i < n && !rc; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				rc = hear(&c[i], e);
		if (rc)
			break;
	}
	free(fds);
	return rc;
}

void child_begin(int sock)
{
	struct pollfd p = {.fd = sock, .events = 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(sock, F_SETFD, FD_CLOEXEC);
	/* The parent may have died before prctl. */
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		_exit(1);
}

void child_say(int sock, const char *word)
{
	if (send(sock, word, strlen(word), MSG_NOSIGNAL) < 0)
		_exit(1);
}

void child_fail(int sock, const struct err *e)
{
	fprintf(stderr, "%s\n", e->text);
	send(sock, e->text, strlen(e->text), MSG_NOSIGNAL);
}

bool child_wait(int sock)
{
	char word[8];
	ssize_t n;

	do
		n = recv(sock, word, sizeof(word), 0);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

void child_commit(int sock)
{
	prctl(PR_SET_PDEATHSIG, 0);
	close(sock);
}

bool child_settle(int sock, int rc, const struct err *e)
{
	if (rc)
		child_fail(sock, e);
	else
		child_say(sock, "ready");
	if (rc || !child_wait(sock))
		return false;
	child_commit(sock);
	return true;
}
