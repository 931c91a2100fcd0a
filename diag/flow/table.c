/* Writes what was found of requests as packed columns, and reads it back. */
#include "diag/flow/table.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/flow/flow_impl.h"
#include "harness/base/bytes.h"
#include "harness/base/pack.h"

enum {
	VERSION = 1,        /* of what blocks hold: another one is not read */
	BLOCK_ROWS = 4096,  /* a block ends when it has so many requests, or disk calls */
	ROWS_MAX = 1 << 20, /* of a piece: more are not read */
	NODES_MAX = 4096,
};

/* Pieces of blocks 1, 2 ...; of block 0. */
enum { TEXTS, REQUESTS, DISKS, FUSES, ALONE, PIECES };
enum { HEAD, NAMES, NODES, PAIRS, WINDOWS, DEPTH, STATE_PIECES };
/* Numbers in HEAD, before the counts. */
enum { HEAD_VERSION, HEAD_BLOCKS, HEAD_NOW, HEAD_SECONDS, HEAD_LAYERS, HEAD_COUNTS };
enum { COUNTS = sizeof(struct flow_counts) / sizeof(uint64_t) };

/* ---- rows ---- */

/* Texts are numbers, from 1; 0: none. */
struct table_request {
	struct flow_request r;
	uint32_t name, first_thread, n_disks;
	bool of_fuse;
};

struct table_fuse {
	struct flow_fuse u;
	uint32_t thread, path;
};

/* A disk call that no request took, after so many requests. */
struct table_alone {
	struct flow_disk d;
	uint32_t node;
	uint64_t after;
};

struct table_pair {
	struct pair p;
	uint32_t index, windows;
	int64_t length_ns; /* of the track's windows; 0: there is no track */
};

/* clang-format off */
#define R(member) PACK_FIELD(struct table_request, member)
#define U(member) PACK_FIELD(struct table_fuse, member)
#define D(type, member) PACK_FIELD(struct type, member)
#define SPAN(F, s) F(s.begin_ns), F(s.end_ns), F(s.node), F(s.pid), F(s.tid), F(s.calls), F(s.how)
#define DISK(type, d) D(type, d begin_ns), D(type, d end_ns), D(type, d pid), D(type, d tid), \
	D(type, d nr), D(type, d how), D(type, d class), D(type, d result), D(type, d offset), \
	D(type, d device), D(type, d inode)

static const struct pack_field request_fields[] = {
	R(r.number), R(r.id), R(r.connection), R(r.program), R(r.procedure), R(name), R(r.client),
	R(r.server), R(r.call_bytes), R(r.answer_bytes), R(r.call_messages), R(r.answer_messages),
	SPAN(R, r.sent), SPAN(R, r.received), SPAN(R, r.answered), SPAN(R, r.returned),
	R(n_disks), R(of_fuse), R(r.fuse_how), R(r.first_pid), R(r.first_tid), R(first_thread),
	R(r.offset_ns), R(r.width_ns), R(r.doubtful), R(r.reasons),
};
static const struct pack_field fuse_fields[] = {
	U(u.unique), U(u.nodeid), U(u.device), U(u.opcode), U(u.error), U(u.ended),
	SPAN(U, u.kernel), SPAN(U, u.daemon), U(u.requests), SPAN(U, u.call), U(u.nr),
	U(u.offset), U(u.result), U(thread), U(path),
};
static const struct pack_field disk_fields[] = {DISK(flow_disk, )};
static const struct pack_field alone_fields[] = {
	DISK(table_alone, d.), D(table_alone, node), D(table_alone, after),
};
static const struct pack_field node_fields[] = {D(flow_node, hint_ns)};
static const struct pack_field pair_fields[] = {
	D(table_pair, index), D(table_pair, p.has_low), D(table_pair, p.has_high),
	D(table_pair, p.low_ns), D(table_pair, p.high_ns), D(table_pair, p.at_low_ns),
	D(table_pair, p.at_high_ns), D(table_pair, p.narrowest_ns), D(table_pair, windows),
	D(table_pair, length_ns),
};
static const struct pack_field window_fields[] = {
	D(track_row, number), D(track_row, has[0]), D(track_row, at_ns[0]),
	D(track_row, value_ns[0]), D(track_row, has[1]), D(track_row, at_ns[1]),
	D(track_row, value_ns[1]),
};
static const struct pack_field bin_fields[] = {D(bin, busy_s), D(bin, entered)};
static const struct pack_field number_fields[] = {{.size = sizeof(uint64_t)}};
/* clang-format on */

