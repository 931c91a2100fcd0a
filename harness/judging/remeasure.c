/* Reduces the traces of a recorded run again. */
#include "harness/judging/remeasure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/flows.h"
#include "harness/judging/places.h"
#include "harness/judging/reduce.h"

static const json_t *cluster_of(const json_t *row)
{
	return jget(jget(row, "detail"), "reduction");
}

int remeasure_check(struct store *s, struct err *e)
{
	int runtime = store_has_runtimes(s, e);
	json_auto_t *rows = NULL;
	json_t *row;
	struct err why;
	size_t i;
	int rc;

	if (runtime < 0)
		return runtime;
	if (store_is_corpus(s))
		return err_set(
			e, -EINVAL, "'%s' is a corpus: the traces are not in it", store_folder(s));
	if (runtime)
		return err_set(e, -EINVAL, "'%s' measured run times: no traces were kept",
			store_folder(s));
	rc = store_rows(s, ROWS_TRACED, 0, &rows, e);
	if (!rc && !json_array_size(rows))
		rc = err_set(e, -EINVAL, "'%s' has no confirmed cell", store_folder(s));
	json_array_foreach(rows, i, row) {
		long long cell = jget_int(row, "cell");

		if (!json_is_object(cluster_of(row)))
			return err_set(e, -EINVAL,
				"cell %lld is of an older version, which did not keep "
				"nodes' addresses and clocks",
				cell);
		if (!jget_int(row, "files"))
			return err_set(e, -EBADMSG, "cell %lld has no files listed", cell);
		if ((rc = store_check_files(s, jget_int(row, "attempt"), &why)))
			return err_set(e, rc, "cell %lld: %s", cell, why.text);
	}
	return rc;
}

static int measure_again(
	struct store *s, const char *traces, bool second, const json_t *row, struct err *e)
{
	auto_free char *folder = places_folder(traces, row);
	const struct reduce_spec spec = {.folder = folder,
		.cluster = cluster_of(row),
		.start_ns = jget_int(row, "start_ns"),
		.seconds = (int32_t)jget_int(row, "seconds"),
		.second = second};
	int64_t attempt = jget_int(row, "attempt");
	struct reduction *r = NULL;
	int rc = reduce_traces(&spec, &r, e);

	if (!rc)
		rc = store_drop(s, "series", attempt, e);
	if (!rc)
		rc = store_drop(s, "event", attempt, e);
	if (!rc)
		rc = reduce_store(r, s, attempt, e);
	if (!rc && !second)
		rc = flows_store(s, row, e);
	reduce_free(r);
	return rc;
}

int remeasure_run(struct store *s, const char *traces, bool second, struct judge *j, size_t *cells,
	struct err *e)
{
	json_auto_t *rows = NULL, *verdicts = NULL;
	json_t *row;
	size_t i;
	int rc = store_begin(s, e);

	if (rc)
		return rc;
	rc = store_rows(s, ROWS_TRACED, 0, &rows, e);
	json_array_foreach(rows, i, row)
		if (!rc)
			rc = measure_again(s, traces, second, row, e);
	if (!rc)
		rc = judge_all(j, 0, &verdicts, e);
	if (!rc)
		rc = judge_replace(j, verdicts, e);
	rc = store_end(s, rc, e);
	if (!rc)
		*cells = json_array_size(rows);
	return rc;
}
