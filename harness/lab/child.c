/* How the lab's processes start, report readiness, and end with it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/lab/lab_impl.h"

static void __attribute__((noreturn)) become(const char *dir, const char *what, const char *name,
	int control, const int disk[2], struct lab_path log)
{
	const char *argv[] = {
		"culprit", "lab", what, "--dir", dir, name ? "--name" : NULL, name, NULL};
	int fds[] = {open("/dev/null", O_RDONLY | O_CLOEXEC),
		open(log.s, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), -1, control,
		disk ? disk[0] : -1, disk ? disk[1] : -1};
	int n = disk ? 6 : 4;

	setsid();
	fds[2] = fds[1];
	/* To their numbers; first out of the way, since the ranges may overlap. */
	for (int i = 0; i < n; i++)
		if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16)) < 0)
			_exit(126);
	for (int i = 0; i < n; i++)
		if (dup2(fds[i], i) < 0)
			_exit(126);
	execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

int child_start(struct child *c, const char *dir, const char *what, const char *name, int flags,
	const int disk[2], struct lab_path log, struct err *e)
{
	int pair[2], rc;

	snprintf(c->name, sizeof(c->name), "%s%s", strcmp(what, "disk") ? "" : "disk of ",
		name ? name : what);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "cannot start %s", c->name);
	c->pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
	if (c->pid == 0)
		become(dir, what, name, pair[1], disk, log);
	rc = c->pid < 0 ? err_errno(e, -errno, "cannot start %s", c->name) : 0;
	close(pair[1]);
	if (rc)
		close(pair[0]);
	c->sock = pair[0];
	c->waiting = true;
	return rc;
}

/* The kernel closes the socket a moment before the process can be waited for. It stays a zombie,
 * so that its number is nobody else's. */
static int died(const struct child *c, struct err *e)
{
	char end[64] = "closed its socket";
	double deadline = clock_mono_s() + 1;
	siginfo_t info = {0};

	while (!waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid &&
		clock_mono_s() < deadline)
		usleep(1000);
	if (info.si_pid)
		child_describe_end(&info, end);
	return err_set(e, -EIO, "%s died while it was being set up: it %s", c->name, end);
}

/* What the child has said: 0 if "ready", -EAGAIN if nothing yet. */
static int hear(struct child *c, struct err *e)
{
	char word[sizeof(e->text)];
	ssize_t n = recv(c->sock, word, sizeof(word) - 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (n <= 0)
		return died(c, e);
	word[n] = '\0';
	c->waiting = false;
	if (!strcmp(word, "ready"))
		return 0;
	err_set(e, -EIO, "%s", word);
	/* What the builder reports names another process already. */
	return strcmp(c->name, "build") ? err_prefix(e, -EIO, "%s", c->name) : -EIO;
}

/* One that waits for its next step says nothing, unless it cannot continue. */
static int hear_failures(const struct child *all, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct child c = all[i];
		int rc = c.sock < 0 || c.waiting ? -EAGAIN : hear(&c, e);

		if (rc && rc != -EAGAIN)
			return rc;
	}
	return 0;
}

int child_wait_ready(struct child *c, size_t n, const struct child *all, size_t n_all,
	double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;

	for (;; usleep(2000)) {
		const struct child *late = NULL;

		for (size_t i = 0; i < n; i++) {
			int rc = c[i].waiting ? hear(&c[i], e) : 0;

			if (rc && rc != -EAGAIN)
				return rc;
			if (rc)
				late = &c[i];
		}
		if (hear_failures(all, n_all, e))
			return -EIO;
		if (!late)
			return 0;
		if (clock_mono_s() > deadline)
			return err_set(e, -ETIMEDOUT, "%s was not ready within %g s", late->name,
				timeout_s);
	}
}

void child_die(const char *fmt, ...)
{
	struct err e;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s\n", e.text);
	send(LAB_CONTROL_FD, e.text, strlen(e.text), MSG_NOSIGNAL);
	_exit(1);
}

struct err child_err;

void child_must(int rc)
{
	if (rc < 0)
		child_die("%s", child_err.text);
}

int child_try(int result, const char *fmt, ...)
{
	const char *why = strerror(errno);
	char text[900];
	va_list ap;

	if (result >= 0)
		return result;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	child_die("%s: %s", text, why);
}

void child_go(struct child *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		child_try((int)send(c[i].sock, "go", 2, MSG_NOSIGNAL), "%s is gone", c[i].name);
		c[i].waiting = true;
	}
}

void child_ready(void)
{
	if (send(LAB_CONTROL_FD, "ready", 5, MSG_NOSIGNAL) < 0)
		_exit(1);
}

void child_wait(void)
{
	char word[8];
	ssize_t n;

	do
		n = recv(LAB_CONTROL_FD, word, sizeof(word), 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		child_die("the builder is gone");
}

void child_wait_with_programs(const struct lab_node *n)
{
	struct pollfd p = {.fd = LAB_CONTROL_FD, .events = POLLIN};

	while (poll(&p, 1, 100) <= 0)
		child_must(programs_check(n, &child_err));
	child_wait();
}

void child_commit(void)
{
	prctl(PR_SET_PDEATHSIG, 0);
	close(LAB_CONTROL_FD);
}

void child_settle(void)
{
	child_ready();
	child_wait();
	child_commit();
}

int lab_child_main(const char *what, const char *dir, const char *name)
{
	struct pollfd p = {.fd = LAB_CONTROL_FD};
	struct lab_options o;
	struct lab_node n;

	/* Until child_commit it dies with the parent, which may have died before prctl. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(LAB_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		return 1;
	child_must(lab_options_load(dir, &o, &child_err));
	if (name)
		child_must(lab_node_find(&o, name, &n, &child_err));
	if (!strcmp(what, "switch"))
		switch_main(&o);
	else if (!strcmp(what, "node"))
		node_main(&o, &n);
	else if (!strcmp(what, "disk"))
		return disk_main(&o, n.name);
	build_main(&o);
	return 0;
}
