/* Opens the table or the logs of an attempt to follow its requests, and stores the table. */
#include "harness/judging/flows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/flow/protocol.h"
#include "diag/flow/table.h"
#include "diag/record/stream.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/fs/fs.h"
#include "harness/judging/places.h"
#include "harness/judging/writings.h"

/* Whose table of requests. */
struct stored {
	struct store *store;
	int64_t attempt, recording;
};

struct flows {
	struct stored stored;
	struct fs *fs;
	struct places places;
	struct flow *flow;
	/* The first log, as NODE.FILE, that is not a flow log, that lacks heads, or whose
	 * recording was changed, and how. NULL: none. */
	char *no_flow, *no_heads, *changed, *change;
	bool may; /* a log of the file system may be one of flows with heads */
	void (*opened)(void *ctx, struct stream *s, const char *node);
	void *ctx;
	size_t n_logs;
	char **missing; /* sentences */
	size_t n_missing;
};

static int load_fs(struct store *s, const char *type, struct fs **out, struct err *e)
{
	auto_free char *recorded = NULL;
	int rc = type ? 1 : store_get(s, "file_system_type", &recorded, e);

	if (rc == 0)
		return err_set(e, -EINVAL,
			"'%s' does not record its file system; name it with "
			"--file-system",
			store_folder(s));
	return rc < 0 ? rc : fs_load(type ? type : recorded, out, e);
}

/* A log's own description; older logs have none. */
static void look_at_head(
	struct flows *f, const struct log_head *h, enum place_log log, const char *name)
{
	const uint32_t mode = h->how & LOG_MODE;

	if (log == PLACE_FS && (!mode || (mode == LOG_FLOW && h->how & LOG_HEADS)))
		f->may = true;
	if (mode && mode != LOG_FLOW && !f->no_flow)
		f->no_flow = alloc_copy(name);
	if (mode == LOG_FLOW && !(h->how & LOG_HEADS) && !f->no_heads)
		f->no_heads = alloc_copy(name);
}

struct one_log {
	struct flows *flows;
	char *name;
};

static int take_mark(void *ctx, struct stream_item *item, struct err *e)
{
	const struct one_log *l = ctx;
	const struct record *rec = item->record;

	(void)e;
	if (rec->type != RECORD_MARK || !strcmp(rec->mark.text, "on") || l->flows->changed)
		return 0;
	l->flows->changed = alloc_copy(l->name);
	l->flows->change = alloc_copy(rec->mark.text);
	return 0;
}

static void free_one(void *ctx)
{
	struct one_log *l = ctx;

	free(l->name);
	free(l);
}

static void watch_marks(struct flows *f, struct stream *s, const char *name)
{
	const struct stream_consumer marks = {
		.feed = take_mark, .free = free_one, .classes = 1u << CALL_CLASS_COUNT};
	struct one_log *l = alloc_zero(1, sizeof(*l));

	*l = (struct one_log){f, alloc_copy(name)};
	stream_add(s, &marks, l);
}

static int flows_add_log(struct flows *f, const char *folder, const struct place *p,
	enum place_log log, struct err *e)
{
	const struct stream_spec spec = places_stream(&f->places, p, log);
	auto_free char *name = alloc_format("%s.%s", p->name, place_log_names[log]);
	auto_free char *path = alloc_format("%s/%s", folder, name);
	struct stream *stream;
	int rc = stream_new(path, &spec, &stream, e);

	if (!rc) {
		look_at_head(f, stream_head(stream), log, name);
		watch_marks(f, stream, name);
		rc = flow_add(f->flow, p->name, stream, e);
	}
	if (!rc) {
		f->n_logs++;
		if (f->opened)
			f->opened(f->ctx, stream, p->name);
	}
	if (rc == -ENOMEM || !rc)
		return rc;
	f->missing = alloc_room(f->missing, f->n_missing, sizeof(*f->missing));
	f->missing[f->n_missing++] = alloc_copy(e->text);
	return 0;
}

static bool has_app(const char *folder, const struct place *p)
{
	auto_free char *path = alloc_format(
		"%s/%s.%s", folder, p->name, place_log_names[PLACE_APP]);

	return access(path, F_OK) == 0;
}

/* 'recorded' manually or by a flight recorder: applications were traced only on request, if they
 * ran. */
