/*
 * Several nodes of a replay in one process, each with its own peers, and a router between them
 * instead of agents and orchestrator. It delays each line for a random time; lines from one node
 * to another stay in order.
 */
#ifndef CULPRIT_CI_TESTS_REPLAYER_NODES_H
#define CULPRIT_CI_TESTS_REPLAYER_NODES_H

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/replayer/replayer.h"

#define NODES_MOST 8
#define LATE_MOST 4096

struct late_line {
	int64_t due_ns;
	unsigned to;
	char text[256];
};

struct test_node {
	struct nodes *all;
	int fd; /* its own end */
	struct replayer_options o;
	struct peers *peers;
	char *output;
	size_t n_output;
	int rc;
	struct err err;
	pthread_t thread;
};

struct nodes {
	unsigned n;
	uint64_t most_ns; /* maximum delay of a line */
	uint64_t x;       /* xorshift */
	int fds[NODES_MOST];
	int64_t last_ns[NODES_MOST][NODES_MOST];
	struct late_line late[LATE_MOST];
	size_t n_late;
	char in[NODES_MOST][8192];
	size_t n_in[NODES_MOST];
	struct test_node nodes[NODES_MOST];
	atomic_bool over;
	pthread_t router;
	double stall_s;
};

static inline uint64_t nodes_draw(struct nodes *s)
{
	s->x ^= s->x << 13, s->x ^= s->x >> 7, s->x ^= s->x << 17;
	return s->x;
}

static inline void nodes_queue(struct nodes *s, unsigned from, unsigned to, const char *words)
{
	int64_t due = clock_ns(CLOCK_MONOTONIC) +
		(int64_t)(s->most_ns ? nodes_draw(s) % s->most_ns : 0);
	struct late_line *l = &s->late[s->n_late++];

	assert(s->n_late < LATE_MOST && to < s->n);
	due = due < s->last_ns[from][to] ? s->last_ns[from][to] : due;
	s->last_ns[from][to] = due;
	l->due_ns = due;
	l->to = to;
	snprintf(l->text, sizeof(l->text), "%u%s\n", from, words);
}

static inline void nodes_take(struct nodes *s, unsigned from)
{
	char *in = s->in[from], *newline, *begin = in;
	ssize_t n = recv(s->fds[from], in + s->n_in[from], sizeof(s->in[from]) - s->n_in[from],
		MSG_DONTWAIT);

	if (n <= 0)
		return;
	s->n_in[from] += (size_t)n;
	while ((newline = memchr(begin, '\n', s->n_in[from] - (size_t)(begin - in)))) {
		*newline = '\0';
		for (char *at = begin; at < begin + strcspn(begin, " ");
			at += strcspn(at, ", ") + 1)
			nodes_queue(s, from, (unsigned)strtoul(at, NULL, 10),
				begin + strcspn(begin, " "));
		begin = newline + 1;
	}
	s->n_in[from] -= (size_t)(begin - in);
	memmove(in, begin, s->n_in[from]);
}

/* Delivers due lines, the oldest first; returns the time of the next in nanoseconds, or 20 ms. */
static inline int64_t nodes_deliver(struct nodes *s)
{
	for (;;) {
		int64_t now = clock_ns(CLOCK_MONOTONIC);
		size_t first = 0;

		if (!s->n_late)
			return 20000000;
		for (size_t i = 1; i < s->n_late; i++)
			if (s->late[i].due_ns < s->late[first].due_ns)
				first = i;
		if (s->late[first].due_ns > now)
			return s->late[first].due_ns - now;
		send(s->fds[s->late[first].to], s->late[first].text, strlen(s->late[first].text),
			MSG_NOSIGNAL);
		/* Not the last one in its place: lines of the same time keep their order. */
		memmove(&s->late[first], &s->late[first + 1],
			(--s->n_late - first) * sizeof(*s->late));
	}
}

static inline void *nodes_route(void *arg)
{
	struct nodes *s = arg;

	while (!s->over) {
		struct pollfd p[NODES_MOST];
		int64_t left = nodes_deliver(s);
		struct timespec wait = {left / 1000000000, left % 1000000000};

		for (unsigned i = 0; i < s->n; i++)
			p[i] = (struct pollfd){.fd = s->fds[i], .events = POLLIN};
		ppoll(p, s->n, &wait, NULL);
		for (unsigned i = 0; i < s->n; i++)
			if (p[i].revents)
				nodes_take(s, i);
	}
	return NULL;
}

static inline void *nodes_play(void *arg)
{
	struct test_node *t = arg;

	t->o.out = open_memstream(&t->output, &t->n_output);
	t->rc = peers_new(t->all->n > 1 ? t->fd : -1, t->all->stall_s, &t->peers, &t->err)
		?: replayer_run(&t->o, t->peers, &t->err);
	fclose(t->o.out);
	/* As a process that ends. */
	if (t->fd >= 0)
		shutdown(t->fd, SHUT_WR);
	return NULL;
}

/* Plays 'o' on n nodes, and waits. */
static inline struct nodes *nodes_run(unsigned n, const struct replayer_options *o,
	uint64_t most_ns, uint64_t seed, double stall_s)
{
	struct nodes *s = calloc(1, sizeof(*s));

	s->n = n;
	s->most_ns = most_ns;
	s->x = seed * 0x9e3779b97f4a7c15 + 1;
	s->stall_s = stall_s;
	for (unsigned i = 0; i < n; i++) {
		int ends[2];
		char hello[32];

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			abort();
		s->fds[i] = ends[0];
		s->nodes[i] = (struct test_node){.all = s, .fd = ends[1], .o = *o};
		snprintf(hello, sizeof(hello), "hello %u %u\n", i, n);
		if (send(s->fds[i], hello, strlen(hello), 0) < 0)
			abort();
	}
	pthread_create(&s->router, NULL, nodes_route, s);
	for (unsigned i = 0; i < n; i++)
		pthread_create(&s->nodes[i].thread, NULL, nodes_play, &s->nodes[i]);
	for (unsigned i = 0; i < n; i++)
		pthread_join(s->nodes[i].thread, NULL);
	s->over = true;
	pthread_join(s->router, NULL);
	return s;
}

static inline void nodes_free(struct nodes *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		peers_free(s->nodes[i].peers);
		close(s->nodes[i].fd);
		close(s->fds[i]);
		free(s->nodes[i].output);
	}
	free(s);
}

#endif
