/* Finds out what an interrupted run has done, and repairs its folder. */
#include "harness/run/resume.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/file.h"

static struct cell *find_cell(struct plan *p, json_int_t number)
{
	for (size_t i = 0; i < p->n; i++)
		if ((json_int_t)p->cells[i].number == number)
			return &p->cells[i];
	return NULL;
}

static json_t *find_row(const json_t *rows, json_int_t cell, json_int_t number)
{
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row)
		if (jget_int(row, "cell") == cell && jget_int(row, "number") == number)
			return row;
	return NULL;
}

/* The second tracer's store is written first: it may have an attempt that the run's own lacks. */
static int drop_incomplete(struct executor *x, const json_t *rows, struct err *e)
{
	json_auto_t *second = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(x->second_store, ROWS_ATTEMPTS, 0, &second, e);

	json_array_foreach(second, i, row) {
		if (!rc && !find_row(rows, jget_int(row, "cell"), jget_int(row, "number")))
			rc = store_drop_attempt(x->second_store, jget_int(row, "id"), e);
	}
	return rc;
}

/* Removes the folders of attempts that the store does not have: they never ended. */
static int remove_halves(struct executor *x, const json_t *rows, size_t *removed, struct err *e)
{
	char *cells = alloc_format("%s/cells", store_folder(x->store));
	DIR *dir = opendir(cells);
	int rc = 0;

	/* A run that was interrupted before its first cell has no such folder. */
	for (struct dirent *d; dir && !rc && (d = readdir(dir));) {
		long cell, number;
		char rest, *path;

		if (sscanf(d->d_name, "%ld.%ld%c", &cell, &number, &rest) != 2 ||
			find_row(rows, cell, number))
			continue;
		path = alloc_format("%s/%s", cells, d->d_name);
		rc = file_remove_tree(path, e);
		*removed += !rc;
		free(path);
	}
	if (dir)
		closedir(dir);
	free(cells);
	return rc;
}

/* Makes a confirmed attempt invalid, so that its cell is run again. */
static int spoil(struct executor *x, int64_t cell, int64_t number, const char *why, struct err *e)
{
	int rc = store_spoil(x->store, cell, number, why, e);

	return rc || !x->second_store ? rc : store_spoil(x->second_store, cell, number, why, e);
}

static int scan_attempt(struct executor *x, const json_t *row, struct resume *t, struct err *e)
{
	json_int_t cell = jget_int(row, "cell");
	json_int_t number = jget_int(row, "number");
	struct cell *c = find_cell(x->plan, cell);
	struct err why;
	int rc;

	if (!c)
		return err_blame(e, ERR_SCENARIO,
			err_set(e, -EINVAL,
				"the run has a cell %lld that its scenario does not have",
				(long long)cell));
	if (c->attempts < number)
		c->attempts = (long)number;
	c->aborted = !x->retries_aborted && !c->outdated &&
		!strcmp(jget_text(row, "outcome"), outcome_name(OUTCOME_ABORTED));
	if (strcmp(jget_text(row, "outcome"), outcome_name(OUTCOME_CONFIRMED)))
		return 0;
	if (c->outdated) {
		t->outdated++;
		return spoil(x, cell, number, "its fault's file has changed since", e);
	}
	progress_now(x->progress, 0, "checking what is there: cell %lld", (long long)cell);
	rc = store_check_files(x->store, jget_int(row, "id"), &why);
	if (!rc) {
		c->done = true;
		t->done++;
		return 0;
	}
	if (rc != -EBADMSG) {
		*e = why;
		return rc;
	}
	progress_say(x->progress, "cell %lld attempt %lld: %s: the cell is run again",
		(long long)cell, (long long)number, why.text);
	t->damaged++;
	t->training_lost = t->training_lost || c->training;
	return spoil(x, cell, number, why.text, e);
}

int resume_scan(struct executor *x, struct resume *t, struct err *e)
{
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(x->store, ROWS_ATTEMPTS, 0, &rows, e);

	*t = (struct resume){0};
	if (!rc && x->second_store)
		rc = drop_incomplete(x, rows, e);
	rc = rc ?: remove_halves(x, rows, &t->halves, e);
	json_array_foreach(rows, i, row)
		if (!rc)
			rc = scan_attempt(x, row, t, e);
	for (i = 0; i < x->plan->n; i++)
		t->aborted += x->plan->cells[i].aborted;
	rc = rc ?: store_unskip(x->store, e);
	if (!rc && x->second_store)
		rc = store_unskip(x->second_store, e);
	return rc;
}

int resume_check_keys(struct executor *x, struct err *e)
{
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(x->store, ROWS_ATTEMPTS, 0, &rows, e);

	json_array_foreach(rows, i, row) {
		const char *key = jget_text(row, "key");
		const struct cell *c = find_cell(x->plan, jget_int(row, "cell"));

		if (!rc && c && c->done && (!key || strcmp(key, c->key)))
			rc = err_blame(e, ERR_SCENARIO,
				err_set(e, -EINVAL,
					"cell %zu was measured under another key than it has now",
					c->number));
	}
	return rc;
}
