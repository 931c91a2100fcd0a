#include "diag/derive/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/address.h"
#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "diag/derive/message.h"

/* What a descriptor is to us, in the low bits of fd_state.user; a message's index is above them. */
enum { USE_UNKNOWN, USE_NONE, USE_STORAGE, USE_SOCKET, USE_BITS = 2 };

enum { BLOCK = 256 }; /* messages per allocation */

/* What the reading loop needs of a call, looked up once a number. */
struct call_use {
	uint8_t class, fd;
	int8_t flags; /* index of the argument that may hold MSG_PEEK, or -1 */
};

enum { CALLS = 512 };

struct cell {
	uint64_t count, bytes;
	double sum_s, max_s;
};

struct socket_slot {
	struct message msg;
	uint32_t server;
	uint32_t next_free; /* index + 1, 0: none */
};

struct metrics {
	struct metrics_spec spec;
	struct metrics_server *servers;
	struct cell **rows;     /* [metric][server] -> [second]; NULL: no sample */
	struct sample *samples; /* room for all that the rows hold */
	size_t n_rows, n_used;

	/* Of the log that is being read. */
	struct cell **calls_rows,
		**sums_rows; /* as 'rows', of service times: from calls, from sums */
	bool sums, full;     /* full: no memory for some cell */
	struct fdtable *fds;
	struct pollers pollers;
	struct socket_slot **blocks;
	size_t n_blocks, n_slots;
	uint32_t free_slot; /* index + 1, 0: none */
	struct call_use calls[CALLS];
};

static int copy_servers(struct metrics *m, const struct metrics_spec *spec)
{
	m->servers = calloc(spec->n_servers, sizeof(*m->servers));
	if (!m->servers)
		return -ENOMEM;
	for (size_t i = 0; i < spec->n_servers; i++) {
		size_t n = strlen(spec->servers[i].storage ? spec->servers[i].storage : "");

		m->servers[i] = spec->servers[i];
		m->servers[i].name = NULL;
		while (n && spec->servers[i].storage[n - 1] == '/')
			n--;
		m->servers[i].storage = strndup(
			spec->servers[i].storage ? spec->servers[i].storage : "", n);
		if (!m->servers[i].storage)
			return -ENOMEM;
	}
	m->spec.servers = m->servers;
	return 0;
}

int metrics_new(const struct metrics_spec *spec, struct metrics **out, struct err *e)
{
	struct metrics *m;
	int rc;

	if (!spec->n_servers || spec->seconds <= 0)
		return err_set(e, -EINVAL,
			"metrics need at least one server and one second, not %zu and %d",
			spec->n_servers, spec->seconds);
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_errno(e, -ENOMEM, "cannot make metrics");
	m->spec = *spec;
	m->spec.servers = NULL;
	m->spec.self = -1;
	m->n_rows = METRIC_COUNT * spec->n_servers;
	m->rows = calloc(m->n_rows, sizeof(*m->rows));
	m->calls_rows = calloc(METRIC_SERVICE_TIMES * spec->n_servers, sizeof(*m->calls_rows));
	m->sums_rows = calloc(METRIC_SERVICE_TIMES * spec->n_servers, sizeof(*m->sums_rows));
	if (!m->rows || !m->calls_rows || !m->sums_rows || copy_servers(m, spec)) {
		rc = err_errno(e, -ENOMEM, "cannot make metrics of %zu servers", spec->n_servers);
		goto out;
	}
	rc = metrics_node(m, spec->self, spec->clock_offset_ns, e);
	if (rc)
		goto out;
	*out = m;
	m = NULL;
out:
	metrics_free(m);
	return rc;
}

int metrics_node(struct metrics *m, int32_t self, int64_t clock_offset_ns, struct err *e)
{
	if (self < -1 || self >= (int32_t)m->spec.n_servers)
		return err_set(
			e, -EINVAL, "there is no server %d among %zu", self, m->spec.n_servers);
	m->spec.self = self;
	m->spec.clock_offset_ns = clock_offset_ns;
	return 0;
}

static void forget_rows(struct cell **rows, size_t n)
{
	for (size_t i = 0; rows && i < n; i++) {
		free(rows[i]);
		rows[i] = NULL;
	}
}

