/* Adds up service times, messages, sums and readings by second and server. */
#include "diag/derive/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diag/derive/message.h"
#include "diag/record/describe.h"
#include "harness/base/alloc.h"

/* One second of one metric and server. */
struct bin {
	uint64_t count, bytes;
	double sum_s, max_s;
};

/* A connection, by object.id. */
struct connection {
	struct message msg;
	uint64_t first; /* number of its first record */
	uint32_t server;
};

struct metrics {
	size_t n_servers;
	int64_t start_ns;
	int32_t seconds;
	struct bulk_rule bulk;
	void (*on_message)(void *ctx, const struct message *one); /* or NULL */
	void *on_message_ctx;
	struct bin **rows;      /* [metric][server] -> [second]; NULL: no sample */
	struct sample *samples; /* room for all samples in 'rows' */
	size_t n_rows, n_used;

	/* Of the current log. */
	const struct stream *stream;
	int32_t self; /* index of the server whose log it is, or -1 */
	int64_t offset_ns;
	struct bin **log_rows; /* like 'rows', of service times from calls or from sums */
	bool sums;             /* the log has sums, so its calls do not count */
	struct connection *connections;
	size_t n_connections;
};

int metrics_new(
	size_t n_servers, int64_t start_ns, int32_t seconds, struct metrics **out, struct err *e)
{
	struct metrics *m;

	if (!n_servers || seconds <= 0)
		return err_set(e, -EINVAL,
			"metrics need at least one server and one second, not %zu and %d",
			n_servers, seconds);
	m = alloc_zero(1, sizeof(*m));
	m->n_servers = n_servers;
	m->start_ns = start_ns;
	m->seconds = seconds;
	m->n_rows = METRIC_COUNT * n_servers;
	m->rows = alloc_zero(m->n_rows, sizeof(*m->rows));
	m->log_rows = alloc_zero(METRIC_SERVICE_TIMES * n_servers, sizeof(*m->log_rows));
	*out = m;
	return 0;
}

void metrics_bulk(struct metrics *m, const struct bulk_rule *rule)
{
	m->bulk = *rule;
}

void metrics_tell(struct metrics *m, void (*fn)(void *ctx, const struct message *one), void *ctx)
{
	m->on_message = fn;
	m->on_message_ctx = ctx;
}

static void clear_rows(struct bin **rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rows[i]);
		rows[i] = NULL;
	}
}

static void forget_log(void *ctx)
{
	struct metrics *m = ctx;

	clear_rows(m->log_rows, METRIC_SERVICE_TIMES * m->n_servers);
	free(m->connections);
	m->connections = NULL;
	m->n_connections = 0;
	m->stream = NULL;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	forget_log(m);
	clear_rows(m->rows, m->n_rows);
	free(m->rows);
	free(m->log_rows);
	free(m->samples);
	free(m);
}

/* The second that contains 'ns' of the node's clock; -1: outside the run. */
static int64_t second_of(const struct metrics *m, int64_t ns)
{
	int64_t since = ns - m->offset_ns - m->start_ns;

	return since < 0 || since / 1000000000 >= m->seconds ? -1 : since / 1000000000;
}

/* The bin of that second; NULL: outside the run. */
static struct bin *log_bin(struct metrics *m, enum metric metric, uint32_t server, int64_t ns)
{
	int64_t second = second_of(m, ns);
	struct bin **row = &m->log_rows[(size_t)metric * m->n_servers + server];

	if (second < 0)
		return NULL;
	if (!*row)
		*row = alloc_zero((size_t)m->seconds, sizeof(**row));
	return *row + second;
}

static void metrics_add(struct metrics *m, enum metric metric, uint32_t server, int64_t end_ns,
	int64_t took_ns, uint64_t bytes)
{
	struct bin *b = log_bin(m, metric, server, end_ns);
	double took_s = (double)took_ns / 1e9;

	if (!b)
		return;
	b->count++;
	b->bytes += bytes;
	b->sum_s += took_s;
	if (took_s > b->max_s)
		b->max_s = took_s;
}

