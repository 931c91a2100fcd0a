/*
 * The life of an agent, in the order of what happens:
 *
 *  1. serve: a session gets a random name. The guard is forked (guard.c) and makes the session's
 *     folder and its undo journal (journal.c). Its twin, the standby (standby.c), takes over if
 *     agent and guard both die.
 *  2. hello: earlier sessions that are over are waited for, and what they left is undone (clean.c).
 *  3. turn, until the session ends: a line of input goes to dispatch.c, which checks it against
 *     operations.def and calls a handler in ops_*.c. The guard journals the inverse of an act, the
 *     act is done, and a handle remains (handle.h), with a program if one was started (child.h).
 *  4. finish: the guard undoes all, newest first. The last line says why the session ended.
 *
 * The acts themselves, with check and undo, are in faults/primitives: see its README.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "harness/agent/child.h"
#include "harness/agent/journal.h"
#include "harness/agent/node_id.h"
#include "harness/agent/programs.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"

#define STATE_DIR "/var/lib/culprit"
#define EARLIER_S 5 /* beyond the lease, for an earlier session to be undone */

/* ---- the loop ---- */

static void read_input(struct agent *a)
{
	struct bytes *in = &a->in;
	ssize_t n = bytes_read(in, 0);
	char *newline, *begin = in->data;

	if (n == -EINTR || n == -EAGAIN)
		return;
	if (n <= 0) {
		agent_end(a, n == -ENOMEM ? 3 : 0, n == -ENOMEM ? "out of memory" : "end of input");
		return;
	}
	while (!a->end && (newline = memchr(begin, '\n', in->size - (size_t)(begin - in->data)))) {
		if (newline - begin > (ptrdiff_t)LINE_MAX_BYTES)
			break;
		agent_line(a, begin, (size_t)(newline - begin));
		begin = newline + 1;
	}
	in->size -= (size_t)(begin - in->data);
	memmove(in->data, begin, in->size);
	if (in->size > LINE_MAX_BYTES)
		agent_end(a, 2, "a line was longer than 1 MiB");
}

static void read_signals(struct agent *a, int fd)
{
	struct signalfd_siginfo si;

	while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			agent_end(a, 128 + (int)si.ssi_signo, "told to end by a signal");
	children_reap(a);
}

static void read_guard(struct agent *a)
{
	struct guard_message m;
	int rc;

	while ((rc = guard_next(a->guard, &m)) > 0)
		handle_undone_message(a, &m);
	if (rc < 0)
		agent_end(a, 4, "the guard died");
}

static int next_timeout(const struct agent *a)
{
	double until = 0, left;

	for (const struct handle *h = a->handles; h; h = h->next)
		if (h->deadline > 0 && (until == 0 || h->deadline < until))
			until = h->deadline;
	if (until == 0)
		return -1;
	left = until - clock_mono_s();
	return left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1;
}

static void step_overdue(struct agent *a)
{
	double now = clock_mono_s();

	for (struct handle *h = a->handles; h; h = h->next)
		if (h->deadline > 0 && h->deadline <= now)
			child_step(a, h);
}

enum { AT_IN, AT_OUT, AT_GUARD, AT_SIGNALS, AT_FIRST_HANDLE };