static void forget_log(struct metrics *m)
{
	fdtable_free(m->fds);
	m->fds = NULL;
	pollers_clear(&m->pollers);
	for (size_t i = 0; i < m->n_blocks; i++)
		free(m->blocks[i]);
	free(m->blocks);
	m->blocks = NULL;
	m->n_blocks = m->n_slots = 0;
	m->free_slot = 0;
	m->sums = false;
	m->full = false;
	forget_rows(m->calls_rows, METRIC_SERVICE_TIMES * m->spec.n_servers);
	forget_rows(m->sums_rows, METRIC_SERVICE_TIMES * m->spec.n_servers);
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	forget_log(m);
	for (size_t i = 0; m->servers && i < m->spec.n_servers; i++)
		free((char *)m->servers[i].storage);
	free(m->servers);
	forget_rows(m->rows, m->n_rows);
	free(m->rows);
	free(m->calls_rows);
	free(m->sums_rows);
	free(m->samples);
	free(m);
}

static struct cell *cell_at(
	struct metrics *m, struct cell **rows, enum metric metric, uint32_t server, int32_t second)
{
	struct cell **row = &rows[(size_t)metric * m->spec.n_servers + server];

	if (!*row)
		*row = calloc((size_t)m->spec.seconds, sizeof(**row));
	m->full = m->full || !*row;
	return *row ? *row + second : NULL;
}

static void add(struct metrics *m, enum metric metric, uint32_t server, int64_t end_ns,
	int64_t took_ns, uint64_t bytes)
{
	int64_t since = end_ns - m->spec.clock_offset_ns - m->spec.start_ns;
	double took_s = (double)took_ns / 1e9;
	struct cell *c;

	if (since < 0 || since / 1000000000 >= m->spec.seconds)
		return;
	c = cell_at(m, m->calls_rows, metric, server, (int32_t)(since / 1000000000));
	if (!c)
		return;
	c->count++;
	c->bytes += bytes;
	c->sum_s += took_s;
	if (took_s > c->max_s)
		c->max_s = took_s;
}

/* The second here that a second of the node's clock overlaps most, or -1. */
static int32_t nearest_second(const struct metrics *m, int64_t start_ns)
{
	int64_t since = start_ns - m->spec.clock_offset_ns - m->spec.start_ns + 500000000;

	return since < 0 || since / 1000000000 >= m->spec.seconds ? -1
								  : (int32_t)(since / 1000000000);
}

static void add_sum_to(
	struct metrics *m, enum metric metric, uint32_t server, const struct record_sum *s)
{
	int32_t second = nearest_second(m, s->start_ns);
	struct cell *c;

	if (s->count <= s->failed || second < 0)
		return;
	c = cell_at(m, m->sums_rows, metric, server, second);
	if (!c)
		return;
	c->count += s->count - s->failed;
	c->bytes += s->bytes;
	c->sum_s += s->total_ns > s->failed_ns ? (double)(s->total_ns - s->failed_ns) / 1e9 : 0;
	if ((double)s->max_ns / 1e9 > c->max_s)
		c->max_s = (double)s->max_ns / 1e9;
}

static void add_sum(struct metrics *m, const struct record_sum *s)
{
	const int32_t self = m->spec.self;

	m->sums = true;
	if (s->messages && s->fd_class == FD_CLASS_SERVER && self >= 0 &&
		address_is_service(&s->local, &m->servers[self].address))
		add_sum_to(m, METRIC_NSREAD, (uint32_t)self, s);
	for (size_t i = 0;
		s->messages && s->fd_class == FD_CLASS_CLIENT && self < 0 && i < m->spec.n_servers;
		i++)
		if (address_is_service(&s->remote, &m->servers[i].address)) {
			add_sum_to(m, METRIC_NCREAD, (uint32_t)i, s);
			break;
		}
	if (!s->messages && s->fd_class == FD_CLASS_DISK && s->selected && self >= 0 &&
		(s->class == CALL_READ || s->class == CALL_WRITE))
		add_sum_to(
			m, s->class == CALL_READ ? METRIC_DREAD : METRIC_DWRITE, (uint32_t)self, s);
}

/* The cells of a metric of a server, one a second, and room for their samples; NULL: no memory. */
static struct cell *row_at(struct metrics *m, enum metric metric, uint32_t server)
{
	size_t at = (size_t)metric * m->spec.n_servers + server;
	struct sample *more;

