/*
 * A made-up cluster with its truth: applications, FUSE daemons, servers with an event thread and
 * io-threads, TCP that cuts as it likes, and clocks that are wrong. Discrete events in true time,
 * seeded. Each node writes a log of records, in the order in which calls ended; the truth about
 * each request stands next to them.
 */
#ifndef CULPRIT_CI_TESTS_FLOW_CLUSTER_H
#define CULPRIT_CI_TESTS_FLOW_CLUSTER_H

#include <arpa/inet.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/flow/flow.h"
#include "ci/tests/flow/rpc.h"
#include "diag/record/stream.h"
#include "harness/base/alloc.h"

enum { CLUSTER_NODES = 16, CLUSTER_FD = 10, CLUSTER_FILE = 200, CLUSTER_PIPE = 1 << 16 };

/* How receivers cut: a mark and then the rest, as GlusterFS; or anyhow. */
enum cluster_cut { CUT_BY_MARK, CUT_ANYHOW };

struct cluster_spec {
	uint64_t seed;
	int clients, servers;
	int apps;        /* of each client; as many daemon threads */
	int io_threads;  /* of each server */
	int ops;         /* of each application */
	int fan;         /* requests of an operation, at most, at once */
	int chain_pct;   /* operations that send a further request when the first is answered */
	double offset_s; /* clocks are off by so much at most */
	double drift_ppm;
	double step_s, step_at_s; /* a server's clock is set forward by so much then */
	enum cluster_cut cut;
	int cut_send_pct;  /* messages that go out in several calls */
	int batch_pct;     /* answers that are written together with the next one (by mark only) */
	int ids;           /* 0: ids count up; else they are among so many */
	int reconnect_pct; /* operations before which the connections are made anew */
	double attach_s[CLUSTER_NODES]; /* records before this true time are missing */
	int lose_pct_100;               /* records of sends lost, in 1/10000 */
	int quiet_nodes;                /* the last so many servers write no log */
	int bytes;                      /* of data in a message, at most */
	int no_heads;
	bool helpers; /* disk calls are made by threads that answer nothing */
	bool alone;   /* each client's daemon has one thread, which does everything */
	int full_pct; /* answers that find the socket full: the server's event thread sends them */
	bool alike;   /* all messages have the same size */
	bool queued;  /* calls go out by another thread than the one that read /dev/fuse */
};

/* A record, small. */
struct cluster_record {
	uint8_t type;
	uint8_t head_size;
	bool positioned, open, ended;
	uint8_t kind;          /* of RECORD_FD */
	uint8_t local, remote; /* nodes */
	uint16_t local_port, remote_port;
	uint32_t pid, tid, nr, position, opcode;
	int32_t fd, result;
	int64_t start_ns, end_ns; /* on the node's clock */
	int64_t offset;
	uint64_t unique;
	uint64_t order;
	uint8_t head[RECORD_HEAD];
};

struct cluster_log {
	struct cluster_record *records;
	size_t n, room, at;
	struct record now;
	uint64_t number;
};

struct truth_leg {
	int64_t begin_ns, end_ns;
	uint32_t tid;
	bool lost; /* a record of it is in no log */
};

enum { TRUTH_DISKS = 4 };

struct truth {
	uint32_t id, client, server, procedure;
	struct truth_leg legs[4]; /* sent, received, answered, returned */
	int n_disks, bytes;
	int64_t disk_ns[TRUTH_DISKS]; /* begin */
	uint64_t unique;
	int64_t call_ns;
	bool lost; /* something of it is in no log */
	bool seen;
};

/* One direction of a connection. */
struct cluster_pipe {
	uint8_t *bytes;       /* in flight: a ring */
	uint64_t sent, taken; /* since the beginning */
	uint32_t isn;
	struct {
		uint64_t end;
		int request;
		bool answer;
	} messages[4096]; /* ring */
	uint64_t n_messages, n_taken;
	int64_t ready_ns; /* when the last byte has arrived */
};

struct cluster_link {
	struct cluster_pipe to_server, to_client;
	uint16_t port;
	int fd;
	uint32_t next_id;
};

