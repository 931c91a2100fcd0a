/* The agent's side of the guard. */
#include "harness/agent/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/agent/wire.h"
#include "harness/base/clock.h"

#define ANSWER_TIMEOUT_S 60

struct guard {
	int sock, life; /* life: our end of the standby's pipe */
	pid_t pid, standby;
	double lease_s, last_beat;
	char *dir, *journal;
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
static int wait_for(struct guard *g, const char *what, json_t **out, struct err *e)
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
		if (!strcmp(json_string_value(json_object_get(m, "what")), what)) {
			*out = m;
			return 0;
		}
		json_array_append_new(g->waiting, m);
	}
}

static int answer_code(json_t *m, struct err *e)
{
	int rc = (int)json_integer_value(json_object_get(m, "rc"));

	if (rc)
		err_set(e, rc, "%s", json_string_value(json_object_get(m, "text")));
	json_decref(m);
	return rc;
}

int guard_start(
	const char *state, const char *session, double lease_s, struct guard **out, struct err *e)
{
	struct guard *g = calloc(1, sizeof(*g));
	int pair[2] = {-1, -1}, life[2] = {-1, -1}, rc = -ENOMEM;
	pid_t agent = getpid();
	json_t *m;

	if (g)
		g->sock = g->life = -1;
	if (!g || !(g->waiting = json_array()) || asprintf(&g->dir, "%s/%s", state, session) < 0 ||
		asprintf(&g->journal, "%s/undo/%s.json", state, session) < 0) {
		err_errno(e, rc, "cannot start the guard");
		goto out;
	}
	g->lease_s = lease_s;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
		pipe2(life, O_CLOEXEC) < 0 || (g->standby = fork()) < 0) {
		rc = err_errno(e, -errno, "cannot start the guard");
		goto out;
	}
	if (g->standby == 0)
		standby_main(life[0], g->journal);
	g->life = life[1];
	g->sock = pair[0];
	life[1] = pair[0] = -1;
	g->pid = fork();
	if (g->pid == 0)
		guard_main(pair[1], g->life, state, session, lease_s, agent);
	rc = g->pid < 0 ? err_errno(e, -errno, "cannot start the guard") : 0;
	close(pair[1]);
	pair[1] = -1;
	if (!rc)
		rc = wait_for(g, "ready", &m, e);
	if (!rc)
		rc = answer_code(m, e);
	if (rc)
		goto out;
	*out = g;
	g = NULL;
out:
	for (int i = 0; i < 2; i++) {
		fd_close(pair[i]);
		fd_close(life[i]);
	}
	guard_free(g);
	return rc;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	/* The standby reads this, or has been killed. */
	if (g->standby > 0 && (write(g->life, "", 1) == 1 || errno == EPIPE))
		waitpid(g->standby, NULL, 0);
	fd_close(g->life);
	fd_close(g->sock);
	json_decref(g->waiting);
	free(g->dir);
	free(g->journal);
	free(g);
}

int guard_record(struct guard *g, const char *handle, const char *primitive, const json_t *inverse,
	double max_s, struct err *e)
{
	json_t *m;
	int rc = wire_send(g->sock,
		json_pack("{s:s, s:s, s:s, s:O, s:f}", "what", "add", "handle", handle, "primitive",
			primitive, "inverse", inverse, "max_s", max_s));

	if (rc)
		return err_errno(
			e, rc == -ENOMEM ? rc : -EPIPE, "cannot tell the guard about '%s'", handle);
	rc = wait_for(g, "added", &m, e);
	return rc ? rc : answer_code(m, e);
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
	json_t *m = json_array_get(g->waiting, 0);

	if (m) {
		json_incref(m);
		json_array_remove(g->waiting, 0);
	} else {
		rc = wire_receive(g->sock, &m);
		if (rc <= 0)
			return rc < 0 ? -EPIPE : 0;
	}
	json_unpack(m, "{s?s, s?b, s?b, s:i, s?s}", "handle", &handle, "asked", &asked, "was_there",
		&was, "rc", &code, "text", &text);
	*out = (struct guard_message){.asked = asked, .was_there = was, .rc = code};
	snprintf(out->handle, sizeof(out->handle), "%s", handle);
	err_set(&out->err, 0, "%s", text);
	json_decref(m);
	return 1;
}

int guard_take_over(struct guard *g, struct err *e)
{
	return guard_revert_left(g->journal, 10, e);
}