static const struct pack_kind requests_kind = PACK_KIND(struct table_request, request_fields),
			      fuses_kind = PACK_KIND(struct table_fuse, fuse_fields),
			      disks_kind = PACK_KIND(struct flow_disk, disk_fields),
			      alone_kind = PACK_KIND(struct table_alone, alone_fields),
			      nodes_kind = PACK_KIND(struct flow_node, node_fields),
			      pairs_kind = PACK_KIND(struct table_pair, pair_fields),
			      windows_kind = PACK_KIND(struct track_row, window_fields),
			      bins_kind = PACK_KIND(struct bin, bin_fields),
			      numbers_kind = PACK_KIND(uint64_t, number_fields);

/* ---- blocks ---- */

static int damaged(const char *name, struct err *e)
{
	return err_blame(e, ERR_DAMAGED,
		err_set(e, -EBADMSG,
			"%s: the stored requests are damaged; measure the run again from its "
			"traces",
			name));
}

/* Pieces, each with its size before it. */
struct block {
	uint8_t *data;
	size_t size;
};

static void block_add(struct block *b, const void *data, size_t size)
{
	uint8_t *p;

	b->data = alloc_resize(b->data, b->size + BYTES_VARINT + size, 1);
	p = bytes_put_varint(b->data + b->size, size);
	if (size)
		memcpy(p, data, size);
	b->size = (size_t)(p - b->data) + size;
}

static void block_rows(struct block *b, const struct pack_kind *kind, const void *rows, size_t n)
{
	unsigned char *data;
	size_t size;

	pack_rows(kind, rows, n, &data, &size);
	block_add(b, data, size);
	free(data);
}

struct piece {
	const uint8_t *data;
	size_t size;
};

/* How many pieces there are, of which 'most' are noted; 0: damaged. */
static size_t block_split(const uint8_t *data, size_t size, struct piece *pieces, size_t most)
{
	const uint8_t *p = data, *end = data + size;
	uint64_t length;
	size_t n = 0;

	for (; p < end; n++) {
		if (!bytes_get_varint(&p, end, &length) || length > (uint64_t)(end - p))
			return 0;
		if (n < most)
			pieces[n] = (struct piece){p, (size_t)length};
		p += length;
	}
	return n;
}

/* Rows of a piece. */
struct rows {
	void *v;
	size_t n;
};

static bool piece_rows(const struct piece *p, const struct pack_kind *kind, struct rows *out)
{
	free(out->v);
	*out = (struct rows){0};
	return pack_read(kind, ROWS_MAX, p->data, p->size, &out->v, &out->n);
}

/* ---- writing ---- */

struct flow_table {
	flow_table_put put;
	void *ctx;
	uint32_t blocks;
	uint64_t n; /* requests so far */
	/* Of the block at hand. */
	struct table_request *requests;
	struct flow_disk *disks;
	struct table_fuse *fuses;
	struct table_alone *alone;
	size_t n_requests, n_disks, n_fuses, n_alone;
	struct map known; /* texts, by hash */
	char **texts;
	size_t n_texts, written_texts;
};

void flow_table_new(flow_table_put put, void *ctx, struct flow_table **out)
{
	struct flow_table *t = alloc_zero(1, sizeof(*t));

	*t = (struct flow_table){.put = put, .ctx = ctx};
	*out = t;
}

