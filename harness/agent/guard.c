/* The agent's side of the guard. */
#include "harness/agent/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/agent/wire.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"

#define ANSWER_TIMEOUT_S 60
#define STANDBY_END_MS 5000

struct guard {
	int sock, life; /* life: our end of the standby's pipe */
	pid_t pid;
	double lease_s, last_beat;
	char dir[PATH_MAX], journal[PATH_MAX];

	json_t *waiting; /* messages that came while another one was waited for */
};

int guard_fd(const struct guard *g)
{
	return g->sock;
}

int guard_pid(const struct guard *g)
{
	return g->pid;
}

const char *guard_dir(const struct guard *g)
{
	return g->dir;
}

/* Waits for the message whose "what" is 'what'; others are kept. The caller's reference. */
static int guard_wait_for(struct guard *g, const char *what, json_t **out, struct err *e)
{
	double deadline = clock_mono_s() + ANSWER_TIMEOUT_S;

	for (;;) {
		struct pollfd p = {.fd = g->sock, .events = POLLIN};
		double left = deadline - clock_mono_s();
		json_t *m;
		int rc;

		if (left <= 0)
			return err_set(e, -ETIMEDOUT, "the guard does not answer");
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		rc = wire_receive(g->sock, &m);
		if (rc < 0)
			return err_set(e, -EPIPE, "the guard is dead");
		if (rc == 0)
			continue;
		if (!strcmp(jget_text(m, "what"), what)) {
			*out = m;
			return 0;
		}
		json_array_append_new(g->waiting, m);
	}
}

/* As wait_for; the message says how it went. */
static int wait_for_code(struct guard *g, const char *what, struct err *e)
{
	auto_json json_t *m = NULL;
	int rc = guard_wait_for(g, what, &m, e);

	if (!rc && (rc = (int)jget_int(m, "rc")))
		err_set(e, rc, "%s", jget_text(m, "text"));
	return rc;
}

AUTO_DEFINE(guard, struct guard *, guard_free)

static struct guard *guard_alloc(void)
{
	struct guard *g = calloc(1, sizeof(*g));

	if (g) {
		g->sock = g->life = -1;
		g->waiting = json_array();
	}
	return g;
}

int guard_start(
	const char *state, const char *session, double lease_s, struct guard **out, struct err *e)
{
	auto_of(guard) struct guard *g = guard_alloc();
	auto_fd int guards_end = -1, life_read = -1;
	pid_t agent = getpid();
	int pair[2], life[2], rc;

	if (!g || !g->waiting)
		return err_errno(e, -ENOMEM, "cannot start the guard");
	snprintf(g->dir, sizeof(g->dir), "%s/%s", state, session);
	snprintf(g->journal, sizeof(g->journal), "%s/undo/%s.json", state, session);
	g->lease_s = lease_s;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "cannot start the guard");
	g->sock = pair[0];
	guards_end = pair[1];
	/* Of the standby's pipe, whose readers may be dead. */
	signal(SIGPIPE, SIG_IGN);
	if (pipe2(life, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start the guard");
	g->life = life[1];
	life_read = life[0];
	g->pid = fork();
	if (g->pid == 0)
		guard_main(&(struct guard_pipes){guards_end, g->life, life_read}, state, session,
			g->journal, lease_s, agent);
	if (g->pid < 0)
		return err_errno(e, -errno, "cannot start the guard");
	close(guards_end);
	guards_end = -1;
	rc = wait_for_code(g, "ready", e);
	if (!rc)
		*out = AUTO_TAKE(g);
	return rc;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	/* A guard that ends in order has ended the standby. If the guard was killed, the standby
	 * reads this; once it has ended, nobody holds the other end. */
	if (g->life >= 0 && write(g->life, "", 1) == 1)
		poll(&(struct pollfd){.fd = g->life}, 1, STANDBY_END_MS);
	fd_close(g->life);
	fd_close(g->sock);
	json_decref(g->waiting);

	free(g);
}

int guard_record(struct guard *g, const char *handle, const char *primitive, const json_t *inverse,
	double max_s, struct err *e)
{
	int rc = wire_send(g->sock,
		json_pack("{s:s, s:s, s:s, s:O, s:f}", "what", "add", "handle", handle, "primitive",
			primitive, "inverse", inverse, "max_s", max_s));

	if (rc)
		return err_errno(
			e, rc == -ENOMEM ? rc : -EPIPE, "cannot tell the guard about '%s'", handle);
	return wait_for_code(g, "added", e);
}

/* Failures of these are not reported here: a dead guard shows as the end of its socket. */
void guard_acted(struct guard *g, const char *handle)
{
	wire_send(g->sock, json_pack("{s:s, s:s}", "what", "acted", "handle", handle));
}

void guard_undo(struct guard *g, const char *handle)
{
	wire_send(g->sock, json_pack("{s:s, s:s}", "what", "undo", "handle", handle));
}

void guard_bye(struct guard *g)
{
	wire_send(g->sock, json_pack("{s:s}", "what", "bye"));
}

void guard_beat(struct guard *g)
{
	double now = clock_mono_s();

	if (now - g->last_beat < g->lease_s / 10)
		return;
	g->last_beat = now;
	wire_send(g->sock, json_pack("{s:s}", "what", "beat"));
}

int guard_next(struct guard *g, struct guard_message *out)
{
	const char *handle = "", *text = "";
	int asked = 0, was = 0, code = 0, rc;
	auto_json json_t *m = json_incref(json_array_get(g->waiting, 0));

	if (m) {
		json_array_remove(g->waiting, 0);
	} else {
		rc = wire_receive(g->sock, &m);
		if (rc <= 0)
			return rc;
	}
	json_unpack(m, "{s?s, s?b, s?b, s:i, s?s}", "handle", &handle, "asked", &asked, "was_there",
		&was, "rc", &code, "text", &text);
	*out = (struct guard_message){.asked = asked, .was_there = was, .rc = code};
	snprintf(out->handle, sizeof(out->handle), "%s", handle);
	err_set(&out->err, 0, "%s", text);

	return 1;
}

int guard_take_over(struct guard *g, struct err *e)
{
	return guard_revert_left(g->journal, 10, e);
}