static void add_sum(struct metrics *m, const struct record_sum *s, struct object o)
{
	const bool service = s->messages && s->fd_class == FD_CLASS_SERVER;
	const bool peer = s->messages && s->fd_class == FD_CLASS_CLIENT && m->self < 0;
	enum metric metric;
	struct bin *b;

	if (!m->sums)
		clear_rows(m->log_rows, METRIC_SERVICE_TIMES * m->n_servers);
	m->sums = true;
	if (o.kind == OBJECT_SERVICE && service)
		metric = s->bulk ? METRIC_NSBULK : METRIC_NSREAD;
	else if (o.kind == OBJECT_PEER && peer)
		metric = s->bulk ? METRIC_NCBULK : METRIC_NCREAD;
	else if (o.kind == OBJECT_STORAGE_FILE && !s->messages && s->class == CALL_READ)
		metric = METRIC_DREAD;
	else if (o.kind == OBJECT_STORAGE_FILE && !s->messages && s->class == CALL_WRITE)
		metric = METRIC_DWRITE;
	else
		return;
	/* Half a second later lies in the second of the run that overlaps most with the node's
	 * second. */
	b = s->count > s->failed ? log_bin(m, metric, o.server, s->start_ns + 500000000) : NULL;
	if (!b)
		return;
	b->count += s->count - s->failed;
	b->bytes += s->bytes;
	b->sum_s += s->total_ns > s->failed_ns ? (double)(s->total_ns - s->failed_ns) / 1e9 : 0;
	b->max_s = fmax(b->max_s, (double)s->max_ns / 1e9);
}

/* The bins of a server's metric, one for each second, and room for their samples. */
static struct bin *row_at(struct metrics *m, size_t at)
{
	if (m->rows[at])
		return m->rows[at];
	m->samples = alloc_resize(
		m->samples, ++m->n_used * (size_t)m->seconds, sizeof(*m->samples));
	return m->rows[at] = alloc_zero((size_t)m->seconds, sizeof(*m->rows[at]));
}

static void add_reading(struct metrics *m, const struct record_reading *r, struct object o)
{
	const int64_t second = second_of(m, r->start_ns + 500000000);
	const bool tcp = reading_is_tcp(r->what);
	double sum = r->sum, max = r->max;
	uint64_t count = r->count;
	uint32_t server = o.server;
	size_t metric = METRIC_SERVICE_TIMES + r->what;
	struct bin *b;

	if (second < 0 || !r->count || record_reading_thing(r))
		return;
	if (m->self < 0 && o.kind == OBJECT_PEER)
		metric = METRIC_CLIENT_TCP_SENT + (r->what - READING_TCP_FIRST);
	else if (m->self >= 0 && !tcp)
		server = (uint32_t)m->self;
	else if (m->self < 0 || o.kind != OBJECT_SERVICE)
		return;
	if (tcp) { /* a peer counts as one, with any number of sockets */
		sum = max = reading_kind(r->what) == READING_LEVEL ? r->sum / r->count : r->sum;
		count = 1;
	}
	b = &row_at(m, metric * m->n_servers + server)[second];
	b->max_s = b->count && b->max_s > max ? b->max_s : max;
	b->count += count;
	b->sum_s += sum;
}

/* The message has ended; counts it if it is whole. */
static void end_message(struct metrics *m, struct connection *c, bool whole)
{
	const enum message_kind kind = message_kind(&c->msg, &m->bulk);
	enum metric metric = m->self < 0 ? METRIC_NCREAD : METRIC_NSREAD;

	if (kind == MESSAGE_BULK)
		metric = m->self < 0 ? METRIC_NCBULK : METRIC_NSBULK;
	if (whole && m->on_message)
		m->on_message(m->on_message_ctx, &c->msg);
	if (whole && kind != MESSAGE_HEADER)
		metrics_add(m, metric, c->server, c->msg.end_ns, c->msg.end_ns - c->msg.start_ns,
			c->msg.bytes);
	c->msg = (struct message){0};
}

/* The log ends without another read. */
static void finish_message(struct metrics *m, struct connection *c)
{
	end_message(m, c, message_is_whole(&c->msg, m->stream, 0, 0));
}

static struct connection *connection_of(struct metrics *m, const struct object *o)
{
	struct connection *c;
	size_t n = m->n_connections;

	if (o->id >= n) {
		m->n_connections = o->id + 64;
		m->connections = alloc_resize(
			m->connections, m->n_connections, sizeof(*m->connections));
		for (; n < m->n_connections; n++)
			m->connections[n] = (struct connection){0};
	}
	c = &m->connections[o->id];
	c->server = o->server;
	return c;
}

static void socket_call(struct metrics *m, const struct record *rec, const struct call_info *info,
	const struct object *o)
{
	const struct record_call *c = &rec->call;
	const enum call_class class = info->class;
	struct connection *con = connection_of(m, o);
	uint64_t asked;

	if (!con->first)
		con->first = rec->number;
	if (class == CALL_WRITE)
		con->msg.answered |= c->tid == con->msg.tid;
	if (class == CALL_WRITE || call_peeks(info, c))
		return;
	asked = message_asked(info, c);
	if (message_is_whole(&con->msg, m->stream, c->tid, asked))
		end_message(m, con, true);
	if (c->result > 0)
		message_read(&con->msg, rec, asked);
	else if (c->result == -EAGAIN && message_nothing(&con->msg, asked))
		end_message(m, con, true);
	else if (c->result != -EAGAIN && c->result != -EINTR)
		end_message(m, con, false); /* end of stream or an error inside a message */
}

