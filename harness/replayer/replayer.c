/* Replays an application trace on one node. */
#include "harness/replayer/replayer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "harness/base/clock.h"
#include "harness/replayer/stage.h"

#define STACK_BYTES (256u << 10)

const char *stage_thread_name(const struct stage *s, uint32_t thread, char buf[64])
{
	const struct app_thread *t = app_thread(s->trace, thread);
	const struct app_rank *r = app_rank(s->trace, t->rank);

	if (r->n_threads > 1)
		snprintf(buf, 64, "rank %u thread %u", t->rank, thread - r->first_thread);
	else
		snprintf(buf, 64, "rank %u", t->rank);
	return buf;
}

/* ---- the time before an op ---- */

/* Spins until the thread has used 'ns' of a processor since its last op, or until 'until_ns'. */
static void spin(struct player *p, int64_t ns, int64_t until_ns)
{
	struct peers *peers = p->stage->peers;

	if (ns <= 0)
		return;
	peers_busy(peers, 1);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - p->last_cpu_ns < ns && !peers_stopped(peers) &&
		(until_ns == INT64_MAX || clock_ns(CLOCK_MONOTONIC) < until_ns))
		;
	peers_busy(peers, -1);
}

/* Computes and is away according to the mode. */
static int pass_time(struct player *p, const struct app_op *op)
{
	const struct replayer_options *o = p->stage->o;
	int64_t begin = clock_ns(CLOCK_MONOTONIC), spun, until = INT64_MAX;
	int64_t compute = (int64_t)((double)op->compute_ns * o->cpu / o->speed), rest = 0;
	int rc = 0;

	if (o->mode == REPLAY_AFAP)
		return 0;
	if (o->mode == REPLAY_CAUSAL)
		rest = (int64_t)(((double)op->compute_ns * (1 - o->cpu) + (double)op->away_ns) /
			o->speed);
	else if (o->mode == REPLAY_WALL)
		until = p->stage->begin_ns + (int64_t)((double)op->start_ns / o->speed);
	else
		until = p->last_end_ns +
			(int64_t)((double)(op->start_ns - p->traced_end_ns) / o->speed);
	spin(p, compute, until);
	spun = clock_ns(CLOCK_MONOTONIC);
	if (until != INT64_MAX || rest > 0)
		rc = peers_sleep(p->stage->peers, until == INT64_MAX ? spun + rest : until);
	p->stage->totals->computed_ns += (uint64_t)(spun - begin);
	p->stage->totals->away_ns += (uint64_t)(clock_ns(CLOCK_MONOTONIC) - spun);
	return rc;
}

/* Describes the wait in an error. */
static int say_stall(
	struct player *p, const struct app_op *op, const struct app_edge *edge, struct err *e)
{
	const struct stage *s = p->stage;
	const char *path = op->file == APP_NO_FILE ? "" : app_file(s->trace, op->file)->path;
	char me[64], other[64], why[256];

	snprintf(why, sizeof(why), "%.250s", e->text);
	return err_set(e, -ETIMEDOUT,
		"%s waits before its op %llu (%s %.300s) for op %llu of %s, which has completed "
		"%llu; %s",
		stage_thread_name(s, p->thread, me), (unsigned long long)p->done + 1,
		app_call_name(op->call), path, (unsigned long long)edge->ops,
		stage_thread_name(s, edge->thread, other),
		(unsigned long long)peers_progress(s->peers, edge->thread), why);
}

static int wait_edges(struct player *p, const struct app_op *op, struct err *e)
{
	struct stage *s = p->stage;
	int64_t begin;
	bool waited = false;
	int rc = 0;

	if (s->o->mode != REPLAY_CAUSAL || !op->n_edges)
		return 0;
	begin = clock_ns(CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < op->n_edges && rc >= 0; i++) {
		rc = peers_wait(s->peers, op->edges[i].thread, op->edges[i].ops, e);
		waited = waited || rc > 0;
		if (rc == -ETIMEDOUT)
			say_stall(p, op, &op->edges[i], e);
	}
	if (waited) {
		s->totals->waits++;
		s->totals->waited_ns += (uint64_t)(clock_ns(CLOCK_MONOTONIC) - begin);
	}
	return rc < 0 ? rc : 0;
}

/* ---- a thread ---- */

static int play_all(struct player *p, struct app_cursor *c, struct err *e)
{
	struct app_op op;
	int rc;

	while ((rc = app_next(c, &op, e)) > 0) {
		if (pass_time(p, &op) || peers_stopped(p->stage->peers))
			return err_set(e, -ECANCELED, "stopped");
		rc = wait_edges(p, &op, e) ?: calls_do(p, &op, e);
		if (rc)
			return rc;
		p->traced_end_ns = op.start_ns + op.took_ns;
		peers_completed(p->stage->peers, p->thread, ++p->done);
	}
	return rc;
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct stage *s = p->stage;
	struct app_cursor *c;
	int64_t end, last;
	int rc;

	prctl(PR_SET_TIMERSLACK, 1000);
	p->last_end_ns = s->begin_ns;
	p->last_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	p->rc = app_cursor_new(s->trace, p->thread, &c);
	if (p->rc) {
		err_errno(&p->err, p->rc, "cannot read the trace");
	} else {
		p->rc = play_all(p, c, &p->err);
		app_cursor_free(c);
	}
	end = p->done ? p->last_end_ns : s->begin_ns;
	for (last = s->end_ns; last < end && !atomic_compare_exchange_weak(&s->end_ns, &last, end);)
		;
	rc = p->rc;
	if (rc && rc != -ECANCELED && rc != -EPIPE)
		peers_fail(s->peers, p->err.text);
	return NULL;
}

