/*
 * The tracer "sampler": readings of the kernel (diag/record/reading.h), at each whole second of
 * CLOCK_REALTIME.
 *
 * A tick that begins or ends more than LATE_NS after its second is invalid: the seconds before and
 * after it then lack one end, so no COUNT is written for them (and no LEVEL for the one before).
 * Counts are never spread over gaps. The same applies if the clock was set: by CLOCK_MONOTONIC
 * ticks must also be a second apart, within LATE_NS.
 */
#include "diag/capture/sampler/sampler.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/record/log.h"
#include "diag/capture/capture.h"
#include "diag/capture/launch.h"
#include "diag/capture/sampler/netlink.h"
#include "harness/base/clock.h"

#define SECOND_NS 1000000000ll
#define LATE_NS 100000000ll

struct sampler {
	const struct trace_request *r;
	struct log_writer *log;
	struct tcp *tcp;
	struct netlink *routes; /* NULL: not supported by this kernel */
	struct processes *processes;
	struct disk_device disk;
	struct group group;
	struct sampler_snapshot snapshots[2], *now, *before;
	bool good;       /* the last tick was in time */
	int64_t tick_ns; /* its second */
	int timer;
	struct launch launch;
	pid_t child; /* the command; 0: none, or ended */
	int child_status;
	uint64_t written, missed; /* seconds */
	int64_t latest_ns;
	int failed; /* the log could not be written: 'err' */
	struct err err;
};

static int write_reading(void *ctx, const struct sampled *g)
{
	struct sampler *x = ctx;
	struct record rec = {.type = RECORD_READING};
	struct record_reading *r = &rec.reading;

	r->start_ns = x->tick_ns - SECOND_NS;
	r->what = (uint16_t)g->what;
	r->count = g->count;
	r->sum = g->sum;
	r->max = g->max;
	if (g->name) {
		struct sockaddr_un *un = (void *)&r->peer;

		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s", g->name);
	}
	if (g->peer) {
		r->accepted = g->peer->accepted;
		if (g->peer->family == AF_INET) {
			struct sockaddr_in *in = (void *)&r->peer;

			in->sin_family = AF_INET;
			in->sin_port = g->peer->port;
			memcpy(&in->sin_addr, g->peer->address, sizeof(in->sin_addr));
		} else {
			struct sockaddr_in6 *in6 = (void *)&r->peer;

			in6->sin6_family = AF_INET6;
			in6->sin6_port = g->peer->port;
			memcpy(&in6->sin6_addr, g->peer->address, sizeof(in6->sin6_addr));
		}
	}
	return log_write(x->log, &rec, &x->err);
}

/* False: all processes have ended. */
static bool sampler_take(struct sampler *x)
{
	struct sampler_snapshot *s = x->before, *before = x->now;
	struct err ignored;
	bool left;

	x->now = s;
	x->before = before;
	snapshot_clear(s);
	s->real_ns = clock_real_ns();
	s->mono_ns = clock_ns(CLOCK_MONOTONIC);
	s->boot_ns = clock_ns(CLOCK_BOOTTIME);
	left = processes_refresh(x->processes);
	/* The fastest changing values first. Without them the rest is still useful. */
	tcp_read(x->tcp, x->processes, before, s, &ignored);
	processes_read(x->processes, before, s);
	node_read(&x->disk, &x->group, s);
	qdisc_read(x->routes, s);
	snapshot_sort(s);
	s->end_ns = clock_real_ns();
	return left;
}

/* False: all processes have ended. */
static bool tick(struct sampler *x)
{
	bool left = sampler_take(x), was_good = x->good, counts;
	const struct sampler_snapshot *s = x->now;
	int64_t last_ns = x->tick_ns, apart_ns = s->mono_ns - x->before->mono_ns, late_ns;

	x->tick_ns = s->real_ns / SECOND_NS * SECOND_NS;
	late_ns = s->end_ns - x->tick_ns;
	x->good = late_ns >= 0 && late_ns <= LATE_NS && !s->failed;
	counts = x->good && was_good && x->tick_ns - last_ns == SECOND_NS &&
		apart_ns > SECOND_NS - LATE_NS && apart_ns < SECOND_NS + LATE_NS;
	if (last_ns && !counts)
		x->missed += x->tick_ns > last_ns ? (uint64_t)((x->tick_ns - last_ns) / SECOND_NS)
						  : 1;
	x->written += counts;
	if (late_ns > x->latest_ns)
		x->latest_ns = late_ns;
	if (x->good && last_ns)
		x->failed = snapshot_readings(x->before, x->now, counts, write_reading, x);
	if (!x->failed)
		x->failed = log_flush(x->log, &x->err);
	return left;
}

static int set_timer(struct sampler *x)
{
	struct itimerspec at = {
		.it_interval.tv_sec = 1, .it_value.tv_sec = clock_real_ns() / SECOND_NS + 1};

	return timerfd_settime(x->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) < 0
		? -errno
		: 0;
}

