/* Makes an application trace from causal logs: calls, computing and edges. */
#include "diag/causal/causal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "diag/causal/membership.h"
#include "diag/causal/clock.h"
#include "harness/base/sha256.h"

/* Limit of queued events. Above it, the oldest continue without the messages they wait for. */
enum { QUEUE_LIMIT = 1 << 22 };

/* Bytes sent but not received yet, with the knowledge of their sender. */
struct parcel {
	uint64_t from, to;
	struct frontier *knows;
	struct parcel *next;
};

struct channel {
	uint64_t sent, received; /* totals of the counting pass */
	uint64_t published;      /* so far in this pass */
	struct parcel *first, *last;
	uint32_t waiting; /* number + 1 of the first thread that waits here; 0: none */
};

struct queued {
	struct causal_event ev;
	struct queued *next;
};

struct thread {
	struct clock clock;
	struct queued *first, *last; /* its later events while it waits */
	uint32_t next_waiting;       /* at the same channel */
	bool waiting;
	uint32_t app; /* number in the trace, or CLOCK_NO_THREAD */
	uint32_t process;
};

struct maker {
	struct decode_input in;
	const uint32_t *from; /* process that had the launcher's child started (membership.h) */
	struct app_writer *out;
	struct channel *channels;
	struct thread *threads;
	uint32_t n_channels, n_threads;
	uint32_t *ready; /* threads that may continue */
	uint32_t n_ready;
	uint64_t n_queued;
	struct causal_counts *counts;
	bool *shares, *linked; /* by process: shares memory; has an edge from or to another */
	uint32_t *by_app;      /* process of each thread of the trace */
	struct app_edge edges[APP_EDGES];
};

/* The counting pass: decode_run itself adds up the channels. */
static int causal_count(void *ctx, const struct causal_event *ev, struct err *e)
{
	(void)ctx;
	(void)ev;
	(void)e;
	return 0;
}

static void parcel_drop(struct channel *c)
{
	struct parcel *p = c->first;

	c->first = p->next;
	if (!c->first)
		c->last = NULL;
	frontier_drop(p->knows);
	free(p);
}

static void make_ready(struct maker *m, uint32_t thread)
{
	m->ready = alloc_room(m->ready, m->n_ready, sizeof(*m->ready));
	m->threads[thread].waiting = false;
	m->ready[m->n_ready++] = thread;
}

static void send_event(struct maker *m, const struct causal_event *ev)
{
	struct channel *c = &m->channels[ev->channel];
	struct parcel *p;

	if (ev->to > c->published)
		c->published = ev->to;
	while (c->waiting) {
		uint32_t thread = c->waiting - 1;

		c->waiting = m->threads[thread].next_waiting;
		make_ready(m, thread);
	}
	if (ev->from >= c->received)
		return; /* no traced process reads it */
	p = alloc_zero(1, sizeof(*p));
	p->from = ev->from;
	p->to = ev->to;
	p->knows = clock_send(&m->threads[ev->thread].clock);
	if (c->last && c->last->knows == p->knows && c->last->to == p->from) {
		c->last->to = p->to;
		frontier_drop(p->knows);
		free(p);
		return;
	}
	if (c->last)
		c->last->next = p;
	else
		c->first = p;
	c->last = p;
}

static void receive_event(struct maker *m, const struct causal_event *ev)
{
	struct channel *c = &m->channels[ev->channel];
	struct clock *clock = &m->threads[ev->thread].clock;

	for (struct parcel *p = c->first; p && p->from < ev->to; p = p->next)
		if (p->to > ev->from)
			clock_receive(clock, p->knows);
	while (c->first && c->first->to <= ev->to)
		parcel_drop(c);
}

static int op_event(struct maker *m, const struct causal_event *ev, struct err *e)
{
	struct thread *t = &m->threads[ev->thread];
	const struct frontier *f = clock_waits(&t->clock);
	struct app_op op = ev->op;
	int rc;

	op.n_edges = f ? f->n : 0;
	if (op.n_edges > APP_EDGES)
		return err_set(e, -E2BIG, "a call waits for %u others; %d are the most", op.n_edges,
			APP_EDGES);
	for (uint32_t i = 0; i < op.n_edges; i++) {
		uint32_t other = m->by_app[f->entry[i].thread];

		m->edges[i] = (struct app_edge){f->entry[i].thread, f->entry[i].ops};
		if (other != t->process)
			m->linked[other] = m->linked[t->process] = true;
	}
	op.edges = m->edges;
	m->counts->edges += op.n_edges;
	m->counts->operations++;
	rc = app_put(m->out, t->app, &op, e);
	clock_complete(&t->clock);
	return rc;
}

