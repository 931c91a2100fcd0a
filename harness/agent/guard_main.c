/* The guard's side. It outlives the agent and its SSH channel. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "harness/agent/guard.h"
#include "harness/agent/journal.h"
#include "harness/agent/shield.h"
#include "harness/agent/standby.h"
#include "harness/agent/wire.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"

#define RETRY_S 30 /* how long an undo that fails is tried again at the end */
#define RETRY_EVERY_S 1
#define LOCK_WAIT_S 30
#define STANDBY_EVERY_S 0.1 /* how soon after another a standby is started */

struct watch {
	int sock;
	pid_t agent;
	double lease_s, lease_end;
	struct journal *journal;
	/* handle -> {max_s, deadline}. The deadline is 0 until the agent has acted: an undo must
	 * not overtake its act. */
	json_t *maxima;
	bool bye, gone; /* asked to end; the agent is dead */
	bool lost;      /* a message could not be read */

	struct standby standby;
	struct standby_duty duty; /* the standby's */
	int life;                 /* what it reads from */
};

static void guard_main_answer(struct watch *w, const char *what, const char *handle, bool asked,
	bool was_there, int rc, const struct err *e)
{
	wire_send(w->sock,
		json_pack("{s:s, s:s, s:b, s:b, s:i, s:s}", "what", what, "handle", handle, "asked",
			asked, "was_there", was_there, "rc", rc, "text", rc ? e->text : ""));
}

static void guard_main_add(struct watch *w, json_t *m)
{
	const char *handle = "", *primitive = "";
	json_t *inverse = NULL;
	double max_s = 0;
	struct err e;
	int rc = 0;

	json_unpack(m, "{s:s, s:s, s:o, s:F}", "handle", &handle, "primitive", &primitive,
		"inverse", &inverse, "max_s", &max_s);
	if (max_s > 0 &&
		json_object_set_new(w->maxima, handle,
			json_pack("{s:f, s:f}", "max_s", max_s, "deadline", 0.0)))
		rc = err_errno(&e, -ENOMEM, "cannot record '%s'", handle);
	if (!rc)
		rc = journal_add(w->journal, handle, primitive, inverse, &e);
	if (rc)
		json_object_del(w->maxima, handle);
	guard_main_answer(w, "added", handle, true, false, rc, &e);
}

static void set_deadline(json_t *maximum, double at)
{
	json_real_set(jget(maximum, "deadline"), at);
}

static void revert(struct watch *w, const char *handle, bool asked)
{
	bool was_there = false;
	struct err e;
	int rc;

	shield_lower();
	rc = journal_revert(w->journal, handle, &was_there, &e);
	shield_raise();
	if (!rc || asked)
		guard_main_answer(w, "undone", handle, asked, was_there, rc, &e);
	if (!rc || rc == -ENOENT)
		json_object_del(w->maxima, handle);
}

static void handle_message(struct watch *w, json_t *m)
{
	const char *what = jget_text(m, "what"), *handle = jget_text(m, "handle");

	if (!strcmp(what, "add")) {
		guard_main_add(w, m);
	} else if (!strcmp(what, "undo") && handle) {
		revert(w, handle, true);
	} else if (!strcmp(what, "acted") && handle) {
		json_t *maximum = jget(w->maxima, handle);

		set_deadline(maximum, clock_mono_s() + jget_real(maximum, "max_s"));
	} else if (!strcmp(what, "bye")) {
		w->bye = true;
	}
	if (!w->bye)
		journal_heard(w->journal);
	json_decref(m);
	/* Counted from now: the agent may have waited while the guard was busy. */
	w->lease_end = fmax(w->lease_end, clock_mono_s() + w->lease_s);
}

static void drain(struct watch *w)
{
	json_t *m;
	int rc = 0;

	while (!w->bye && (rc = wire_receive(w->sock, &m)) > 0)
		handle_message(w, m);
	w->gone = !w->bye && rc == -EPIPE;
	w->lost = !w->bye && rc == -EPROTO;
}

/* The act whose maximum is reached first, and when that is; NULL: none. */
static const char *next_maximum(const struct watch *w, double *deadline)
{
	const char *handle, *first = NULL;
	json_t *maximum;

	json_object_foreach(w->maxima, handle, maximum) {
		double at = jget_real(maximum, "deadline");

		if (at > 0 && (!first || at < *deadline)) {
			first = handle;
			*deadline = at;
		}
	}
	return first;
}

