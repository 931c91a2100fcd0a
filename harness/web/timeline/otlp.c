/*
 * OpenTelemetry's spans: ExportTraceServiceRequest of opentelemetry/proto/collector/trace/v1 as
 * JSON (ids in hexadecimal, 64-bit numbers as strings). Spans of one process are under one
 * resource, which is repeated if its tracks are not adjacent.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/hash.h"
#include "harness/web/timeline/detail.h"
#include "harness/web/timeline/arrow_index.h"

enum { KIND_INTERNAL = 1, STATUS_ERROR = 2 };

struct otlp {
	struct timeline *t;
	struct arrow_index joints;
	struct detail detail; /* groups of slices joined by arrows */
	FILE *f;
	uint64_t run; /* part of the trace ids, so that those of two runs differ */
};

static void otlp_put_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ')
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void put_attribute(FILE *f, bool first, const char *key, const char *text)
{
	fputs(first ? "{\"key\":" : ",{\"key\":", f);
	otlp_put_text(f, key);
	fputs(",\"value\":{\"stringValue\":", f);
	otlp_put_text(f, text);
	fputs("}}", f);
}

static void otlp_put_number(FILE *f, const char *key, int64_t value)
{
	fputs(",{\"key\":", f);
	otlp_put_text(f, key);
	fprintf(f, ",\"value\":{\"intValue\":\"%" PRId64 "\"}}", value);
}

static const char *track_name(const struct timeline *t, int32_t track)
{
	return words_text(&t->words, t->tracks[track].name);
}

/* The track or its nearest ancestor of this kind, or TIMELINE_NONE. */
static int32_t above(const struct timeline *t, int32_t track, enum timeline_kind kind)
{
	while (track >= 0 && t->tracks[track].kind != kind)
		track = t->tracks[track].parent;
	return track;
}

/* Attributes shared by the spans of a track. */
struct resource {
	int32_t process, node, cluster;
};

static struct resource resource_of(const struct timeline *t, int32_t track)
{
	return (struct resource){above(t, track, TIMELINE_PROCESS), above(t, track, TIMELINE_NODE),
		above(t, track, TIMELINE_CLUSTER)};
}

static void begin_resource(struct otlp *o, const struct resource *r, bool first)
{
	const struct timeline *t = o->t;
	int32_t service = r->process >= 0 ? r->process : r->node >= 0 ? r->node : r->cluster;

	fputs(first ? "{\"resource\":{\"attributes\":[" : ",{\"resource\":{\"attributes\":[", o->f);
	put_attribute(
		o->f, true, "service.name", service >= 0 ? track_name(t, service) : "culprit");
	if (r->node >= 0)
		put_attribute(o->f, false, "host.name", track_name(t, r->node));
	if (r->cluster >= 0)
		put_attribute(o->f, false, "culprit.cluster", track_name(t, r->cluster));
	put_attribute(o->f, false, "culprit.run", words_text(&t->words, t->run));
	fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"culprit\",\"version\":\"" CULPRIT_VERSION
	      "\"},\"spans\":[",
		o->f);
}

static void put_ids(struct otlp *o, const char *trace, const char *span, uint32_t number)
{
	uint64_t root = number < o->joints.n_slices ? detail_root(&o->detail, number) : number;

	fprintf(o->f, "\"%s\":\"%016" PRIx64 "%016" PRIx64 "\",\"%s\":\"%016" PRIx64 "\"", trace,
		o->run, root + 1, span, number + (uint64_t)1);
}

/* The first forward arrow into a slice comes from its parent; the others are links. */
static uint32_t put_parent(struct otlp *o, uint32_t number)
{
	const struct arrow_index *j = &o->joints;

	for (uint32_t i = j->into_first[number + 1]; i < j->into_first[number + 2]; i++)
		if (arrow_index_leads_on(j, j->into[i])) {
			fprintf(o->f, ",\"parentSpanId\":\"%016" PRIx64 "\"",
				j->arrows[j->into[i]].from + (uint64_t)1);
			return i;
		}
	return UINT32_MAX;
}

static const char *const links[] = {"exact", "by thread", "by content"};

