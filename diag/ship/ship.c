/* Sends a log's records to a sink in batches of whole blocks. */
#include "diag/ship/ship.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/record/growing.h"
#include "diag/record/layout.h"
#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/sha256.h"

/* Records that change what descriptors and names mean. */
#define STATE (1u << RECORD_FD | 1u << RECORD_PROCESS)

struct ship {
	struct log_reader *log;
	struct stream *stream;
	const struct query_log *of;
	struct ship_sink sink;
	struct ship_spec spec;
	struct ship_counts counts;
	const struct query_table *table_of[16]; /* by record type */
	uint64_t from, batch_from;
	uint64_t at_byte; /* where the block at hand begins */
	struct query_row row;
};

static int64_t id_of(const void *data, size_t size)
{
	uint8_t sum[SHA256_BYTES];
	int64_t id;

	sha256(data, size, sum);
	memcpy(&id, sum, sizeof(id));
	id &= INT64_MAX;
	return id ? id : 1;
}

int64_t ship_text_id(const char *text)
{
	return id_of(text, strlen(text));
}

/* The head and the first block; 'block' 0: that is not whole yet. */
static int read_begin(const char *path, uint8_t *data, size_t room, size_t *block, struct err *e)
{
	const int fd = file_open_readable(path, "the log ", e);
	size_t size = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	while (size < room && (n = read(fd, data + size, room - size)) > 0)
		size += (size_t)n;
	close(fd);
	if (size < LAYOUT_HEAD)
		return err_set(e, -EINVAL, "'%s' is not a trace log", path);
	*block = LAYOUT_BLOCK_HEAD;
	if (size >= LAYOUT_HEAD + LAYOUT_BLOCK_HEAD)
		*block += bytes_get32(data + LAYOUT_HEAD + 4);
	if (size < LAYOUT_HEAD + *block)
		*block = 0;
	return 0;
}

static int find_id(const char *path, int64_t *id, bool *has_block, struct err *e)
{
	uint8_t data[LAYOUT_HEAD + LAYOUT_BLOCK_HEAD + LAYOUT_PAYLOAD];
	size_t block = 0;
	int rc = read_begin(path, data, sizeof(data), &block, e);

	if (!rc)
		*id = id_of(data, LAYOUT_HEAD + block);
	*has_block = block;
	return rc;
}

int ship_log_id(const char *path, int64_t *id, struct err *e)
{
	bool has_block;

	return find_id(path, id, &has_block, e);
}

/* The stream's source. Of blocks that the sink has got, only what the tables need. */
static int ship_next(void *ctx, const struct record **rec, struct err *e)
{
	struct ship *s = ctx;
	struct ship_counts *c = &s->counts;
	uint64_t block;
	int rc;

	while ((rc = log_next(s->log, rec, e)) == 1) {
		block = log_reader_place(s->log).block;
		if (block != s->at_byte) {
			s->at_byte = block;
			c->blocks++;
			if (s->spec.interrupted && *s->spec.interrupted) {
				err_set(e, -EINTR, "interrupted");
				return err_blame(e, ERR_INTERRUPTED, -EINTR);
			}
		}
		c->records++;
		if (c->blocks > s->from)
			return 1;
		c->before++;
		if (1u << (*rec)->type & STATE)
			return 1;
	}
	return rc;
}

static int keep_names(void *ctx, struct stream_item *item, struct err *e)
{
	(void)ctx, (void)item, (void)e;
	return 0;
}

static int ship_show(struct ship *s, struct stream_item *item, struct err *e)
{
	const unsigned type = item->record->type;
	const struct query_table *t = type < 16 ? s->table_of[type] : NULL;

	if (!t) {
		s->counts.plain++;
		return 0;
	}
	s->row.item = item;
	s->counts.sent++;
	return s->sink.row(s->sink.ctx, t, &s->row, e);
}

