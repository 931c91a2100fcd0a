/* Reads several files of series in turn, and refuses files whose series are not distinguished. */
#include "harness/cli/diagnose.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

/* The times of a series in one file. */
struct extent {
	size_t file;
	double from_s, to_s;
};

/* The last extent is that of the present file, or of one before; the file's samples may lie in the
 * gap without a look at the others. */
struct seen {
	struct extent *of;
	size_t n;
	double gap_from_s, gap_to_s;
};

struct files {
	const struct import_sink *sink;
	size_t now;
	struct seen *series; /* by number */
	size_t room;
};

static int diagnose_files_take_series(
	void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct files *f = ctx;
	int rc = f->sink->series(f->sink->ctx, key, id, e);
	size_t room = f->room;

	if (rc || *id < room)
		return rc;
	f->room = 2 * (size_t)*id + 64;
	f->series = alloc_resize(f->series, f->room, sizeof(*f->series));
	memset(f->series + room, 0, (f->room - room) * sizeof(*f->series));
	return 0;
}

/* Finds the gap between the extents of other files in which 'time_s' lies; false: it lies in one of
 * them. The last sample of a file may be the first of the next one. */
static bool find_gap(struct seen *s, double time_s)
{
	s->gap_from_s = -INFINITY;
	s->gap_to_s = INFINITY;
	for (size_t i = 0; i + 1 < s->n; i++) {
		const struct extent *x = &s->of[i];

		if (time_s > x->from_s && time_s < x->to_s)
			return false;
		if (x->to_s <= time_s)
			s->gap_from_s = fmax(s->gap_from_s, x->to_s);
		if (x->from_s >= time_s)
			s->gap_to_s = fmin(s->gap_to_s, x->from_s);
	}
	return true;
}

static int diagnose_files_take_sample(
	void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct files *f = ctx;
	struct seen *s = &f->series[id];
	bool first = !s->n || s->of[s->n - 1].file != f->now;
	struct extent *x;

	if (first) {
		s->of = alloc_room(s->of, s->n, sizeof(*s->of));
		s->of[s->n++] = (struct extent){f->now, time_s, time_s};
	}
	if ((first || time_s < s->gap_from_s || time_s > s->gap_to_s) && !find_gap(s, time_s))
		return err_set(e, -EINVAL,
			"a file before it has samples of the same series and time; if files are of "
			"different members or hosts with one name, give one another name in its "
			"file, or add a column that names them");
	x = &s->of[s->n - 1];
	x->from_s = fmin(x->from_s, time_s);
	x->to_s = fmax(x->to_s, time_s);
	return f->sink->sample(f->sink->ctx, id, time_s, value, e);
}

static int take_declaration(void *ctx, const char *declaration, struct err *e)
{
	const struct files *f = ctx;

	return f->sink->metric(f->sink->ctx, declaration, e);
}

/* Adds what was understood of one more file, and clears it. */
static void diagnose_files_join(struct import_said *all, struct import_said *one, const char *path)
{
	all->samples += one->samples;
	all->missing += one->missing;
	if (one->partial)
		import_note_partial(all, one->partial);
	for (size_t i = 0; i < one->n_notes; i++)
		import_note(all, "%s: %s", path, one->notes[i]);
	if (one->form && strcmp(one->form, all->form ? all->form : ""))
		import_note(all, "%s: %s", path, one->form);
	import_said_clear(one);
}

int diagnose_files(const struct option_list *files, const struct import_options *how,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct files f = {.sink = sink};
	struct import_sink own = {
		&f, diagnose_files_take_series, diagnose_files_take_sample, take_declaration};
	int rc = files->n > 1 ? import_file(files->v[0], how, &own, said, e)
			      : import_file(files->v[0], how, sink, said, e);

	for (f.now = 1; f.now < files->n && !rc; f.now++) {
		struct import_said one = {0};

		rc = import_file(files->v[f.now], how, &own, &one, e);
		diagnose_files_join(said, &one, files->v[f.now]);
	}
	for (size_t i = 0; i < f.room; i++)
		free(f.series[i].of);
	free(f.series);
	return rc;
}
