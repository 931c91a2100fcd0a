/* Exchanges the progress of a replay's threads between nodes. */
#include "harness/replayer/peers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/vec.h"

#define LINE_MOST 1024
#define QUESTIONS 9

struct need {
	uint64_t ops;
	unsigned node;
};

/* For a thread of this node: which nodes wait for which op, sorted by 'ops'. */
struct needs {
	struct need *list;
	size_t n, next;
};

/* A thread of this node that waits for 'ops' of another thread. Each waiter has a separate
 * condition: with many threads, waking all at each line would take processors from working
 * threads. */
struct waiter {
	uint32_t thread;
	uint64_t ops;
	pthread_cond_t reached;
	struct waiter *next;
};

struct peers {
	int fd;
	double stall_s;
	unsigned me, n; /* n 0: no hello received yet */
	pthread_t listener;
	bool listening;
	int quit; /* eventfd */
	pthread_mutex_t lock, write_lock;
	pthread_cond_t changed; /* any change except progress */
	struct waiter *waiters; /* lock */
	pthread_condattr_t monotonic;
	atomic_int waiting, busy;
	atomic_bool stopped, failed;
	struct err why;             /* lock: reason for the failure */
	_Atomic int64_t alive_ns;   /* CLOCK_MONOTONIC: last activity of any node */
	_Atomic int64_t here_ns;    /* last activity of this node */
	uint64_t barrier, *arrived; /* lock: numbers; by node */
	int64_t answered_ns;        /* lock: round trip of the last answer */
	uint32_t n_threads;
	_Atomic uint64_t *progress;
	struct needs *needs;
};

static int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Call with the lock held. */
static void wake_all(struct peers *p)
{
	pthread_cond_broadcast(&p->changed);
	for (struct waiter *w = p->waiters; w; w = w->next)
		pthread_cond_signal(&w->reached);
}

/* Wakes those that wait for this number of the thread's ops. Call with the lock held. */
static void wake_reached(struct peers *p, uint32_t thread, uint64_t ops)
{
	for (struct waiter *w = p->waiters; w; w = w->next)
		if (w->thread == thread && w->ops <= ops)
			pthread_cond_signal(&w->reached);
}

void peers_alive(struct peers *p)
{
	int64_t now = now_ns();

	atomic_store(&p->here_ns, now);
	atomic_store(&p->alive_ns, now);
}

void peers_busy(struct peers *p, int more)
{
	atomic_fetch_add(&p->busy, more);
	peers_alive(p);
}

void peers_stop(struct peers *p)
{
	atomic_store(&p->stopped, true);
	pthread_mutex_lock(&p->lock);
	wake_all(p);
	pthread_mutex_unlock(&p->lock);
}

bool peers_stopped(const struct peers *p)
{
	return atomic_load(&p->stopped);
}

static void fail_here(struct peers *p, const char *words)
{
	pthread_mutex_lock(&p->lock);
	if (!p->failed) {
		err_set(&p->why, -EPIPE, "%s", words);
		p->failed = true;
		p->stopped = true;
	}
	wake_all(p);
	pthread_mutex_unlock(&p->lock);
}