void flow_table_free(struct flow_table *t)
{
	if (!t)
		return;
	free(t->requests);
	free(t->disks);
	free(t->fuses);
	free(t->alone);
	map_clear(&t->known);
	for (size_t i = 0; i < t->n_texts; i++)
		free(t->texts[i]);
	free(t->texts);
	free(t);
}

static uint32_t number_of(struct flow_table *t, const char *text)
{
	size_t at = 0;
	uint64_t key, v;

	if (!text)
		return 0;
	key = hash_bytes(text, strlen(text), HASH_START);
	while ((v = map_next(&t->known, key, &at)))
		if (!strcmp(t->texts[v - 1], text))
			return (uint32_t)v;
	t->texts = alloc_room(t->texts, t->n_texts, sizeof(*t->texts));
	t->texts[t->n_texts++] = alloc_copy(text);
	map_keep(&t->known, key, t->n_texts);
	return (uint32_t)t->n_texts;
}

/* Texts that were not in a block before. */
static void block_texts(struct block *b, struct flow_table *t)
{
	char *text;
	size_t size;
	FILE *out = alloc_text(&text, &size);

	for (; t->written_texts < t->n_texts; t->written_texts++)
		fwrite(t->texts[t->written_texts], strlen(t->texts[t->written_texts]) + 1, 1, out);
	fclose(out);
	block_add(b, text, size);
	free(text);
}

static int flow_table_flush(struct flow_table *t, struct err *e)
{
	struct block b = {0};
	int rc;

	block_texts(&b, t);
	block_rows(&b, &requests_kind, t->requests, t->n_requests);
	block_rows(&b, &disks_kind, t->disks, t->n_disks);
	block_rows(&b, &fuses_kind, t->fuses, t->n_fuses);
	block_rows(&b, &alone_kind, t->alone, t->n_alone);
	t->n_requests = t->n_disks = t->n_fuses = t->n_alone = 0;
	rc = t->put(t->ctx, ++t->blocks, b.data, b.size, e);
	free(b.data);
	return rc;
}

static int flush_full(struct flow_table *t, struct err *e)
{
	return t->n_requests >= BLOCK_ROWS || t->n_disks >= BLOCK_ROWS || t->n_alone >= BLOCK_ROWS
		? flow_table_flush(t, e)
		: 0;
}

static int take_request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct flow_table *t = ctx;

	t->requests = alloc_room(t->requests, t->n_requests, sizeof(*t->requests));
	t->requests[t->n_requests++] = (struct table_request){.r = *r,
		.name = number_of(t, r->name),
		.first_thread = number_of(t, r->first_thread),
		.n_disks = (uint32_t)r->n_disks,
		.of_fuse = r->fuse != NULL};
	for (size_t i = 0; i < r->n_disks; i++) {
		t->disks = alloc_room(t->disks, t->n_disks, sizeof(*t->disks));
		t->disks[t->n_disks++] = r->disks[i];
	}
	if (r->fuse) {
		t->fuses = alloc_room(t->fuses, t->n_fuses, sizeof(*t->fuses));
		t->fuses[t->n_fuses++] = (struct table_fuse){.u = *r->fuse,
			.thread = number_of(t, r->fuse->thread),
			.path = number_of(t, r->fuse->path)};
	}
	t->n++;
	return flush_full(t, e);
}

static int take_alone(void *ctx, uint32_t node, const struct flow_disk *d, struct err *e)
{
	struct flow_table *t = ctx;

	t->alone = alloc_room(t->alone, t->n_alone, sizeof(*t->alone));
	t->alone[t->n_alone++] = (struct table_alone){.d = *d, .node = node, .after = t->n};
	return flush_full(t, e);
}

struct flow_sink flow_table_sink(struct flow_table *t)
{
	return (struct flow_sink){.request = take_request, .disk = take_alone, .ctx = t};
}

