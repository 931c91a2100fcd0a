/* Builds a timeline of tracks, slices, arrows and counters. */
#include "harness/web/timeline/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/outfile.h"
#include "harness/web/timeline/timeline_impl.h"

enum { SORTED_TOGETHER = 1 << 19, BUFFERED = 1 << 14 };

static int compare_slices(const void *pa, const void *pb)
{
	const struct stored *a = pa, *b = pb;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->duration_ns != b->duration_ns)
		return a->duration_ns > b->duration_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static int compare_samples(const void *pa, const void *pb)
{
	const struct stored_sample *a = pa, *b = pb;

	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

int timeline_new(struct timeline **out, struct err *e)
{
	struct timeline *t = alloc_zero(1, sizeof(*t));
	int rc = spill_init(&t->slices, sizeof(struct stored), SORTED_TOGETHER, compare_slices, e);

	if (!rc)
		rc = spill_init(&t->args, sizeof(struct stored_arg), BUFFERED, NULL, e);
	if (!rc)
		rc = spill_init(&t->arrows, sizeof(struct stored_arrow), BUFFERED, NULL, e);
	if (!rc)
		rc = spill_init(
			&t->samples, sizeof(struct stored_sample), BUFFERED, compare_samples, e);
	if (rc) {
		timeline_free(t);
		return rc;
	}
	t->panes[0] = t->panes[1] = TIMELINE_NONE;
	timeline_title(t, "", "");
	*out = t;
	return 0;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	spill_clear(&t->slices);
	spill_clear(&t->args);
	spill_clear(&t->arrows);
	spill_clear(&t->samples);
	words_clear(&t->words);
	free(t->notes);
	free(t->rows);
	free(t->tracks);
	free(t->counters);
	free(t->marks);
	free(t);
}

static void fail(struct timeline *t, const char *what, unsigned long limit)
{
	if (!t->failed)
		t->failed = err_set(&t->error, -E2BIG,
			"a timeline holds at most %lu %s; narrow it in time or to some nodes",
			limit, what);
}

int timeline_failed(struct timeline *t, struct err *e)
{
	int io = t->slices.error ?: t->args.error ?: t->arrows.error ?: t->samples.error;

	if (io)
		return err_errno(e, io, "cannot write a timeline's temporary file (set TMPDIR)");
	return t->failed ? err_set(e, t->failed, "%s", t->error.text) : 0;
}

int timeline_written(FILE *f, struct err *e)
{
	int rc = outfile_flush(f, NULL);

	return rc ? err_errno(e, rc, "cannot write the timeline") : 0;
}

uint32_t timeline_word(struct timeline *t, const char *text)
{
	uint32_t number = words_number(&t->words, text ? text : "");

	if (number != UINT32_MAX)
		return number;
	fail(t, "different names", TIMELINE_WORDS_MAX);
	return 0;
}

void timeline_categories(struct timeline *t, const uint32_t *categories, size_t n)
{
	t->n_categories = 0;
	for (size_t i = 0; i < n && i < TIMELINE_CATEGORIES_MAX; i++)
		if (categories[i] < t->words.n)
			t->categories[t->n_categories++] = categories[i];
}

void timeline_first(struct timeline *t, unsigned view)
{
	t->view = view;
}

void timeline_panes(struct timeline *t, int32_t top, int32_t bottom)
{
	const bool known = top >= 0 && bottom >= 0 && (uint32_t)top < t->n_tracks &&
		(uint32_t)bottom < t->n_tracks;

	t->panes[0] = known ? top : TIMELINE_NONE;
	t->panes[1] = known ? bottom : TIMELINE_NONE;
}

void timeline_title(struct timeline *t, const char *title, const char *run)
{
	t->title = timeline_word(t, title);
	t->run = timeline_word(t, run);
}

/* Makes room for one more of 'n' elements: at 0, 1, 2, 4 ... */
#define MORE(list, n)                                                                              \
	do {                                                                                       \
		if (!((n) & ((n)-1)))                                                              \
			(list) = alloc_resize(list, (n) ? 2 * (size_t)(n) : 1, sizeof(*(list)));   \
	} while (0)

void timeline_note(struct timeline *t, const char *term, const char *text)
{
	MORE(t->notes, t->n_notes);
	t->notes[t->n_notes++] = (struct note){timeline_word(t, term), timeline_word(t, text)};
}

void timeline_row(struct timeline *t, const char *const *cells, size_t n)
{
	struct row *r;

	if (t->n_rows == TIMELINE_ROWS_MAX)
		return;
	MORE(t->rows, t->n_rows);
	r = &t->rows[t->n_rows++];
	r->n = 0;
	for (size_t i = 0; i < n && i < TIMELINE_COLUMNS_MAX; i++)
		r->cells[r->n++] = timeline_word(t, cells[i]);
}

int32_t timeline_track(
	struct timeline *t, int32_t parent, enum timeline_kind kind, const char *name)
{
	if (t->n_tracks >= TIMELINE_TRACKS_MAX) {
		fail(t, "tracks", TIMELINE_TRACKS_MAX);
		return 0;
	}
	if (parent < 0 || (uint32_t)parent >= t->n_tracks)
		parent = TIMELINE_NONE;
	MORE(t->tracks, t->n_tracks);
	t->tracks[t->n_tracks] = (struct track){
		.parent = parent, .kind = kind, .name = timeline_word(t, name)};
	return (int32_t)t->n_tracks++;
}

static void span(struct timeline *t, int64_t from_ns, int64_t to_ns)
{
	if (!t->any || from_ns < t->from_ns)
		t->from_ns = from_ns;
	if (!t->any || to_ns > t->to_ns)
		t->to_ns = to_ns;
	t->any = true;
}

static bool is_track(const struct timeline *t, int32_t track)
{
	return track >= 0 && (uint32_t)track < t->n_tracks;
}

static uint32_t known_word(const struct timeline *t, int64_t word)
{
	return word >= 0 && word < t->words.n ? (uint32_t)word : 0;
}

static void add_args(struct timeline *t, const struct timeline_slice *s, struct stored *r)
{
	r->args = spill_count(&t->args);
	for (size_t i = 0; i < s->n_args && i < TIMELINE_ARGS_MAX; i++, r->n_args++) {
		struct stored_arg a = {s->args[i].value, known_word(t, s->args[i].key),
			s->args[i].type == TIMELINE_TEXT};

		if (a.type)
			a.value = known_word(t, a.value);
		spill_add(&t->args, &a);
	}
}

uint32_t timeline_slice_add(struct timeline *t, const struct timeline_slice *s)
{
	uint64_t number = spill_count(&t->slices);
	struct stored r = {.start_ns = s->start_ns,
		.duration_ns = s->duration_ns,
		.number = (uint32_t)number,
		.track = s->track,
		.name = known_word(t, s->name),
		.category = known_word(t, s->category),
		.flags = s->flags & 7};
	int64_t end;

	if (number >= TIMELINE_SLICES_MAX)
		fail(t, "slices", TIMELINE_SLICES_MAX);
	if (t->failed || !is_track(t, s->track))
		return UINT32_MAX;
	if (r.duration_ns < 0 || __builtin_add_overflow(r.start_ns, r.duration_ns, &end)) {
		r.duration_ns = r.duration_ns < 0 ? 0 : INT64_MAX - r.start_ns;
		t->mended++;
	}
	span(t, r.start_ns, stored_end(&r));
	add_args(t, s, &r);
	t->tracks[r.track].slices++;
	spill_add(&t->slices, &r);
	return r.number;
}

void timeline_arrow_add(struct timeline *t, uint32_t from, uint32_t to, enum timeline_link link)
{
	uint64_t n = spill_count(&t->slices);
	struct stored_arrow a = {from, to, link <= TIMELINE_BY_CONTENT ? link : TIMELINE_EXACT};

	if (!t->failed && from < n && to < n && from != to)
		spill_add(&t->arrows, &a);
}

uint32_t timeline_counter(struct timeline *t, int32_t track, const char *name, const char *unit)
{
	if (t->n_counters >= TIMELINE_COUNTERS_MAX) {
		fail(t, "counters", TIMELINE_COUNTERS_MAX);
		return 0;
	}
	MORE(t->counters, t->n_counters);
	t->counters[t->n_counters] = (struct counter){
		.track = is_track(t, track) ? track : TIMELINE_NONE,
		.name = timeline_word(t, name),
		.unit = timeline_word(t, unit)};
	return t->n_counters++;
}

void timeline_sample_add(struct timeline *t, uint32_t counter, int64_t at_ns, double value)
{
	struct stored_sample s = {
		at_ns, isfinite(value) ? value : NAN, counter, (uint32_t)spill_count(&t->samples)};

	if (t->failed || counter >= t->n_counters)
		return;
	span(t, at_ns, at_ns);
	t->counters[counter].samples++;
	spill_add(&t->samples, &s);
}

void timeline_mark_add(struct timeline *t, enum timeline_mark kind, int32_t track, int64_t start_ns,
	int64_t end_ns, const char *text)
{
	struct mark m = {kind <= TIMELINE_PHASE ? kind : TIMELINE_PHASE,
		is_track(t, track) ? track : TIMELINE_NONE, start_ns,
		end_ns < start_ns ? start_ns : end_ns, timeline_word(t, text)};

	span(t, m.start_ns, m.end_ns);
	MORE(t->marks, t->n_marks);
	t->marks[t->n_marks++] = m;
}

void timeline_count(const struct timeline *t, struct timeline_size *out)
{
	*out = (struct timeline_size){.slices = spill_count(&t->slices),
		.arrows = spill_count(&t->arrows),
		.samples = spill_count(&t->samples),
		.mended = t->mended,
		.tracks = t->n_tracks,
		.counters = t->n_counters,
		.marks = t->n_marks,
		.words = t->words.n};
}
