/*
 * The marks of a run next to a live capture of the same nodes, on the capture's axis. Both use
 * the orchestrator's clock. An attempt in progress is not yet in run.db; the run's status.json
 * says since when its fault is active.
 */
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/web/serve/page_subject_impl.h"
#include "harness/store/lock.h"

static int64_t start_of(const json_t *row)
{
	return jget_int(row, "start_ns") ?: jget_int(row, "started_ns");
}

/* Shifts marks by 'ahead_s' and appends them. */
static void append(json_t *marks, const json_t *more, double ahead_s)
{
	json_t *m, *time;
	size_t i;

	json_array_foreach((json_t *)more, i, m) {
		const char *const times[] = {"asked", "from", "to"};

		for (int k = 0; k < 3; k++) {
			time = jget(m, times[k]);
			if (json_is_number(time))
				json_object_set_new(
					m, times[k], json_real(json_number_value(time) + ahead_s));
		}
		json_array_append(marks, m);
	}
}

static bool has_attempt(const json_t *attempts, int64_t cell, int64_t number)
{
	const json_t *row;
	size_t i;

	json_array_foreach(attempts, i, row)
		if (jget_int(row, "cell") == cell && jget_int(row, "number") == number)
			return true;
	return false;
}

/* The active fault of the cell in status.json. */
static void mark_now(json_t *marks, const struct snapshot *beside, const json_t *status,
	const json_t *attempts, int64_t start_ns)
{
	const json_t *cell = jget(status, "cell");
	const struct page_subject_fault f = {.inject_ns = jget_int(cell, "inject_ns"),
		.onset_ns = jget_int(cell, "onset_ns"),
		.offset_ns = jget_int(cell, "offset_ns")};
	const int64_t number = jget_int(cell, "number"), attempt = jget_int(cell, "attempt");
	auto_free char *title = page_subject_cell_title(beside, number, attempt);
	auto_free char *victim = page_subject_cell_victim(beside, number);

	if (f.onset_ns && !has_attempt(attempts, number, attempt))
		page_subject_mark_fault(marks, title, victim, start_ns, &f);
}

static void mark_one(json_t *attempt, const json_t *row, const struct snapshot *beside,
	const json_t *status, const json_t *rows)
{
	json_t *marks = jget(attempt, "marks");
	const int64_t start_ns = start_of(row);
	const json_t *one;
	size_t i;

	json_array_foreach(rows, i, one) {
		json_t *more = page_subject_marks(beside, one);

		append(marks, more, (double)(start_of(one) - start_ns) / 1e9);
		json_decref(more);
	}
	mark_now(marks, beside, status, rows, start_ns);
}

/* The run's progress, in its own words. */
static json_t *state_of(
	const struct snapshot *beside, const char *name, const json_t *status, bool running)
{
	const json_t *cell = jget(status, "cell");
	const int64_t number = running ? jget_int(cell, "number") : 0;
	auto_free char *title = number
		? page_subject_cell_title(beside, number, jget_int(cell, "attempt"))
		: NULL;

	return json_pack("{s:o, s:b, s:I, s:I, s:o, s:o}", "name", page_subject_clean(name),
		"running", running, "cells", (json_int_t)jget_int(status, "cells"), "done",
		(json_int_t)jget_int(status, "done"), "phase",
		page_subject_clean(running ? jget_text(status, "phase") : ""), "now",
		title ? page_subject_clean(title) : json_null());
}

int page_subject_add_beside(struct snapshot *snap, const char *run, struct err *e)
{
	auto_free char *path = alloc_format("%s/status.json", run);
	const bool running = run_is_locked(run, NULL);
	auto_json json_t *status = json_load_file(path, 0, NULL);
	const struct run_tables_spec of = {.may_be_empty = true};
	struct snapshot beside = {.generation = 1};
	struct store *store;
	const json_t *row;
	json_t *attempt;
	size_t i, k;
	int rc = store_open(run, &store, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	rc = run_tables_new(store, &of, &beside.run, e);
	if (rc) {
		store_close(store);
		return rc;
	}
	snap->beside = state_of(&beside, store_run_id(store), status, running);
	store_close(store);
	json_array_foreach(snap->attempts, i, attempt)
		json_array_foreach(page_subject_attempt_rows(snap), k, row)
			if (jget_int(row, "id") == jget_int(attempt, "attempt"))
				mark_one(attempt, row, &beside, running ? status : NULL,
					page_subject_attempt_rows(&beside));
	run_tables_free(beside.run);
	return 0;
}