static void block_head(struct block *b, const struct flow_table *t, const struct flow *f)
{
	uint64_t v[HEAD_COUNTS + COUNTS] = {[HEAD_VERSION] = VERSION,
		[HEAD_BLOCKS] = t->blocks,
		[HEAD_NOW] = (uint64_t)f->now_ns,
		[HEAD_SECONDS] = (uint64_t)f->n_seconds,
		[HEAD_LAYERS] = flow_layers(f)};

	memcpy(v + HEAD_COUNTS, &f->counts, sizeof(f->counts));
	block_rows(b, &numbers_kind, v, HEAD_COUNTS + COUNTS);
}

/* Each node's name and architecture, then the layers' names. */
static void block_names(struct block *b, const struct flow *f)
{
	char *text;
	size_t size;
	FILE *out = alloc_text(&text, &size);

	for (size_t i = 0; i < f->n_nodes; i++) {
		fwrite(f->nodes[i].name, strlen(f->nodes[i].name) + 1, 1, out);
		fwrite(f->nodes[i].arch, strlen(f->nodes[i].arch) + 1, 1, out);
	}
	for (size_t i = 0; i < flow_layers(f); i++)
		fwrite(flow_layer_name(f, i), strlen(flow_layer_name(f, i)) + 1, 1, out);
	fclose(out);
	block_add(b, text, size);
	free(text);
}

/* Pairs of nodes that have exchanged messages, and the windows of their tracks. */
static void block_clocks(struct block *b, const struct flow *f)
{
	struct table_pair *pairs = NULL;
	struct track_row *windows = NULL, window;
	size_t n_pairs = 0, n_windows = 0;

	for (size_t i = 0; i < f->n_nodes * f->n_nodes; i++) {
		struct table_pair row = {.p = f->pairs[i],
			.index = (uint32_t)i,
			.length_ns = track_length(f->pairs[i].track)};

		if (!row.length_ns && !row.p.has_low && !row.p.has_high)
			continue;
		while (track_get(f->pairs[i].track, row.windows, &window)) {
			windows = alloc_room(windows, n_windows, sizeof(*windows));
			windows[n_windows++] = window;
			row.windows++;
		}
		pairs = alloc_room(pairs, n_pairs, sizeof(*pairs));
		pairs[n_pairs++] = row;
	}
	block_rows(b, &pairs_kind, pairs, n_pairs);
	block_rows(b, &windows_kind, windows, n_windows);
	free(pairs);
	free(windows);
}

int flow_table_end(struct flow_table *t, const struct flow *f, struct err *e)
{
	struct block b = {0};
	int rc = t->n_requests || t->n_alone ? flow_table_flush(t, e) : 0;

	if (rc)
		return rc;
	block_head(&b, t, f);
	block_names(&b, f);
	block_rows(&b, &nodes_kind, f->nodes, f->n_nodes);
	block_clocks(&b, f);
	block_rows(&b, &bins_kind, f->bins, (size_t)f->n_seconds * flow_layers(f) * f->n_nodes);
	rc = t->put(t->ctx, 0, b.data, b.size, e);
	free(b.data);
	return rc;
}

/* ---- reading ---- */

struct table_reader {
	char *name;
	flow_table_get get;
	void *ctx;
	uint32_t blocks;
	uint64_t n; /* requests so far */
	const char **texts;
	size_t n_texts;
	char **memory; /* of texts */
	size_t n_memory;
	/* Of the block at hand. */
	struct rows requests, disks, fuses, alone;
	size_t next_disk, next_fuse, next_alone;
};

void table_reader_free(struct table_reader *r)
{
	if (!r)
		return;
	free(r->requests.v);
	free(r->disks.v);
	free(r->fuses.v);
	free(r->alone.v);
	free(r->texts);
	for (size_t i = 0; i < r->n_memory; i++)
		free(r->memory[i]);
	free(r->memory);
	free(r->name);
	free(r);
}