/* Calls tick if it is due. */
static bool tick_if_due(struct sampler *x)
{
	uint64_t ticks;

	if (read(x->timer, &ticks, sizeof(ticks)) == sizeof(ticks))
		return tick(x);
	if (errno == ECANCELED) {
		/* The clock was set. */
		x->good = false;
		set_timer(x);
	}
	return true;
}

/* Runs until all processes have ended, a signal says stop, or the log fails. */
static void sampler_run(struct sampler *x)
{
	bool left = true;

	while (left && !x->failed) {
		struct pollfd p = {.fd = x->timer, .events = POLLIN};
		int stop;

		/* trace_signals' ticks also end this. */
		poll(&p, 1, -1);
		stop = trace_take_stop();
		if (stop == TRACE_LEAVE || (stop && !x->r->command)) {
			/* The second that has just ended is complete. */
			tick_if_due(x);
			break;
		}
		if (stop > 0 && x->child)
			kill(x->child, stop);
		if (x->child && waitpid(x->child, &x->child_status, WNOHANG) == x->child) {
			x->child = 0;
			left = processes_refresh(x->processes);
		}
		if (left)
			left = tick_if_due(x);
	}
}

static int open_all(struct sampler *x, struct err *e)
{
	const struct trace_request *r = x->r;
	struct cgroup_place places[CGROUP_CONTROLLERS];
	struct err why;
	int rc = 0;

	if (r->filter.n_paths && disk_find(r->filter.paths[0], &x->disk, &why) < 0)
		fprintf(stderr, "culprit-agent trace: no readings of the disk: %s\n", why.text);
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		places[c] = cgroup_own(c);
	group_find(places, &x->group);
	x->timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (x->timer < 0)
		return err_errno(e, -errno, "cannot make a timer");
	trace_signals();
	if (r->command)
		rc = launch_fork(&x->launch, r->command, NULL, e);
	x->child = x->launch.pid;
	if (!rc)
		rc = processes_new(r->command ? &x->child : r->pids, r->command ? 1 : r->n_pids,
			&x->processes, e);
	rc = rc ?: log_writer_new(r->out, "sampler", &x->log, e);
	if (!rc)
		log_writer_bound(x->log, r->bound_bytes);
	return rc;
}

/* A reading delayed by a busy processor does not belong to its second. It takes 2 ms of each
 * second, so it may have a real-time priority; nice values do not work across sessions if the
 * kernel groups by sessions (autogroup). */
static void on_time(void)
{
	const struct sched_param first = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) < 0)
		setpriority(PRIO_PROCESS, 0, -10);
}

static void say_missed(const struct sampler *x)
{
	if (x->missed)
		fprintf(stderr,
			"culprit-agent trace: %llu of %llu seconds have no readings: a tick was "
			"up to %lld ms late (limit %lld), or the clock was set\n",
			(unsigned long long)x->missed, (unsigned long long)(x->missed + x->written),
			(long long)(x->latest_ns / 1000000), LATE_NS / 1000000);
}

int sampler_trace(const struct trace_request *r, struct err *why)
{
	struct sampler x = {.r = r,
		.timer = -1,
		.now = &x.snapshots[0],
		.before = &x.snapshots[1],
		.launch = {.go = -1, .failed = -1}};
	struct err e;
	int rc, code;

	if (r->filter.n_paths > 1)
		return err_set(why, -EOPNOTSUPP, "the sampler reads one disk: it takes one --path");
	rc = tcp_new(&x.tcp, why);
	if (rc)
		return rc;
	netlink_new(NETLINK_ROUTE, &x.routes);
	rc = open_all(&x, &e);
	if (rc) {
		code = trace_complain(TRACE_EXIT_USAGE, e.text);
		goto out;
	}
	on_time();
	sampler_take(&x);
	set_timer(&x);
	trace_ready(r);
	rc = r->command ? launch_go(&x.launch, &e) : 0;
	if (rc) {
		code = trace_complain(TRACE_EXIT_NO_PROGRAM, e.text);
		unlink(r->out);
		goto out;
	}
	sampler_run(&x);
	say_missed(&x);
	code = r->command ? trace_exit_code(x.child_status) : TRACE_EXIT_OK;
	if (x.failed)
		log_writer_free(x.log);
	else
		x.failed = log_writer_end(x.log, 0, &x.err);
	x.log = NULL;
	if (x.failed)
		code = trace_complain(TRACE_EXIT_NOT_WHOLE, x.err.text);
out:
	launch_close(&x.launch); /* ends a command that still waits */
	if (x.child)
		waitpid(x.child, NULL, 0);
	if (x.timer >= 0)
		close(x.timer);
	log_writer_free(x.log);
	tcp_free(x.tcp);
	netlink_free(x.routes);
	processes_free(x.processes);
	snapshot_free(&x.snapshots[0]);
	snapshot_free(&x.snapshots[1]);
	return code;
}