static bool is_measured(const struct metrics *m, const struct object *o)
{
	return o->kind == (m->self < 0 ? OBJECT_PEER : OBJECT_SERVICE);
}

static void metrics_add_call(struct metrics *m, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const enum call_class class = item->call->class;
	const struct fd_state *f = c->unfinished || m->sums ? NULL : item_fd(item);

	if (!f)
		return;
	if (f->object.kind == OBJECT_STORAGE_FILE && c->result >= 0)
		metrics_add(m, class == CALL_READ ? METRIC_DREAD : METRIC_DWRITE, f->object.server,
			c->start_ns + c->service_ns, c->service_ns, (uint64_t)c->result);
	else if (is_measured(m, &f->object))
		socket_call(m, item->record, item->call, &f->object);
}

static void end_connection(void *ctx, const struct fd_state *f)
{
	struct metrics *m = ctx;
	uint32_t id = f->object.id;

	if (!is_measured(m, &f->object) || id >= m->n_connections)
		return;
	finish_message(m, &m->connections[id]);
	m->connections[id] = (struct connection){0};
}

static int metrics_feed(void *ctx, struct stream_item *item, struct err *e)
{
	struct metrics *m = ctx;
	const struct record *rec = item->record;

	(void)e;
	switch (rec->type) {
	case RECORD_CALL: metrics_add_call(m, item); break;
	case RECORD_FD:
	case RECORD_PROCESS: item_each_ending(item, end_connection, m); break;
	case RECORD_SUM: add_sum(m, &rec->sum, item_object(item)); break;
	case RECORD_READING: add_reading(m, &rec->reading, item_object(item)); break;
	default: break;
	}
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct connection *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* The log is complete: adds its rows to the totals. */
static int take_log(void *ctx, struct err *e)
{
	struct metrics *m = ctx;

	(void)e;
	/* Sums are rounded as they are added, so the order must not depend on descriptors. */
	if (m->n_connections)
		qsort(m->connections, m->n_connections, sizeof(*m->connections), by_first);
	for (size_t i = 0; i < m->n_connections && !m->sums; i++)
		finish_message(m, &m->connections[i]);
	for (size_t i = 0; i < METRIC_SERVICE_TIMES * m->n_servers; i++) {
		const struct bin *from = m->log_rows[i];
		struct bin *to = from ? row_at(m, i) : NULL;

		for (int32_t second = 0; to && second < m->seconds; second++) {
			to[second].count += from[second].count;
			to[second].bytes += from[second].bytes;
			to[second].sum_s += from[second].sum_s;
			to[second].max_s = fmax(to[second].max_s, from[second].max_s);
		}
	}
	return 0;
}

int metrics_attach(struct metrics *m, struct stream *s, struct err *e)
{
	static const struct stream_consumer consumer = {.feed = metrics_feed,
		.finish = take_log,
		.free = forget_log,
		.classes = 1 << CALL_READ | 1 << CALL_WRITE};
	const struct stream_spec *spec = stream_spec(s);
	const char *arch = stream_head(s)->arch;

	if (!stream_arch(s))
		return err_set(e, -EINVAL, "the log's architecture '%s' is not supported", arch);
	m->stream = s;
	m->self = spec->owner == OWNER_SERVER ? spec->index : -1;
	m->offset_ns = spec->clock_offset_ns;
	m->sums = false;
	stream_add(s, &consumer, m);
	return 0;
}

/* Decimal billionths need a third of the space of binary fractions in a store. */
static double rounded(double v)
{
	return fabs(v) < 9e6 ? nearbyint(v * 1e9) / 1e9 : v;
}

size_t metrics_samples(struct metrics *m, const struct sample **out)
{
	size_t k = 0;

	for (size_t i = 0; i < m->n_rows; i++) {
		bool reading = i / m->n_servers >= METRIC_SERVICE_TIMES;

		for (int32_t second = 0; m->rows[i] && second < m->seconds; second++) {
			const struct bin *b = &m->rows[i][second];

			if (!b->count)
				continue;
			m->samples[k++] = (struct sample){
				.metric = (enum metric)(i / m->n_servers),
				.server = (uint32_t)(i % m->n_servers),
				.second = second,
				.count = b->count,
				.bytes = b->bytes,
				.sum_s = reading ? rounded(b->sum_s) : b->sum_s,
				.max_s = reading ? rounded(b->max_s) : b->max_s,
			};
		}
	}
	*out = m->samples;
	return k;
}