static int read_rows(struct ship *s, struct err *e)
{
	struct ship_counts *c = &s->counts;
	struct stream_item *item;
	uint64_t block;
	int rc, failed;

	while ((rc = stream_next(s->stream, &item, e)) == 1) {
		if (c->blocks <= s->from)
			continue;
		block = c->blocks - 1;
		if (block >= s->batch_from + s->spec.batch_blocks) {
			failed = s->sink.batch(s->sink.ctx, block, e);
			if (failed)
				return failed;
			s->batch_from = block;
		}
		failed = ship_show(s, item, e);
		if (failed)
			return failed;
	}
	c->whole = rc == 0 && log_reader_ended(s->log);
	c->grows = rc == 0 && !c->whole;
	if (rc == -EBADMSG)
		snprintf(c->problem, sizeof(c->problem), "%s", e->text);
	else if (rc < 0)
		return rc;
	if (c->blocks <= s->batch_from || c->blocks <= s->from)
		return 0;
	failed = s->sink.batch(s->sink.ctx, c->blocks, e);
	s->batch_from = c->blocks;
	return failed;
}

int ship_open(const struct query_log *log, int64_t ordinal, const struct ship_spec *spec,
	const struct ship_sink *sink, struct ship **out, struct err *e)
{
	const struct stream_consumer names = {.feed = keep_names, .names = true};
	struct ship *s = alloc_zero(1, sizeof(*s));
	const struct stream_source source = {.next = ship_next, .ctx = s};
	struct ship_subject subject = {.log = log, .ordinal = ordinal};
	bool has_block;
	int rc = find_id(log->path, &subject.id, &has_block, e);

	*s = (struct ship){.of = log, .sink = *sink, .spec = *spec};
	for (const struct query_table *t = query_tables; t->name; t++)
		if (!t->summed && !t->made)
			s->table_of[t->of] = t;
	if (!rc && !has_block && log_is_growing(log->path))
		rc = err_set(e, -EAGAIN, "the log '%s' has no records yet", log->path);
	rc = rc ?: log_reader_new(log->path, &s->log, e);
	rc = rc ?: stream_over(&source, log_reader_head(s->log), &log->spec, &s->stream, e);
	if (!rc) {
		stream_add(s->stream, &names, NULL);
		subject.head = stream_head(s->stream);
		s->row.log = log;
		s->row.head = subject.head;
		rc = s->sink.begin(s->sink.ctx, &subject, &s->from, e);
		s->batch_from = s->from;
	}
	if (rc)
		ship_close(s);
	else
		*out = s;
	return rc;
}

int ship_more(struct ship *s, bool *ended, struct err *e)
{
	int rc = read_rows(s, e);

	*ended = !rc && !s->counts.grows;
	return rc;
}

int ship_end(struct ship *s, struct ship_counts *counts, struct err *e)
{
	s->counts.lost = stream_lost(s->stream);
	if (s->counts.grows)
		snprintf(s->counts.problem, sizeof(s->counts.problem),
			"'%s' is being written, and was sent up to its last whole block: send it "
			"again",
			s->of->name);
	*counts = s->counts;
	return s->sink.end(s->sink.ctx, counts, e);
}

void ship_close(struct ship *s)
{
	if (!s)
		return;
	stream_free(s->stream);
	log_reader_free(s->log);
	free(s);
}

int ship_log(const struct query_log *log, int64_t ordinal, const struct ship_spec *spec,
	const struct ship_sink *sink, struct ship_counts *counts, struct err *e)
{
	struct ship *s = NULL;
	bool ended;
	int rc = ship_open(log, ordinal, spec, sink, &s, e);

	memset(counts, 0, sizeof(*counts));
	counts->grows = rc == -EAGAIN;
	if (rc == -EAGAIN)
		return 0;
	rc = rc ?: ship_more(s, &ended, e) ?: ship_end(s, counts, e);
	ship_close(s);
	return rc;
}
