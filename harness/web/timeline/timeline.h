/*
 * A run on a timeline: a builder that is filled once, and its exports: a page, a trace for
 * Perfetto, spans for OpenTelemetry.
 *
 * The model. Tracks form a tree (cluster, node, process, thread or layer). A track has slices:
 * work with a duration, a name, a category and a few arguments; slices of one track may overlap
 * or nest. Arrows lead from the causing slice to the caused one, with the kind of link. Counters
 * belong to a track and have samples. Marks are moments or spans that concern the whole run or
 * one track: a fault, a verdict, a trigger.
 *
 * Units: nanoseconds of one clock (CLOCK_REALTIME, corrected or not: say which with
 * timeline_note). Any int64 is accepted: a negative duration becomes 0, and a slice whose end
 * exceeds int64 is cut; the page reports their number.
 *
 * Order: slices, samples, arrows and marks may be added in any order, after the objects that they
 * refer to: a track before its slices, both slices before their arrow.
 *
 * Memory: slices, arguments, arrows and samples are stored in unnamed temporary files in $TMPDIR
 * (/tmp), which nobody else can open and which disappear with the builder: 48 bytes per slice, 16
 * per argument, 12 per arrow, 24 per sample. Words, tracks, marks and buffers of 50 MB are in
 * memory. Writing an export takes another 22 bytes per slice and 8 per arrow; writing a page
 * takes 10 bytes per slice and about 15 times the page.
 *
 * Errors: functions that add do not fail. If a temporary file cannot be written, or a limit is
 * exceeded, the builder keeps the first error and ignores later additions; every function that
 * writes an export returns it. Texts may contain any bytes: they are cleaned like text_clean
 * (harness/base/text.h) and cut after 1000 bytes. The builder copies its input.
 *
 * Only one thread at a time may use a builder.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_TIMELINE_H
#define CULPRIT_HARNESS_WEB_TIMELINE_TIMELINE_H

#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

struct timeline;

enum {
	TIMELINE_NONE = -1,           /* no parent, or no track of a mark */
	TIMELINE_ARGS_MAX = 12,       /* of one slice; further ones are dropped */
	TIMELINE_TRACKS_MAX = 100000, /* for all three: exceeding is an error */
	TIMELINE_COUNTERS_MAX = 20000,
	TIMELINE_WORDS_MAX = 4000000,
	TIMELINE_COLUMNS_MAX = 32,
	TIMELINE_CATEGORIES_MAX = 12,
	TIMELINE_ROWS_MAX = 1000,
};
#define TIMELINE_SLICES_MAX 1000000000u

/* -EIO or another errno if there is no room for temporary files. */
int timeline_new(struct timeline **out, struct err *e);
void timeline_free(struct timeline *t);

/* The heading, and the run's id ("" if it has none). */
void timeline_title(struct timeline *t, const char *title, const char *run);

/* Adds a note about the run: a term ("hosts", "clock of s2") and a text ("3.2 ms ahead of s1,
 * between 3.1 and 3.3 ms"). */
void timeline_note(struct timeline *t, const char *term, const char *text);

/* Adds a row to the table that "About" shows above the notes; the first row has the table's
 * caption, then the names of the second and later columns. At most TIMELINE_COLUMNS_MAX cells per
 * row and TIMELINE_ROWS_MAX rows are kept. */
void timeline_row(struct timeline *t, const char *const *cells, size_t n);

/* The number of a text; equal texts have the same number. Names, categories, and the keys and
 * texts of arguments are words. */
uint32_t timeline_word(struct timeline *t, const char *text);

enum timeline_kind {
	TIMELINE_CLUSTER,
	TIMELINE_NODE,
	TIMELINE_PROCESS,
	TIMELINE_THREAD,
	TIMELINE_LAYER,
};

/* Adds a track below 'parent' (TIMELINE_NONE: at the top), after its existing siblings. Returns
 * its number: 0, 1, 2 ... Two runs in one page are two tracks of kind TIMELINE_CLUSTER at the
 * top; the page shows them one above the other, each from its own start. */
int32_t timeline_track(
	struct timeline *t, int32_t parent, enum timeline_kind kind, const char *name);

/* The initial view of the page: the tracks 'top' and 'bottom', of kind TIMELINE_NODE or
 * TIMELINE_CLUSTER, one above the other. */
void timeline_panes(struct timeline *t, int32_t top, int32_t bottom);

enum timeline_view {
	TIMELINE_ALL_ARROWS =
		1,          /* the arrows of all slices in view, not only of the selected one */
	TIMELINE_ABOUT = 2, /* the notes instead of the slowest slices */
};

