/* Takes snapshots of a run or of logs that may still grow. */
#include "harness/web/serve/page_subject.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag/record/growing.h"
#include "diag/record/log.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "harness/base/jget.h"
#include "harness/web/serve/page_subject_impl.h"
#include "harness/store/lock.h"

enum { GROWING_S = 30 };

struct page_subject {
	char *name, *folder; /* folder: a run's, or NULL */
	char *beside;        /* a run whose marks are also shown, or NULL */
	char **paths;        /* paths of logs */
	size_t n_paths;
	long cell;
	pthread_mutex_t lock; /* protects the members below */
	struct snapshot *now;
	uint64_t stamp; /* of the files behind 'now' */
};

static void snapshot_free(struct snapshot *snap)
{
	if (!snap)
		return;
	run_tables_free(snap->run);
	free(snap->own);
	json_decref(snap->attempts);
	json_decref(snap->beside);
	free(snap);
}

/* A value that changes when the file does. */
static uint64_t stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return 0;
	return hash_mix(hash_mix(0, (uint64_t)st.st_size),
		(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
}

static uint64_t stamp_of_run(const char *folder)
{
	auto_free char *db = alloc_format("%s/run.db", folder);
	auto_free char *wal = alloc_format("%s/run.db-wal", folder);

	return stamp_of(db) * 31 + stamp_of(wal);
}

static uint64_t stamp(const struct page_subject *s)
{
	uint64_t all = 1;

	for (size_t i = 0; i < s->n_paths; i++)
		all = all * 31 + stamp_of(s->paths[i]);
	if (s->beside) {
		auto_free char *status = alloc_format("%s/status.json", s->beside);

		all = all * 31 + stamp_of_run(s->beside) + stamp_of(status);
		all = all * 31 + run_is_locked(s->beside, NULL); /* a run's end changes no file */
	}
	if (s->folder) {
		all += stamp_of_run(s->folder);
		for (size_t i = 0; s->now && i < s->now->n_logs; i++)
			if (s->now->logs[i].goes_on)
				all = all * 31 + stamp_of(s->now->logs[i].path);
	}
	return all;
}

/* A run without attempts is empty, which is not an error while it runs. */
static int of_run(const struct page_subject *s, struct snapshot *snap, struct err *e)
{
	const struct run_tables_spec of = {
		.cell = s->cell, .may_be_empty = run_is_locked(s->folder, NULL)};
	struct store *store;
	int rc = store_open(s->folder, &store, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	rc = run_tables_new(store, &of, &snap->run, e);
	if (!rc)
		snap->logs = run_tables_logs(snap->run, &snap->n_logs);
	store_close(store);
	return rc;
}

static void of_logs(const struct page_subject *s, struct snapshot *snap)
{
	snap->own = alloc_zero(s->n_paths, sizeof(*snap->own));
	for (size_t i = 0; i < s->n_paths; i++)
		snap->own[i].path = snap->own[i].name = s->paths[i];
	snap->logs = snap->own;
	snap->n_logs = s->n_paths;
}

static int snapshot_new(const struct page_subject *s, struct snapshot **out, struct err *e)
{
	struct snapshot *snap = alloc_zero(1, sizeof(*snap));
	int rc = 0;

	if (s->folder)
		rc = of_run(s, snap, e);
	else
		of_logs(s, snap);
	if (rc) {
		snapshot_free(snap);
		return rc;
	}
	snap->attempts = page_subject_attempts(snap);
	snap->beside = json_null();
	if (s->beside && page_subject_add_beside(snap, s->beside, e)) {
		snapshot_free(snap);
		return -EINVAL;
	}
	snap->users = 1;
	*out = snap;
	return 0;
}

static void release(struct snapshot *snap)
{
	if (snap && !--snap->users)
		snapshot_free(snap);
}

/* If the files cannot be read any more (while a run is being packed, for example), keep the last
 * snapshot. */
static int refresh(struct page_subject *s, struct err *e)
{
	const uint64_t is = stamp(s);
	struct snapshot *snap;
	int rc;

	if (s->now && is == s->stamp)
		return 0;
	rc = snapshot_new(s, &snap, e);
	if (rc)
		return rc;
	snap->generation = s->now ? s->now->generation + 1 : 1;
	release(s->now);
	s->now = snap;
	s->stamp = is;
	return 0;
}

struct snapshot *page_subject_get(struct page_subject *s)
{
	struct snapshot *snap;
	struct err e;

	pthread_mutex_lock(&s->lock);
	refresh(s, &e);
	snap = s->now;
	snap->users++;
	pthread_mutex_unlock(&s->lock);
	return snap;
}

void page_subject_put(struct page_subject *s, struct snapshot *snap)
{
	pthread_mutex_lock(&s->lock);
	release(snap);
	pthread_mutex_unlock(&s->lock);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Each file must be a log from the start. */
static int take_logs(struct page_subject *s, int n, char **args, struct err *e)
{
	for (int i = 0; i < n; i++) {
		struct log_reader *r;
		int rc;

		if (!strcmp(args[i], "-"))
			return err_set(
				e, -EINVAL, "give a file: standard input can be read only once");
		if (is_folder(args[i]))
			return err_set(e, -EINVAL, "'%s': one run at a time, or logs", args[i]);
		rc = log_reader_new(args[i], &r, e);
		if (rc)
			return rc;
		log_reader_free(r);
		s->paths = alloc_room(s->paths, s->n_paths, sizeof(*s->paths));
		s->paths[s->n_paths++] = alloc_copy(args[i]);
	}
	s->name = n == 1 ? alloc_copy(base_name(args[0])) : alloc_format("%d logs", n);
	return 0;
}

static void take_run(struct page_subject *s, const char *folder)
{
	size_t n = strlen(folder);
	char *path = alloc_copy(folder);

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	s->folder = path;
	s->name = s->cell ? alloc_format("%s, cell %ld", base_name(path), s->cell)
			  : alloc_copy(base_name(path));
}

int page_subject_open(int n, char **args, long cell, struct page_subject **out, struct err *e)
{
	struct page_subject *s = alloc_zero(1, sizeof(*s));
	int rc = 0;

	pthread_mutex_init(&s->lock, NULL);
	s->cell = cell;
	if (n == 1 && is_folder(args[0]))
		take_run(s, args[0]);
	else if (cell)
		rc = err_set(e, -EINVAL, "--cell needs a run, but '%s' is not a run", args[0]);
	else
		rc = take_logs(s, n, args, e);
	rc = rc ?: refresh(s, e);
	if (rc)
		page_subject_close(s);
	else
		*out = s;
	return rc;
}

int page_subject_open_named(const char *what, struct page_subject **out, struct err *e)
{
	auto_free char *name = alloc_copy(what);
	char *colon = strrchr(name, ':'), *end, *args[] = {name, NULL};
	struct stat st;
	long cell = 0;

	if (stat(what, &st) && colon && isdigit((unsigned char)colon[1])) {
		errno = 0;
		cell = strtol(colon + 1, &end, 10);
		if (*end || errno || cell < 1)
			return err_set(e, -EINVAL, "'%s' is not a cell: write RUN:NUMBER", what);
		*colon = '\0';
	}
	return page_subject_open(1, args, cell, out, e);
}

int page_subject_beside(struct page_subject *s, const char *run, struct err *e)
{
	struct snapshot *was = s->now;
	int rc;

	if (!s->folder)
		return err_set(e, -EINVAL, "--beside needs a capture's folder, and '%s' is not one",
			s->name);
	s->beside = alloc_copy(run);
	s->now = NULL;
	rc = refresh(s, e);
	release(was);
	return rc;
}

void page_subject_close(struct page_subject *s)
{
	if (!s)
		return;
	release(s->now);
	pthread_mutex_destroy(&s->lock);
	for (size_t i = 0; i < s->n_paths; i++)
		free(s->paths[i]);
	free(s->paths);
	free(s->folder);
	free(s->beside);
	free(s->name);
	free(s);
}

const char *page_subject_name(const struct page_subject *s)
{
	return s->name;
}

const char *page_subject_folder(const struct page_subject *s)
{
	return s->folder;
}

bool page_subject_is_run(const struct page_subject *s)
{
	return s->folder;
}

/* Is it being written, or without an end but written to a moment ago? */
static bool is_growing(const char *path)
{
	struct record_end end;
	struct stat st;

	if (log_is_growing(path))
		return true;
	return log_read_end(path, &end, NULL, NULL) && !stat(path, &st) &&
		clock_real_ns() / 1000000000 - st.st_mtim.tv_sec < GROWING_S;
}

bool page_subject_goes_on(const struct page_subject *s)
{
	if (s->beside && run_is_locked(s->beside, NULL))
		return true;
	if (s->folder)
		return run_is_locked(s->folder, NULL);
	for (size_t i = 0; i < s->n_paths; i++)
		if (is_growing(s->paths[i]))
			return true;
	return false;
}

int64_t page_subject_first_choice(const struct page_subject *s, const struct snapshot *snap)
{
	const size_t n = json_array_size(snap->attempts);
	const json_t *row, *found = json_array_get(snap->attempts, 0);
	bool confirmed = false;
	size_t i;

	if (n && page_subject_goes_on(s))
		return jget_int(json_array_get(snap->attempts, n - 1), "attempt");
	json_array_foreach(snap->attempts, i, row) {
		if (!jget_true(row, "confirmed") || (confirmed && !jget_true(row, "faulty")))
			continue;
		found = row;
		confirmed = true;
		if (jget_true(row, "faulty"))
			break;
	}
	return jget_int(found, "attempt");
}

bool page_subject_has_one_cell(const struct snapshot *snap)
{
	const int64_t first = jget_int(json_array_get(snap->attempts, 0), "cell");
	const json_t *row;
	size_t i;

	json_array_foreach(snap->attempts, i, row)
		if (jget_int(row, "cell") != first)
			return false;
	return json_array_size(snap->attempts);
}

int page_subject_ask(const struct snapshot *snap, int64_t attempt, const struct query_spec *spec,
	struct query **q, struct err *e)
{
	struct query_spec with = *spec;

	with.focus.attempt = attempt;
	if (snap->run)
		return run_tables_query(snap->run, &with, q, e);
	with.logs = snap->logs;
	with.n_logs = snap->n_logs;
	return query_new(&with, q, e);
}
