/* Draws the timeline of a captured application. */
#include "harness/cli/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/cli/cmd.h"
#include "harness/replay/replay_rows.h"

/* ---- the table ---- */

enum { REPLAYS_SHOWN = (TIMELINE_COLUMNS_MAX - 2) / 2 };

struct table {
	struct replay_row *rows; /* REPLAY_ROWS_MAX of each replay */
	size_t n[REPLAYS_SHOWN], replays;
};

static const struct replay_row *timeline_capture_find(
	const struct table *all, size_t replay, const char *what)
{
	for (size_t i = 0; i < all->n[replay]; i++)
		if (!strcmp(all->rows[replay * REPLAY_ROWS_MAX + i].what, what))
			return &all->rows[replay * REPLAY_ROWS_MAX + i];
	return NULL;
}

static void add_row(struct timeline *t, const struct table *all, const struct replay_row *first)
{
	const char *cells[TIMELINE_COLUMNS_MAX] = {
		first->what, *first->application ? first->application : "-"};
	size_t n = 2;

	for (size_t i = 0; i < all->replays; i++) {
		const struct replay_row *r = timeline_capture_find(all, i, first->what);

		cells[n++] = r && *r->replay ? r->replay : "-";
		cells[n++] = r ? r->difference : "";
	}
	timeline_row(t, cells, n);
}

/* Rows of later replays that those before did not have come last. */
static void add_rows(struct timeline *t, const struct table *all)
{
	for (size_t i = 0; i < all->replays; i++) {
		for (size_t k = 0; k < all->n[i]; k++) {
			const struct replay_row *r = &all->rows[i * REPLAY_ROWS_MAX + k];
			size_t before = 0;

			while (before < i && !timeline_capture_find(all, before, r->what))
				before++;
			if (before == i)
				add_row(t, all, r);
		}
	}
}

static void add_table(struct timeline *t, json_t *const *results, size_t n)
{
	struct table all = {.replays = n < REPLAYS_SHOWN ? n : REPLAYS_SHOWN};
	const char *heads[TIMELINE_COLUMNS_MAX] = {"Application against replay", "application"};
	char *names[REPLAYS_SHOWN + 1] = {NULL};

	if (!n)
		return;
	all.rows = alloc_zero(all.replays * REPLAY_ROWS_MAX, sizeof(*all.rows));
	for (size_t i = 0; i < all.replays; i++) {
		all.n[i] = replay_rows(results[i], &all.rows[i * REPLAY_ROWS_MAX]);
		names[i] = capture_replay_name(results[i]);
		heads[2 + 2 * i] = names[i];
		heads[3 + 2 * i] = "difference";
	}
	timeline_row(t, heads, 2 + 2 * all.replays);
	for (size_t i = 0; i < all.replays; i++) {
		auto_free char *text = alloc_format("of %s took %.1f times the processor time that "
						    "it needs: the clients' processors were busy",
			names[i], replay_crowding(results[i]));

		if (replay_crowding(results[i]) >= 2)
			timeline_note(t, "computing", text);
	}
	add_rows(t, &all);
	for (size_t i = 0; i < all.replays; i++)
		free(names[i]);
	free(all.rows);
}

/* ---- the page ---- */

static void set_title(struct timeline *t, const char *path, size_t replays)
{
	const char *slash = strrchr(path, '/');
	auto_free char *title = alloc_format("%s: %s", slash ? slash + 1 : path,
		replays ? "application and replay" : "captured application");

	timeline_title(t, title, "");
}

/* "app.html" of "traces/app.app". */
static char *page_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return alloc_format(
		"%.*s.html", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

static int timeline_capture_fill(struct timeline *t, const struct app_trace *trace,
	const char *path, const struct option_list *replays, const struct capture_options *what,
	struct err *e)
{
	json_t **results = alloc_zero(replays->n + 1, sizeof(*results));
	int rc = 0;

	for (size_t i = 0; i < replays->n && !rc; i++)
		rc = capture_replay(replays->v[i], trace, &results[i], e);
	set_title(t, path, replays->n);
	rc = rc ?: capture_timeline(trace, results, replays->n, what, t, e);
	if (!rc)
		add_table(t, results, replays->n);
	for (size_t i = 0; i < replays->n; i++)
		json_decref(results[i]);
	free(results);
	return rc;
}

int timeline_capture_run(const char *path, const struct option_list *replays,
	const struct capture_options *what, const struct timeline_output *files)
{
	struct timeline_output out = *files;
	auto_free char *page = page_path(path);
	struct app_trace *trace = NULL;
	struct timeline *t = NULL;
	struct err e = {.text = ""};
	int rc, code = CULPRIT_EXIT_OK;

	if (!out.page && !out.perfetto && !out.otlp) {
		if (access(page, F_OK) == 0)
			return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
				"'%s' exists; '-o %s' replaces it", page, page);
		out.page = page;
	}
	rc = app_open(path, &trace, &e) ?: timeline_new(&t, &e);
	rc = rc ?: timeline_capture_fill(t, trace, path, replays, what, &e);
	if (rc)
		code = cmd_error("timeline", &e, ERR_USAGE);
	else if ((rc = timeline_write(t, &out, &e)))
		code = cmd_error(
			"timeline", &e, rc == -EINVAL || rc == -ENOENT ? ERR_USAGE : ERR_HARNESS);
	timeline_free(t);
	app_free(trace);
	return code;
}
