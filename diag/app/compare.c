/* Finds the calls in which two application traces differ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/app.h"
#include "harness/base/text.h"

static const char *compare_path_of(const struct app_trace *t, uint32_t file)
{
	return file == APP_NO_FILE ? "" : app_file(t, file)->path;
}

static bool compare_same(const struct app_trace *a, const struct app_op *x,
	const struct app_trace *b, const struct app_op *y)
{
	return x->call == y->call && x->offset == y->offset && x->size == y->size &&
		x->flags == y->flags && (x->result < 0) == (y->result < 0) &&
		!strcmp(compare_path_of(a, x->file), compare_path_of(b, y->file)) &&
		!strcmp(compare_path_of(a, x->file2), compare_path_of(b, y->file2));
}

static void compare_say(
	const struct app_trace *t, int there, const struct app_op *op, char text[256])
{
	char path[128];

	if (there <= 0) {
		snprintf(text, 256, "no call");
		return;
	}
	text_clean(compare_path_of(t, op->file), path, sizeof(path));
	snprintf(text, 256, "%s of '%s', offset %lld, %llu bytes%s", app_call_name(op->call), path,
		(long long)op->offset, (unsigned long long)op->size,
		op->result < 0 ? ", failed" : "");
}

static int differ(const struct app_trace *a, uint32_t thread, uint64_t n, const char *x,
	const char *y, struct err *e)
{
	const struct app_thread *th = app_thread(a, thread);

	return err_set(e, -EDOM,
		"two runs of the command differ: call %llu of rank %u (thread %u) is %s in the "
		"first run, %s in the second: not replayable",
		(unsigned long long)n, th->rank, thread - app_rank(a, th->rank)->first_thread, x,
		y);
}

static int compare_thread(
	const struct app_trace *a, const struct app_trace *b, uint32_t i, struct err *e)
{
	struct app_cursor *ca = NULL, *cb = NULL;
	struct app_op x, y;
	char first[256], second[256];
	uint64_t n = 0;
	int ra = 1, rb = 1, rc = 0;

	if (app_cursor_new(a, i, &ca) || app_cursor_new(b, i, &cb))
		rc = err_set(e, -ENOMEM, "out of memory");
	while (!rc && ra > 0 && rb > 0) {
		n++;
		ra = app_next(ca, &x, e);
		rb = ra < 0 ? 0 : app_next(cb, &y, e);
		if (ra < 0 || rb < 0) {
			rc = ra < 0 ? ra : rb;
		} else if (ra != rb || (ra && !compare_same(a, &x, b, &y))) {
			compare_say(a, ra, &x, first);
			compare_say(b, rb, &y, second);
			rc = differ(a, i, n, first, second, e);
		}
	}
	app_cursor_free(ca);
	app_cursor_free(cb);
	return rc;
}

int app_compare(const struct app_trace *a, const struct app_trace *b, struct err *e)
{
	int rc = 0;

	if (app_n_ranks(a) != app_n_ranks(b))
		return err_set(e, -EDOM,
			"two runs of the command differ: %zu processes with calls on files in the "
			"first run, %zu in the second: not replayable",
			app_n_ranks(a), app_n_ranks(b));
	for (uint32_t i = 0; i < app_n_ranks(a); i++)
		if (app_rank(a, i)->n_threads != app_rank(b, i)->n_threads)
			return err_set(e, -EDOM,
				"two runs of the command differ: rank %u has %u threads with "
				"calls on files in the first run, %u in the second: not replayable",
				i, app_rank(a, i)->n_threads, app_rank(b, i)->n_threads);
	for (uint32_t i = 0; !rc && i < app_n_threads(a); i++)
		rc = compare_thread(a, b, i, e);
	return rc;
}