/* Adds the texts of a piece, which stay until the end. */
static bool reader_texts(struct table_reader *r, const struct piece *p)
{
	char *copy;

	if (!p->size)
		return true;
	if (p->data[p->size - 1])
		return false;
	copy = alloc_zero(p->size, 1);
	memcpy(copy, p->data, p->size);
	r->memory = alloc_room(r->memory, r->n_memory, sizeof(*r->memory));
	r->memory[r->n_memory++] = copy;
	for (const char *s = copy; s < copy + p->size; s += strlen(s) + 1) {
		r->texts = alloc_room(r->texts, r->n_texts, sizeof(*r->texts));
		r->texts[r->n_texts++] = s;
	}
	return true;
}

static bool text_at(const struct table_reader *r, uint32_t number, const char **out)
{
	if (number > r->n_texts)
		return false;
	*out = number ? r->texts[number - 1] : NULL;
	return true;
}

static bool is_node(const struct flow *f, uint32_t node)
{
	return node < f->n_nodes || node == FLOW_NO_NODE;
}

/* The difference of two is a number, and so is what an offset makes of one. */
static bool is_time(int64_t ns)
{
	return ns >= 0 && ns <= INT64_MAX / 2;
}

static bool is_offset(int64_t ns)
{
	return ns >= -(INT64_MAX / 4) && ns <= INT64_MAX / 4;
}

static bool is_span(const struct flow *f, const struct flow_span *s)
{
	return s->how <= FLOW_CONTENT && is_node(f, s->node) && is_time(s->begin_ns) &&
		is_time(s->end_ns);
}

static bool is_disk(const struct flow_disk *d)
{
	return d->how <= FLOW_CONTENT && d->class < CALL_CLASS_COUNT && is_time(d->begin_ns) &&
		is_time(d->end_ns);
}

static bool reader_fuse(const struct flow *f, struct table_reader *r, const struct flow_fuse **out)
{
	struct table_fuse *row = (struct table_fuse *)r->fuses.v + r->next_fuse;
	struct flow_fuse *u = &row->u;
	const char *thread;

	if (r->next_fuse == r->fuses.n || !text_at(r, row->thread, &thread) ||
		!text_at(r, row->path, &u->path) || !is_span(f, &u->kernel) ||
		!is_span(f, &u->daemon) || !is_span(f, &u->call))
		return false;
	strncpy(u->thread, thread ? thread : "", sizeof(u->thread) - 1);
	r->next_fuse++;
	*out = u;
	return true;
}

/* Completes a request of the block by all that it points to. */
static bool reader_request(const struct flow *f, struct table_reader *r, struct table_request *row)
{
	struct flow_request *p = &row->r;

	if (!text_at(r, row->name, &p->name) || !text_at(r, row->first_thread, &p->first_thread) ||
		!is_node(f, p->client) || !is_node(f, p->server) || !is_span(f, &p->sent) ||
		!is_span(f, &p->received) || !is_span(f, &p->answered) ||
		!is_span(f, &p->returned) || p->fuse_how > FLOW_CONTENT ||
		p->reasons >> FLOW_REASONS || !is_offset(p->offset_ns) ||
		p->width_ns > INT64_MAX / 2 || row->n_disks > r->disks.n - r->next_disk ||
		(row->of_fuse && !reader_fuse(f, r, &p->fuse)))
		return false;
	if (!p->first_thread)
		p->first_thread = "";
	p->disks = (struct flow_disk *)r->disks.v + r->next_disk;
	p->n_disks = row->n_disks;
	r->next_disk += row->n_disks;
	return true;
}

/* Disk calls that came before the next request. */
static int emit_alone(const struct flow *f, struct table_reader *r, struct err *e)
{
	int rc = 0;

	for (; !rc && r->next_alone < r->alone.n; r->next_alone++) {
		const struct table_alone *row = (struct table_alone *)r->alone.v + r->next_alone;

		if (row->after > r->n)
			return 0;
		if (!is_node(f, row->node) || !is_disk(&row->d))
			return damaged(r->name, e);
		if (f->sink.disk)
			rc = f->sink.disk(f->sink.ctx, row->node, &row->d, e);
	}
	return rc;
}

