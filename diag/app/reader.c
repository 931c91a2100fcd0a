/* Opens an application trace and reads its calls in order. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/app/reader_impl.h"

struct app_cursor {
	const struct app_trace *t;
	uint32_t thread;
	uint64_t block; /* index of the next block */
	uint32_t left;  /* ops in the block */
	uint64_t at;    /* offset of the block */
	uint8_t *payload;
	uint32_t room;
	struct app_bytes b;
	struct app_state state;
	struct app_edge *edges;
	uint32_t edges_room;
};

int app_damaged(const struct app_trace *t, uint64_t at, const char *what, struct err *e)
{
	err_set(e, -EBADMSG, "the trace '%s' is damaged at byte %llu: %s; copy or capture it again",
		t->path, (unsigned long long)at, what);
	return err_blame(e, ERR_DAMAGED, -EBADMSG);
}

bool app_is_trace(const char *path)
{
	char magic[8];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && pread(fd, magic, 8, 0) == 8 && !memcmp(magic, APP_MAGIC, 8);

	if (fd >= 0)
		close(fd);
	return is;
}

static int reader_read_head(struct app_trace *t, struct err *e)
{
	uint8_t head[APP_HEAD];
	struct stat st;
	uint32_t version;

	if (fstat(t->fd, &st) < 0)
		return err_errno(e, -errno, "cannot read '%s'", t->path);
	t->size = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || t->size < APP_HEAD ||
		pread(t->fd, head, APP_HEAD, 0) != APP_HEAD || memcmp(head, APP_MAGIC, 8)) {
		err_set(e, -EBADMSG, "'%s' is not a trace of 'culprit capture'", t->path);
		return err_blame(e, ERR_DAMAGED, -EBADMSG);
	}
	version = bytes_get32(head + 8);
	if (version != APP_VERSION) {
		err_set(e, -EPROTONOSUPPORT,
			"the trace '%s' is of version %u; this culprit reads version %d: "
			"capture it again, or "
			"use the culprit that wrote it",
			t->path, version, APP_VERSION);
		return err_blame(e, ERR_DAMAGED, -EPROTONOSUPPORT);
	}
	if (bytes_get32(head + 12) != (uint32_t)crc32(0, head + 16, 16))
		return app_damaged(t, 12, "the head's check does not match", e);
	t->head_check = bytes_get32(head + 12);
	t->tables_at = bytes_get64(head + 16);
	if (bytes_get64(head + 24) != t->size)
		return app_damaged(t, t->size, "its size differs from the size in its head", e);
	if (t->tables_at < APP_HEAD || t->tables_at > t->size ||
		t->size - t->tables_at < APP_TABLES_HEAD)
		return app_damaged(t, 16, "the tables lie outside", e);
	return 0;
}

static int each_block(struct app_trace *t,
	void (*fn)(struct app_trace *t, uint32_t thread, const struct app_place *p), struct err *e)
{
	uint8_t head[APP_BLOCK_HEAD];
	uint64_t at = APP_HEAD;
	struct app_place p;

	while (at < t->tables_at) {
		if (t->tables_at - at < APP_BLOCK_HEAD ||
			pread(t->fd, head, APP_BLOCK_HEAD, (off_t)at) != APP_BLOCK_HEAD ||
			bytes_get32(head) != APP_BLOCK_MAGIC)
			return app_damaged(t, at, "a block of operations is missing here", e);
		p = (struct app_place){at, bytes_get32(head + 4), bytes_get32(head + 12)};
		if (!p.payload || p.payload > APP_PAYLOAD || !p.ops || p.ops > p.payload / 2 ||
			p.payload > t->tables_at - at - APP_BLOCK_HEAD ||
			bytes_get32(head + 8) >= t->n_threads || bytes_get32(head + 20))
			return app_damaged(t, at, "the block's head is wrong", e);
		fn(t, bytes_get32(head + 8), &p);
		at += APP_BLOCK_HEAD + p.payload;
	}
	return 0;
}

static void count_block(struct app_trace *t, uint32_t thread, const struct app_place *p)
{
	(void)p;
	t->first_block[thread]++;
	t->n_blocks++;
}

static void place_block(struct app_trace *t, uint32_t thread, const struct app_place *p)
{
	t->blocks[t->first_block[thread]++] = *p;
}

