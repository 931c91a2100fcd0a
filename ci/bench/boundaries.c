/*
 * boundaries RUN: do the metrics cut socket reads into messages where messages begin and end? Of
 * runs that recorded flows with heads, on a file system that describes its messages. In each log a
 * message's header says how long it is, and the calls' stream positions say where the next one
 * begins: the true boundaries. A message that the metrics made is right if a true one began in the
 * same call, ended in the same call, and is of the same kind (request or response, or bulk data)
 * when told by its size, as in logs without heads.
 *
 * By fault and kind of node: true requests and responses, and those that were made right, bulk data
 * likewise, and messages that were made but are none. Where two messages come in one call the
 * second one's header is not seen; such messages are "unseen", and so is what was under way when
 * the tracer came. Exit code 2: it cannot be done, and one line says why.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/message.h"
#include "diag/derive/metrics.h"
#include "diag/flow/protocol.h"
#include "diag/record/describe.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/fs/fs.h"
#include "harness/judging/places.h"
#include "harness/store/store.h"

struct span {
	int64_t start_ns, end_ns;
	bool bulk;
};

struct spans {
	struct span *v;
	size_t n, room;
};

/* A connection as its bytes say. */
struct truth {
	bool synced, open; /* the next header's position is known; a message is under way */
	uint32_t next;     /* position of the byte after the message under way, or of the next */
	uint32_t first;    /* its first byte's */
	int64_t start_ns;
	uint8_t header[FLOW_HEADER];
	uint64_t known;
	uint64_t bytes; /* 0: not known yet */
};

struct count {
	char key[96];
	uint64_t made[2], truth[2], right[2], unseen;
};

struct log_check {
	const struct flow_protocol *p;
	const struct bulk_rule *rule;
	struct bulk_rule by_size;
	enum object_kind kind;
	struct truth *connections;
	size_t n;
	struct spans made, truth;
	uint64_t unseen;
};

static struct count *counts;
static size_t n_counts;

static void add_span(struct spans *s, int64_t start_ns, int64_t end_ns, bool bulk)
{
	if (s->n == s->room) {
		s->room = s->room ? s->room * 2 : 1024;
		s->v = alloc_resize(s->v, s->room, sizeof(*s->v));
	}
	s->v[s->n++] = (struct span){start_ns, end_ns, bulk};
}

static void take_made(void *ctx, const struct message *m)
{
	struct log_check *c = ctx;
	const enum message_kind kind = message_kind(m, &c->by_size);

	if (kind != MESSAGE_HEADER)
		add_span(&c->made, m->start_ns, m->end_ns, kind == MESSAGE_BULK);
}

static struct truth *truth_of(struct log_check *c, uint32_t id)
{
	if (id >= c->n) {
		c->connections = alloc_resize(c->connections, id + 64, sizeof(*c->connections));
		memset(c->connections + c->n, 0, (id + 64 - c->n) * sizeof(*c->connections));
		c->n = id + 64;
	}
	return &c->connections[id];
}

static void lose(struct log_check *c, struct truth *t)
{
	c->unseen += t->synced;
	*t = (struct truth){0};
}

/* The header's bytes that this call shows, and what they say. False: no message begins here. */
static bool read_header(
	struct log_check *c, struct truth *t, const struct record_call *call, uint32_t begin)
{
	const uint32_t at = begin - t->first;
	struct flow_header h;

	for (uint32_t i = 0; i < call->head_size && at + i < FLOW_HEADER; i++) {
		t->header[at + i] = call->head[i];
		t->known |= 1ull << (at + i);
	}
	if (!t->bytes && flow_header_read(c->p, t->header, t->known, false, &h) < 0)
		return false;
	if (!t->bytes && h.bytes) {
		t->bytes = h.bytes;
		t->next = t->first + (uint32_t)h.bytes;
	}
	return true;
}

static void take_read(struct log_check *c, struct truth *t, const struct record_call *call)
{
	const uint32_t end = call->position, begin = end - (uint32_t)call->result;
	const struct flow_values *kind = &c->rule->kind;
	bool bulk;

	if (t->synced && !t->open && begin != t->next)
		lose(c, t);
	if (!t->open) {
		*t = (struct truth){.synced = t->synced,
			.open = true,
			.first = begin,
			.start_ns = call->start_ns};
	}
	if (!read_header(c, t, call, begin)) {
		lose(c, t);
		return;
	}
	t->synced = t->synced || t->bytes;
	if (!t->bytes || (int32_t)(end - t->next) < 0)
		return;       /* it continues */
	if (end != t->next) { /* the next one's beginning came with it */
		lose(c, t);
		return;
	}
	bulk = kind->n
		? flow_field_known(&kind->field, t->known) && flow_values_have(kind, t->header)
		: false;
	add_span(&c->truth, t->start_ns, call->start_ns + call->service_ns, bulk);
	t->open = false;
}

