/*
 * Perfetto's trace: TracePackets of perfetto/trace/trace_packet.proto, each field 1 of Trace. One
 * sequence; names, categories and keys are interned (interned_data.proto). Tracks are written one
 * after the other, slices of a track in order of time. Perfetto sorts events by time, and events
 * with the same time by their order in the file.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/web/timeline/columns.h"
#include "harness/web/timeline/arrow_index.h"

/* Field numbers. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK = 60,
};
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { COUNTER_UNIT_NAME = 6 };
enum {
	EVENT_CATEGORY = 3, /* interned */
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10, /* interned */
	EVENT_TRACK = 11,
	EVENT_CATEGORY_TEXT = 22,
	EVENT_NAME_TEXT = 23,
	EVENT_DOUBLE = 44,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48,
};
enum { ANNOTATION_KEY = 1, ANNOTATION_INT = 4, ANNOTATION_TEXT = 6, ANNOTATION_KEY_TEXT = 10 };
enum { INTERNED_ID = 1, INTERNED_TEXT = 2 };
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT, COUNTER };
/* Clocks of clock_snapshot.proto. */
enum { CLOCK_REAL = 1, CLOCK_BOOT = 6 };
enum { SEQUENCE = 1, STATE_CLEARED = 1, NEEDS_STATE = 2 };

enum { LANES = 1024, DEPTH = 64 };
#define COUNTERS_FROM (1ull << 62)
#define MARKS_TRACK (1ull << 63)

/* The kind of an InternedData entry; its bit marks words already written to it. */
enum { IN_CATEGORIES = 1, IN_NAMES = 2, IN_KEYS = 3 };

/* Open slices on a Perfetto track; the last one ends first. */
struct lane {
	int64_t ends[DEPTH];
	unsigned n;
};

struct writer {
	struct timeline *t;
	struct arrow_index joints;
	FILE *f;
	struct timeline_column packet, event, interned, part;
	uint8_t *written; /* bits by word */
	struct lane *lanes;
	unsigned n_lanes;
	uint64_t shift; /* added to times, so that all are positive */
};

static void put_key(struct timeline_column *c, unsigned field, unsigned type)
{
	column_number(c, (uint64_t)field << 3 | type);
}

static void perfetto_put_number(struct timeline_column *c, unsigned field, uint64_t value)
{
	put_key(c, field, 0);
	column_number(c, value);
}

static void put_fixed(struct timeline_column *c, unsigned field, const void *eight_bytes)
{
	put_key(c, field, 1);
	column_bytes(c, eight_bytes, 8);
}

static void put_bytes(struct timeline_column *c, unsigned field, const void *data, size_t size)
{
	put_key(c, field, 2);
	column_number(c, size);
	column_bytes(c, data, size);
}

static void perfetto_put_text(struct timeline_column *c, unsigned field, const char *text)
{
	put_bytes(c, field, text, strlen(text));
}

/* Writes the message 'part' as a field, and empties it. */
static void put_part(struct timeline_column *c, unsigned field, struct timeline_column *part)
{
	put_bytes(c, field, part->data, part->size);
	part->size = 0;
}

static uint64_t time_of(const struct writer *w, int64_t ns)
{
	return (uint64_t)ns + w->shift;
}

static void end_packet(struct writer *w)
{
	struct timeline_column head = {0};

	perfetto_put_number(&w->packet, PACKET_SEQUENCE, SEQUENCE);
	put_key(&head, TRACE_PACKET, 2);
	column_number(&head, w->packet.size);
	fwrite(head.data, 1, head.size, w->f);
	fwrite(w->packet.data, 1, w->packet.size, w->f);
	w->packet.size = 0;
	column_clear(&head);
}

/* A word's number in the sequence's interned data, which is written before its first use. */
static uint64_t interned(struct writer *w, unsigned where, uint32_t word)
{
	if (!(w->written[word] & 1 << where)) {
		struct timeline_column entry = {0};

		w->written[word] |= (uint8_t)(1 << where);
		perfetto_put_number(&entry, INTERNED_ID, word + 1ull);
		perfetto_put_text(&entry, INTERNED_TEXT, words_text(&w->t->words, word));
		put_part(&w->interned, where, &entry);
		column_clear(&entry);
	}
	return word + 1ull;
}

