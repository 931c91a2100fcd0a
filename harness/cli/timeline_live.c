/* Serves the timeline of a run in progress. */
#include "harness/cli/timeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/judging/writings.h"
#include "harness/store/lock.h"
#include "harness/live/stop.h"
#include "harness/web/timeline/live.h"

#define LOOK_S 1.0

struct shown {
	const char *folder;
	const struct cell_options *what;
	struct timeline_live *live;
	int64_t attempt; /* that is published; 0: none */
	int64_t done;    /* cells, as status.json said last */
};

/* The run writes status.json once a second; its store is opened when a cell has ended only. */
static int64_t cells_done(const char *folder)
{
	auto_free char *path = alloc_format("%s/status.json", folder);
	auto_json json_t *v = json_load_file(path, 0, NULL);

	return jget_int(v, "done");
}

/* The confirmed attempt that ended last; NULL: none. New reference. */
static int last_cell(struct store *s, json_t **out, struct err *e)
{
	auto_json json_t *rows = NULL;
	const json_t *last;
	int rc = store_rows(s, ROWS_TRACED, 0, &rows, e);

	last = rc ? NULL : json_array_get(rows, json_array_size(rows) - 1);
	return last ? writing_choose(last, 0, out, e) : rc;
}

static int publish(struct shown *v, struct store *s, const json_t *row, struct err *e)
{
	struct cell_found found = {0};
	auto_free char *title = cell_title(s, row);
	struct timeline *t = NULL;
	int rc = timeline_new(&t, e);

	if (!rc) {
		timeline_title(t, title, store_run_id(s));
		rc = cell_timeline(s, row, v->what, t, &found, e);
	}
	rc = rc ?: timeline_live_publish(v->live, t, e);
	if (!rc) {
		v->attempt = jget_int(row, "attempt");
		fprintf(stderr, "culprit timeline: %s\n", title);
		if (*found.missing)
			cmd_fail("timeline", 0, "%s", found.missing);
	}
	cell_found_clear(&found);
	timeline_free(t);
	return rc;
}

static int timeline_live_look(struct shown *v, struct err *e)
{
	auto_json json_t *row = NULL;
	struct store *s = NULL;
	int rc = store_open(v->folder, &s, e);

	rc = rc ?: last_cell(s, &row, e);
	if (!rc && row && jget_int(row, "attempt") != v->attempt)
		rc = publish(v, s, row, e);
	store_close(s);
	return rc;
}

static int timeline_live_serve(struct shown *v, struct err *e)
{
	bool running = true;
	int64_t done;
	int rc = timeline_live_look(v, e);

	while (!rc && running && !stop_asked) {
		stop_wait(LOOK_S, -1);
		running = run_is_locked(v->folder, NULL);
		done = cells_done(v->folder);
		if (done == v->done && running)
			continue;
		v->done = done;
		rc = timeline_live_look(v, e);
	}
	if (!rc && !running)
		cmd_fail("timeline", 0,
			"the run '%s' has ended; 'culprit timeline %s' draws its cells", v->folder,
			v->folder);
	return rc;
}

int timeline_live_run(const char *folder, const struct cell_options *what, unsigned short port)
{
	struct shown v = {.folder = folder, .what = what, .done = cells_done(folder)};
	struct err e;
	int rc;

	if (!run_is_locked(folder, NULL))
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
			"'%s' is not going on; leave --live out to draw one of its cells", folder);
	stop_catch();
	rc = timeline_live_open(port, &v.live, &e);
	if (!rc) {
		puts(timeline_live_url(v.live));
		fflush(stdout);
		rc = timeline_live_serve(&v, &e);
	}
	timeline_live_close(v.live);
	return rc ? cmd_error("timeline", &e, ERR_HARNESS) : CULPRIT_EXIT_OK;
}