/* ---- a pass ---- */

static int start_players(struct stage *s, struct err *e)
{
	pthread_attr_t attr;
	int rc = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (size_t i = 0; i < s->n_players && !rc; i++) {
		struct player *p = &s->players[i];

		p->done = 0;
		p->traced_end_ns = 0;
		p->rc = 0;
		rc = -pthread_create(&p->id, &attr, play, p);
		p->started = !rc;
	}
	pthread_attr_destroy(&attr);
	return rc ? err_errno(e, rc, "cannot start a thread of the replay") : 0;
}

static int join_players(struct stage *s, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->n_players; i++) {
		struct player *p = &s->players[i];

		if (!p->started)
			continue;
		pthread_join(p->id, NULL);
		p->started = false;
		/* Another node's request to stop is not the reason. */
		if (p->rc && (!rc || rc == -ECANCELED || rc == -EPIPE)) {
			rc = p->rc;
			*e = p->err;
		}
	}
	return rc;
}

static int make_files(struct stage *s, struct err *e)
{
	int rc = s->me ? 0 : files_folders(&s->files, e);

	/* Files that one node opens at the start may be made by another. */
	return rc ?: peers_barrier(s->peers, "the barrier after making folders", e)
		?: files_make(&s->files, s->me, s->nodes, s->peers, e)
		?: peers_barrier(s->peers, "the barrier after making files", e);
}

static int one_pass(struct stage *s, unsigned long pass, struct err *e)
{
	struct err later;
	int rc = make_files(s, e), joined;

	memset(s->totals, 0, sizeof(*s->totals));
	if (s->series)
		series_begin(s->series);
	peers_reset(s->peers);
	rc = rc ?: calls_begin(s, e) ?: peers_barrier(s->peers, "the start", e);
	if (rc)
		return rc;
	s->begin_ns = clock_ns(CLOCK_MONOTONIC);
	s->end_ns = s->begin_ns;
	s->first_ns = INT64_MAX;
	rc = start_players(s, e);
	if (rc)
		peers_fail(s->peers, e->text);
	joined = join_players(s, &later);
	if (!rc && joined) {
		rc = joined;
		*e = later;
	}
	calls_end(s);
	report_pass(s, pass, !rc);
	return rc ?: peers_barrier(s->peers, "the end", e);
}

/* ---- the whole ---- */

static int make_players(struct stage *s, struct err *e)
{
	size_t room = s->most_bytes + 4096;

	s->players = calloc(app_n_threads(s->trace) + 1, sizeof(*s->players));
	s->totals = calloc(1, sizeof(*s->totals));
	s->series = s->o->series ? calloc(1, sizeof(*s->series)) : NULL;
	if (!s->players || !s->totals || (s->o->series && !s->series))
		return err_errno(e, -ENOMEM, "cannot replay");
	for (uint32_t i = 0; i < app_n_threads(s->trace); i++) {
		struct player *p = &s->players[s->n_players];

		if (replayer_node(app_thread(s->trace, i)->rank, s->ranks, s->nodes) != s->me)
			continue;
		p->stage = s;
		p->thread = i;
		/* Only used memory counts: a read may ask for more than the file has. */
		p->buffer = mmap(NULL, room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p->buffer == MAP_FAILED)
			return err_errno(e, -ENOMEM, "cannot hold %zu bytes for each thread", room);
		s->n_players++;
		for (size_t at = 0; at < s->most_written; at++)
			p->buffer[at] = (unsigned char)(at * 2654435761u >> 13 ^ i);
	}
	return 0;
}

static int stage_open(struct stage *s, struct err *e)
{
	int rc = app_open(s->o->trace, &s->trace, e);

	if (rc)
		return rc;
	s->me = peers_me(s->peers);
	s->nodes = peers_n(s->peers);
	s->ranks = (uint32_t)app_n_ranks(s->trace);
	pthread_mutex_init(&s->opening, NULL);
	pthread_mutex_init(&s->counting, NULL);
	if (!s->ranks)
		return err_set(e, -EINVAL, "the trace '%s' has no processes", s->o->trace);
	return files_init(&s->files, s->trace, s->o->root, e)
		?: peers_threads(s->peers, (uint32_t)app_n_threads(s->trace), e)
		?: calls_scan(s, e)
		?: make_players(s, e);
}

static void stage_close(struct stage *s)
{
	calls_end(s);
	for (size_t i = 0; i < s->n_players; i++)
		munmap(s->players[i].buffer, s->most_bytes + 4096);
	free(s->players);
	free(s->totals);
	free(s->series);
	free(s->slots);
	files_clear(&s->files);
	app_free(s->trace);
}

static int go(struct stage *s, struct err *e)
{
	double round_trip_s = 0;
	int rc = stage_open(s, e);

	if (!rc && !s->me)
		rc = files_fit(&s->files, e);
	if (!rc && s->o->prepare_only)
		return make_files(s, e);
	rc = rc ?: peers_round_trip(s->peers, &round_trip_s, e);
	if (rc)
		return rc;
	report_begin(s, round_trip_s);
	for (unsigned long pass = 1; !rc && (!s->o->passes || pass <= s->o->passes); pass++)
		rc = one_pass(s, pass, e);
	return rc;
}

int replayer_run(const struct replayer_options *o, struct peers *peers, struct err *e)
{
	struct stage s = {.o = o, .peers = peers, .files.root_fd = -1};
	int rc = go(&s, e);

	if (rc && rc != -ECANCELED && rc != -EPIPE)
		peers_fail(peers, e->text);
	stage_close(&s);
	return rc;
}