enum cluster_what { DO_OP, DO_SEND, DO_SERVE, DO_IO, DO_RETURN, DO_RECONNECT };

struct cluster_event {
	int64_t at_ns;
	uint64_t order;
	enum cluster_what what;
	int node, other, thread, request;
};

struct cluster_op { /* of an application */
	int left, open, unique, first;
	int64_t begin_ns;
	bool chained;
	uint32_t sender;
};

struct cluster {
	struct cluster_spec spec;
	uint64_t random, order, next_unique;
	int n_nodes;
	int64_t offset_ns[CLUSTER_NODES];
	double drift[CLUSTER_NODES];
	struct cluster_log logs[CLUSTER_NODES];
	struct cluster_link *links; /* client * servers + server */
	struct cluster_op *ops;     /* client * apps + app */
	int64_t io_free[CLUSTER_NODES][64], event_free[CLUSTER_NODES];
	struct cluster_event *heap;
	size_t n_heap, heap_room;
	struct truth *truth;
	int *owner; /* of a truth: the operation */
	size_t n_truth, truth_room;
	uint64_t disk_calls;
};

/* ---- chance ---- */

static inline uint64_t cluster_random(struct cluster *c)
{
	uint64_t z = c->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline int64_t cluster_between(struct cluster *c, int64_t low, int64_t high)
{
	return low + (int64_t)(cluster_random(c) % (uint64_t)(high - low + 1));
}

static inline bool cluster_chance(struct cluster *c, int pct)
{
	return (int)(cluster_random(c) % 100) < pct;
}

/* ---- records ---- */

static const int64_t cluster_epoch = 1700000000000000000;

static inline int64_t cluster_clock(const struct cluster *c, int node, int64_t true_ns)
{
	const bool set = c->spec.step_s > 0 && node == c->n_nodes - 1 &&
		true_ns >= (int64_t)(c->spec.step_at_s * 1e9);

	return cluster_epoch + true_ns + c->offset_ns[node] +
		(int64_t)((double)true_ns * c->drift[node]) +
		(set ? (int64_t)(c->spec.step_s * 1e9) : 0);
}

static inline struct cluster_record *cluster_put(
	struct cluster *c, int node, int64_t begin_ns, int64_t end_ns)
{
	struct cluster_log *l = &c->logs[node];
	struct cluster_record *r;

	if (l->n == l->room) {
		l->room = l->room ? l->room * 2 : 1024;
		l->records = alloc_resize(l->records, l->room, sizeof(*l->records));
	}
	r = &l->records[l->n++];
	memset(r, 0, sizeof(*r));
	r->start_ns = cluster_clock(c, node, begin_ns);
	r->end_ns = cluster_clock(c, node, end_ns);
	r->order = c->order++;
	r->pid = 100;
	r->offset = -1;
	return r;
}

static inline bool cluster_sees(const struct cluster *c, int node, int64_t end_ns)
{
	return end_ns >= (int64_t)(c->spec.attach_s[node] * 1e9) &&
		node < c->n_nodes - c->spec.quiet_nodes;
}

static inline uint32_t cluster_nr(const char *name)
{
	return (uint32_t)call_number("x86_64", name);
}

static inline struct cluster_record *cluster_call(struct cluster *c, int node, uint32_t tid,
	const char *name, int fd, int64_t result, int64_t begin_ns, int64_t end_ns)
{
	struct cluster_record *r = cluster_put(c, node, begin_ns, end_ns);

	r->type = RECORD_CALL;
	r->tid = tid;
	r->nr = cluster_nr(name);
	r->fd = fd;
	r->result = (int32_t)result;
	if (!cluster_sees(c, node, end_ns))
		c->logs[node].n--;
	return r;
}

static inline void cluster_socket(struct cluster *c, int node, int other, uint16_t port,
	bool server, int fd, bool open, int64_t at_ns)
{
	struct cluster_record *r = cluster_put(c, node, at_ns, at_ns);

	r->type = RECORD_FD;
	r->fd = fd;
	r->open = open;
	r->kind = FD_SOCKET;
	r->local = (uint8_t)node;
	r->remote = (uint8_t)other;
	r->local_port = server ? 24007 : port;
	r->remote_port = server ? port : 24007;
}

static inline void cluster_file(struct cluster *c, int node, int fd, uint8_t kind)
{
	struct cluster_record *r = cluster_put(c, node, 0, 0);

	r->type = RECORD_FD;
	r->fd = fd;
	r->open = true;
	r->kind = kind;
}

/* ---- events ---- */

static inline bool cluster_earlier(const struct cluster_event *a, const struct cluster_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static inline void cluster_at(struct cluster *c, int64_t at_ns, enum cluster_what what, int node,
	int other, int thread, int request)
{
	struct cluster_event ev = {at_ns, c->order++, what, node, other, thread, request};
	size_t i = c->n_heap++;

	if (c->n_heap > c->heap_room) {
		c->heap_room = c->heap_room ? c->heap_room * 2 : 256;
		c->heap = alloc_resize(c->heap, c->heap_room, sizeof(*c->heap));
	}
	for (; i && cluster_earlier(&ev, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = ev;
}

static inline struct cluster_event cluster_next(struct cluster *c)
{
	struct cluster_event top = c->heap[0], last = c->heap[--c->n_heap];
	size_t i = 0, k;

	for (; (k = 2 * i + 1) < c->n_heap; i = k) {
		if (k + 1 < c->n_heap && cluster_earlier(&c->heap[k + 1], &c->heap[k]))
			k++;
		if (!cluster_earlier(&c->heap[k], &last))
			break;
		c->heap[i] = c->heap[k];
	}
	c->heap[i] = last;
	return top;
}

/* ---- messages ---- */

static inline void cluster_be32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
}

static inline struct cluster_link *cluster_link_of(struct cluster *c, int client, int server)
{
	return &c->links[client * c->spec.servers + server - c->spec.clients];
}

/* Writes a message to a pipe by one or more calls; returns when the last one has returned. */
static inline int64_t cluster_send(struct cluster *c, int node, uint32_t tid,
	struct cluster_pipe *p, int fd, int request, bool answer, size_t bytes, int64_t at_ns)
{
	struct truth *t = &c->truth[request];
	struct truth_leg *leg = &t->legs[answer ? 2 : 0];
	uint8_t header[28] = {0};
	uint64_t done = 0, n;
	bool cut = cluster_chance(c, c->spec.cut_send_pct);

	cluster_be32(header, 0x80000000u | (uint32_t)(bytes - 4));
	cluster_be32(header + 4, t->id);
	cluster_be32(header + 8, answer);
	cluster_be32(header + 12, answer ? 0 : 2);
	cluster_be32(header + 16, answer ? 0 : 1298437);
	cluster_be32(header + 20, answer ? 0 : 400);
	cluster_be32(header + 24, answer ? 0 : t->procedure);
	for (uint64_t i = 0; i < bytes; i++)
		p->bytes[(p->sent + i) % CLUSTER_PIPE] = i < sizeof(header)
			? header[i]
			: (uint8_t)cluster_random(c);
	leg->begin_ns = cluster_clock(c, node, at_ns);
	leg->tid = tid;
	leg->lost = false;
	while (done < bytes) {
		struct cluster_record *r;
		int64_t end = at_ns + cluster_between(c, 2000, 20000);

		n = cut && bytes - done > 1
			? (uint64_t)cluster_between(c, 1, (int64_t)(bytes - done))
			: bytes - done;
		r = cluster_call(c, node, tid, "writev", fd, (int64_t)n, at_ns, end);
		r->positioned = true;
		r->position = p->isn + (uint32_t)(p->sent + n);
		r->head_size = (uint8_t)(c->spec.no_heads ? 0 : n < RECORD_HEAD ? n : RECORD_HEAD);
		for (int i = 0; i < r->head_size; i++)
			r->head[i] = p->bytes[(p->sent + (uint64_t)i) % CLUSTER_PIPE];
		if (!cluster_sees(c, node, end))
			leg->lost = true;
		if (c->spec.lose_pct_100 &&
			(int)(cluster_random(c) % 10000) < c->spec.lose_pct_100 && !leg->lost) {
			c->logs[node].n--;
			leg->lost = true;
			cluster_put(c, node, end, end)->type = RECORD_LOST;
		}
		p->sent += n;
		done += n;
		leg->end_ns = cluster_clock(c, node, end);
		at_ns = end + 500;
	}
	p->messages[p->n_messages++ % 4096] = (__typeof__(p->messages[0])){
		p->sent, request, answer};
	if (p->ready_ns < at_ns)
		p->ready_ns = at_ns;
	return at_ns;
}

/* Reads from a pipe at most to the end of one message. Returns the request whose message is whole
 * now, or -1; -2: there is nothing to read. */
static inline int cluster_receive(
	struct cluster *c, int node, uint32_t tid, struct cluster_pipe *p, int fd, int64_t *at_ns)
{
	uint64_t left, n;
	int64_t end = *at_ns + cluster_between(c, 1000, 5000);
	struct cluster_record *r;
	struct truth_leg *leg;
	int request, which;

	if (p->taken == p->sent || p->n_taken == p->n_messages)
		return -2;
	left = p->messages[p->n_taken % 4096].end - p->taken;
	request = p->messages[p->n_taken % 4096].request;
	which = p->messages[p->n_taken % 4096].answer ? 3 : 1;
	leg = &c->truth[request].legs[which];
	if (!leg->tid) {
		leg->begin_ns = cluster_clock(c, node, *at_ns);
		n = c->spec.cut == CUT_BY_MARK ? 4 : (uint64_t)cluster_between(c, 1, (int64_t)left);
	} else {
		n = c->spec.cut == CUT_BY_MARK || cluster_chance(c, 50)
			? left
			: (uint64_t)cluster_between(c, 1, (int64_t)left);
	}
	r = cluster_call(c, node, tid, "readv", fd, (int64_t)n, *at_ns, end);
	r->positioned = true;
	r->position = p->isn + (uint32_t)(p->taken + n);
	r->head_size = (uint8_t)(c->spec.no_heads ? 0 : n < RECORD_HEAD ? n : RECORD_HEAD);
	for (int i = 0; i < r->head_size; i++)
		r->head[i] = p->bytes[(p->taken + (uint64_t)i) % CLUSTER_PIPE];
	p->taken += n;
	leg->tid = tid;
	leg->lost = leg->lost || !cluster_sees(c, node, end);
	leg->end_ns = cluster_clock(c, node, end);
	*at_ns = end + 200;
	if (n < left)
		return -1;
	p->n_taken++;
	return request;
}

/* ---- actors ---- */

static inline uint32_t cluster_daemon_tid(int app)
{
	return 1000 + (uint32_t)app;
}

static inline int cluster_request_new(struct cluster *c, int client, int op)
{
	int server = c->spec.clients + (int)(cluster_random(c) % (uint64_t)c->spec.servers);
	struct cluster_link *l = cluster_link_of(c, client, server);
	struct truth *t;

	if (c->n_truth == c->truth_room) {
		c->truth_room = c->truth_room ? c->truth_room * 2 : 1024;
		c->truth = alloc_resize(c->truth, c->truth_room, sizeof(*c->truth));
		c->owner = alloc_resize(c->owner, c->truth_room, sizeof(*c->owner));
	}
	t = &c->truth[c->n_truth];
	memset(t, 0, sizeof(*t));
	t->id = c->spec.ids ? l->next_id++ % (uint32_t)c->spec.ids : l->next_id++;
	t->client = (uint32_t)client;
	t->server = (uint32_t)server;
	t->procedure = cluster_chance(c, 50) ? 12 : 13;
	t->unique = (uint64_t)c->ops[op].unique;
	t->call_ns = cluster_clock(c, client, c->ops[op].begin_ns);
	c->owner[c->n_truth] = op;
	return (int)c->n_truth++;
}

static inline size_t cluster_size(struct cluster *c)
{
	if (c->spec.alike)
		return 1100;
	return (size_t)cluster_between(c, 64, c->spec.bytes ? c->spec.bytes : 2000);
}

/* Sends a call from a thread of the client. */
static inline int64_t cluster_ask(
	struct cluster *c, int client, int op, uint32_t tid, int64_t at_ns)
{
	int request = cluster_request_new(c, client, op);
	int server = (int)c->truth[request].server;
	struct cluster_link *l = cluster_link_of(c, client, server);

	c->truth[request].bytes = (int)cluster_size(c);
	at_ns = cluster_send(c, client, tid, &l->to_server, l->fd, request, false,
		(size_t)c->truth[request].bytes, at_ns);
	c->ops[op].open++;
	cluster_at(c, at_ns + cluster_between(c, 50000, 300000), DO_SERVE, server, client, 0, 0);
	return at_ns;
}

static inline void cluster_fuse_record(
	struct cluster *c, int client, int app, uint64_t unique, bool ended, int64_t at_ns)
{
	struct cluster_record *r = cluster_put(c, client, at_ns, at_ns);

	r->type = RECORD_FUSE;
	r->tid = 5000 + (uint32_t)app;
	r->unique = unique;
	r->opcode = FUSE_WRITE;
	r->ended = ended;
	if (!cluster_sees(c, client, at_ns))
		c->logs[client].n--;
}

static inline void cluster_poll(struct cluster *c, int node, uint32_t tid, int64_t at_ns)
{
	cluster_call(c, node, tid, "epoll_wait", 4, 1, at_ns - 100, at_ns);
}

/* An application's call: through FUSE to the daemon, which sends requests. */
static inline void cluster_do_op(struct cluster *c, int client, int app, int64_t at_ns)
{
	int op = client * c->spec.apps + app;
	struct cluster_op *o = &c->ops[op];
	struct fuse_in_header in = {.len = 4096, .opcode = FUSE_WRITE};
	struct cluster_record *r;
	int n = (int)cluster_between(c, 1, c->spec.fan ? c->spec.fan : 1);

	if (!o->left--)
		return;
	if (c->spec.alone && at_ns < c->event_free[client])
		at_ns = c->event_free[client];
	o->begin_ns = at_ns;
	o->unique = (int)(c->next_unique += 2);
	o->chained = cluster_chance(c, c->spec.chain_pct);
	o->open = 0;
	cluster_fuse_record(c, client, app, (uint64_t)o->unique, false, at_ns + 2000);
	at_ns += 10000;
	o->sender = cluster_daemon_tid(c->spec.alone ? 0 : app);
	r = cluster_call(c, client, o->sender, "read", 3, 4096, at_ns - 9000, at_ns);
	in.unique = (uint64_t)o->unique;
	r->head_size = RECORD_HEAD;
	memcpy(r->head, &in, RECORD_HEAD);
	at_ns += 3000;
	if (c->spec.queued)
		o->sender = 801;
	if (c->spec.queued || c->spec.alone)
		cluster_poll(c, client, o->sender, at_ns);
	while (n--)
		at_ns = cluster_ask(c, client, op, o->sender, at_ns) + 1000;
	if (c->spec.alone)
		c->event_free[client] = at_ns;
}

/* The server's event thread takes what has come from a client. */
static inline void cluster_serve(struct cluster *c, int server, int client, int64_t at_ns)
{
	struct cluster_link *l = cluster_link_of(c, client, server);
	int request;

	if (at_ns < c->event_free[server])
		at_ns = c->event_free[server];
	for (;;) {
		if (l->to_server.ready_ns > at_ns && l->to_server.taken != l->to_server.sent)
			at_ns = l->to_server.ready_ns;
		request = cluster_receive(
			c, server, 900, &l->to_server, CLUSTER_FD + client, &at_ns);
		if (request == -2)
			break;
		if (request >= 0)
			cluster_at(c, at_ns + 1000, DO_IO, server, client, 0, request);
	}
	c->event_free[server] = at_ns;
}

/* An io-thread: disk calls, then the answer. */
static inline void cluster_io(struct cluster *c, int server, int client, int request, int64_t at_ns)
{
	const bool sized = c->spec.helpers || c->spec.full_pct;
	int thread = 0, n = sized ? 1 : (int)cluster_between(c, 0, 2);
	struct truth *t = &c->truth[request];

	for (int i = 1; i < c->spec.io_threads; i++)
		if (c->io_free[server][i] < c->io_free[server][thread])
			thread = i;
	if (c->io_free[server][thread] > at_ns) {
		cluster_at(c, at_ns + 200000, DO_IO, server, client, 0, request);
		return;
	}
	for (int i = 0; i < n; i++) {
		int64_t end = at_ns + cluster_between(c, 50000, 5000000);
		uint32_t tid = (c->spec.helpers ? 950u : 910u) + (uint32_t)thread;
		int64_t bytes = sized && t->bytes > 100 ? t->bytes - 64 : 4096;
		struct cluster_record *r = cluster_call(
			c, server, tid, "pwrite64", CLUSTER_FILE, bytes, at_ns, end);

		r->offset = cluster_between(c, 0, 1 << 30);
		if (cluster_sees(c, server, end)) {
			t->disk_ns[t->n_disks++] = cluster_clock(c, server, at_ns);
			c->disk_calls++;
		}
		at_ns = end + 1000;
	}
	c->io_free[server][thread] = INT64_MAX; /* until it has answered */
	cluster_at(c, at_ns, DO_SEND, server, client, thread, request);
}

static inline void cluster_answer(
	struct cluster *c, int server, int client, int thread, int request, int64_t at_ns)
{
	struct cluster_link *l = cluster_link_of(c, client, server);

	if (thread >= 0 && c->spec.full_pct && cluster_chance(c, c->spec.full_pct)) {
		c->io_free[server][thread] = at_ns + 1000;
		thread = -1;
		at_ns += cluster_between(c, 1000, 3000000);
	}
	if (thread < 0 && at_ns < c->event_free[server]) {
		cluster_at(c, c->event_free[server], DO_SEND, server, client, -1, request);
		return;
	}
	at_ns = cluster_send(c, server, thread < 0 ? 900 : 910 + (uint32_t)thread, &l->to_client,
		CLUSTER_FD + client, request, true, cluster_size(c), at_ns);
	*(thread < 0 ? &c->event_free[server] : &c->io_free[server][thread]) = at_ns;
	cluster_at(c, at_ns + cluster_between(c, 50000, 300000), DO_RETURN, client, server, 0, 0);
}

/* The client's event thread takes answers; the last one of an operation ends it. */
static inline void cluster_return(struct cluster *c, int client, int server, int64_t at_ns)
{
	struct cluster_link *l = cluster_link_of(c, client, server);
	const uint32_t tid = c->spec.alone ? cluster_daemon_tid(0) : 800;
	int request, op;
	struct cluster_op *o;

	if (at_ns < c->event_free[client])
		at_ns = c->event_free[client];
	cluster_poll(c, client, tid, at_ns);
	for (;;) {
		if (l->to_client.ready_ns > at_ns && l->to_client.taken != l->to_client.sent)
			at_ns = l->to_client.ready_ns;
		request = cluster_receive(c, client, tid, &l->to_client, l->fd, &at_ns);
		if (request == -2)
			break;
		if (request < 0)
			continue;
		op = c->owner[request];
		o = &c->ops[op];
		if (o->chained) {
			o->chained = false;
			at_ns = cluster_ask(c, client, op, tid, at_ns + 1000);
		}
		if (--o->open)
			continue;
		struct cluster_record *r = cluster_call(
			c, client, tid, "writev", 3, 16, at_ns, at_ns + 2000);
		struct fuse_out_header out = {.len = 16, .unique = (uint64_t)o->unique};
		int app = op % c->spec.apps;

		r->head_size = sizeof(out);
		memcpy(r->head, &out, sizeof(out));
		cluster_fuse_record(c, client, app, (uint64_t)o->unique, true, at_ns + 1500);
		at_ns += 2500;
		cluster_call(c, client, 5000 + (uint32_t)app, "pwrite64", 300, 4096, o->begin_ns,
			at_ns + 3000);
		cluster_at(c, at_ns + cluster_between(c, 10000, 1000000), DO_OP, client, 0, app, 0);
	}
	c->event_free[client] = at_ns;
}

static inline void cluster_connect(struct cluster *c, int client, int server, int64_t at_ns)
{
	struct cluster_link *l = cluster_link_of(c, client, server);

	for (int k = 0; k < 2; k++) {
		struct cluster_pipe *p = k ? &l->to_client : &l->to_server;
		uint8_t *bytes = p->bytes ? p->bytes : malloc(CLUSTER_PIPE);

		memset(p, 0, sizeof(*p));
		p->bytes = bytes;
		p->isn = cluster_chance(c, 50) ? 0u - (uint32_t)cluster_between(c, 0, 50000)
					       : (uint32_t)cluster_random(c);
	}
	cluster_socket(c, client, server, l->port, false, l->fd, true, at_ns);
	cluster_socket(c, server, client, l->port, true, CLUSTER_FD + client, true, at_ns);
}

static inline bool cluster_is_done(const struct cluster *c)
{
	for (int i = 0; i < c->spec.clients * c->spec.apps; i++)
		if (c->ops[i].left > 0)
			return false;
	return true;
}

/* Only a link without anything under way is made anew. */
static inline void cluster_reconnect(struct cluster *c, int client, int server, int64_t at_ns)
{
	struct cluster_link *l = cluster_link_of(c, client, server);
	bool busy = false;

	for (int i = 0; i < c->spec.apps; i++)
		busy |= c->ops[client * c->spec.apps + i].open > 0;
	if (!busy && at_ns > c->event_free[client] && at_ns > c->event_free[server] &&
		l->to_server.taken == l->to_server.sent &&
		l->to_client.taken == l->to_client.sent) {
		cluster_socket(c, client, server, l->port, false, l->fd, false, at_ns);
		cluster_socket(c, server, client, l->port, true, CLUSTER_FD + client, false, at_ns);
		cluster_connect(c, client, server, at_ns);
	}
	if (!cluster_is_done(c))
		cluster_at(c, at_ns + cluster_between(c, 100000, 20000000), DO_RECONNECT, client,
			server, 0, 0);
}

static inline int cluster_by_end(const void *a, const void *b)
{
	const struct cluster_record *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static inline void cluster_sort(struct cluster_log *l)
{
	qsort(l->records, l->n, sizeof(*l->records), cluster_by_end);
}

static inline void cluster_run(struct cluster *c)
{
	struct cluster_event e;

	while (c->n_heap) {
		e = cluster_next(c);
		switch (e.what) {
		case DO_OP: cluster_do_op(c, e.node, e.thread, e.at_ns); break;
		case DO_SERVE: cluster_serve(c, e.node, e.other, e.at_ns); break;
		case DO_IO: cluster_io(c, e.node, e.other, e.request, e.at_ns); break;
		case DO_SEND:
			cluster_answer(c, e.node, e.other, e.thread, e.request, e.at_ns);
			break;
		case DO_RETURN: cluster_return(c, e.node, e.other, e.at_ns); break;
		case DO_RECONNECT: cluster_reconnect(c, e.node, e.other, e.at_ns); break;
		default: break;
		}
	}
}

static inline void cluster_make(struct cluster *c, const struct cluster_spec *spec)
{
	memset(c, 0, sizeof(*c));
	c->spec = *spec;
	c->random = spec->seed;
	c->n_nodes = spec->clients + spec->servers;
	c->links = alloc_zero((size_t)(spec->clients * spec->servers), sizeof(*c->links));
	c->ops = alloc_zero((size_t)(spec->clients * spec->apps), sizeof(*c->ops));
	for (int i = 0; i < c->n_nodes; i++) {
		c->offset_ns[i] = cluster_between(
			c, (int64_t)(-spec->offset_s * 1e9), (int64_t)(spec->offset_s * 1e9));
		c->drift[i] = (double)cluster_between(c, -1000, 1000) * 1e-9 * spec->drift_ppm;
		cluster_file(c, i, i < spec->clients ? 3 : CLUSTER_FILE,
			i < spec->clients ? FD_DEVICE : FD_FILE);
	}
	for (int i = 0; i < spec->clients; i++)
		for (int s = spec->clients; s < c->n_nodes; s++) {
			struct cluster_link *l = cluster_link_of(c, i, s);

			l->port = (uint16_t)(40000 + s);
			l->fd = CLUSTER_FD + s;
			l->next_id = spec->ids ? 0 : (uint32_t)cluster_random(c);
			cluster_connect(c, i, s, 1000);
			if (spec->reconnect_pct)
				cluster_at(c, 5000000, DO_RECONNECT, i, s, 0, 0);
		}
	for (int i = 0; i < spec->clients; i++)
		for (int a = 0; a < spec->apps; a++) {
			c->ops[i * spec->apps + a].left = spec->ops;
			cluster_at(c, cluster_between(c, 10000, 1000000) + a * 20000000ll, DO_OP, i,
				0, a, 0); /* a connection's first call is one thread's alone */
		}
	cluster_run(c);
	for (int i = 0; i < c->n_nodes; i++)
		cluster_sort(&c->logs[i]);
}

static inline void cluster_clear(struct cluster *c)
{
	for (int i = 0; i < c->n_nodes; i++)
		free(c->logs[i].records);
	for (int i = 0; i < c->spec.clients * c->spec.servers; i++) {
		free(c->links[i].to_server.bytes);
		free(c->links[i].to_client.bytes);
	}
	free(c->links);
	free(c->ops);
	free(c->heap);
	free(c->truth);
	free(c->owner);
}

/* ---- logs as streams ---- */

static inline void cluster_address(struct sockaddr_storage *out, int node, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(0x0a000001u + (unsigned)node);
}

static inline void cluster_fd_record(const struct cluster_record *r, struct record *out)
{
	struct record_fd *f = &out->fd;

	memset(f, 0, sizeof(*f));
	f->start_ns = r->start_ns;
	f->pid = r->pid;
	f->fd = r->fd;
	f->open = r->open;
	f->kind = (enum fd_kind)r->kind;
	f->path = r->kind == FD_DEVICE ? "/dev/fuse" : r->kind == FD_FILE ? "/srv/f" : "socket:[1]";
	f->sock_type = SOCK_STREAM;
	if (r->kind != FD_SOCKET)
		return;
	cluster_address(&f->local, r->local, r->local_port);
	cluster_address(&f->remote, r->remote, r->remote_port);
}

static inline int cluster_log_next(void *ctx, const struct record **out, struct err *e)
{
	struct cluster_log *l = ctx;
	const struct cluster_record *r = &l->records[l->at];
	struct record *now = &l->now;

	(void)e;
	if (l->at == l->n)
		return 0;
	l->at++;
	now->type = (enum record_type)r->type;
	now->number = ++l->number;
	*out = now;
	if (r->type == RECORD_FD) {
		cluster_fd_record(r, now);
	} else if (r->type == RECORD_FUSE) {
		now->fuse = (struct record_fuse){.start_ns = r->start_ns,
			.pid = r->tid,
			.tid = r->tid,
			.unique = r->unique,
			.device = 50,
			.opcode = r->opcode,
			.ended = r->ended};
	} else if (r->type == RECORD_LOST) {
		now->lost = (struct record_lost){.start_ns = r->start_ns, .count = 1};
	} else {
		now->call = (struct record_call){.seq = l->number,
			.start_ns = r->start_ns,
			.service_ns = r->end_ns - r->start_ns,
			.pid = r->pid,
			.tid = r->tid,
			.nr = r->nr,
			.args = {(uint64_t)r->fd},
			.result = r->result,
			.offset = r->offset,
			.positioned = r->positioned,
			.position = r->position,
			.head_size = r->head_size,
			.head = r->head_size ? r->head : NULL};
	}
	return 1;
}

static inline struct stream *cluster_stream(struct cluster *c, int node)
{
	struct stream_source source = {cluster_log_next, &c->logs[node]};
	struct log_head head = {.version = 5, .arch = "x86_64"};
	static const struct stream_server servers[CLUSTER_NODES];
	struct stream_spec spec = {.servers = servers, .n_servers = CLUSTER_NODES, .index = node};
	struct stream *s;
	struct err e;

	c->logs[node].at = 0;
	c->logs[node].number = 0;
	spec.owner = node < c->spec.clients ? OWNER_DAEMON : OWNER_SERVER;
	if (stream_over(&source, &head, &spec, &s, &e))
		abort();
	return s;
}

#endif