static int emit_block(const struct flow *f, struct table_reader *r, struct err *e)
{
	struct table_request *rows = r->requests.v;
	int rc = emit_alone(f, r, e);

	for (size_t i = 0; !rc && i < r->requests.n; i++) {
		if (!reader_request(f, r, &rows[i]))
			return damaged(r->name, e);
		if (f->sink.request)
			rc = f->sink.request(f->sink.ctx, &rows[i].r, e);
		r->n++;
		rc = rc ?: emit_alone(f, r, e);
	}
	return rc ?: r->next_alone < r->alone.n ? damaged(r->name, e) : 0;
}

static bool reader_block(struct table_reader *r, const uint8_t *data, size_t size)
{
	struct piece pieces[PIECES];
	const struct flow_disk *disks;

	r->next_disk = r->next_fuse = r->next_alone = 0;
	if (block_split(data, size, pieces, PIECES) != PIECES || !reader_texts(r, &pieces[TEXTS]) ||
		!piece_rows(&pieces[REQUESTS], &requests_kind, &r->requests) ||
		!piece_rows(&pieces[DISKS], &disks_kind, &r->disks) ||
		!piece_rows(&pieces[FUSES], &fuses_kind, &r->fuses) ||
		!piece_rows(&pieces[ALONE], &alone_kind, &r->alone))
		return false;
	disks = r->disks.v;
	for (size_t i = 0; i < r->disks.n; i++)
		if (!is_disk(&disks[i]))
			return false;
	return true;
}

int table_run(struct flow *f, struct err *e)
{
	struct table_reader *r = f->reader;
	unsigned char *data;
	size_t size;
	int rc = 0;

	for (uint32_t i = 1; !rc && i <= r->blocks; i++) {
		rc = f->sink.look ? f->sink.look(f->sink.ctx, e) : 0;
		rc = rc ?: r->get(r->ctx, i, &data, &size, e);
		if (rc < 0)
			return rc;
		if (!rc)
			return damaged(r->name, e);
		rc = reader_block(r, data, size) ? emit_block(f, r, e) : damaged(r->name, e);
		free(data);
	}
	return rc;
}

/* The next text of a piece, and moves behind it; NULL: there is none. */
static const char *next_text(struct piece *p)
{
	const char *s = (const char *)p->data, *end = p->size ? memchr(s, 0, p->size) : NULL;

	if (!end)
		return NULL;
	p->size -= (size_t)(end + 1 - s);
	p->data += end + 1 - s;
	return s;
}

/* Names of nodes; are those of the layers the protocol's? 1; 0: they are not; -1: damaged. */
static int open_names(struct flow *f, struct piece *p, size_t n_layers)
{
	const char *name, *arch;

	for (size_t i = 0; i < f->n_nodes; i++) {
		name = next_text(p);
		arch = next_text(p);
		if (!name || !arch)
			return -1;
		f->nodes[i].name = alloc_copy(name);
		snprintf(f->nodes[i].arch, sizeof(f->nodes[i].arch), "%s", arch);
	}
	if (n_layers != flow_layers(f))
		return 0;
	for (size_t i = 0; i < n_layers; i++) {
		name = next_text(p);
		if (!name)
			return -1;
		if (strcmp(name, flow_layer_name(f, i)) != 0)
			return 0;
	}
	return p->size ? -1 : 1;
}