	if (m->rows[at])
		return m->rows[at];
	more = realloc(m->samples, (m->n_used + 1) * (size_t)m->spec.seconds * sizeof(*more));
	if (!more)
		return NULL;
	m->samples = more;
	m->rows[at] = calloc((size_t)m->spec.seconds, sizeof(*m->rows[at]));
	m->n_used += m->rows[at] != NULL;
	return m->rows[at];
}

static int add_reading_to(struct metrics *m, enum metric metric, uint32_t server, int32_t second,
	uint64_t count, double sum, double max)
{
	struct cell *row = row_at(m, metric, server), *c;

	if (!row)
		return -ENOMEM;
	c = &row[second];
	c->max_s = c->count && c->max_s > max ? c->max_s : max;
	c->count += count;
	c->sum_s += sum;
	return 0;
}

/* A peer counts as one, however many sockets it has. */
static int add_peer(struct metrics *m, enum metric metric, uint32_t server, int32_t second,
	const struct record_reading *r)
{
	double value = reading_kind((enum reading)r->what) == READING_LEVEL ? r->sum / r->count
									    : r->sum;

	return add_reading_to(m, metric, server, second, 1, value, value);
}

static int add_reading(struct metrics *m, const struct record_reading *r)
{
	const int32_t self = m->spec.self, second = nearest_second(m, r->start_ns);

	if (second < 0 || !r->count || r->what >= READING_TOTAL)
		return 0;
	if (r->what < READING_TCP_FIRST)
		return self < 0 ? 0
				: add_reading_to(m, METRIC_SERVICE_TIMES + r->what, (uint32_t)self,
					  second, r->count, r->sum, r->max);
	if (self >= 0)
		return r->accepted
			? add_peer(m, METRIC_SERVICE_TIMES + r->what, (uint32_t)self, second, r)
			: 0;
	for (size_t i = 0; !r->accepted && i < m->spec.n_servers; i++)
		if (address_is_service(&r->peer, &m->servers[i].address))
			return add_peer(m, METRIC_CLIENT_TCP_SENT + (r->what - READING_TCP_FIRST),
				(uint32_t)i, second, r);
	return 0;
}

/* The log has been read: its sums, or else its calls, go to the rest. */
static int take_cells(struct metrics *m)
{
	struct cell *const *from = m->sums ? m->sums_rows : m->calls_rows, *row;

	for (size_t i = 0; i < METRIC_SERVICE_TIMES * m->spec.n_servers && !m->full; i++) {
		if (!from[i])
			continue;
		row = row_at(
			m, (enum metric)(i / m->spec.n_servers), (uint32_t)(i % m->spec.n_servers));
		m->full = !row;
		for (int32_t second = 0; row && second < m->spec.seconds; second++) {
			const struct cell *c = &from[i][second];

			row[second].count += c->count;
			row[second].bytes += c->bytes;
			row[second].sum_s += c->sum_s;
			if (c->max_s > row[second].max_s)
				row[second].max_s = c->max_s;
		}
	}
	return m->full ? -ENOMEM : 0;
}

static struct socket_slot *slot_at(const struct metrics *m, size_t i)
{
	return &m->blocks[i / BLOCK][i % BLOCK];
}

