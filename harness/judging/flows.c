/* Opens the logs of an attempt to follow its requests. */
#include "harness/judging/flows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/flow/protocol.h"
#include "diag/record/stream.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/fs/fs.h"
#include "harness/judging/places.h"
#include "harness/judging/writings.h"

struct flows {
	struct fs *fs;
	struct places places;
	struct flow *flow;
	/* The first log, as NODE.FILE, that is not of flows, that has no heads, whose recording was
	 * changed; and how. NULL: none. */
	char *no_flow, *no_heads, *changed, *change;
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
			"'%s' does not say which file system it was run on; name it with "
			"--file-system",
			store_folder(s));
	return rc < 0 ? rc : fs_load(type ? type : recorded, out, e);
}

/* What a log says of itself; older ones say nothing. */
static void look_at_head(struct flows *f, const struct log_head *h, const char *name)
{
	const uint32_t mode = h->how & LOG_MODE;

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
		look_at_head(f, stream_head(stream), name);
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

/* 'recorded' by hand, or by a flight recorder: applications were traced only where it was asked for
 * and they ran. */
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
				  : err_set(e, -EINVAL, "the run describes no nodes");
	return rc;
}

int flows_new(struct store *s, const json_t *row, const char *fs_type, const struct flow_sink *sink,
	struct flows **out, struct err *e)
{
	return flows_open(s, row, fs_type, sink, NULL, NULL, out, e);
}

int flows_open(struct store *s, const json_t *row, const char *fs_type,
	const struct flow_sink *sink,
	void (*opened)(void *ctx, struct stream *stream, const char *node), void *ctx,
	struct flows **out, struct err *e)
{
	const json_t *detail = jget(row, "detail"), *cluster = jget(detail, "reduction");
	auto_free char *folder = writing_folder(store_folder(s), row);
	struct flows *f = alloc_zero(1, sizeof(*f));
	struct flow_spec spec = {.start_ns = jget_int(row, "start_ns"),
		.seconds = (int32_t)jget_int(row, "seconds")};
	int rc = 0;

	if (store_is_corpus(s))
		rc = err_set(
			e, -EINVAL, "'%s' is a corpus: the traces are not in it", store_folder(s));
	else if (!json_is_object(cluster))
		rc = err_set(e, -EINVAL,
			"'%s' was run by a culprit that did not keep its nodes' addresses and "
			"clocks",
			store_folder(s));
	f->opened = opened;
	f->ctx = ctx;
	rc = rc ?: load_fs(s, fs_type, &f->fs, e) ?: places_read(&f->places, cluster, e);
	if (!rc) {
		spec.protocol = fs_protocol(f->fs);
		if (f->places.n)
			spec.start_ns += f->places.place[0].offset_ns;
		flow_new(&spec, sink, &f->flow);
		rc = add_logs(f, folder, jget(detail, "recording") || jget(row, "written"), e);
	}
	if (rc)
		flows_free(f);
	else
		*out = f;
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

/* Nodes of flow.h are those that have logs. */
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
			"the file system's Lua file describes no messages, so there are no "
			"requests; 'messages' in harness/lua/culprit.meta.lua says how");
	else if (f->no_flow)
		snprintf(why, size, "%s is no log of flows: %s", f->no_flow, run);
	else if (f->no_heads)
		snprintf(why, size, "%s is a log of flows without heads of messages: %s",
			f->no_heads, run);
	else if (c->reasons[FLOW_NO_POSITION] && !c->receives_bound)
		snprintf(why, size, "the logs have no positions in byte streams: %s", run);
	else if (c->reasons[FLOW_NO_HEADS])
		snprintf(why, size, "the logs have no heads of messages: %s", run);
	else if (f->changed)
		snprintf(why, size,
			"no client's call reached a server whose calls are recorded; %s was "
			"told to record less: %s",
			f->changed, f->change);
	else
		snprintf(why, size, "no client's call reached a server whose calls are recorded");
	return false;
}
