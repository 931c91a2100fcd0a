/* Writes an application trace: tables first, then calls in blocks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/app/layout.h"
#include "harness/base/file.h"
#include "harness/base/vec.h"

struct block {
	uint8_t *bytes; /* APP_BLOCK_HEAD and payload; allocated with the first op */
	uint32_t size, room, ops;
	struct app_state state;
	uint64_t total;
};

/* A table in the making. */
struct bytes {
	uint8_t *p;
	size_t size, room;
	bool failed;
};

struct app_writer {
	int fd;
	char *path, *temporary;
	uint64_t offset;
	struct block *threads;
	uint32_t n_threads;
	uint32_t n_ranks, n_files, n_handles;
	struct bytes ranks, files, handles; /* ranks: without their threads */
	uint32_t *threads_of;               /* number of threads of each rank */
	uint32_t *tids;
	int failed;
};

static uint8_t *bytes_room(struct bytes *b, size_t n)
{
	size_t room = b->room ? b->room : 4096;
	uint8_t *p;

	while (room < b->size + n)
		room *= 2;
	if (room != b->room) {
		p = realloc(b->p, room);
		if (!p) {
			b->failed = true;
			return NULL;
		}
		b->p = p;
		b->room = room;
	}
	return b->p + b->size;
}

static void bytes_varint(struct bytes *b, uint64_t v)
{
	uint8_t *p = bytes_room(b, 10);

	if (p)
		b->size += (size_t)(bytes_put_varint(p, v) - p);
}

static void bytes_raw(struct bytes *b, const void *data, size_t n)
{
	uint8_t *p = bytes_room(b, n);

	if (p && n) {
		memcpy(p, data, n);
		b->size += n;
	}
}

static void bytes_string(struct bytes *b, const char *s, size_t most)
{
	size_t n = strnlen(s, most - 1);

	bytes_varint(b, n);
	bytes_raw(b, s, n);
}

static int put_bytes(struct app_writer *w, const void *data, size_t size, struct err *e)
{
	if (!w->failed)
		w->failed = fd_write_all(w->fd, data, size);
	if (w->failed)
		return err_errno(e, w->failed, "cannot write '%s'", w->path);
	w->offset += size;
	return 0;
}

int app_create(const char *path, struct app_writer **out, struct err *e)
{
	struct app_writer *w = calloc(1, sizeof(*w));
	size_t n = strlen(path) + 16;
	int rc;

	if (!w || !(w->path = strdup(path)) || !(w->temporary = malloc(n))) {
		if (w)
			free(w->path);
		free(w);
		return err_set(e, -ENOMEM, "out of memory");
	}
	snprintf(w->temporary, n, "%s.XXXXXX", path);
	w->fd = mkostemp(w->temporary, O_CLOEXEC);
	if (w->fd < 0) {
		rc = err_errno(e, -errno, "cannot make '%s'", path);
		w->temporary[0] = '\0';
		app_drop(w);
		return rc;
	}
	rc = put_bytes(w, (uint8_t[APP_HEAD]){0}, APP_HEAD, e); /* filled in at the end */
	if (rc)
		app_drop(w);
	else
		*out = w;
	return rc;
}

void app_drop(struct app_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	if (w->temporary[0])
		unlink(w->temporary);
	for (uint32_t i = 0; i < w->n_threads; i++)
		free(w->threads[i].bytes);
	free(w->threads);
	free(w->threads_of);
	free(w->tids);
	free(w->ranks.p);
	free(w->files.p);
	free(w->handles.p);
	free(w->path);
	free(w->temporary);
	free(w);
}