/* Has everything been sent that the event receives? */
static bool may_go(const struct maker *m, const struct causal_event *ev)
{
	const struct channel *c = &m->channels[ev->channel];

	return ev->kind != EVENT_RECEIVE || c->published >= ev->to || c->published >= c->sent;
}

static int do_event(struct maker *m, const struct causal_event *ev, struct err *e)
{
	if (ev->kind == EVENT_OP)
		return op_event(m, ev, e);
	if (ev->kind == EVENT_SEND)
		send_event(m, ev);
	else
		receive_event(m, ev);
	return 0;
}

static void causal_wait_for(struct maker *m, uint32_t thread, uint32_t channel)
{
	struct thread *t = &m->threads[thread];

	t->waiting = true;
	t->next_waiting = m->channels[channel].waiting;
	m->channels[channel].waiting = thread + 1;
}

/* Replays the thread's queued events. 'force': also the first one, even if its message is
 * missing. */
static int run_queue(struct maker *m, uint32_t thread, bool force, struct err *e)
{
	struct thread *t = &m->threads[thread];
	struct queued *q;
	int rc = 0;

	while (!rc && (q = t->first)) {
		if (!force && !may_go(m, &q->ev)) {
			causal_wait_for(m, thread, q->ev.channel);
			break;
		}
		m->counts->forced += force && !may_go(m, &q->ev);
		force = false;
		t->first = q->next;
		if (!t->first)
			t->last = NULL;
		m->n_queued--;
		rc = do_event(m, &q->ev, e);
		free(q);
	}
	return rc;
}

static int run_queues(struct maker *m, struct err *e)
{
	int rc = 0;

	while (!rc && m->n_ready)
		rc = run_queue(m, m->ready[--m->n_ready], false, e);
	return rc;
}

/* Removes the thread from the waiting list of its channel. */
static void leave_channel(struct maker *m, uint32_t thread)
{
	uint32_t *link = &m->channels[m->threads[thread].first->ev.channel].waiting;

	while (*link && *link != thread + 1)
		link = &m->threads[*link - 1].next_waiting;
	if (*link)
		*link = m->threads[thread].next_waiting;
	m->threads[thread].waiting = false;
}

/* Forces every waiting thread past one missing message. */
static int force_all(struct maker *m, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < m->n_threads; i++)
		if (m->threads[i].waiting) {
			leave_channel(m, i);
			rc = run_queue(m, i, true, e);
			if (!rc)
				rc = run_queues(m, e);
		}
	return rc;
}

/* The last pass. */
static int make(void *ctx, const struct causal_event *ev, struct err *e)
{
	struct maker *m = ctx;
	struct thread *t;
	struct queued *q;
	int rc;

	if (ev->thread >= m->n_threads || (ev->kind != EVENT_OP && ev->channel >= m->n_channels))
		return err_set(e, -EBADMSG, "the log has changed while it was read");
	t = &m->threads[ev->thread];
	if (!t->first && may_go(m, ev)) {
		rc = do_event(m, ev, e);
		return rc ? rc : run_queues(m, e);
	}
	q = alloc_zero(1, sizeof(*q));
	q->ev = *ev;
	if (t->last)
		t->last->next = q;
	else
		t->first = q;
	t->last = q;
	m->n_queued++;
	if (t->first == q)
		causal_wait_for(m, ev->thread, ev->channel);
	return m->n_queued < QUEUE_LIMIT ? 0 : force_all(m, e);
}

static const struct decode *sorted_of;
static const uint32_t *sorted_from;

static int by_order(const void *x, const void *y)
{
	return membership_compare(
		sorted_of, sorted_from, *(const uint32_t *)x, *(const uint32_t *)y);
}

/* The node's name; "node0", "node1" ... if anonymised, "" if there is only one node. */
static const char *node_of(const struct decode *d, const struct decode_process *p,
	const struct causal_spec *spec, char text[APP_NAME])
{
	unsigned before = 0, nodes = 0;

	if (!spec->salt)
		return spec->logs[p->log].node;
	for (uint32_t i = 0; i < d->n_logs; i++) {
		nodes += d->logs[i].node == i;
		before += d->logs[i].node == i && i < d->logs[p->log].node;
	}
	if (nodes < 2)
		return "";
	snprintf(text, APP_NAME, "node%u", before);
	return text;
}