static int slot_new(struct metrics *m, uint32_t server, size_t *index)
{
	size_t i = m->free_slot ? m->free_slot - 1 : m->n_slots;

	if (i == m->n_blocks * BLOCK) {
		struct socket_slot **more = realloc(m->blocks, (m->n_blocks + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->blocks = more;
		more[m->n_blocks] = calloc(BLOCK, sizeof(**more));
		if (!more[m->n_blocks])
			return -ENOMEM;
		m->n_blocks++;
	}
	if (m->free_slot)
		m->free_slot = slot_at(m, i)->next_free;
	else
		m->n_slots++;
	*slot_at(m, i) = (struct socket_slot){.server = server};
	*index = i;
	return 0;
}

/* The message is over: counted if it is whole, dropped if not. */
static void finish(struct metrics *m, struct socket_slot *s, uint32_t tid)
{
	if (message_is_whole(&s->msg, &m->pollers, tid))
		add(m, m->spec.self < 0 ? METRIC_NCREAD : METRIC_NSREAD, s->server, s->msg.end_ns,
			s->msg.end_ns - s->msg.start_ns, s->msg.bytes);
	s->msg.bytes = 0;
	s->msg.wanted_more = s->msg.answered = false;
}

static void release(void *ctx, const struct fd_state *f)
{
	struct metrics *m = ctx;
	struct socket_slot *s;

	if ((f->user & ((1 << USE_BITS) - 1)) != USE_SOCKET)
		return;
	s = slot_at(m, f->user >> USE_BITS);
	finish(m, s, 0);
	s->next_free = m->free_slot;
	m->free_slot = (uint32_t)(f->user >> USE_BITS) + 1;
}

static int classify(struct metrics *m, struct fd_state *f)
{
	const struct record_fd *now = &f->now;
	size_t i, slot;
	int rc;

	f->user = USE_NONE;
	if (m->spec.self >= 0 && now->kind == FD_FILE &&
		path_is_below(now->path, m->servers[m->spec.self].storage)) {
		f->user = USE_STORAGE;
		return 0;
	}
	if (now->kind != FD_SOCKET)
		return 0;
	for (i = 0; i < m->spec.n_servers; i++) {
		if (m->spec.self >= 0 && (size_t)m->spec.self != i)
			continue;
		if (!address_is_service(
			    m->spec.self >= 0 ? &now->local : &now->remote, &m->servers[i].address))
			continue;
		rc = slot_new(m, (uint32_t)i, &slot);
		if (rc)
			return rc;
		f->user = USE_SOCKET | (uint64_t)slot << USE_BITS;
		break;
	}
	return 0;
}

static void socket_read(
	struct metrics *m, struct message *msg, struct socket_slot *s, const struct record *rec)
{
	const struct record_call *c = &rec->call;

	if (message_is_whole(msg, &m->pollers, c->tid))
		finish(m, s, c->tid);
	if (c->result > 0) {
		if (!msg->bytes)
			msg->start_ns = c->start_ns;
		msg->bytes += (uint64_t)c->result;
		msg->end_ns = c->start_ns + c->service_ns;
		msg->tid = c->tid;
		msg->last = rec->number;
		msg->wanted_more = msg->answered = false;
	} else if (c->result == -EAGAIN) {
		msg->wanted_more = true;
	} else if (c->result != -EINTR) {
		msg->bytes = 0; /* end of stream, or a broken connection, inside a message */
		msg->wanted_more = msg->answered = false;
	}
}

static int add_call(struct metrics *m, const struct record *rec)
{
	const struct record_call *c = &rec->call;
	const struct call_use *use;
	struct fd_state *f;
	struct socket_slot *s;
	int rc;

	if (c->nr >= CALLS)
		return 0;
	use = &m->calls[c->nr];
	if (use->class == CALL_OTHER)
		return 0;
	if (use->class == CALL_POLL)
		return pollers_set(&m->pollers, c->tid, rec->number);
	if (c->unfinished)
		return 0;
	f = fdtable_get(m->fds, c->pid, (int32_t)c->args[use->fd]);
	if (!f)
		return 0;
	if (f->user == USE_UNKNOWN) {
		rc = classify(m, f);
		if (rc)
			return rc;
	}
	switch (f->user & ((1 << USE_BITS) - 1)) {
	case USE_STORAGE:
		if (c->result >= 0)
			add(m, use->class == CALL_READ ? METRIC_DREAD : METRIC_DWRITE,
				(uint32_t)m->spec.self, c->start_ns + c->service_ns, c->service_ns,
				(uint64_t)c->result);
		break;
	case USE_SOCKET:
		s = slot_at(m, f->user >> USE_BITS);
		if (use->class == CALL_WRITE)
			s->msg.answered |= c->tid == s->msg.tid;
		else if (use->flags < 0 || !(c->args[use->flags] & MSG_PEEK))
			socket_read(m, &s->msg, s, rec);
		break;
	}
	return 0;
}

/* Before the table forgets what a descriptor was. */
static void before_change(struct metrics *m, const struct record *rec)
{
	const struct fd_state *f;

	if (rec->type == RECORD_FD) {
		f = fdtable_get(m->fds, rec->fd.pid, rec->fd.fd);
		if (f)
			release(m, f);
	} else if (rec->process.pid == rec->process.tid) {
		fdtable_each(m->fds, rec->process.pid, release, m);
	}
	if (rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXIT)
		pollers_remove(&m->pollers, rec->process.tid);
}

static int learn_calls(struct metrics *m, const char *arch, struct err *e)
{
	const struct call_arch *table = call_arch(arch);

	if (!table)
		return err_set(e, -EINVAL, "the calls of architecture '%s' are not known", arch);
	for (uint32_t nr = 0; nr < CALLS; nr++) {
		const struct call_info *info = call_info(table, nr);
		bool used = info &&
			(info->class == CALL_POLL ||
				((info->class == CALL_READ || info->class == CALL_WRITE) &&
					info->fd >= 0));

		m->calls[nr] = (struct call_use){CALL_OTHER, 0, -1};
		if (!used)
			continue;
		m->calls[nr].class = (uint8_t)info->class;
		m->calls[nr].fd = info->class == CALL_POLL ? 0 : (uint8_t)info->fd;
		if (!strcmp(info->name, "recvfrom"))
			m->calls[nr].flags = 3;
		else if (!strcmp(info->name, "recvmsg"))
			m->calls[nr].flags = 2;
	}
	return 0;
}

static int read_log(struct metrics *m, struct log_reader *r, uint64_t *lost, struct err *e)
{
	const struct record *rec;
	uint64_t counted = 0;
	int rc;

	while ((rc = log_next(r, &rec, e)) == 1) {
		rc = 0;
		switch (rec->type) {
		case RECORD_CALL: rc = add_call(m, rec); break;
		case RECORD_FD:
		case RECORD_PROCESS:
			before_change(m, rec);
			rc = fdtable_feed(m->fds, rec);
			break;
		case RECORD_SUM: add_sum(m, &rec->sum); break;
		case RECORD_READING: rc = add_reading(m, &rec->reading); break;
		case RECORD_LOST: counted += rec->lost.count; break;
		case RECORD_END:
			if (rec->end.lost > counted)
				counted = rec->end.lost;
			break;
		default: break;
		}
		if (rc)
			return err_errno(e, rc, "cannot keep track of what is traced");
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < m->n_slots; i++)
		finish(m, slot_at(m, i), 0);
	if (take_cells(m))
		return err_errno(e, -ENOMEM, "cannot keep what was measured");
	*lost = counted;
	return 0;
}

int metrics_add_log(struct metrics *m, const char *path, uint64_t *lost, struct err *e)
{
	struct log_reader *r = NULL;
	uint64_t counted = 0;
	int rc;

	rc = log_reader_new(path, &r, e);
	if (rc)
		return rc;
	rc = learn_calls(m, log_reader_head(r)->arch, e);
	if (rc)
		goto out;
	m->fds = fdtable_new();
	if (!m->fds) {
		rc = err_errno(e, -ENOMEM, "cannot read '%s'", path);
		goto out;
	}
	rc = read_log(m, r, &counted, e);
	if (!rc && lost)
		*lost = counted;
out:
	forget_log(m);
	log_reader_free(r);
	return rc;
}

static double rounded(double v)
{
	/* Sums of decimal fractions are none; kept as whole billionths they need a third of the
	 * room. */
	return fabs(v) < 9e6 ? nearbyint(v * 1e9) / 1e9 : v;
}

size_t metrics_samples(struct metrics *m, const struct sample **out)
{
	size_t k = 0;

	for (size_t i = 0; i < m->n_rows; i++) {
		bool reading = i / m->spec.n_servers >= METRIC_SERVICE_TIMES;

		for (int32_t second = 0; m->rows[i] && second < m->spec.seconds; second++) {
			const struct cell *c = &m->rows[i][second];

			if (!c->count)
				continue;
			m->samples[k++] = (struct sample){
				.metric = (enum metric)(i / m->spec.n_servers),
				.server = (uint32_t)(i % m->spec.n_servers),
				.second = second,
				.count = c->count,
				.bytes = c->bytes,
				.sum_s = reading ? rounded(c->sum_s) : c->sum_s,
				.max_s = reading ? rounded(c->max_s) : c->max_s,
			};
		}
	}
	*out = m->samples;
	return k;
}