/* Appends to an array of counts. */
static int count_add(uint32_t **counts, uint32_t n, uint32_t value)
{
	uint32_t *p = vec_room(*counts, n, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*counts = p;
	p[n] = value;
	return 0;
}

int app_add_rank(struct app_writer *w, uint32_t pid, const char *name, const char *node)
{
	if (w->n_ranks >= APP_RANKS)
		return -E2BIG;
	if (count_add(&w->threads_of, w->n_ranks, 0))
		return -ENOMEM;
	bytes_varint(&w->ranks, pid);
	bytes_string(&w->ranks, name, APP_NAME);
	bytes_string(&w->ranks, node, APP_NAME);
	return w->ranks.failed ? -ENOMEM : (int)w->n_ranks++;
}

int app_add_thread(struct app_writer *w, uint32_t rank, uint32_t tid)
{
	struct block *t;

	if (w->n_threads >= APP_THREADS)
		return -E2BIG;
	if (rank + 1 != w->n_ranks)
		return -EINVAL;
	t = vec_room(w->threads, w->n_threads, sizeof(*t));
	if (!t)
		return -ENOMEM;
	w->threads = t;
	if (count_add(&w->tids, w->n_threads, tid))
		return -ENOMEM;
	w->threads[w->n_threads] = (struct block){.state = APP_STATE_FIRST};
	w->threads_of[rank]++;
	return (int)w->n_threads++;
}

int app_add_file(struct app_writer *w, const char *path, int64_t before, int64_t after, bool dir)
{
	if (w->n_files >= APP_FILES)
		return -E2BIG;
	if (!app_path_ok(path))
		return -EINVAL;
	bytes_string(&w->files, path, APP_PATH);
	bytes_varint(&w->files, bytes_zigzag(before));
	bytes_varint(&w->files, bytes_zigzag(after));
	bytes_varint(&w->files, dir);
	return w->files.failed ? -ENOMEM : (int)w->n_files++;
}

int app_add_handle(struct app_writer *w, const struct app_handle *h)
{
	if (w->n_handles >= APP_HANDLES)
		return -E2BIG;
	if (h->file >= w->n_files || h->rank >= w->n_ranks)
		return -EINVAL;
	bytes_varint(&w->handles, h->file);
	bytes_varint(&w->handles, h->flags);
	bytes_varint(&w->handles, h->rank);
	bytes_varint(&w->handles, h->before);
	return w->handles.failed ? -ENOMEM : (int)++w->n_handles;
}

static int put_block(struct app_writer *w, uint32_t thread, struct err *e)
{
	struct block *b = &w->threads[thread];
	uint32_t payload = b->size - APP_BLOCK_HEAD;
	int rc;

	if (!b->ops)
		return 0;
	bytes_put32(b->bytes, APP_BLOCK_MAGIC);
	bytes_put32(b->bytes + 4, payload);
	bytes_put32(b->bytes + 8, thread);
	bytes_put32(b->bytes + 12, b->ops);
	bytes_put32(b->bytes + 16, app_block_crc(b->bytes, b->bytes + APP_BLOCK_HEAD, payload));
	bytes_put32(b->bytes + 20, 0);
	rc = put_bytes(w, b->bytes, b->size, e);
	b->size = APP_BLOCK_HEAD;
	b->ops = 0;
	b->state = APP_STATE_FIRST;
	return rc;
}

static bool block_room(struct block *b, uint32_t need)
{
	uint32_t room = b->room ? b->room : 4096;
	uint8_t *p;

	if (!b->size)
		b->size = APP_BLOCK_HEAD;
	while (room < b->size + need)
		room *= 2;
	if (room == b->room)
		return true;
	p = realloc(b->bytes, room);
	if (!p)
		return false;
	b->bytes = p;
	b->room = room;
	return true;
}

static uint32_t fields_of(const struct app_state *st, const struct app_op *op)
{
	return (op->file != st->file ? APP_HAS_FILE : 0) |
		(op->file2 != APP_NO_FILE ? APP_HAS_FILE2 : 0) |
		(op->handle != st->handle ? APP_HAS_HANDLE : 0) | (op->flags ? APP_HAS_FLAGS : 0) |
		(op->mode ? APP_HAS_MODE : 0) |
		(op->offset == -1                        ? APP_NO_OFFSET
				: op->offset != st->next ? APP_HAS_OFFSET
							 : 0) |
		(op->size != st->size ? APP_HAS_SIZE : 0) |
		(op->result != (int64_t)op->size ? APP_HAS_RESULT : 0) |
		(op->start_ns != -1 ? APP_HAS_START : 0) | (op->took_ns != -1 ? APP_HAS_TOOK : 0) |
		(op->compute_ns ? APP_HAS_COMPUTE : 0) | (op->away_ns ? APP_HAS_AWAY : 0) |
		(op->n_edges ? APP_HAS_EDGES : 0);
}

static uint8_t *put_op(struct app_state *st, uint8_t *p, const struct app_op *op)
{
	uint32_t bits = fields_of(st, op), last = 0;

	p = bytes_put_varint(p, op->call);
	p = bytes_put_varint(p, bits);
	if (bits & APP_HAS_FILE)
		p = bytes_put_varint(p, op->file == APP_NO_FILE ? 0 : (uint64_t)op->file + 1);
	if (bits & APP_HAS_FILE2)
		p = bytes_put_varint(p, op->file2);
	if (bits & APP_HAS_HANDLE)
		p = bytes_put_varint(p, op->handle);
	if (bits & APP_HAS_FLAGS)
		p = bytes_put_varint(p, op->flags);
	if (bits & APP_HAS_MODE)
		p = bytes_put_varint(p, op->mode);
	if (bits & APP_HAS_OFFSET)
		p = bytes_put_varint(p, bytes_zigzag(app_difference(op->offset, st->next)));
	if (bits & APP_HAS_SIZE)
		p = bytes_put_varint(p, op->size);
	if (bits & APP_HAS_RESULT)
		p = bytes_put_varint(p, bytes_zigzag(op->result));
	if (bits & APP_HAS_START)
		p = bytes_put_varint(p, bytes_zigzag(app_difference(op->start_ns, st->start)));
	if (bits & APP_HAS_TOOK)
		p = bytes_put_varint(p, (uint64_t)op->took_ns);
	if (bits & APP_HAS_COMPUTE)
		p = bytes_put_varint(p, op->compute_ns);
	if (bits & APP_HAS_AWAY)
		p = bytes_put_varint(p, op->away_ns);
	if (bits & APP_HAS_EDGES)
		p = bytes_put_varint(p, op->n_edges);
	for (uint32_t i = 0; i < op->n_edges; last = op->edges[i++].thread) {
		p = bytes_put_varint(p, op->edges[i].thread - last);
		p = bytes_put_varint(p, op->edges[i].ops);
	}
	st->file = op->file;
	st->handle = op->handle;
	st->size = op->size;
	if (op->offset != -1)
		st->next = app_end(op->offset, op->result);
	if (op->start_ns != -1)
		st->start = op->start_ns;
	return p;
}

static bool op_ok(const struct app_writer *w, uint32_t thread, const struct app_op *op)
{
	if (thread >= w->n_threads || !op->call || op->call >= APP_CALLS ||
		(op->file != APP_NO_FILE && op->file >= w->n_files) ||
		(op->file2 != APP_NO_FILE && op->file2 >= w->n_files) ||
		op->handle > w->n_handles || op->n_edges > APP_EDGES || op->took_ns < -1)
		return false;
	for (uint32_t i = 0; i < op->n_edges; i++)
		if (op->edges[i].thread >= w->n_threads || op->edges[i].thread == thread ||
			!op->edges[i].ops || (i && op->edges[i].thread <= op->edges[i - 1].thread))
			return false;
	return true;
}

int app_put(struct app_writer *w, uint32_t thread, const struct app_op *op, struct err *e)
{
	struct block *b;
	uint32_t need = APP_OP + op->n_edges * APP_EDGE;
	int rc;

	if (!op_ok(w, thread, op))
		return err_set(e, -EINVAL, "an op of '%s' names an unknown thread, file or handle",
			w->path);
	b = &w->threads[thread];
	if (b->size + need > APP_BLOCK_HEAD + APP_PAYLOAD) {
		rc = put_block(w, thread, e);
		if (rc)
			return rc;
	}
	if (!block_room(b, need))
		return err_set(e, -ENOMEM, "out of memory");
	b->size = (uint32_t)(put_op(&b->state, b->bytes + b->size, op) - b->bytes);
	b->ops++;
	b->total++;
	return 0;
}

/* Writes the ranks again, now each with its threads. */
static void put_ranks(struct app_writer *w, struct bytes *t)
{
	uint32_t thread = 0;
	size_t at = 0, from;

	bytes_varint(t, w->n_ranks);
	for (uint32_t r = 0; r < w->n_ranks; r++) {
		from = at;
		while (w->ranks.p[at++] & 0x80) /* pid */
			;
		at += 1 + w->ranks.p[at]; /* names are shorter than 128 */
		at += 1 + w->ranks.p[at];
		bytes_raw(t, w->ranks.p + from, at - from);
		bytes_varint(t, w->threads_of[r]);
		for (uint32_t i = 0; i < w->threads_of[r]; i++, thread++) {
			bytes_varint(t, w->tids[thread]);
			bytes_varint(t, w->threads[thread].total);
		}
	}
}

static void put_tables(struct app_writer *w, const struct app_about *a, struct bytes *t)
{
	bytes_raw(t, (uint8_t[APP_TABLES_HEAD]){0}, APP_TABLES_HEAD);
	bytes_varint(t, bytes_zigzag(a->start_ns));
	bytes_varint(t, a->wall_ns);
	bytes_varint(t, a->method);
	bytes_string(t, a->comment, APP_PATH);
	bytes_string(t, a->root, APP_PATH);
	bytes_string(t, a->kernel, APP_PATH);
	bytes_varint(t, (uint64_t)(a->anonymised | a->shared_memory << 1));
	bytes_varint(t, a->not_captured);
	put_ranks(w, t);
	bytes_varint(t, w->n_files);
	bytes_raw(t, w->files.p, w->files.size);
	bytes_varint(t, w->n_handles);
	bytes_raw(t, w->handles.p, w->handles.size);
	if (t->failed)
		return;
	bytes_put32(t->p, APP_TABLES_MAGIC);
	bytes_put32(
		t->p + 4, (uint32_t)crc32_z(0, t->p + APP_TABLES_HEAD, t->size - APP_TABLES_HEAD));
}

static int writer_put_head(struct app_writer *w, uint64_t tables, struct err *e)
{
	uint8_t head[APP_HEAD] = APP_MAGIC;

	bytes_put32(head + 8, APP_VERSION);
	bytes_put64(head + 16, tables);
	bytes_put64(head + 24, w->offset);
	bytes_put32(head + 12, (uint32_t)crc32(0, head + 16, 16));
	if (pwrite(w->fd, head, sizeof(head), 0) != sizeof(head))
		return err_errno(e, errno ? -errno : -EIO, "cannot write '%s'", w->path);
	return 0;
}

static int writer_finish(struct app_writer *w, const struct app_about *about, struct err *e)
{
	struct bytes tables = {0};
	uint64_t at;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < w->n_threads; i++)
		rc = put_block(w, i, e);
	at = w->offset;
	if (rc)
		return rc;
	put_tables(w, about, &tables);
	rc = tables.failed ? err_set(e, -ENOMEM, "out of memory")
			   : put_bytes(w, tables.p, tables.size, e);
	free(tables.p);
	if (rc || (rc = writer_put_head(w, at, e)))
		return rc;
	if (fchmod(w->fd, 0644) || fsync(w->fd) || rename(w->temporary, w->path))
		return err_errno(e, -errno, "cannot write '%s'", w->path);
	w->temporary[0] = '\0';
	return 0;
}

int app_finish(struct app_writer *w, const struct app_about *about, struct err *e)
{
	int rc = writer_finish(w, about, e);

	app_drop(w);
	return rc;
}
