#include "harness/judging/remeasure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/judging/reduce.h"

static const json_t *cluster_of(const json_t *row)
{
	return jget(jget(row, "detail"), "reduction");
}

int remeasure_check(struct store *s, struct err *e)
{
	int runtime = store_has_runtimes(s, e);
	json_t *rows = NULL, *row;
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
	rc = store_traced(s, &rows, e);
	if (!rc && !json_array_size(rows))
		rc = err_set(e, -EINVAL, "'%s' has no confirmed cell", store_folder(s));
	json_array_foreach(rows, i, row)
	{
		if (rc)
			break;
		if (!json_is_object(cluster_of(row)))
			rc = err_set(e, -EINVAL,
				"cell %lld was run by a culprit that did not keep what this takes: "
				"its nodes' addresses and clocks",
				(long long)jget_int(row, "cell"));
		else if (!jget_int(row, "files"))
			rc = err_set(e, -EBADMSG, "cell %lld has no files listed",
				(long long)jget_int(row, "cell"));
		else if ((rc = store_check_files(s, jget_int(row, "attempt"), &why)))
			rc = err_set(
				e, rc, "cell %lld: %s", (long long)jget_int(row, "cell"), why.text);
	}
	json_decref(rows);
	return rc;
}

static int measure_again(
	struct store *s, const char *traces, bool second, const json_t *row, struct err *e)
{
	struct reduce_spec spec = {.cluster = cluster_of(row),
		.start_ns = jget_int(row, "start_ns"),
		.seconds = (int32_t)jget_int(row, "seconds"),
		.second = second};
	int64_t attempt = jget_int(row, "attempt");
	struct reduction *r = NULL;
	char *folder = alloc_format("%s/cells/%04lld.%lld", traces,
		(long long)jget_int(row, "cell"), (long long)jget_int(row, "number"));
	int rc;

	spec.folder = folder;
	rc = reduce_traces(&spec, &r, e);
	if (!rc)
		rc = store_drop_samples(s, attempt, e);
	if (!rc)
		rc = store_drop_events(s, attempt, e);
	if (!rc)
		rc = reduce_store(r, s, attempt, e);
	reduce_free(r);
	free(folder);
	return rc;
}

int remeasure_run(struct store *s, const char *traces, bool second, struct judge *j, size_t *cells,
	struct err *e)
{
	json_t *rows = NULL, *row, *verdicts = NULL;
	size_t i;
	int rc = store_begin(s, e);

	if (rc)
		return rc;
	rc = store_traced(s, &rows, e);
	json_array_foreach(rows, i, row) if (!rc) rc = measure_again(s, traces, second, row, e);
	if (!rc)
		rc = judge_all(j, 0, &verdicts, e);
	if (!rc)
		rc = judge_replace(j, verdicts, e);
	if (!rc)
		rc = store_commit(s, e);
	if (rc)
		store_rollback(s);
	else
		*cells = json_array_size(rows);
	json_decref(verdicts);
	json_decref(rows);
	return rc;
}