static int feed(void *ctx, struct stream_item *item, struct err *e)
{
	struct log_check *c = ctx;
	const struct record_call *call = &item->record->call;
	const struct fd_state *f;

	(void)e;
	if (item->record->type != RECORD_CALL || item->call->class != CALL_READ ||
		call->unfinished || call->result <= 0 || !call->positioned ||
		call_peeks(item->call, call))
		return 0;
	f = item_fd(item);
	if (f && f->object.kind == c->kind)
		take_read(c, truth_of(c, f->object.id), call);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start_ns != y->start_ns
		? (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns)
		: (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static struct count *count_of(const char *key)
{
	for (size_t i = 0; i < n_counts; i++)
		if (!strcmp(counts[i].key, key))
			return &counts[i];
	counts = alloc_resize(counts, n_counts + 1, sizeof(*counts));
	counts[n_counts] = (struct count){0};
	snprintf(counts[n_counts].key, sizeof(counts->key), "%s", key);
	return &counts[n_counts++];
}

static void compare(struct log_check *c, struct count *k)
{
	if (c->made.n)
		qsort(c->made.v, c->made.n, sizeof(struct span), by_start);
	if (c->truth.n)
		qsort(c->truth.v, c->truth.n, sizeof(struct span), by_start);
	for (size_t i = 0; i < c->made.n; i++)
		k->made[c->made.v[i].bulk]++;
	for (size_t i = 0, j = 0; i < c->truth.n; i++) {
		const struct span *t = &c->truth.v[i], *m;

		k->truth[t->bulk]++;
		while (j < c->made.n && c->made.v[j].start_ns < t->start_ns)
			j++;
		m = j < c->made.n ? &c->made.v[j] : NULL;
		if (m && m->start_ns == t->start_ns && m->end_ns == t->end_ns && m->bulk == t->bulk)
			k->right[t->bulk]++;
	}
	k->unseen += c->unseen;
}

static int check_log(const char *path, const struct stream_spec *spec, const struct fs *fs,
	int64_t start_ns, int32_t seconds, struct count *k, struct err *e)
{
	struct log_check c = {.p = fs_protocol(fs),
		.rule = fs_bulk(fs),
		.by_size = *fs_bulk(fs),
		.kind = spec->owner == OWNER_SERVER ? OBJECT_SERVICE : OBJECT_PEER};
	const struct stream_consumer consumer = {.feed = feed, .classes = 1u << CALL_READ};
	struct metrics *m = NULL;
	struct stream *s = NULL;
	int rc = metrics_new(spec->n_servers, start_ns, seconds, &m, e)
		?: stream_new(path, spec, &s, e);

	c.by_size.kind.n = 0;
	if (!rc) {
		metrics_tell(m, take_made, &c);
		rc = metrics_attach(m, s, e);
	}
	if (!rc) {
		stream_add(s, &consumer, &c);
		rc = stream_run(s, e);
	}
	if (!rc && !(stream_head(s)->how & LOG_HEADS))
		rc = err_set(e, -EINVAL, "'%s' is no log of flows with heads", path);
	if (!rc)
		compare(&c, k);
	stream_free(s);
	metrics_free(m);
	free(c.connections);
	free(c.made.v);
	free(c.truth.v);
	return rc;
}

static int check_attempt(struct store *s, const struct fs *fs, const json_t *row, struct err *e)
{
	auto_free char *folder = places_folder(store_folder(s), row);
	const char *fault = jget_text(row, "fault");
	struct places places = {0};
	int rc = places_read(&places, jget(jget(row, "detail"), "reduction"), e);

	for (size_t i = 0; !rc && i < places.n; i++) {
		const struct place *p = &places.place[i];
		const struct stream_spec spec = places_stream(&places, p, PLACE_FS);
		auto_free char *path = alloc_format("%s/%s.fs.trace", folder, p->name);
		char key[96];

		snprintf(key, sizeof(key), "%s, %s",
			places_is_server(&places, p) ? "server" : "client", fault ?: "none");
		rc = check_log(path, &spec, fs, jget_int(row, "start_ns"),
			(int32_t)jget_int(row, "seconds"), count_of(key), e);
	}
	places_clear(&places);
	return rc;
}

static int check_run(const char *folder, struct err *e)
{
	auto_free char *type = NULL;
	json_auto_t *rows = NULL;
	struct store *s = NULL;
	struct fs *fs = NULL;
	json_t *row;
	size_t i;
	int rc = store_open(folder, &s, e);

	if (!rc && store_get(s, "file_system_type", &type, e) != 1)
		rc = err_set(e, -EINVAL, "'%s' does not name its file system", folder);
	rc = rc ?: fs_load(type, &fs, e) ?: store_rows(s, ROWS_TRACED, 0, &rows, e);
	if (!rc && !fs_protocol(fs))
		rc = err_set(e, -EINVAL, "%s describes no messages", type);
	json_array_foreach(rows, i, row)
		if (!rc)
			rc = check_attempt(s, fs, row, e);
	fs_free(fs);
	store_close(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct err e = {""};

	if (argc != 2) {
		fprintf(stderr, "usage: boundaries RUN\n");
		return 2;
	}
	if (check_run(argv[1], &e)) {
		fprintf(stderr, "boundaries: %s\n", e.text);
		return 2;
	}
	printf("%-36s %27s %27s\n", "", "requests and responses", "bulk data");
	printf("%-36s %8s %8s %8s  %8s %8s %8s %8s\n", "", "there", "made", "right", "there",
		"made", "right", "unseen");
	for (size_t i = 0; i < n_counts; i++) {
		const struct count *k = &counts[i];

		printf("%-36s", k->key);
		for (int b = 0; b < 2; b++)
			printf(" %8llu %8llu %8llu ", (unsigned long long)k->truth[b],
				(unsigned long long)k->made[b], (unsigned long long)k->right[b]);
		printf("%8llu\n", (unsigned long long)k->unseen);
	}
	free(counts);
	return 0;
}