static bool open_pairs(struct flow *f, const struct rows *pairs, const struct rows *windows)
{
	const struct table_pair *pair = pairs->v;
	const struct track_row *window = windows->v, *end = window + windows->n;

	f->pairs = alloc_zero(f->n_nodes * f->n_nodes, sizeof(*f->pairs));
	for (size_t i = 0; i < pairs->n; i++) {
		struct pair *p;

		if (pair[i].index >= f->n_nodes * f->n_nodes ||
			pair[i].windows > (size_t)(end - window))
			return false;
		p = &f->pairs[pair[i].index];
		if (p->track)
			return false;
		*p = pair[i].p;
		for (uint32_t k = 0; k < pair[i].windows; k++)
			if (!track_put(&p->track, pair[i].length_ns, window++))
				return false;
	}
	return window == end;
}

static bool open_clocks(struct flow *f, const struct piece pieces[STATE_PIECES])
{
	struct rows pairs = {0}, windows = {0};
	const bool good = piece_rows(&pieces[PAIRS], &pairs_kind, &pairs) &&
		piece_rows(&pieces[WINDOWS], &windows_kind, &windows) &&
		open_pairs(f, &pairs, &windows);

	free(pairs.v);
	free(windows.v);
	return good;
}

static bool open_depth(struct flow *f, const struct piece *p, uint64_t seconds)
{
	const size_t one = flow_layers(f) * f->n_nodes;
	struct rows bins = {0};

	if (!piece_rows(p, &bins_kind, &bins) || seconds > ROWS_MAX || bins.n != seconds * one) {
		free(bins.v);
		return false;
	}
	f->bins = bins.v;
	f->n_seconds = (int32_t)seconds;
	return true;
}

static bool open_nodes(struct flow *f, const struct piece *p)
{
	struct rows nodes = {0};
	bool good = piece_rows(p, &nodes_kind, &nodes) && nodes.n && nodes.n <= NODES_MAX;

	if (!good) {
		free(nodes.v);
		return false;
	}
	f->nodes = nodes.v;
	f->n_nodes = nodes.n;
	for (size_t i = 0; i < nodes.n; i++)
		good = good && is_offset(f->nodes[i].hint_ns);
	return good;
}

/* As flow_table_open, but -1: damaged. */
static int open_state(struct flow *f, const uint8_t *data, size_t size)
{
	struct piece pieces[STATE_PIECES] = {0};
	const size_t n = block_split(data, size, pieces, STATE_PIECES);
	struct rows numbers = {0};
	const uint64_t *head;
	int rc = -1;

	if (!n || !piece_rows(&pieces[HEAD], &numbers_kind, &numbers) || !numbers.n) {
		free(numbers.v);
		return -1;
	}
	head = numbers.v;
	if (head[HEAD_VERSION] != VERSION) {
		rc = 0;
	} else if (numbers.n == HEAD_COUNTS + COUNTS && n == STATE_PIECES &&
		is_offset((int64_t)head[HEAD_NOW]) && open_nodes(f, &pieces[NODES])) {
		f->reader->blocks = (uint32_t)head[HEAD_BLOCKS];
		f->now_ns = (int64_t)head[HEAD_NOW];
		memcpy(&f->counts, head + HEAD_COUNTS, sizeof(f->counts));
		rc = open_names(f, &pieces[NAMES], head[HEAD_LAYERS]);
		if (rc == 1 &&
			!(open_clocks(f, pieces) &&
				open_depth(f, &pieces[DEPTH], head[HEAD_SECONDS])))
			rc = -1;
	}
	free(numbers.v);
	return rc;
}

int flow_table_open(struct flow *f, const char *name, flow_table_get get, void *ctx, struct err *e)
{
	unsigned char *data;
	size_t size;
	int rc = get(ctx, 0, &data, &size, e);

	if (rc <= 0)
		return rc;
	f->reader = alloc_zero(1, sizeof(*f->reader));
	*f->reader = (struct table_reader){.name = alloc_copy(name), .get = get, .ctx = ctx};
	rc = open_state(f, data, size);
	free(data);
	if (rc == 1)
		return 1;
	flow_nodes_clear(f);
	f->counts = (struct flow_counts){0};
	return rc ? damaged(name, e) : 0;
}