static void end_event(struct writer *w, int64_t at_ns)
{
	perfetto_put_number(&w->packet, PACKET_TIME, time_of(w, at_ns));
	perfetto_put_number(&w->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	if (w->interned.size)
		put_part(&w->packet, PACKET_INTERNED, &w->interned);
	put_part(&w->packet, PACKET_EVENT, &w->event);
	end_packet(w);
}

static void put_clocks(struct writer *w)
{
	static const unsigned clocks[] = {CLOCK_BOOT, CLOCK_REAL};

	for (size_t i = 0; i < 2; i++) {
		struct timeline_column clock = {0};

		perfetto_put_number(&clock, CLOCK_ID, clocks[i]);
		perfetto_put_number(&clock, CLOCK_TIME, time_of(w, w->t->from_ns));
		put_part(&w->part, CLOCKS_CLOCK, &clock);
		column_clear(&clock);
	}
	put_part(&w->packet, PACKET_CLOCKS, &w->part);
	perfetto_put_number(&w->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	end_packet(w);
}

static void put_track(
	struct writer *w, uint64_t uuid, int32_t parent, const char *name, const char *unit)
{
	perfetto_put_number(&w->part, TRACK_UUID, uuid);
	if (parent >= 0)
		perfetto_put_number(&w->part, TRACK_PARENT, (uint64_t)parent + 1);
	perfetto_put_text(&w->part, TRACK_NAME, name);
	if (unit) {
		struct timeline_column counter = {0};

		perfetto_put_text(&counter, COUNTER_UNIT_NAME, unit);
		put_part(&w->part, TRACK_COUNTER, &counter);
		column_clear(&counter);
	}
	put_part(&w->packet, PACKET_TRACK, &w->part);
	end_packet(w);
}

static void put_tracks(struct writer *w)
{
	const struct timeline *t = w->t;

	for (uint32_t i = 0; i < t->n_tracks; i++)
		put_track(w, i + 1ull, t->tracks[i].parent,
			words_text(&t->words, t->tracks[i].name), NULL);
	for (uint32_t i = 0; i < t->n_counters; i++)
		put_track(w, COUNTERS_FROM + i, t->counters[i].track,
			words_text(&t->words, t->counters[i].name),
			words_text(&t->words, t->counters[i].unit));
	if (t->n_marks)
		put_track(
			w, MARKS_TRACK, TIMELINE_NONE, "faults, verdicts, triggers, phases", NULL);
}

/* A track's lane: the first is the track itself. */
static uint64_t lane_uuid(int32_t track, unsigned lane)
{
	return ((uint64_t)lane << 32) + (uint64_t)track + 1;
}

static void put_end(struct writer *w, uint64_t uuid, int64_t at_ns)
{
	perfetto_put_number(&w->event, EVENT_TYPE, SLICE_END);
	perfetto_put_number(&w->event, EVENT_TRACK, uuid);
	end_event(w, at_ns);
}

/* Ends the slices of a lane that have ended by 'until_ns'. */
static void end_slices(struct writer *w, int32_t track, unsigned lane, int64_t until_ns)
{
	struct lane *l = &w->lanes[lane];

	while (l->n && l->ends[l->n - 1] <= until_ns)
		put_end(w, lane_uuid(track, lane), l->ends[--l->n]);
}

static void end_track(struct writer *w, int32_t track)
{
	for (unsigned i = 0; i < w->n_lanes; i++)
		end_slices(w, track, i, INT64_MAX);
	w->n_lanes = 0;
}

/* A lane on which the slice nests, or LANES if there is no such lane. */
static unsigned lane_for(struct writer *w, const struct stored *s)
{
	const struct track *track = &w->t->tracks[s->track];
	unsigned i = 0;

	for (; i < w->n_lanes; i++) {
		struct lane *l = &w->lanes[i];

		end_slices(w, s->track, i, s->start_ns);
		if (!l->n || (l->ends[l->n - 1] >= stored_end(s) && l->n < DEPTH))
			return i;
	}
	if (i == LANES)
		return LANES;
	if (i)
		put_track(w, lane_uuid(s->track, i), track->parent,
			words_text(&w->t->words, track->name), NULL);
	w->lanes[w->n_lanes++].n = 0;
	return i;
}

static void put_annotation(
	struct writer *w, const char *key, uint32_t key_word, bool is_text, int64_t value)
{
	if (key)
		perfetto_put_text(&w->part, ANNOTATION_KEY_TEXT, key);
	else
		perfetto_put_number(&w->part, ANNOTATION_KEY, interned(w, IN_KEYS, key_word));
	if (is_text)
		perfetto_put_text(
			&w->part, ANNOTATION_TEXT, words_text(&w->t->words, (uint32_t)value));
	else
		perfetto_put_number(&w->part, ANNOTATION_INT, (uint64_t)value);
	put_part(&w->event, EVENT_ANNOTATION, &w->part);
}

static void put_annotations(struct writer *w, const struct stored *s, bool with_duration)
{
	const struct stored_arg *args = spill_map(&w->t->args);

	for (unsigned i = 0; args && i < s->n_args; i++) {
		const struct stored_arg *a = &args[s->args + i];

		put_annotation(w, NULL, a->key, a->type, a->value);
	}
	if (s->flags & TIMELINE_FAILED)
		put_annotation(w, "failed", 0, false, 1);
	if (s->flags & TIMELINE_UNFINISHED)
		put_annotation(w, "end not seen", 0, false, 1);
	if (s->flags & TIMELINE_DOUBTFUL)
		put_annotation(w, "doubtful clock", 0, false, 1);
	if (with_duration)
		put_annotation(w, "duration_ns", 0, false, s->duration_ns);
}

/* Each arrow is a separate flow; Perfetto draws flows only forward in time. */
static void put_flows(struct writer *w, uint32_t number)
{
	const struct arrow_index *j = &w->joints;

	for (uint32_t i = j->out_first[number + 1]; i < j->out_first[number + 2]; i++) {
		uint64_t id = j->out[i] + 1ull;

		if (arrow_index_leads_on(j, j->out[i]))
			put_fixed(&w->event, EVENT_FLOW, &id);
	}
	for (uint32_t i = j->into_first[number + 1]; i < j->into_first[number + 2]; i++) {
		uint64_t id = j->into[i] + 1ull;

		if (arrow_index_leads_on(j, j->into[i]))
			put_fixed(&w->event, EVENT_FLOW_END, &id);
	}
}

static void put_slice(struct writer *w, const struct stored *s)
{
	unsigned lane = lane_for(w, s);
	bool nests = lane < LANES;

	perfetto_put_number(&w->event, EVENT_TYPE, nests ? SLICE_BEGIN : INSTANT);
	perfetto_put_number(&w->event, EVENT_TRACK, lane_uuid(s->track, nests ? lane : 0));
	perfetto_put_number(&w->event, EVENT_CATEGORY, interned(w, IN_CATEGORIES, s->category));
	perfetto_put_number(&w->event, EVENT_NAME, interned(w, IN_NAMES, s->name));
	put_annotations(w, s, !nests);
	put_flows(w, s->number);
	end_event(w, s->start_ns);
	if (nests)
		w->lanes[lane].ends[w->lanes[lane].n++] = stored_end(s);
}

static void put_slices(struct writer *w)
{
	struct spill_merge m;
	const struct stored *s;
	int32_t track = 0;

	spill_merge_init(&m, &w->t->slices);
	while ((s = spill_next(&m))) {
		if (s->track != track)
			end_track(w, track);
		track = s->track;
		put_slice(w, s);
	}
	end_track(w, track);
	spill_merge_clear(&m);
}

static void put_samples(struct writer *w)
{
	struct spill_merge m;
	const struct stored_sample *s;

	spill_merge_init(&m, &w->t->samples);
	while ((s = spill_next(&m))) {
		if (s->value != s->value)
			continue;
		perfetto_put_number(&w->event, EVENT_TYPE, COUNTER);
		perfetto_put_number(&w->event, EVENT_TRACK, COUNTERS_FROM + s->counter);
		put_fixed(&w->event, EVENT_DOUBLE, &s->value);
		end_event(w, s->at_ns);
	}
	spill_merge_clear(&m);
}

/* Spans may overlap, so each mark is an instant, and the end of a span is another instant. */
static void put_mark(struct writer *w, const struct mark *m, const char *kind, int64_t at_ns)
{
	perfetto_put_number(&w->event, EVENT_TYPE, INSTANT);
	perfetto_put_number(
		&w->event, EVENT_TRACK, m->track >= 0 ? (uint64_t)m->track + 1 : MARKS_TRACK);
	perfetto_put_text(&w->event, EVENT_CATEGORY_TEXT, kind);
	perfetto_put_text(&w->event, EVENT_NAME_TEXT, words_text(&w->t->words, m->text));
	end_event(w, at_ns);
}

static void put_marks(struct writer *w)
{
	static const char *const begins[] = {"fault onset", "verdict", "trigger", "phase"};
	static const char *const ends[] = {
		"fault offset", "end of verdict", "end of trigger", "end of phase"};

	for (uint32_t i = 0; i < w->t->n_marks; i++) {
		const struct mark *m = &w->t->marks[i];

		put_mark(w, m, begins[m->kind], m->start_ns);
		if (m->end_ns > m->start_ns)
			put_mark(w, m, ends[m->kind], m->end_ns);
	}
}

static void writer_clear(struct writer *w)
{
	arrow_index_clear(&w->joints);
	column_clear(&w->packet);
	column_clear(&w->event);
	column_clear(&w->interned);
	column_clear(&w->part);
	free(w->written);
	free(w->lanes);
}

int timeline_perfetto(struct timeline *t, FILE *f, struct err *e)
{
	struct writer w = {.t = t, .f = f, .shift = t->from_ns < 0 ? -(uint64_t)t->from_ns : 0};
	int rc = timeline_failed(t, e);

	if (!rc)
		rc = arrow_index_init(&w.joints, t, e);
	if (!rc) {
		w.written = alloc_zero(t->words.n, 1);
		w.lanes = alloc_zero(LANES, sizeof(*w.lanes));
		put_clocks(&w);
		put_tracks(&w);
		put_slices(&w);
		put_samples(&w);
		put_marks(&w);
		rc = timeline_failed(t, e);
	}
	writer_clear(&w);
	return rc ? rc : timeline_written(f, e);
}