/* Categories with fixed colours in all pages, independent of the order of slices: n words. At
 * most TIMELINE_CATEGORIES_MAX are kept. */
void timeline_categories(struct timeline *t, const uint32_t *categories, size_t n);

/* Further settings of the page's initial view: enum timeline_view, ORed. */
void timeline_first(struct timeline *t, unsigned view);

struct timeline_arg {
	uint32_t key; /* a word; "..._ns" is shown as a duration, "..._bytes" as a size */
	enum { TIMELINE_NUMBER, TIMELINE_TEXT } type;
	int64_t value; /* for a TIMELINE_TEXT: a word */
};

enum timeline_flags {
	TIMELINE_FAILED = 1,     /* ended with an error */
	TIMELINE_UNFINISHED = 2, /* its end was not recorded; the duration is the recorded part */
	TIMELINE_DOUBTFUL = 4,   /* its times depend on an uncertain clock */
};

struct timeline_slice {
	int32_t track;
	uint32_t name, category; /* words */
	int64_t start_ns, duration_ns;
	uint8_t flags;
	uint8_t n_args;
	const struct timeline_arg *args;
};

/* Returns its number: 0, 1, 2 ..., or UINT32_MAX, which no arrow accepts, if the track does not
 * exist or the builder has failed. */
uint32_t timeline_slice_add(struct timeline *t, const struct timeline_slice *s);

/* The kind of a link. */
enum timeline_link {
	TIMELINE_EXACT,      /* by position in a stream, or by an id in the message */
	TIMELINE_BY_THREAD,  /* the same thread did both */
	TIMELINE_BY_CONTENT, /* same file, offset and size, near in time */
};

/* Adds an arrow from a cause to its effect: an application's call -> the FUSE request -> the
 * client's send -> the server's request -> its disk call. The first arrow into a slice determines
 * its parent in OTLP; an answer going back is also an arrow. */
void timeline_arrow_add(struct timeline *t, uint32_t from, uint32_t to, enum timeline_link link);

/* Adds a counter to a track. 'unit' is "" or the text after the value: "in flight", "MB/s", "%".
 * Returns its number for samples. */
uint32_t timeline_counter(struct timeline *t, int32_t track, const char *name, const char *unit);

/* From 'at_ns' on the counter has 'value', until its next sample; not a number: unknown. */
void timeline_sample_add(struct timeline *t, uint32_t counter, int64_t at_ns, double value);

enum timeline_mark {
	TIMELINE_FAULT,   /* from onset to offset */
	TIMELINE_VERDICT, /* a detector's verdict, at its time */
	TIMELINE_TRIGGER, /* the reason for writing a ring buffer */
	TIMELINE_PHASE,   /* phase of the attempt: warm-up, workload ... */
};

/* From 'start_ns' to 'end_ns' (equal: a moment). 'track': the affected track with all of its
 * descendants, or TIMELINE_NONE. */
void timeline_mark_add(struct timeline *t, enum timeline_mark kind, int32_t track, int64_t start_ns,
	int64_t end_ns, const char *text);

/* The page (harness/web/page.h says what keeps it safe): one HTML file without addresses of
 * others. 'bytes_max' bounds the whole file, 0: 15,000,000. If all slices do not fit, the slowest
 * requests (slices joined by arrows) stay whole, and short slices of one track and category that
 * follow each other become one that says how many there are and how long they were; the page says
 * above which duration every slice is there. Counters with too many samples keep the first, least,
 * greatest and last of equal windows. -EINVAL if the fixed parts alone do not fit. */
int timeline_html(struct timeline *t, FILE *f, uint64_t bytes_max, struct err *e);

/* Perfetto's trace in protobuf (perfetto/trace/trace.proto, packages TracePacket): for
 * https://ui.perfetto.dev and trace_processor. Has all slices; overlapping slices of a track are
 * distributed to tracks with the same name, because Perfetto's slices must nest. Arrows are
 * flows. */
int timeline_perfetto(struct timeline *t, FILE *f, struct err *e);

/* OpenTelemetry's spans as OTLP JSON (opentelemetry/proto/trace/v1, ExportTraceServiceRequest) on
 * one line: one resource per node and process, one trace per set of slices joined by arrows. Has
 * all slices, but no counters and marks. */
int timeline_otlp(struct timeline *t, FILE *f, struct err *e);

/* Counts, for messages. */
struct timeline_size {
	uint64_t slices, arrows, samples;
	uint64_t mended; /* slices with a negative duration or an end beyond int64 */
	uint32_t tracks, counters, marks, words;
};
void timeline_count(const struct timeline *t, struct timeline_size *out);

#endif
