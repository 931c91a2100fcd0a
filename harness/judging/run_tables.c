/* Opens all tables of a run for queries. */
#include "harness/judging/run_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/judging/scoring.h"

enum { TABLES = 8 };

struct run_tables {
	struct run_logs *recorded; /* NULL: no logs yet */
	struct run_requests *requests;
	bool stored; /* without logs, too, there are requests */
	json_t *rows[TABLES], *scores;
	char *no_logs; /* why there are no logs, or NULL */
};

const struct run_logs_table run_tables_scores = {"scores", NULL,
	"scored verdicts; right: exactly the faulty servers were named (in a control: no server); "
	"wrong: a server without a fault was named",
	{"attempt", "cell", "workload", "fault", "repeat", "victims", "detector", "metric", "right",
		"wrong"}};

static int run_tables_read(
	struct run_tables *t, struct store *s, const struct run_tables_spec *spec, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && run_logs_tables[i].name; i++) {
		if (spec->verdicts && !strcmp(run_logs_tables[i].name, "verdicts"))
			t->rows[i] = json_incref((json_t *)spec->verdicts);
		else
			rc = run_logs_rows(s, &run_logs_tables[i], &t->rows[i], e);
	}
	return rc ?: scoring_rows(s, spec->verdicts, &t->scores, e);
}

int run_tables_new(
	struct store *s, const struct run_tables_spec *spec, struct run_tables **out, struct err *e)
{
	struct run_tables *t = alloc_zero(1, sizeof(*t));
	int rc = run_tables_read(t, s, spec, e)
		?: run_logs_new(s, spec->cell, spec->recording, &t->recorded, e);

	if ((rc == -EINVAL || rc == -ENODATA) && spec->may_be_empty && !store_is_corpus(s))
		rc = 0;
	if (rc == -ENODATA && spec->only_tables) {
		t->no_logs = alloc_copy(e->text);
		rc = store_has_requests(s, 0, e);
		t->stored = rc == 1;
		rc = rc < 0 ? rc : 0;
	}
	rc = rc ?: run_requests_new(s, spec->cell, spec->recording, &t->requests, e);
	if (rc)
		run_tables_free(t);
	else
		*out = t;
	return rc;
}

void run_tables_free(struct run_tables *t)
{
	if (!t)
		return;
	run_requests_free(t->requests);
	run_logs_free(t->recorded);
	for (size_t i = 0; i < TABLES; i++)
		json_decref(t->rows[i]);
	json_decref(t->scores);
	free(t->no_logs);
	free(t);
}

const struct query_log *run_tables_logs(const struct run_tables *t, size_t *n)
{
	*n = 0;
	return t->recorded ? run_logs_list(t->recorded, n) : NULL;
}

const json_t *run_tables_rows(const struct run_tables *t, size_t i)
{
	return t->rows[i];
}

int run_tables_query(
	struct run_tables *t, const struct query_spec *spec, struct query **q, struct err *e)
{
	struct query_spec with = *spec;
	struct query *made;
	int rc;

	with.logs = run_tables_logs(t, &with.n_logs);
	with.no_logs = t->no_logs;
	if (!t->no_logs || t->stored)
		with.made = run_requests_source(t->requests);
	rc = query_new(&with, &made, e);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && run_logs_tables[i].name; i++)
		rc = query_add_table(
			made, run_logs_tables[i].name, run_logs_tables[i].columns, t->rows[i], e);
	rc = rc
		?: query_add_table(
			   made, run_tables_scores.name, run_tables_scores.columns, t->scores, e);
	if (rc)
		query_free(made);
	else
		*q = made;
	return rc;
}