/* Adds ranks and their threads; '*rank_of' gets the rank of each process. */
static int add_ranks(
	struct maker *m, const struct decode *d, const struct causal_spec *spec, uint32_t *rank_of)
{
	uint32_t *order = alloc_zero(d->n_processes + 1, sizeof(*order)), n = 0;
	int rc = 0;

	for (uint32_t i = 0; i < d->n_processes; i++)
		if (d->processes[i]->ops)
			order[n++] = i;
	sorted_of = d;
	sorted_from = m->from;
	qsort(order, n, sizeof(*order), by_order);
	for (uint32_t r = 0; rc >= 0 && r < n; r++) {
		const struct decode_process *p = d->processes[order[r]];
		char node[APP_NAME];

		rank_of[order[r]] = r;
		m->counts->running += !p->ended;
		rc = app_add_rank(m->out, p->pid, p->name, node_of(d, p, spec, node));
		for (uint32_t i = 0; rc >= 0 && i < d->n_threads; i++)
			if (d->threads[i].ops && d->threads[i].process == order[r]) {
				rc = app_add_thread(m->out, r, d->threads[i].tid);
				m->threads[i].app = (uint32_t)rc;
				if (rc >= 0)
					m->by_app[rc] = order[r];
			}
	}
	/* The order is log by log, so each change of the node is a new node. */
	for (uint32_t r = 0; r < n; r++)
		m->counts->nodes += !r ||
			d->logs[d->processes[order[r]]->log].node !=
				d->logs[d->processes[order[r - 1]]->log].node;
	free(order);
	m->counts->ranks = n;
	return rc < 0 ? rc : 0;
}

/* Replaces each part of the path by 16 digits of its salted hash. */
static void hide(const char *path, const uint8_t *salt, char out[APP_PATH])
{
	uint8_t text[APP_SALT + 256], sum[SHA256_BYTES];
	size_t at = 0;

	memcpy(text, salt, APP_SALT);
	for (const char *part = path; *part && at + 18 < APP_PATH;) {
		size_t n = strcspn(part, "/"), used = n < 256 ? n : 256;

		memcpy(text + APP_SALT, part, used);
		sha256(text, APP_SALT + used, sum);
		if (at)
			out[at++] = '/';
		text_hex(sum, 8, out + at);
		at += 16;
		part += n + (part[n] == '/');
	}
	out[at] = '\0';
}

static int64_t size_now(const char *root, const char *path)
{
	char text[2 * APP_PATH];
	struct stat st;

	snprintf(text, sizeof(text), "%s/%s", root, path);
	return lstat(text, &st) ? -1 : S_ISREG(st.st_mode) ? st.st_size : 0;
}

static int add_tables(struct maker *m, const struct decode *d, const struct causal_spec *spec)
{
	uint32_t *rank_of = alloc_zero(d->n_processes + 1, sizeof(*rank_of));
	char hidden[APP_PATH];
	int rc = add_ranks(m, d, spec, rank_of);

	for (uint32_t i = 0; rc >= 0 && i < d->n_files; i++) {
		const char *path = d->files[i];
		int64_t before = spec->before ? spec->before(spec->ctx, path) : 0;

		if (spec->salt)
			hide(path, spec->salt, hidden);
		rc = app_add_file(m->out, spec->salt ? hidden : path, before,
			spec->after ? spec->after(spec->ctx, path)
				    : size_now(spec->logs[0].root, path),
			d->directories[i]);
	}
	for (uint32_t i = 0; rc >= 0 && i < d->n_handles; i++) {
		struct app_handle h = d->handles[i];

		h.rank = rank_of[h.rank];
		rc = app_add_handle(m->out, &h);
	}
	free(rank_of);
	return rc < 0 ? rc : 0;
}

static void causal_prepare(struct maker *m, const struct decode *d)
{
	m->n_threads = d->n_threads;
	m->n_channels = d->n_channels;
	m->threads = alloc_zero(d->n_threads + 1, sizeof(*m->threads));
	m->channels = alloc_zero(d->n_channels + 1, sizeof(*m->channels));
	m->linked = alloc_zero(d->n_processes + 1, sizeof(*m->linked));
	m->shares = alloc_zero(d->n_processes + 1, sizeof(*m->shares));
	m->by_app = alloc_zero(d->n_threads + 1, sizeof(*m->by_app));
	m->counts->shared_memory = decode_shares(d, m->shares);
	for (uint32_t i = 0; i < d->n_threads; i++) {
		m->threads[i].app = CLOCK_NO_THREAD;
		m->threads[i].process = d->threads[i].process;
	}
	for (uint32_t i = 0; i < d->n_channels; i++) {
		m->channels[i].sent = d->channels[i].sent;
		m->channels[i].received = d->channels[i].received;
	}
}