static void wait_a_while(struct watch *w)
{
	struct pollfd p[] = {
		{.fd = w->sock, .events = POLLIN}, {.fd = w->standby.tie, .events = POLLIN}};
	double until = w->lease_end, left;

	next_maximum(w, &until);
	if (!w->standby.pid)
		until = fmin(until, w->standby.started_s + STANDBY_EVERY_S);
	left = fmin(until, w->lease_end) - clock_mono_s();
	poll(p, 2, left <= 0 ? 0 : (int)fmin(left * 1000 + 1, 3.6e6));
	if (p[1].revents)
		standby_lost(&w->standby);
	/* One that was killed is replaced. */
	if (!w->standby.pid && clock_mono_s() >= w->standby.started_s + STANDBY_EVERY_S)
		standby_start(&w->standby, &w->duty, w->life, false);
}

static void revert_overdue(struct watch *w)
{
	double deadline, now;
	const char *next;

	while ((next = next_maximum(w, &deadline)) && deadline <= (now = clock_mono_s())) {
		char handle[32];

		snprintf(handle, sizeof(handle), "%s", next);
		set_deadline(jget(w->maxima, handle), now + RETRY_EVERY_S);
		revert(w, handle, false);
		/* The undo's time does not count as the agent's silence. */
		w->lease_end += clock_mono_s() - now;
	}
}

/* The agent is killed first: it might be about to act on what has just been undone. The end of its
 * socket means that it is dead and that its system calls have ended. */
static void kill_agent(struct watch *w)
{
	double deadline = clock_mono_s() + 5;

	while (!w->gone && getppid() == w->agent && clock_mono_s() < deadline) {
		struct pollfd p = {.fd = w->sock, .events = POLLIN};
		json_t *m;
		int rc;

		kill(w->agent, SIGKILL);
		poll(&p, 1, 100);
		while ((rc = wire_receive(w->sock, &m)) > 0)
			json_decref(m);
		w->gone = rc == -EPIPE;
	}
}

/* Makes the journal; then the standby, which can do nothing without one. */
static int guard_main_begin(struct watch *w, const char *state, const char *session, struct err *e)
{
	int rc = proc_start_time(w->agent, &w->duty.agent.ticks);

	if (rc)
		return err_errno(e, rc, "cannot look at the agent");
	rc = journal_new(state, session, &w->journal, e);
	if (rc)
		return rc;
	rc = standby_start(&w->standby, &w->duty, w->life, true);
	if (rc) {
		journal_finish(w->journal, 0, NULL, NULL);
		return err_errno(e, rc, "cannot start the guard's standby");
	}
	w->lease_end = clock_mono_s() + w->lease_s;
	return 0;
}

void guard_main(const struct guard_pipes *pipes, const char *state, const char *session,
	const char *journal, double lease_s, int agent_pid)
{
	struct watch w = {.sock = pipes->sock,
		.life = pipes->life_read,
		.agent = agent_pid,
		.lease_s = lease_s,
		.maxima = json_object(),
		.standby = {.tie = -1},
		.duty = {.journal = journal, .agent = {.pid = agent_pid}, .lease_s = lease_s}};
	struct err e;
	int rc;

	process_detach("culprit-guard", (int[]){pipes->sock, pipes->life, pipes->life_read}, 3);
	shield_raise();
	rc = guard_main_begin(&w, state, session, &e);
	guard_main_answer(&w, "ready", "", true, false, rc, &e);
	if (rc)
		_exit(1);
	while (!w.bye && !w.gone) {
		wait_a_while(&w);
		drain(&w);
		if (w.bye || w.gone)
			break;
		if (w.lost || clock_mono_s() >= w.lease_end) {
			kill_agent(&w);
			break;
		}
		revert_overdue(&w);
	}
	shield_lower();
	rc = journal_finish(w.journal, RETRY_S, NULL, &e);
	/* If the agent is dead and the undo fails, the standby tries on. */
	if (w.bye || !rc)
		standby_end(&w.standby);
	if (w.bye)
		guard_main_answer(&w, "bye", "", true, false, rc, &e);
	_exit(rc ? 1 : 0);
}

int guard_revert_left(const char *path, double retry_s, struct err *e)
{
	double deadline = clock_mono_s() + retry_s;
	struct journal *j;
	int rc;

	/* An agent that has just started on the node may hold the lock, and undo it. */
	do
		rc = journal_open(path, LOCK_WAIT_S, &j, e);
	while (rc && rc != -ENOENT && procfs_nap(deadline));
	return rc == -ENOENT ? 0 : rc ?: journal_finish(j, retry_s, NULL, e);
}