static void put_links(struct otlp *o, uint32_t number, uint32_t parent)
{
	const struct arrow_index *j = &o->joints;
	bool first = true;

	for (uint32_t i = j->into_first[number + 1]; i < j->into_first[number + 2]; i++) {
		const struct stored_arrow *a = &j->arrows[j->into[i]];

		if (i == parent)
			continue;
		fputs(first ? ",\"links\":[{" : ",{", o->f);
		first = false;
		put_ids(o, "traceId", "spanId", a->from);
		fputs(",\"attributes\":[", o->f);
		put_attribute(o->f, true, "culprit.link", links[a->link]);
		fputs("]}", o->f);
	}
	if (!first)
		fputc(']', o->f);
}

static void put_attributes(struct otlp *o, const struct stored *s, uint32_t parent)
{
	const struct stored_arg *args = spill_map(&o->t->args);

	fputs(",\"attributes\":[", o->f);
	put_attribute(o->f, true, "culprit.category", words_text(&o->t->words, s->category));
	put_attribute(o->f, false, "culprit.track", track_name(o->t, s->track));
	if (parent != UINT32_MAX)
		put_attribute(o->f, false, "culprit.link",
			links[o->joints.arrows[o->joints.into[parent]].link]);
	for (unsigned i = 0; args && i < s->n_args; i++) {
		const struct stored_arg *a = &args[s->args + i];
		const char *key = words_text(&o->t->words, a->key);

		if (a->type)
			put_attribute(
				o->f, false, key, words_text(&o->t->words, (uint32_t)a->value));
		else
			otlp_put_number(o->f, key, a->value);
	}
	if (s->flags & TIMELINE_UNFINISHED)
		put_attribute(o->f, false, "culprit.note", "its end was not seen");
	if (s->flags & TIMELINE_DOUBTFUL)
		put_attribute(o->f, false, "culprit.clock", "doubtful");
	fputc(']', o->f);
}

/* Times of OTLP are not negative. */
static uint64_t time_of(int64_t ns)
{
	return ns < 0 ? 0 : (uint64_t)ns;
}

static void put_span(struct otlp *o, const struct stored *s, bool first)
{
	uint32_t parent;

	fputs(first ? "{" : ",{", o->f);
	put_ids(o, "traceId", "spanId", s->number);
	parent = put_parent(o, s->number);
	fputs(",\"name\":", o->f);
	otlp_put_text(o->f, words_text(&o->t->words, s->name));
	fprintf(o->f,
		",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64
		"\"",
		KIND_INTERNAL, time_of(s->start_ns), time_of(stored_end(s)));
	put_attributes(o, s, parent);
	put_links(o, s->number, parent);
	if (s->flags & TIMELINE_FAILED)
		fprintf(o->f, ",\"status\":{\"code\":%d}", STATUS_ERROR);
	fputc('}', o->f);
}

static void put_spans(struct otlp *o)
{
	struct resource r = {0};
	struct spill_merge m;
	const struct stored *s;
	int32_t track = TIMELINE_NONE;
	bool first = true, open = false;

	spill_merge_init(&m, &o->t->slices);
	while ((s = spill_next(&m))) {
		if (s->track != track) {
			struct resource next = resource_of(o->t, s->track);

			if (!open || memcmp(&next, &r, sizeof(r)) != 0) {
				if (open)
					fputs("]}]}", o->f);
				begin_resource(o, &next, !open);
				first = open = true;
			}
			r = next;
			track = s->track;
		}
		put_span(o, s, first);
		first = false;
	}
	if (open)
		fputs("]}]}", o->f);
	spill_merge_clear(&m);
}

/* A hash that identifies the run. */
static uint64_t run_id(const struct timeline *t)
{
	const char *run = words_text(&t->words, t->run), *title = words_text(&t->words, t->title);
	const uint64_t h = hash_bytes(title, strlen(title), hash_text(run));

	return hash_bytes(&t->from_ns, sizeof(t->from_ns), h);
}

int timeline_otlp(struct timeline *t, FILE *f, struct err *e)
{
	struct otlp o = {.t = t, .f = f, .run = run_id(t)};
	int rc = timeline_failed(t, e);

	if (!rc)
		rc = arrow_index_init(&o.joints, t, e);
	if (!rc) {
		detail_init(&o.detail, t);
		fputs("{\"resourceSpans\":[", f);
		put_spans(&o);
		fputs("]}\n", f);
		rc = timeline_failed(t, e);
	}
	detail_clear(&o.detail);
	arrow_index_clear(&o.joints);
	return rc ? rc : timeline_written(f, e);
}