static int index_blocks(struct app_trace *t, struct err *e)
{
	uint64_t before = 0, n, ops;
	int rc;

	t->first_block = calloc((size_t)t->n_threads + 1, sizeof(*t->first_block));
	if (!t->first_block)
		return err_set(e, -ENOMEM, "out of memory");
	if ((rc = each_block(t, count_block, e)))
		return rc;
	t->blocks = calloc(t->n_blocks + 1, sizeof(*t->blocks));
	if (!t->blocks)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i <= t->n_threads; i++) {
		n = t->first_block[i];
		t->first_block[i] = before;
		before += n;
	}
	if ((rc = each_block(t, place_block, e)))
		return rc;
	for (uint32_t i = t->n_threads; i > 0; i--)
		t->first_block[i] = t->first_block[i - 1];
	t->first_block[0] = 0;
	for (uint32_t i = 0; i < t->n_threads; i++) {
		ops = 0;
		for (uint64_t b = t->first_block[i]; b < t->first_block[i + 1]; b++)
			ops += t->blocks[b].ops;
		if (ops != t->threads[i].ops)
			return app_damaged(t, t->tables_at,
				"a thread does not have its number of operations", e);
	}
	return 0;
}

int app_open(const char *path, struct app_trace **out, struct err *e)
{
	struct app_trace *t = calloc(1, sizeof(*t));
	int rc;

	if (!t || !(t->path = strdup(path))) {
		free(t);
		return err_set(e, -ENOMEM, "out of memory");
	}
	t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0)
		rc = err_errno(e, -errno, "cannot open the trace '%s'", path);
	else if (!(rc = reader_read_head(t, e)) && !(rc = app_read_tables(t, e)) &&
		!(rc = index_blocks(t, e)))
		rc = app_check(t, e);
	if (rc)
		app_free(t);
	else
		*out = t;
	return rc;
}

void app_free(struct app_trace *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	free(t->path);
	free(t->strings);
	free(t->ranks);
	free(t->threads);
	free(t->files);
	free(t->handles);
	free(t->blocks);
	free(t->first_block);
	free(t);
}

const struct app_about *app_about(const struct app_trace *t)
{
	return &t->about;
}

size_t app_n_files(const struct app_trace *t)
{
	return t->n_files;
}

size_t app_n_handles(const struct app_trace *t)
{
	return t->n_handles;
}

size_t app_n_ranks(const struct app_trace *t)
{
	return t->n_ranks;
}

size_t app_n_threads(const struct app_trace *t)
{
	return t->n_threads;
}

uint64_t app_n_ops(const struct app_trace *t)
{
	return t->n_ops;
}

uint64_t app_n_edges(const struct app_trace *t)
{
	return t->n_edges;
}

const char *app_id(const struct app_trace *t)
{
	return t->id;
}

const struct app_file *app_file(const struct app_trace *t, uint32_t i)
{
	return &t->files[i];
}

const struct app_handle *app_handle(const struct app_trace *t, uint32_t number)
{
	return &t->handles[number - 1];
}

const struct app_rank *app_rank(const struct app_trace *t, uint32_t i)
{
	return &t->ranks[i];
}

const struct app_thread *app_thread(const struct app_trace *t, uint32_t i)
{
	return &t->threads[i];
}

int app_cursor_new(const struct app_trace *t, uint32_t thread, struct app_cursor **out)
{
	struct app_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->t = t;
	c->thread = thread;
	c->block = t->first_block[thread];
	*out = c;
	return 0;
}

void app_cursor_free(struct app_cursor *c)
{
	if (!c)
		return;
	free(c->payload);
	free(c->edges);
	free(c);
}

static int read_block(struct app_cursor *c, struct err *e)
{
	const struct app_place *p = &c->t->blocks[c->block++];
	uint8_t head[APP_BLOCK_HEAD], *grown;

	if (p->payload > c->room) {
		grown = realloc(c->payload, p->payload);
		if (!grown)
			return err_set(e, -ENOMEM, "out of memory");
		c->payload = grown;
		c->room = p->payload;
	}
	if (pread(c->t->fd, head, sizeof(head), (off_t)p->offset) != sizeof(head) ||
		pread(c->t->fd, c->payload, p->payload, (off_t)p->offset + APP_BLOCK_HEAD) !=
			(ssize_t)p->payload ||
		bytes_get32(head + 16) != app_block_crc(head, c->payload, p->payload))
		return app_damaged(c->t, p->offset, "the block's check does not match", e);
	c->at = p->offset;
	c->left = p->ops;
	c->b = (struct app_bytes){c->payload, c->payload + p->payload};
	c->state = APP_STATE_FIRST;
	return 0;
}

