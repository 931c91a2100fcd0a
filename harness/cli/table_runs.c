/* Prints tables of several runs, side by side or added up. */
#include "harness/cli/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"

struct runs {
	size_t n;
	struct scored_run *list;
	struct judge **judges;
	json_t **rows;
	struct table_notes *notes;
};

static void runs_clear(struct runs *r)
{
	for (size_t i = 0; i < r->n; i++) {
		table_notes_clear(&r->notes[i]);
		json_decref(r->rows[i]);
		judge_free(r->judges[i]);
		store_close(r->list[i].store);
	}
	free(r->list);
	free(r->judges);
	free(r->rows);
	free(r->notes);
}

/* Names are folders' own, or where two are equal their paths. */
static void name_runs(struct runs *r)
{
	bool twice = false;

	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < i; k++)
			twice = twice ||
				!strcmp(store_run_id(r->list[i].store),
					store_run_id(r->list[k].store));
	for (size_t i = 0; i < r->n; i++)
		r->list[i].name = twice ? store_folder(r->list[i].store)
					: store_run_id(r->list[i].store);
}

static int open_runs(struct runs *r, int n, char **folders, struct err *e)
{
	int rc = 0;

	r->list = alloc_zero((size_t)n, sizeof(*r->list));
	r->judges = alloc_zero((size_t)n, sizeof(struct judge *));
	r->rows = alloc_zero((size_t)n, sizeof(json_t *));
	r->notes = alloc_zero((size_t)n, sizeof(*r->notes));
	while (!rc && r->n < (size_t)n) {
		struct scored_run *run = &r->list[r->n];

		for (size_t k = 0; k < r->n && !rc; k++)
			if (!strcmp(folders[k], folders[r->n]))
				rc = err_set(e, -EINVAL, "'%s' is given twice", folders[k]);
		rc = rc ?: store_open(folders[r->n], &run->store, e);
		if (rc)
			break;
		r->n++;
		rc = store_has_runtimes(run->store, e);
		if (rc == 1)
			rc = err_set(e, -EINVAL,
				"'%s' measured run times, which are not compared between runs",
				folders[r->n - 1]);
		rc = rc
			?: table_judge_corpus(
				   run->store, &r->judges[r->n - 1], &r->rows[r->n - 1], e)
			?: table_notes_make(run->store, (struct cell_range){0},
				   &r->notes[r->n - 1], e);
		run->rows = r->rows[r->n - 1];
	}
	if (!rc)
		name_runs(r);
	return rc;
}

/* Only what was measured and judged in the same way adds up. */
static int check_same(const struct runs *r, struct err *e)
{
	static const struct {
		const char *key, *what;
	} facts[] = {{"scenario", "the scenario"}, {"judged_seconds", "the length of a cell"},
		{"detectors", "the detectors"}};
	int rc = 0;

	for (size_t f = 0; f < sizeof(facts) / sizeof(facts[0]) && !rc; f++) {
		auto_free char *first = NULL;

		rc = store_get(r->list[0].store, facts[f].key, &first, e);
		for (size_t i = 1; i < r->n && rc >= 0; i++) {
			auto_free char *other = NULL;

			rc = store_get(r->list[i].store, facts[f].key, &other, e);
			if (rc >= 0 && strcmp(first ? first : "", other ? other : "") != 0)
				rc = err_set(e, -EINVAL,
					"--merge: %s of '%s' is not that of '%s'; without --merge "
					"they are compared",
					facts[f].what, store_folder(r->list[i].store),
					store_folder(r->list[0].store));
		}
		rc = rc < 0 ? rc : 0;
	}
	return rc;
}

