/* The guard's side. It must outlive whatever happens to the agent and its SSH channel. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "harness/agent/guard.h"
#include "harness/agent/journal.h"
#include "harness/agent/wire.h"
#include "harness/base/clock.h"

#define RETRY_S 30 /* how long an undo that fails is tried again, once all is to go */
#define RETRY_EVERY_S 1

/* An act with a maximum. */
struct limit {
	char handle[32];
	double max_s;
	double deadline; /* INFINITY until the agent has acted: an undo must not overtake its act */
	struct limit *next;
};

struct watch {
	int sock;
	pid_t agent;
	double lease_s, lease_end;
	struct journal *journal;
	struct limit *limits;
	bool bye, gone; /* asked to end; the agent is dead */
};

static void detach(int sock)
{
	static const int ignored[] = {
		SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP};
	int null = open("/dev/null", O_RDWR);

	setsid();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	process_close_others(&sock, 1);
	prctl(PR_SET_NAME, "culprit-guard");
	if (chdir("/"))
		_exit(1);
}

static void answer(struct watch *w, const char *what, const char *handle, bool asked,
	bool was_there, int rc, const struct err *e)
{
	wire_send(w->sock,
		json_pack("{s:s, s:s, s:b, s:b, s:i, s:s}", "what", what, "handle", handle, "asked",
			asked, "was_there", was_there, "rc", rc, "text", rc ? e->text : ""));
}

static void limit_remove(struct watch *w, const char *handle)
{
	struct limit **at = &w->limits, *l;

	while ((l = *at)) {
		if (!strcmp(l->handle, handle)) {
			*at = l->next;
			free(l);
		} else {
			at = &l->next;
		}
	}
}

static void add(struct watch *w, json_t *m)
{
	const char *handle = "", *primitive = "";
	json_t *inverse = NULL;
	struct limit *l = NULL;
	double max_s = 0;
	struct err e;
	int rc;

	json_unpack(m, "{s:s, s:s, s:o, s:F}", "handle", &handle, "primitive", &primitive,
		"inverse", &inverse, "max_s", &max_s);
	if (max_s > 0 && !(l = calloc(1, sizeof(*l))))
		rc = err_errno(&e, -ENOMEM, "cannot record '%s'", handle);
	else
		rc = journal_add(w->journal, handle, primitive, inverse, &e);
	if (!rc && l) {
		snprintf(l->handle, sizeof(l->handle), "%s", handle);
		l->max_s = max_s;
		l->deadline = INFINITY;
		l->next = w->limits;
		w->limits = l;
	} else {
		free(l);
	}
	answer(w, "added", handle, true, false, rc, &e);
}

static void revert(struct watch *w, const char *handle, bool asked)
{
	bool was_there = false;
	struct err e;
	int rc;

	rc = journal_revert(w->journal, handle, &was_there, &e);
	if (!rc || asked)
		answer(w, "undone", handle, asked, was_there, rc, &e);
	if (!rc || rc == -ENOENT)
		limit_remove(w, handle);
}

static void handle_message(struct watch *w, json_t *m)
{
	const char *what = json_string_value(json_object_get(m, "what"));
	const char *handle = json_string_value(json_object_get(m, "handle"));

	if (!strcmp(what, "add")) {
		add(w, m);
	} else if (!strcmp(what, "undo") && handle) {
		revert(w, handle, true);
	} else if (!strcmp(what, "acted") && handle) {
		for (struct limit *l = w->limits; l; l = l->next)
			if (!strcmp(l->handle, handle))
				l->deadline = clock_mono_s() + l->max_s;
	} else if (!strcmp(what, "bye")) {
		w->bye = true;
	}
	if (!w->bye)
		journal_heard(w->journal);
	json_decref(m);
	/* After, not before: while we were busy the agent may have waited for us. */
	w->lease_end = fmax(w->lease_end, clock_mono_s() + w->lease_s);
}

static void drain(struct watch *w)
{
	json_t *m;
	int rc = 0;

	while (!w->bye && (rc = wire_receive(w->sock, &m)) > 0)
		handle_message(w, m);
	if (!w->bye && rc < 0)
		w->gone = true;
}

static void wait_a_while(struct watch *w)
{
	struct pollfd p = {.fd = w->sock, .events = POLLIN};
	double until = w->lease_end, left;

	for (const struct limit *l = w->limits; l; l = l->next)
		until = fmin(until, l->deadline);
	left = until - clock_mono_s();
	poll(&p, 1, left <= 0 ? 0 : (int)fmin(left * 1000 + 1, 3.6e6));
}

static struct limit *overdue(const struct watch *w, double now)
{
	struct limit *l = w->limits;

	while (l && l->deadline > now)
		l = l->next;
	return l;
}

static void revert_overdue(struct watch *w)
{
	struct limit *l;
	double now;

	while ((l = overdue(w, now = clock_mono_s()))) {
		char handle[sizeof(l->handle)];

		memcpy(handle, l->handle, sizeof(handle));
		l->deadline = now + RETRY_EVERY_S;
		revert(w, handle, false);
		/* What took long was not the agent's silence. */
		w->lease_end += clock_mono_s() - now;
	}
}

/* The agent goes first: it might be about to act on what has just been undone. Its end of the
 * socket is closed when it is dead, and all that it was doing in the kernel is over. */
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
		w->gone = rc < 0;
	}
}

void guard_main(int sock, const char *state, const char *session, double lease_s, int agent_pid)
{
	struct watch w = {.sock = sock, .agent = agent_pid, .lease_s = lease_s};
	struct err e;
	int rc;

	detach(sock);
	rc = journal_new(state, session, &w.journal, &e);
	answer(&w, "ready", "", true, false, rc, &e);
	if (rc)
		_exit(1);
	w.lease_end = clock_mono_s() + lease_s;
	while (!w.bye && !w.gone) {
		wait_a_while(&w);
		drain(&w);
		if (w.bye || w.gone)
			break;
		if (clock_mono_s() >= w.lease_end) {
			kill_agent(&w);
			break;
		}
		revert_overdue(&w);
	}
	journal_ending(w.journal);
	rc = journal_revert_all(w.journal, RETRY_S, NULL, &e);
	if (rc)
		journal_free(w.journal);
	else
		rc = journal_end(w.journal, &e);
	if (w.bye)
		answer(&w, "bye", "", true, false, rc, &e);
	_exit(rc ? 1 : 0);
}
