/* Serves the timeline of an attempt's requests as a separate page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/web/serve/serve_impl.h"
#include "harness/timeline/cell.h"

static int64_t serve_timeline_cell_of(struct page_subject *session, int64_t *attempt)
{
	struct snapshot *snap = page_subject_get(session);
	int64_t cell = 0;
	const json_t *one;
	size_t i;

	*attempt = *attempt ? *attempt : page_subject_first_choice(session, snap);
	json_array_foreach(snap->attempts, i, one)
		if (jget_int(one, "attempt") == *attempt)
			cell = jget_int(one, "cell");
	page_subject_put(session, snap);
	return cell;
}

static int write_page(struct store *store, const json_t *row, const struct cell_options *what,
	FILE *f, struct err *e)
{
	auto_free char *title = cell_title(store, row);
	struct cell_found found = {0};
	struct timeline *t = NULL;
	int rc = timeline_new(&t, e);

	if (!rc) {
		timeline_title(t, title, store_run_id(store));
		rc = cell_timeline(store, row, what, t, &found, e);
	}
	rc = rc ?: timeline_html(t, f, 0, e);
	cell_found_clear(&found);
	timeline_free(t);
	return rc;
}

int serve_timeline(
	struct serve *s, const struct page_request *a, char **page, size_t *size, struct err *e)
{
	const struct query_focus *focus = &a->focus;
	const struct cell_options what = {
		.from_s = focus->in_time ? (double)focus->from_ns / 1e9 : 0,
		.to_s = focus->in_time ? (double)focus->to_ns / 1e9 : 0};
	const char *folder = page_subject_folder(s->spec.session);
	auto_json json_t *row = NULL;
	struct store *store = NULL;
	int64_t attempt = a->attempt, cell;
	FILE *f;
	int rc;

	if (!folder)
		return err_set(e, -ENOENT, "no timeline of single logs: it needs a run's cell");
	if (!(cell = serve_timeline_cell_of(s->spec.session, &attempt)))
		return err_set(e, -ENOENT, "the run has no such attempt");
	rc = store_open(folder, &store, e) ?: cell_choose(store, cell, 0, &row, e);
	if (!rc && jget_int(row, "attempt") != attempt)
		rc = err_set(e, -ENOENT, "cell %lld: only its confirmed attempt has a timeline",
			(long long)cell);
	if (!rc) {
		f = alloc_text(page, size);
		rc = write_page(store, row, &what, f, e);
		fclose(f);
		if (rc) {
			free(*page);
			*page = NULL;
		}
	}
	store_close(store);
	return rc;
}
