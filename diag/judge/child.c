/* Runs a detector's calls in a child process, with limits on time and memory. */
#include "diag/judge/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lua/luax.h"

enum { PIPE = 3, LENGTH_MAX = 256 << 20, TIMEOUTS_MAX = 3 };

/* Precedes an answer's JSON, or the text of an error. */
struct head {
	int32_t rc;
	uint32_t length;
};

/* Questions of one detector, and the progress. */
struct talk {
	child_fn *fn;
	void *ctx;
	const char *who;
	double limit_s;
	struct detector_answer *answers;
	size_t next, n;
	int late; /* late answers in a row */
};

static void send_answer(int rc, const char *text)
{
	const struct head h = {.rc = rc, .length = (uint32_t)strlen(text)};

	if (fd_write_all(PIPE, &h, sizeof(h)) || fd_write_all(PIPE, text, h.length))
		_exit(1);
}

static void send_stopped(const char *text)
{
	send_answer(-ETIMEDOUT, text);
}

/* Uses _exit, because buffers and atexit handlers belong to the parent. */
__attribute__((noreturn)) static void answer_all(const struct talk *t, int pipe_fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent || dup2(pipe_fd, PIPE) < 0)
		_exit(1);
	close_range(0, PIPE - 1, 0);
	close_range(PIPE + 1, ~0U, 0);
	luax_on_stop(send_stopped);
	for (size_t i = t->next; i < t->n; i++) {
		struct err why = {""};
		json_t *said = NULL;
		int rc = t->fn(t->ctx, i, &said, &why);
		char *text = rc ? why.text : json_dumps(said, JSON_COMPACT | JSON_ENCODE_ANY);

		send_answer(text ? rc : -ENOMEM, text ? text : "out of memory");
		json_decref(said);
		if (!rc)
			free(text);
	}
	_exit(0);
}

/* Returns 0, -ENODATA at the end of the pipe, or -ETIMEDOUT. */
static int receive(int fd, void *to, size_t n, double deadline)
{
	char *at = to;

	while (n) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		double left = deadline - clock_mono_s();
		ssize_t got;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		got = read(fd, at, n);
		if (got == 0 || (got < 0 && errno != EINTR))
			return -ENODATA;
		at += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return 0;
}

static int receive_answer(int fd, double limit_s, const char *who, struct detector_answer *a)
{
	double deadline = clock_mono_s() + limit_s;
	char *text = NULL;
	struct head h;
	int rc = receive(fd, &h, sizeof(h), deadline);

	if (!rc && h.length > LENGTH_MAX)
		rc = -ENODATA;
	if (!rc) {
		text = alloc_zero(1, (size_t)h.length + 1);
		rc = receive(fd, text, h.length, deadline);
	}
	if (!rc) {
		a->rc = h.rc;
		if (h.rc)
			err_set(&a->why, h.rc, "%s", text);
		else if (!(a->verdicts = json_loadb(
				   text, h.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)))
			a->rc = err_set(&a->why, -EPROTO, "%s: the answer cannot be read", who);
		if (a->rc)
			err_blame(&a->why, ERR_SCENARIO, a->rc);
	} else if (rc == -ETIMEDOUT) {
		a->rc = err_set(
			&a->why, rc, "%s: the detector gave no answer within %g s", who, limit_s);
	}
	free(text);
	return rc;
}

/* After the first answer the end of the pipe is no failure: a child that was stopped in a C
 * function has answered, and ends. */
static void read_answers(struct talk *t, int fd)
{
	size_t first = t->next;
	int rc = 0;

	while (!rc && t->next < t->n && t->late < TIMEOUTS_MAX) {
		struct detector_answer *a = &t->answers[t->next];

		rc = receive_answer(fd, t->limit_s, t->who, a);
		if (rc == -ENODATA && t->next > first)
			return;
		if (rc == -ENODATA)
			a->rc = err_set(
				&a->why, -EPROTO, "%s: the detector's process has crashed", t->who);
		t->late = a->rc == -ETIMEDOUT ? t->late + 1 : 0;
		t->next++;
	}
}

static int ask_one_child(struct talk *t, struct err *e)
{
	pid_t parent = getpid(), pid;
	int fds[2], rc = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot ask '%s'", t->who);
	pid = fork();
	if (!pid)
		answer_all(t, fds[1], parent);
	if (pid < 0)
		rc = err_errno(e, -errno, "cannot ask '%s'", t->who);
	close(fds[1]);
	if (!rc) {
		read_answers(t, fds[0]);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(fds[0]);
	return rc;
}

int child_ask(child_fn *fn, void *ctx, size_t n, const char *who, double limit_s,
	struct detector_answer *answers, struct err *e)
{
	struct talk t = {fn, ctx, who, limit_s, answers, 0, n, 0};
	int rc = 0;

	while (t.next < n && !rc && t.late < TIMEOUTS_MAX)
		rc = ask_one_child(&t, e);
	for (; t.next < n && !rc; t.next++)
		answers[t.next] = (struct detector_answer){
			.rc = answers[t.next - 1].rc, .why = answers[t.next - 1].why};
	return rc;
}