static int add_logs(struct flows *f, const char *folder, bool recorded, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < f->places.n; i++) {
		const struct place *p = &f->places.place[i];

		rc = flows_add_log(f, folder, p, PLACE_FS, e);
		if (!rc && !places_is_server(&f->places, p) && (!recorded || has_app(folder, p)))
			rc = flows_add_log(f, folder, p, PLACE_APP, e);
	}
	if (!rc && !f->n_logs)
		rc = f->n_missing ? err_set(e, -ENOENT, "%s", f->missing[0])
				  : err_set(e, -EINVAL, "the run has no description of its nodes");
	return rc;
}

/* ---- the table ---- */

static int get_block(void *ctx, uint32_t block, unsigned char **data, size_t *size, struct err *e)
{
	const struct stored *t = ctx;

	return store_get_requests(t->store, t->attempt, t->recording, block, data, size, e);
}

static int put_block(void *ctx, uint32_t block, const void *data, size_t size, struct err *e)
{
	const struct stored *t = ctx;

	return store_put_requests(t->store, t->attempt, t->recording, block, data, size, e);
}

/* ---- opening ---- */

static int refuse_corpus(struct store *s, struct err *e)
{
	return err_set(e, -EINVAL, "'%s' is a corpus: the traces are not in it", store_folder(s));
}

/* Everything but the requests' source. */
static int flows_begin(struct store *s, const json_t *row, const char *fs_type,
	const struct flow_sink *sink, struct flows *f, struct err *e)
{
	const json_t *cluster = jget(jget(row, "detail"), "reduction");
	struct flow_spec spec = {.start_ns = jget_int(row, "start_ns"),
		.seconds = (int32_t)jget_int(row, "seconds")};
	int rc = 0;

	f->stored = (struct stored){
		s, jget_int(row, "attempt"), jget_int(jget(row, "written"), "number")};
	if (!json_is_object(cluster))
		rc = err_set(e, -EINVAL,
			"'%s' is of an older version, which did not keep nodes' addresses and "
			"clocks",
			store_folder(s));
	rc = rc ?: load_fs(s, fs_type, &f->fs, e) ?: places_read(&f->places, cluster, e);
	if (rc)
		return rc;
	spec.protocol = fs_protocol(f->fs);
	if (f->places.n)
		spec.start_ns += f->places.place[0].offset_ns;
	flow_new(&spec, sink, &f->flow);
	return 0;
}

static int open_logs(struct flows *f, const json_t *row, struct err *e)
{
	auto_free char *folder = writing_folder(store_folder(f->stored.store), row);
	const bool recorded = jget(jget(row, "detail"), "recording") || jget(row, "written");

	return store_is_corpus(f->stored.store) ? refuse_corpus(f->stored.store, e)
						: add_logs(f, folder, recorded, e);
}

int flows_open(struct store *s, const json_t *row, const char *fs_type,
	const struct flow_sink *sink,
	void (*opened)(void *ctx, struct stream *stream, const char *node), void *ctx,
	struct flows **out, struct err *e)
{
	struct flows *f = alloc_zero(1, sizeof(*f));
	int rc;

	f->opened = opened;
	f->ctx = ctx;
	rc = store_is_corpus(s) ? refuse_corpus(s, e) : 0;
	rc = rc ?: flows_begin(s, row, fs_type, sink, f, e) ?: open_logs(f, row, e);
	if (rc)
		flows_free(f);
	else
		*out = f;
	return rc;
}

int flows_new(struct store *s, const json_t *row, const char *fs_type, const struct flow_sink *sink,
	struct flows **out, struct err *e)
{
	const int stored = fs_type || sink->fuse
		? 0
		: store_has_requests(s, jget_int(row, "attempt"), e);
	struct flows *f;
	int rc;

	if (stored <= 0)
		return stored ?: flows_open(s, row, fs_type, sink, NULL, NULL, out, e);
	f = alloc_zero(1, sizeof(*f));
	rc = flows_begin(s, row, NULL, sink, f, e);
	if (!rc) {
		auto_free char *name = alloc_format(
			"'%s', attempt %lld", store_folder(s), (long long)f->stored.attempt);

		rc = flow_table_open(f->flow, name, get_block, &f->stored, e);
		rc = rc == 1 ? 0 : rc ?: open_logs(f, row, e);
	}
	if (rc)
		flows_free(f);
	else
		*out = f;
	return rc;
}