static void maker_clear(struct maker *m)
{
	for (uint32_t i = 0; i < m->n_threads; i++) {
		struct queued *q;

		clock_clear(&m->threads[i].clock);
		while ((q = m->threads[i].first)) {
			m->threads[i].first = q->next;
			free(q);
		}
	}
	for (uint32_t i = 0; i < m->n_channels; i++)
		while (m->channels[i].first)
			parcel_drop(&m->channels[i]);
	free(m->linked);
	free(m->shares);
	free(m->by_app);
	free(m->threads);
	free(m->channels);
	free(m->ready);
}

static int last_pass(struct maker *m, struct err *e)
{
	struct decode d = {0};
	int rc;

	for (uint32_t i = 0; i < m->n_threads; i++)
		m->threads[i].clock.thread = m->threads[i].app;
	rc = decode_run(&d, &m->in, make, m, e);
	while (!rc && m->n_queued)
		rc = force_all(m, e);
	decode_clear(&d);
	return rc;
}

static int write_trace(struct maker *m, const char *out, const struct causal_spec *spec,
	const struct decode *d, struct err *e)
{
	struct app_about about = {
		.start_ns = d->start_ns,
		.wall_ns = (uint64_t)(d->end_ns - d->start_ns),
		.method = APP_BY_MESSAGES,
		.comment = spec->salt ? "" : spec->comment,
		.root = spec->salt ? "" : spec->logs[0].root,
		.kernel = spec->kernel,
		.anonymised = spec->salt,
		.not_captured = d->not_captured,
		.shared_memory = m->counts->shared_memory,
	};
	int rc = app_create(out, &m->out, e);

	if (rc)
		return rc;
	rc = add_tables(m, d, spec);
	if (rc)
		err_errno(e, rc, "cannot write the tables of '%s'", out);
	else
		rc = last_pass(m, e);
	if (!rc)
		return app_finish(m->out, &about, e);
	app_drop(m->out);
	return rc;
}

static int causal_check(const struct decode *d, const struct causal_spec *spec, struct err *e)
{
	if (d->lost)
		return err_set(e, -EIO,
			"the tracer lost %llu records: give it more --memory, or run with fewer "
			"processes",
			(unsigned long long)d->lost);
	for (uint32_t i = 0; i < d->n_processes; i++)
		if (d->processes[i]->ops)
			return 0;
	return err_set(e, -ENODATA,
		"the command made no call on a file below '%s': say where its "
		"files are by --root",
		spec->logs[0].root);
}

/* Finds out which processes belong to the application, if launchers are among the logs. */
static int find_own(struct maker *m, struct membership *b, struct err *e)
{
	struct decode d = {0};
	bool any = false;
	int rc;

	for (size_t i = 0; i < m->in.n_logs; i++)
		any |= m->in.logs[i].launcher;
	if (!any)
		return 0;
	membership_begin(b, &d);
	rc = decode_run(&d, &m->in, membership_event, b, e);
	membership_end(b);
	m->in.dropped = b->dropped;
	m->in.n_dropped = b->n;
	m->in.start_ns = d.start_ns;
	m->from = b->from;
	decode_clear(&d);
	return rc;
}

int causal_make(const char *out, const struct causal_spec *spec, struct causal_counts *counts,
	struct err *e)
{
	struct maker m = {.in = {.logs = spec->logs, .n_logs = spec->n_logs}, .counts = counts};
	struct membership b = {0};
	struct decode d = {0};
	int rc = find_own(&m, &b, e) ?: decode_run(&d, &m.in, causal_count, NULL, e);

	*counts = (struct causal_counts){.calls = d.calls,
		.messages = d.messages,
		.lost = d.lost,
		.not_captured = d.not_captured,
		.outside = {b.outside[0] ? b.outside[0]->node : NULL,
			b.outside[1] ? b.outside[1]->node : NULL}};
	if (!rc)
		rc = causal_check(&d, spec, e);
	if (!rc) {
		causal_prepare(&m, &d);
		m.in.start_ns = d.start_ns;
		rc = write_trace(&m, out, spec, &d, e);
		for (uint32_t i = 0; i < d.n_processes; i++) {
			counts->sharing += m.shares[i];
			counts->alone += m.shares[i] && !m.linked[i];
		}
		maker_clear(&m);
	}
	decode_clear(&d);
	free(b.dropped);
	free(b.from);
	return rc;
}
