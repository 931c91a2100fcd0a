/* Reads the tables of an application trace: ranks, threads, files, handles. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "diag/app/reader_impl.h"
#include "harness/base/text.h"

bool app_get(struct app_bytes *b, uint64_t *out)
{
	return bytes_get_varint(&b->pos, b->end, out);
}

bool app_get_u32(struct app_bytes *b, uint32_t *out)
{
	uint64_t v;

	if (!app_get(b, &v) || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

bool app_get_signed(struct app_bytes *b, int64_t *out)
{
	uint64_t v;

	if (!app_get(b, &v))
		return false;
	*out = bytes_unzigzag(v);
	return true;
}

bool app_path_ok(const char *path)
{
	const char *part = path;
	size_t n;

	if (strlen(path) >= APP_PATH)
		return false;
	if (!*path)
		return true;
	for (;; part += n + 1) {
		n = strcspn(part, "/");
		if (!n || (n == 1 && part[0] == '.') || (n == 2 && !memcmp(part, "..", 2)))
			return false;
		if (!part[n])
			return true;
	}
}

/* A string of the tables. Moves it over the last byte of its length to make room for a NUL. */
static bool get_string(struct app_bytes *b, const char **out, size_t most)
{
	uint64_t n;
	uint8_t *s;

	if (!app_get(b, &n) || n >= most || n > (uint64_t)(b->end - b->pos) || memchr(b->pos, 0, n))
		return false;
	s = (uint8_t *)b->pos;
	memmove(s - 1, s, n);
	b->pos += n;
	s[(ptrdiff_t)n - 1] = 0;
	*out = (const char *)s - 1;
	return true;
}

/* Reads the number of entries, each of at least 'least' bytes, and allocates an array for them. */
static bool get_count(struct app_bytes *b, uint64_t most, size_t least, uint32_t *n)
{
	uint64_t v;

	if (!app_get(b, &v) || v > most || v > (uint64_t)(b->end - b->pos) / least)
		return false;
	*n = (uint32_t)v;
	return true;
}

static bool get_about(struct app_trace *t, struct app_bytes *b)
{
	struct app_about *a = &t->about;
	uint64_t bits;

	if (!app_get_signed(b, &a->start_ns) || !app_get(b, &a->wall_ns) ||
		!app_get_u32(b, &a->method) || !get_string(b, &a->comment, APP_PATH) ||
		!get_string(b, &a->root, APP_PATH) || !get_string(b, &a->kernel, APP_PATH) ||
		!app_get(b, &bits) || bits > 3 || !app_get(b, &a->not_captured))
		return false;
	a->version = APP_VERSION;
	a->anonymised = bits & 1;
	a->shared_memory = bits & 2;
	return !a->method || a->method <= (APP_BY_MESSAGES | APP_BY_THROTTLING);
}

static bool get_threads(struct app_trace *t, struct app_bytes *b, uint32_t rank, uint32_t *room)
{
	struct app_rank *r = &t->ranks[rank];
	struct app_thread *grown;

	r->first_thread = t->n_threads;
	if (!get_count(b, APP_THREADS - t->n_threads, 2, &r->n_threads))
		return false;
	if (t->n_threads + r->n_threads > *room) {
		*room = (t->n_threads + r->n_threads) * 2;
		grown = realloc(t->threads, *room * sizeof(*grown));
		if (!grown)
			return false;
		t->threads = grown;
	}
	for (uint32_t i = 0; i < r->n_threads; i++) {
		struct app_thread *th = &t->threads[t->n_threads++];

		th->rank = rank;
		if (!app_get_u32(b, &th->tid) || !app_get(b, &th->ops) || th->ops > t->size)
			return false;
		t->n_ops += th->ops;
	}
	return true;
}

static bool get_ranks(struct app_trace *t, struct app_bytes *b)
{
	uint32_t room = 0;

	if (!get_count(b, APP_RANKS, 4, &t->n_ranks))
		return false;
	t->ranks = calloc(t->n_ranks + 1, sizeof(*t->ranks));
	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (!t->ranks || !app_get_u32(b, &t->ranks[i].pid) ||
			!get_string(b, &t->ranks[i].name, APP_NAME) ||
			!get_string(b, &t->ranks[i].node, APP_NAME) || !get_threads(t, b, i, &room))
			return false;
	return t->ranks;
}

/* '*bad': a path that leaves the root, or is not in the form that writers use. */
static bool get_files(struct app_trace *t, struct app_bytes *b, const char **bad)
{
	uint64_t bits;

	if (!get_count(b, APP_FILES, 4, &t->n_files))
		return false;
	t->files = calloc(t->n_files + 1, sizeof(*t->files));
	for (uint32_t i = 0; i < t->n_files; i++) {
		struct app_file *f = t->files ? &t->files[i] : NULL;

		if (!f || !get_string(b, &f->path, APP_PATH))
			return false;
		if (!app_path_ok(f->path)) {
			*bad = f->path;
			return false;
		}
		if (!app_get_signed(b, &f->before) || !app_get_signed(b, &f->after) ||
			f->before < -1 || f->after < -1 || !app_get(b, &bits) || bits > 1)
			return false;
		f->directory = bits;
	}
	return t->files;
}

static bool get_handles(struct app_trace *t, struct app_bytes *b)
{
	uint64_t bits;

	if (!get_count(b, APP_HANDLES, 4, &t->n_handles))
		return false;
	t->handles = calloc(t->n_handles + 1, sizeof(*t->handles));
	for (uint32_t i = 0; i < t->n_handles; i++) {
		struct app_handle *h = t->handles ? &t->handles[i] : NULL;

		if (!h || !app_get_u32(b, &h->file) || h->file >= t->n_files ||
			!app_get_u32(b, &h->flags) || !app_get_u32(b, &h->rank) ||
			h->rank >= t->n_ranks || !app_get(b, &bits) || bits > 1)
			return false;
		h->before = bits;
	}
	return t->handles;
}

int app_read_tables(struct app_trace *t, struct err *e)
{
	size_t n = (size_t)(t->size - t->tables_at);
	uint8_t *p = malloc(n);
	const char *bad = NULL;
	struct app_bytes b;
	char text[256];

	t->strings = (char *)p;
	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	if (pread(t->fd, p, n, (off_t)t->tables_at) != (ssize_t)n)
		return app_damaged(t, t->tables_at, "the tables cannot be read", e);
	if (bytes_get32(p) != APP_TABLES_MAGIC ||
		bytes_get32(p + 4) != crc32_z(0, p + APP_TABLES_HEAD, n - APP_TABLES_HEAD))
		return app_damaged(t, t->tables_at, "the tables' check does not match", e);
	snprintf(t->id, sizeof(t->id), "%08x%08x", bytes_get32(p + 4), t->head_check);
	b = (struct app_bytes){p + APP_TABLES_HEAD, p + n};
	if (get_about(t, &b) && get_ranks(t, &b) && get_files(t, &b, &bad) && get_handles(t, &b) &&
		b.pos == b.end)
		return 0;
	if (!bad)
		return app_damaged(
			t, t->tables_at + (uint64_t)(b.pos - p), "the tables are invalid", e);
	text_clean(bad, text, sizeof(text));
	err_set(e, -EBADMSG,
		"the trace '%s' has the path '%s', which is not below the folder of the replay: "
		"capture it again",
		t->path, text);
	return err_blame(e, ERR_DAMAGED, -EBADMSG);
}