/* ---- storing ---- */

/* Reads the logs. 1: the table is stored and whole; 0: there is none to have. */
static int store_table_of(struct store *s, const json_t *row, struct err *e)
{
	struct stored to = {s, jget_int(row, "attempt"), jget_int(jget(row, "written"), "number")};
	struct flow_table *table;
	struct flow_sink sink;
	struct flows *f = NULL;
	struct err ignored;
	char why[512];
	int rc;

	flow_table_new(put_block, &to, &table);
	sink = flow_table_sink(table);
	rc = flows_open(s, row, NULL, &sink, NULL, NULL, &f, &ignored);
	if (!rc && flows_protocol(f) && f->may && !f->n_missing) {
		rc = flow_run(f->flow, e) ?: flow_table_end(table, f->flow, e);
		rc = rc ?: flows_complete(f, why, sizeof(why)) && !flows_trouble(f, 0);
	} else {
		rc = 0; /* readers of the logs say why */
	}
	flows_free(f);
	flow_table_free(table);
	return rc;
}

static int store_one(struct store *s, const json_t *row, struct err *e)
{
	const int rc = store_table_of(s, row, e);

	return rc < 0 ? rc
		: rc  ? 0
		      : store_drop_requests(s, jget_int(row, "attempt"),
				jget_int(jget(row, "written"), "number"), e);
}

int flows_store(struct store *s, const json_t *row, struct err *e)
{
	const size_t n = writing_count(row, NULL);
	int rc = store_drop_requests(s, jget_int(row, "attempt"), -1, e);

	if (!n)
		return rc ?: store_one(s, row, e);
	for (size_t i = 1; !rc && i <= n; i++) {
		auto_json json_t *one = writing_row(row, i);

		rc = store_one(s, one, e);
	}
	return rc;
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	if (f->flow)
		flow_free(f->flow);
	for (size_t i = 0; i < f->n_missing; i++)
		free(f->missing[i]);
	free(f->missing);
	places_clear(&f->places);
	fs_free(f->fs);
	free(f->no_flow);
	free(f->no_heads);
	free(f->changed);
	free(f->change);
	free(f);
}

struct flow *flows_flow(const struct flows *f)
{
	return f->flow;
}

const struct flow_protocol *flows_protocol(const struct flows *f)
{
	return fs_protocol(f->fs);
}

/* flow.h numbers only nodes that have logs. */
static const struct place *flows_place_of(const struct flows *f, uint32_t node)
{
	return places_find(&f->places, flow_node_name(f->flow, node));
}

int64_t flows_clock_ns(const struct flows *f, uint32_t node)
{
	const struct place *p = flows_place_of(f, node);

	return p ? p->offset_ns : 0;
}

bool flows_is_server(const struct flows *f, uint32_t node)
{
	const struct place *p = flows_place_of(f, node);

	return p && places_is_server(&f->places, p);
}

const char *flows_trouble(const struct flows *f, size_t i)
{
	return i < f->n_missing ? f->missing[i] : flow_cut(f->flow, i - f->n_missing);
}

bool flows_complete(const struct flows *f, char *why, size_t size)
{
	static const char run[] =
		"run the scenario with tracer = { \"ebpf\", mode = \"flow\", heads = true }";
	const struct flow_counts *c = flow_counts(f->flow);

	if (c->requests)
		return true;
	if (!flows_protocol(f))
		snprintf(why, size,
			"no requests, because the file system's Lua file describes no "
			"messages (see 'messages' in harness/lua/culprit.meta.lua)");
	else if (f->no_flow)
		snprintf(why, size, "%s is not a flow log: %s", f->no_flow, run);
	else if (f->no_heads)
		snprintf(why, size, "%s is a flow log without heads of messages: %s", f->no_heads,
			run);
	else if (c->reasons[FLOW_NO_POSITION] && !c->receives_bound)
		snprintf(why, size, "the logs have no positions in byte streams: %s", run);
	else if (c->reasons[FLOW_NO_HEADS])
		snprintf(why, size, "the logs have no heads of messages: %s", run);
	else if (f->changed)
		snprintf(why, size,
			"no client's call reached a server whose calls are recorded; %s was "
			"recorded with limits: %s",
			f->changed, f->change);
	else
		snprintf(why, size, "no client's call reached a server whose calls are recorded");
	return false;
}