/* Writes "TO WORDS"; the listener reports a node that can no longer be written to. */
static void peers_say(struct peers *p, const char *to, const char *words)
{
	char line[LINE_MOST + 1];
	int n = snprintf(line, sizeof(line), "%s %s", to, words);
	ssize_t sent;

	if (p->fd < 0 || n < 0)
		return;
	if (n >= LINE_MOST)
		n = LINE_MOST - 1;
	line[n++] = '\n';
	pthread_mutex_lock(&p->write_lock);
	for (int at = 0; at < n; at += (int)sent) {
		sent = send(p->fd, line + at, (size_t)(n - at), MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			sent = 0;
		else if (sent < 0)
			break;
	}
	pthread_mutex_unlock(&p->write_lock);
}

static void say_all(struct peers *p, const char *words)
{
	for (unsigned i = 0; i < p->n; i++) {
		char to[16];

		snprintf(to, sizeof(to), "%u", i);
		if (i != p->me)
			peers_say(p, to, words);
	}
}

void peers_fail(struct peers *p, const char *words)
{
	char line[LINE_MOST];

	if (atomic_load(&p->failed))
		return;
	snprintf(line, sizeof(line), "x %.900s", words);
	say_all(p, line);
	fail_here(p, words);
}

/* ---- incoming lines ---- */

static void take_hello(struct peers *p, const char *words)
{
	unsigned me, n;

	if (sscanf(words, "%u %u", &me, &n) != 2 || me >= n || n > PEERS_NODES || p->n)
		return;
	pthread_mutex_lock(&p->lock);
	p->arrived = calloc(n, sizeof(*p->arrived));
	if (p->arrived) {
		p->me = me;
		p->n = n;
	}
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static void take_progress(struct peers *p, const char *words)
{
	unsigned long thread;
	unsigned long long ops;

	if (sscanf(words, "%lu %llu", &thread, &ops) != 2 || thread >= p->n_threads)
		return;
	pthread_mutex_lock(&p->lock);
	if (atomic_load(&p->progress[thread]) < ops)
		atomic_store(&p->progress[thread], ops);
	wake_reached(p, (uint32_t)thread, ops);
	pthread_mutex_unlock(&p->lock);
}

static void take_barrier(struct peers *p, unsigned from, const char *words)
{
	pthread_mutex_lock(&p->lock);
	p->arrived[from] = strtoull(words, NULL, 10);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static void take_answer(struct peers *p, const char *words)
{
	pthread_mutex_lock(&p->lock);
	p->answered_ns = now_ns() - strtoll(words, NULL, 10);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* Handles "FROM k WORDS". Other lines are ignored. */
static void peers_take_line(struct peers *p, char *line)
{
	char *kind, *words, answer[64], to[16];
	unsigned from;

	if (!strncmp(line, "hello ", 6)) {
		take_hello(p, line + 6);
		return;
	}
	from = (unsigned)strtoul(line, &kind, 10);
	if (kind == line || kind[0] != ' ' || !kind[1] || from >= p->n)
		return;
	words = kind[2] ? kind + 3 : kind + 2;
	atomic_store(&p->alive_ns, now_ns());
	switch (kind[1]) {
	case 'p': take_progress(p, words); break;
	case 'b': take_barrier(p, from, words); break;
	case 'a': take_answer(p, words); break;
	case 'x': fail_here(p, words); break;
	case 'q':
		snprintf(to, sizeof(to), "%u", from);
		snprintf(answer, sizeof(answer), "a %.40s", words);
		peers_say(p, to, answer);
		break;
	default: break;
	}
}

/* Reports activity periodically, as long as it continues. */
static void beat(struct peers *p, int64_t *said_ns)
{
	int64_t every_ns = (int64_t)(p->stall_s * 1e9 / 4), now = now_ns();

	if (atomic_load(&p->busy) > 0)
		peers_alive(p);
	if (now - *said_ns < every_ns || now - atomic_load(&p->here_ns) > every_ns)
		return;
	*said_ns = now;
	say_all(p, "h");
}

static void *listen_to_others(void *arg)
{
	struct peers *p = arg;
	char buf[16 * LINE_MOST + 1];
	int64_t said_ns = 0;
	size_t n = 0;

	for (;;) {
		struct pollfd f[] = {
			{.fd = p->fd, .events = POLLIN}, {.fd = p->quit, .events = POLLIN}};
		char *begin = buf, *newline;
		ssize_t got;

		poll(f, 2, (int)(p->stall_s * 1000 / 8) + 1);
		if (f[1].revents)
			return NULL;
		beat(p, &said_ns);
		if (!f[0].revents)
			continue;
		got = recv(p->fd, buf + n, sizeof(buf) - 1 - n, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0) {
			fail_here(p, "the orchestrator has disconnected");
			return NULL;
		}
		n += (size_t)got;
		while ((newline = memchr(begin, '\n', n - (size_t)(begin - buf)))) {
			*newline = '\0';
			peers_take_line(p, begin);
			begin = newline + 1;
		}
		n -= (size_t)(begin - buf);
		memmove(buf, begin, n);
		if (n == sizeof(buf) - 1)
			n = 0;
	}
}

/* ---- life ---- */

/* Waits for a change signalled by 'on'; the lock is held. Returns 0, or an error if waiting is
 * pointless. */
static int wait_change(struct peers *p, pthread_cond_t *on, struct err *e)
{
	int64_t until = now_ns() + (int64_t)(p->stall_s * 1e9 / 8) + 1000000;
	struct timespec at = {until / 1000000000, until % 1000000000};

	if (p->failed) {
		*e = p->why;
		return -EPIPE;
	}
	if (p->stopped)
		return err_set(e, -ECANCELED, "stopped");
	if (p->busy > 0)
		peers_alive(p);
	if (now_ns() - atomic_load(&p->alive_ns) > (int64_t)(p->stall_s * 1e9))
		return err_set(e, -ETIMEDOUT, "no node was active for %g s", p->stall_s);
	pthread_cond_timedwait(on, &p->lock, &at);
	return 0;
}

static int wait_hello(struct peers *p, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (!p->n && !rc)
		rc = wait_change(p, &p->changed, e);
	pthread_mutex_unlock(&p->lock);
	return rc == -ETIMEDOUT ? err_set(e, rc, "no hello from the orchestrator") : rc;
}

int peers_new(int fd, double stall_s, struct peers **out, struct err *e)
{
	struct peers *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		return err_errno(e, -ENOMEM, "cannot replay");
	p->fd = fd;
	p->stall_s = stall_s;
	p->quit = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->write_lock, NULL);
	pthread_condattr_init(&p->monotonic);
	pthread_condattr_setclock(&p->monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &p->monotonic);
	peers_alive(p);
	if (fd < 0) {
		p->n = 1;
	} else {
		rc = p->quit < 0 ? -errno
				 : -pthread_create(&p->listener, NULL, listen_to_others, p);
		p->listening = !rc;
		rc = rc ? err_errno(e, rc, "cannot listen to the other nodes") : wait_hello(p, e);
	}
	if (rc)
		peers_free(p);
	else
		*out = p;
	return rc;
}

void peers_free(struct peers *p)
{
	uint64_t one = 1;

	if (!p)
		return;
	if (p->listening && write(p->quit, &one, sizeof(one)) == sizeof(one))
		pthread_join(p->listener, NULL);
	if (p->quit >= 0)
		close(p->quit);
	for (uint32_t i = 0; p->needs && i < p->n_threads; i++)
		free(p->needs[i].list);
	pthread_cond_destroy(&p->changed);
	pthread_condattr_destroy(&p->monotonic);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->write_lock);
	free(p->needs);
	free((void *)p->progress);
	free(p->arrived);
	free(p);
}

unsigned peers_me(const struct peers *p)
{
	return p->me;
}

unsigned peers_n(const struct peers *p)
{
	return p->n;
}

/* ---- progress ---- */

int peers_threads(struct peers *p, uint32_t n, struct err *e)
{
	_Atomic uint64_t *progress = calloc(n + 1, sizeof(*progress));

	p->needs = calloc(n + 1, sizeof(*p->needs));
	if (!progress || !p->needs) {
		free((void *)progress);
		return err_errno(e, -ENOMEM, "cannot follow %u threads", n);
	}
	pthread_mutex_lock(&p->lock);
	p->progress = progress;
	p->n_threads = n;
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int by_ops(const void *a, const void *b)
{
	const struct need *x = a, *y = b;

	return (x->ops > y->ops) - (x->ops < y->ops);
}

int peers_tell(struct peers *p, uint32_t thread, uint64_t ops, unsigned node, struct err *e)
{
	struct needs *s = &p->needs[thread];
	struct need *more = vec_room(s->list, s->n, sizeof(*more));

	if (!more)
		return err_errno(e, -ENOMEM, "cannot follow the other nodes' threads");
	s->list = more;
	s->list[s->n++] = (struct need){ops, node};
	return 0;
}

void peers_reset(struct peers *p)
{
	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->n_threads; i++) {
		struct needs *s = &p->needs[i];

		atomic_store(&p->progress[i], 0);
		if (s->n)
			qsort(s->list, s->n, sizeof(*s->list), by_ops);
		s->next = 0;
	}
	pthread_mutex_unlock(&p->lock);
}

/* One line to all nodes that wait for this; 'done' marks nodes that already have it. */
static void tell_needs(struct peers *p, uint32_t thread, uint64_t ops)
{
	struct needs *s = &p->needs[thread];
	char to[LINE_MOST / 2] = "", words[64];
	size_t n = 0, first = s->next;

	snprintf(words, sizeof(words), "p %u %llu", thread, (unsigned long long)ops);
	for (; s->next < s->n && s->list[s->next].ops <= ops; s->next++) {
		bool again = false;

		for (size_t i = first; i < s->next; i++)
			again = again || s->list[i].node == s->list[s->next].node;
		if (again)
			continue;
		if (n + 12 > sizeof(to)) {
			peers_say(p, to, words);
			n = 0;
		}
		n += (size_t)snprintf(
			to + n, sizeof(to) - n, "%s%u", n ? "," : "", s->list[s->next].node);
	}
	if (n)
		peers_say(p, to, words);
}

void peers_completed(struct peers *p, uint32_t thread, uint64_t ops)
{
	const struct needs *s = &p->needs[thread];

	atomic_store(&p->progress[thread], ops);
	peers_alive(p);
	if (atomic_load(&p->waiting)) {
		pthread_mutex_lock(&p->lock);
		wake_reached(p, thread, ops);
		pthread_mutex_unlock(&p->lock);
	}
	if (s->next < s->n && s->list[s->next].ops <= ops)
		tell_needs(p, thread, ops);
}

uint64_t peers_progress(const struct peers *p, uint32_t thread)
{
	return atomic_load(&p->progress[thread]);
}

static void add_waiter(struct waiter **list, struct waiter *w)
{
	w->next = *list;
	*list = w;
}

static void remove_waiter(struct waiter **list, const struct waiter *w)
{
	while (*list != w)
		list = &(*list)->next;
	*list = w->next;
}

int peers_wait(struct peers *p, uint32_t thread, uint64_t ops, struct err *e)
{
	struct waiter w = {.thread = thread, .ops = ops};
	int rc = 0;

	if (peers_progress(p, thread) >= ops)
		return 0;
	pthread_cond_init(&w.reached, &p->monotonic);
	atomic_fetch_add(&p->waiting, 1);
	pthread_mutex_lock(&p->lock);
	add_waiter(&p->waiters, &w);
	while (!rc && peers_progress(p, thread) < ops)
		rc = wait_change(p, &w.reached, e);
	remove_waiter(&p->waiters, &w);
	pthread_mutex_unlock(&p->lock);
	atomic_fetch_sub(&p->waiting, 1);
	pthread_cond_destroy(&w.reached);
	return rc ?: 1;
}

int peers_sleep(struct peers *p, int64_t at_ns)
{
	struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};

	if (at_ns <= now_ns())
		return 0;
	peers_busy(p, 1);
	pthread_mutex_lock(&p->lock);
	while (!p->stopped && now_ns() < at_ns)
		pthread_cond_timedwait(&p->changed, &p->lock, &at);
	pthread_mutex_unlock(&p->lock);
	peers_busy(p, -1);
	return p->stopped ? -ECANCELED : 0;
}

static bool all_arrived(const struct peers *p, unsigned *late)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (i != p->me && p->arrived[i] < p->barrier) {
			*late = i;
			return false;
		}
	}
	return true;
}