static bool get_edges(struct app_cursor *c, struct app_op *op)
{
	struct app_bytes *b = &c->b;
	struct app_edge *grown;
	uint64_t v;
	uint32_t thread = 0, step;

	if (!app_get(b, &v) || !v || v > APP_EDGES || v > (uint64_t)(b->end - b->pos) / 2)
		return false;
	op->n_edges = (uint32_t)v;
	if (op->n_edges > c->edges_room) {
		grown = realloc(c->edges, op->n_edges * sizeof(*grown));
		if (!grown)
			return false;
		c->edges = grown;
		c->edges_room = op->n_edges;
	}
	for (uint32_t i = 0; i < op->n_edges; i++) {
		if (!app_get_u32(b, &step) || (i && !step) || step >= c->t->n_threads ||
			(thread += step) >= c->t->n_threads || thread == c->thread ||
			!app_get(b, &v) || !v || v > c->t->threads[thread].ops)
			return false;
		c->edges[i] = (struct app_edge){thread, v};
	}
	op->edges = c->edges;
	return true;
}

static bool get_places(struct app_cursor *c, uint64_t bits, struct app_op *op)
{
	const struct app_trace *t = c->t;
	struct app_bytes *b = &c->b;
	uint64_t v;
	int64_t s;

	op->file = c->state.file;
	op->file2 = APP_NO_FILE;
	op->handle = c->state.handle;
	op->offset = bits & APP_NO_OFFSET ? -1 : c->state.next;
	if (bits & APP_HAS_FILE) {
		if (!app_get(b, &v) || v > t->n_files)
			return false;
		op->file = v ? (uint32_t)v - 1 : APP_NO_FILE;
	}
	if (bits & APP_HAS_FILE2 && (!app_get_u32(b, &op->file2) || op->file2 >= t->n_files))
		return false;
	if (bits & APP_HAS_HANDLE && (!app_get_u32(b, &op->handle) || op->handle > t->n_handles))
		return false;
	if ((bits & APP_HAS_FLAGS && !app_get_u32(b, &op->flags)) ||
		(bits & APP_HAS_MODE && !app_get_u32(b, &op->mode)))
		return false;
	if (bits & APP_HAS_OFFSET) {
		if (bits & APP_NO_OFFSET || !app_get_signed(b, &s))
			return false;
		op->offset = (int64_t)((uint64_t)c->state.next + (uint64_t)s);
	}
	return op->offset >= -1;
}

static bool get_figures(struct app_cursor *c, uint64_t bits, struct app_op *op)
{
	struct app_bytes *b = &c->b;
	uint64_t v;
	int64_t s;

	op->size = c->state.size;
	if (bits & APP_HAS_SIZE && (!app_get(b, &op->size) || op->size > INT64_MAX))
		return false;
	op->result = (int64_t)op->size;
	if (bits & APP_HAS_RESULT && !app_get_signed(b, &op->result))
		return false;
	op->start_ns = op->took_ns = -1;
	if (bits & APP_HAS_START) {
		if (!app_get_signed(b, &s))
			return false;
		op->start_ns = (int64_t)((uint64_t)c->state.start + (uint64_t)s);
		if (op->start_ns < 0)
			return false;
	}
	if (bits & APP_HAS_TOOK) {
		if (!app_get(b, &v) || v > INT64_MAX)
			return false;
		op->took_ns = (int64_t)v;
	}
	if ((bits & APP_HAS_COMPUTE &&
		    (!app_get(b, &op->compute_ns) || op->compute_ns > INT64_MAX)) ||
		(bits & APP_HAS_AWAY && (!app_get(b, &op->away_ns) || op->away_ns > INT64_MAX)))
		return false;
	return !(bits & APP_HAS_EDGES) || get_edges(c, op);
}

static bool get_op(struct app_cursor *c, struct app_op *op)
{
	struct app_state *st = &c->state;
	uint64_t call, bits;

	memset(op, 0, sizeof(*op));
	if (!app_get(&c->b, &call) || !call || call >= APP_CALLS || !app_get(&c->b, &bits) ||
		bits > APP_FIELDS)
		return false;
	op->call = (uint8_t)call;
	if (!get_places(c, bits, op) || !get_figures(c, bits, op))
		return false;
	st->file = op->file;
	st->handle = op->handle;
	st->size = op->size;
	if (op->offset != -1)
		st->next = app_end(op->offset, op->result);
	if (op->start_ns != -1)
		st->start = op->start_ns;
	return true;
}

int app_next(struct app_cursor *c, struct app_op *op, struct err *e)
{
	int rc;

	if (!c->left) {
		if (c->b.pos != c->b.end)
			return app_damaged(c->t, c->at, "a block is longer than its operations", e);
		if (c->block == c->t->first_block[c->thread + 1])
			return 0;
		if ((rc = read_block(c, e)))
			return rc;
	}
	if (!get_op(c, op))
		return app_damaged(c->t, c->at + APP_BLOCK_HEAD + (uint64_t)(c->b.pos - c->payload),
			"this operation is invalid", e);
	c->left--;
	return 1;
}