/* The notes of all runs as one's; the lines stay theirs. The caller frees the lists. */
static void join_notes(const struct runs *r, struct table_notes *out, char **name)
{
	size_t n_missing = 0, n_remarks = 0;
	const char **missing, **remarks;

	*out = (struct table_notes){.nulls = r->notes[0].nulls};
	*name = alloc_copy(r->list[0].name);
	for (size_t i = 0; i < r->n; i++) {
		n_missing += r->notes[i].n_missing;
		n_remarks += r->notes[i].n_remarks;
	}
	out->missing = missing = alloc_zero(n_missing, sizeof(*missing));
	out->remarks = remarks = alloc_zero(n_remarks, sizeof(*remarks));
	for (size_t i = 0; i < r->n; i++) {
		const struct table_notes *one = &r->notes[i];
		char *longer = i ? alloc_format("%s + %s", *name, r->list[i].name) : NULL;

		if (longer) {
			free(*name);
			*name = longer;
		}
		out->planned += one->planned;
		out->confirmed += one->confirmed;
		out->invalid += one->invalid;
		out->error += one->error;
		for (size_t k = 0; k < one->n_missing; k++)
			missing[out->n_missing++] = one->missing[k];
		for (size_t k = 0; k < one->n_remarks; k++)
			remarks[out->n_remarks++] = one->remarks[k];
	}
	out->run_id = *name;
}

static int render(
	struct runs *r, const struct scoring *c, const struct table_options *o, struct err *e)
{
	struct table_notes all;
	char *name = NULL;
	int rc;

	if (!o->merge) {
		for (size_t i = 0; i < r->n; i++)
			r->notes[i].details = o->outcome.details;
		rc = table_runs_render(scoring_table(c), o->outcome.format, r->notes, r->n, stdout);
	} else {
		join_notes(r, &all, &name);
		all.details = o->outcome.details;
		rc = table_render(scoring_table(c), o->outcome.format, &all, stdout);
		free((char **)all.missing);
		free((char **)all.remarks);
		free(name);
	}
	return rc ? err_blame(e, ERR_HARNESS, err_errno(e, rc, "cannot write to standard output"))
		  : 0;
}

static int table_runs_refuse(const struct outcome_options *o, bool merge)
{
	static const char of_one[] = "%s is for one run";

	if (o->tap || o->junit)
		return cmd_fail("table", CULPRIT_EXIT_USAGE, of_one, o->tap ? "--tap" : "--junit");
	if (o->against || o->by_strength)
		return cmd_fail(
			"table", CULPRIT_EXIT_USAGE, of_one, o->against ? "--against" : "--by");
	if (o->baseline || o->write_baseline)
		return cmd_fail("table", CULPRIT_EXIT_USAGE, of_one,
			o->baseline ? "--baseline" : "--write-baseline");
	if (o->cells.to)
		return cmd_fail("table", CULPRIT_EXIT_USAGE, of_one, "--cells");
	if (!merge && o->format == TABLE_CSV)
		return cmd_fail("table", CULPRIT_EXIT_USAGE,
			"--format csv is for one run, or for runs that --merge adds up");
	return 0;
}

int table_runs_json(int n, char **folders, json_t **out, struct err *e)
{
	struct scoring *c = NULL;
	struct runs r = {0};
	char *text = NULL;
	size_t size = 0;
	int rc = open_runs(&r, n, folders, e) ?: scoring_runs(r.list, r.n, false, &c, e);

	if (!rc) {
		FILE *f = alloc_text(&text, &size);

		rc = table_runs_render(scoring_table(c), TABLE_JSON, r.notes, r.n, f);
		fclose(f);
		*out = rc ? NULL : json_loads(text, 0, NULL);
		if (!*out)
			rc = err_set(e, rc ?: -EINVAL, "cannot compare the runs");
	}
	free(text);
	scoring_free(c);
	runs_clear(&r);
	return rc;
}

int table_runs(int n, char **folders, const struct table_options *o)
{
	struct scoring *c = NULL;
	struct runs r = {0};
	struct err e;
	int code = table_runs_refuse(&o->outcome, o->merge);

	if (code)
		return code;
	if (o->merge && n < 2)
		return cmd_fail("table", CULPRIT_EXIT_USAGE, "--merge needs at least two runs");
	if (open_runs(&r, n, folders, &e) || (o->merge && check_same(&r, &e)) ||
		scoring_runs(r.list, r.n, o->merge, &c, &e) || render(&r, c, o, &e))
		code = cmd_error("table", &e, ERR_USAGE);
	scoring_free(c);
	runs_clear(&r);
	return code;
}