int peers_barrier(struct peers *p, const char *what, struct err *e)
{
	unsigned late = 0;
	char words[32];
	int rc = 0;

	if (p->n == 1)
		return p->stopped ? err_set(e, -ECANCELED, "stopped") : 0;
	snprintf(words, sizeof(words), "b %llu", (unsigned long long)++p->barrier);
	peers_alive(p);
	say_all(p, words);
	pthread_mutex_lock(&p->lock);
	while (!rc && !all_arrived(p, &late))
		rc = wait_change(p, &p->changed, e);
	pthread_mutex_unlock(&p->lock);
	return rc == -ETIMEDOUT
		? err_set(e, rc, "node %u did not reach %s within %g s", late, what, p->stall_s)
		: rc;
}

static int peers_by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int peers_round_trip(struct peers *p, double *seconds, struct err *e)
{
	int64_t took[QUESTIONS];
	char words[32], to[16];
	int rc = 0;

	*seconds = 0;
	snprintf(to, sizeof(to), "%u", p->n ? (p->me + 1) % p->n : 0);
	for (int i = 0; i < QUESTIONS && p->n > 1 && !rc; i++) {
		pthread_mutex_lock(&p->lock);
		p->answered_ns = -1;
		pthread_mutex_unlock(&p->lock);
		snprintf(words, sizeof(words), "q %lld", (long long)now_ns());
		peers_say(p, to, words);
		pthread_mutex_lock(&p->lock);
		while (!rc && p->answered_ns < 0)
			rc = wait_change(p, &p->changed, e);
		took[i] = p->answered_ns;
		pthread_mutex_unlock(&p->lock);
	}
	if (rc || p->n < 2)
		return rc;
	qsort(took, QUESTIONS, sizeof(*took), peers_by_number);
	*seconds = (double)took[QUESTIONS / 2] / 1e9;
	return 0;
}