static int turn(struct agent *a, int signals)
{
	size_t n = AT_FIRST_HANDLE, i = AT_FIRST_HANDLE;
	auto_free struct pollfd *p = NULL;
	struct handle *h, *next;

	for (h = a->handles; h; h = h->next)
		n++;
	p = calloc(n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p[AT_IN] = (struct pollfd){.fd = 0, .events = POLLIN};
	p[AT_OUT] = (struct pollfd){.fd = a->out.size ? 1 : -1, .events = POLLOUT};
	p[AT_GUARD] = (struct pollfd){.fd = guard_fd(a->guard), .events = POLLIN};
	p[AT_SIGNALS] = (struct pollfd){.fd = signals, .events = POLLIN};
	for (h = a->handles; h; h = h->next)
		p[i++] = (struct pollfd){
			.fd = h->read_fd, .events = (short)(POLLIN | (h->told.size ? POLLOUT : 0))};
	if (poll(p, n, next_timeout(a)) < 0 && errno != EINTR)
		return -errno;
	/* Handles first, since those that follow may add and free handles. */
	for (h = a->handles, i = AT_FIRST_HANDLE; h; h = next, i++) {
		next = h->next;
		if (p[i].revents & POLLOUT)
			link_writable(h);
		if (p[i].revents & ~POLLOUT && h->read_fd >= 0)
			h->readable(a, h);
	}
	if (p[AT_SIGNALS].revents)
		read_signals(a, signals);
	step_overdue(a);
	/* Even if its socket is quiet: messages may have been kept while another was waited for. */
	read_guard(a);
	if (p[AT_IN].revents && !a->end)
		read_input(a);
	read_guard(a);
	if (a->out.size)
		agent_write(a);
	return 0;
}

/* ---- begin and end ---- */

/* The guard of an earlier session may still be undoing it, or wait for its lease to run out, while
 * its tracers hold what ours will need. A session that is heard of in the meantime is alive. */
static void wait_for_earlier(struct agent *a, int signals)
{
	double deadline = clock_mono_s() + a->lease_s + EARLIER_S;
	int64_t begin_ns = clock_real_ns();

	while (clock_mono_s() < deadline && journal_silent(a->state, a->session, begin_ns)) {
		struct pollfd p[] = {
			{.fd = 0, .events = POLLRDHUP}, {.fd = signals, .events = POLLIN}};

		if (poll(p, 2, 20) > 0)
			break;
		guard_beat(a->guard);
	}
}

static int hello(struct agent *a, int signals, struct err *e)
{
	auto_json json_t *cleaned = json_array(), *unclean = json_array(),
			 *quarantined = json_array();
	char host[65] = "";
	struct node_id id;
	int rc = node_id_read(&id, e);

	if (rc)
		return rc;
	gethostname(host, sizeof(host) - 1);
	wait_for_earlier(a, signals);
	clean_left(a, cleaned, unclean, quarantined);
	agent_event(a,
		json_pack("{s:s, s:i, s:s, s:i, s:s, s:s, s:s, s:s, s:f, s:O, s:O, s:O, s:b, s:I}",
			"event", "hello", "protocol", 1, "version", CULPRIT_VERSION, "pid",
			(int)getpid(), "boot_id", id.boot_id, "host", host, "session", a->session,
			"dir", a->dir, "lease_s", a->lease_s, "cleaned", cleaned, "unclean",
			unclean, "quarantined", quarantined, "root", geteuid() == 0, "time_ns",
			(json_int_t)clock_real_ns()));
	return 0;
}

static int make_session(struct agent *a, struct err *e)
{
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_errno(e, -errno, "cannot name the session");
	text_hex(bytes, sizeof(bytes), a->session);
	return 0;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits until the guard has undone everything; the result goes to 'e'. */
static int wait_for_bye(struct agent *a, struct err *e)
{
	struct guard_message m;
	int rc;

	guard_bye(a->guard);
	for (;;) {
		struct pollfd p = {.fd = guard_fd(a->guard), .events = POLLIN};

		poll(&p, 1, -1);
		rc = guard_next(a->guard, &m);
		if (rc < 0)
			return guard_take_over(a->guard, e);
		if (rc > 0 && !*m.handle) {
			if (m.rc)
				err_set(e, m.rc, "%s", m.err.text);
			return m.rc;
		}
	}
}

static void flush_output(struct agent *a)
{
	double deadline = clock_mono_s() + 2;

	while (a->out.size && clock_mono_s() < deadline) {
		struct pollfd p = {.fd = 1, .events = POLLOUT};

		if (poll(&p, 1, 200) > 0)
			agent_write(a);
	}
}

static int serve_finish(struct agent *a)
{
	struct err e = {""};
	int rc;

	handles_kill_forked(a);
	rc = wait_for_bye(a, &e);

	if (rc) {
		agent_refuse(a, a->bye_id, rc, &e);
		a->exit_code = 3;
	} else if (a->bye_id) {
		agent_answer(a, a->bye_id, json_object());
	}
	agent_event(
		a, json_pack("{s:s, s:s, s:b}", "event", "end", "why", a->end, "undone", rc == 0));
	flush_output(a);
	return a->exit_code;
}

static int serve_serve(struct agent *a, struct err *e)
{
	int signals, rc = make_session(a, e);

	rc = rc ?: guard_start(a->state, a->session, a->lease_s, &a->guard, e);
	if (rc)
		return rc;
	a->dir = guard_dir(a->guard);
	signals = open_signals();
	/* Orphans of our children become ours to reap: PID 1 may not do that in a container. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	rc = signals < 0 ? err_errno(e, -errno, "cannot receive signals") : hello(a, signals, e);
	if (rc)
		agent_end(a, 3, e->text);
	while (!a->end && !rc) {
		rc = turn(a, signals);
		if (rc)
			agent_end(a, 3, "out of memory");
	}
	return serve_finish(a);
}

static void usage(FILE *f)
{
	fputs("usage: culprit-agent serve [--lease 10s] [--act-limit 150s] [--dir " STATE_DIR
	      "] [--packets nftables|iptables]\n\n"
	      "Performs requests from standard input, one JSON object a line (PROTOCOL.md). "
	      "Undoes\n"
	      "everything when the input ends or when no line comes for the lease's time.\n",
		f);
}

int serve_main(int argc, char **argv)
{
	static const struct option options[] = {{"lease", required_argument, NULL, 'l'},
		{"act-limit", required_argument, NULL, 'a'}, {"dir", required_argument, NULL, 'd'},
		{"packets", required_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct agent a = {.state = STATE_DIR, .lease_s = 10, .act_s = 150};
	struct err e;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			if (unit_parse(UNIT_SECONDS, optarg, &a.lease_s, &e)) {
				fprintf(stderr, "culprit-agent serve: --lease: %s\n", e.text);
				return 2;
			}
			break;
		case 'a':
			if (!option_time(optarg, &a.act_s)) {
				fputs("culprit-agent serve: --act-limit must be a time\n", stderr);
				return 2;
			}
			break;
		case 'd': a.state = optarg; break;
		case 'p': a.packets_backend = optarg; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	}
	if (optind < argc || !(a.lease_s >= 0.2 && a.lease_s <= 86400) || a.state[0] != '/') {
		fputs("culprit-agent serve: the lease must be 200ms to 24h and the folder "
		      "absolute; "
		      "there are no operands\n",
			stderr);
		return 2;
	}
	/* sshd's PATH for commands may lack the folders that system programs live in. */
	if (!getenv("PATH") || !strstr(getenv("PATH"), "/sbin")) {
		char *path;

		if (asprintf(&path, "%s:/usr/local/sbin:/usr/sbin:/sbin",
			    getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin") > 0) {
			setenv("PATH", path, 1);
			free(path);
		}
	}
	rc = serve_serve(&a, &e);
	if (rc < 0) {
		fprintf(stderr, "culprit-agent serve: %s\n", e.text);
		rc = 3;
	}
	while (a.handles)
		handle_free(&a, a.handles);
	guard_free(a.guard);
	json_decref(a.bye_id);
	free(a.in.data);
	free(a.out.data);
	return rc;
}
