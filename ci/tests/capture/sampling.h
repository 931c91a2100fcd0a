/*
 * Samplers for tests, each in a separate process, and the totals of their logs. Included once, by a
 * test's .c.
 */
#ifndef CULPRIT_CI_TESTS_CAPTURE_SAMPLING_H
#define CULPRIT_CI_TESTS_CAPTURE_SAMPLING_H

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/patience.h"
#include "diag/record/log.h"
#include "diag/record/reading.h"
#include "diag/capture/capture.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

#define PATIENCE_S patient_s(120)
/* A tick that comes more than 100 ms late is left out, with its seconds. To avoid delays by other
 * processes, the samplers have a real-time priority. If that is not allowed, or the whole machine
 * was held up, the test is repeated. */
#define TRIES 6

static char dir[64];
static int n_logs;

static void ip(const char *line)
{
	const char *argv[32] = {"ip"};
	char copy[256], *save = NULL;
	struct err e;
	size_t n = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	if (proc_run_ok(argv, patient_s(60), NULL, &e))
		fail_msg("%s", e.text);
}

static int sampling_setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/culprit-sampler-XXXXXX");
	if (!mkdtemp(dir) || unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	ip("link set lo up");
	return 0;
}

/* A sampler in a separate process. */
struct run {
	pid_t pid;
	char log[128];
};

static int sample(const pid_t *pids, size_t n, const char *storage, const char *log, int ready,
	char **command)
{
	struct trace_request r = {.tracer = "sampler",
		.out = log,
		.ready_fd = ready,
		.pids = pids,
		.n_pids = n,
		.command = command,
		.filter = {.paths = &storage, .n_paths = storage ? 1 : 0}};
	struct err e;
	int code = sampler_trace(&r, &e);

	return code < 0 ? 99 : code;
}

static void start_with(struct run *x, const pid_t *pids, size_t n, const char *storage,
	void (*prepare)(void), int netns)
{
	char line[8];
	int p[2];

	snprintf(x->log, sizeof(x->log), "%s/log.%d", dir, n_logs++);
	assert_return_code(pipe2(p, O_CLOEXEC), errno);
	fflush(stdout);
	x->pid = fork();
	if (x->pid == 0) {
		const struct sched_param first = {.sched_priority = 1};

		close(p[0]);
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
		if (netns >= 0 && setns(netns, CLONE_NEWNET) < 0)
			_exit(98);
		if (prepare)
			prepare();
		_exit(sample(pids, n, storage, x->log, p[1], NULL));
	}
	close(p[1]);
	assert_int_equal(read(p[0], line, sizeof(line)), 6);
	close(p[0]);
}

static void start(struct run *x, pid_t pid, const char *storage)
{
	start_with(x, &pid, 1, storage, NULL, -1);
}

static int end(struct run *x)
{
	int status;

	kill(x->pid, SIGTERM);
	assert_int_equal(waitpid(x->pid, &status, 0), x->pid);
	return trace_exit_code(status);
}

struct totals {
	double sum[READING_TOTAL][2]; /* by 'accepted' */
	uint64_t records[READING_TOTAL];
	uint32_t most[READING_TOTAL]; /* largest count */
	int64_t first_ns, last_ns;    /* seconds with differences */
	unsigned seconds;
	bool whole;
};

/* Adds up the log so far. */
static void add_up(const struct run *x, struct totals *t)
{
	struct log_reader *r = NULL;
	const struct record *rec;
	struct err e;

	*t = (struct totals){0};
	if (log_reader_new(x->log, &r, &e) < 0)
		return;
	while (log_next(r, &rec, &e) > 0) {
		const struct record_reading *g = &rec->reading;

		if (rec->type == RECORD_END)
			t->whole = true;
		if (rec->type != RECORD_READING)
			continue;
		assert_int_equal(g->start_ns % 1000000000, 0);
		assert_true(
			g->sum >= 0 && g->max >= 0 && g->max <= g->sum * 1.000001 && g->count > 0);
		if (record_reading_thing(g))
			continue;
		assert_int_equal(reading_is_tcp(g->what), g->peer.ss_family != AF_UNSPEC);
		t->sum[g->what][g->accepted] += g->sum;
		t->records[g->what]++;
		if (g->count > t->most[g->what])
			t->most[g->what] = g->count;
		if (g->what != READING_CPU_BUSY)
			continue;
		if (!t->seconds++)
			t->first_ns = g->start_ns;
		t->last_ns = g->start_ns;
	}
	log_reader_free(r);
}

static bool gapless(const struct totals *t)
{
	return t->seconds && t->last_ns - t->first_ns == (int64_t)(t->seconds - 1) * 1000000000;
}

/* Waits until the log has the second that contains 'ns' (CLOCK_REALTIME), or has skipped it. */
static void wait_for_second(const struct run *x, int64_t ns)
{
	double limit = clock_mono_s() + PATIENCE_S;
	struct totals t;

	do {
		poll(NULL, 0, 50);
		add_up(x, &t);
		assert_true(clock_mono_s() < limit);
	} while (t.last_ns < ns / 1000000000 * 1000000000);
}

/* Runs 'body' until its log has no gap. */
static void without_gaps(void (*body)(struct run *x), struct totals *t)
{
	for (int i = 0; i < TRIES; i++) {
		struct run x;

		body(&x);
		add_up(&x, t);
		assert_true(t->whole);
		if (gapless(t))
			return;
	}
	fail_msg("no run without gaps in %d", TRIES);
}

#endif
