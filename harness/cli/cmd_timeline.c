/* The command 'timeline': draws a cell or a capture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/timeline.h"
#include "harness/timeline/cell.h"

struct options {
	struct cell_options what;
	long cell, recording;
	const char *compare, *output, *perfetto, *otlp;
	struct option_list servers, replays;
	bool live;
	long port;
};

/* ---- filling ---- */

/* 'other': the option that shows another cell than the one that is chosen if 'cell' is 0. */
static int add_cell(const struct options *o, struct store *s, long cell, long recording,
	const char *other, struct timeline *t, struct cell_found *found, struct err *e)
{
	auto_json json_t *row = NULL;
	auto_free char *title = NULL;
	long long of;
	int rc = cell_choose(s, cell, (size_t)recording, &row, e);

	if (rc)
		return rc;
	title = cell_title(s, row);
	if (!o->compare)
		timeline_title(t, title, store_run_id(s));
	rc = cell_timeline(s, row, &o->what, t, found, e);
	if (!rc && !cell)
		fprintf(stderr, "culprit timeline: %s (--%s shows another)\n", title, other);
	of = jget_int(jget(row, "written"), "of");
	if (!rc && of > 1 && !recording)
		fprintf(stderr, "culprit timeline: recording %lld of %lld%s\n", of, of,
			o->compare ? "" : " (--recording shows another)");
	if (!rc && *found->missing)
		cmd_fail("timeline", 0, "%s", found->missing);
	return rc;
}

/* "RUN" or "RUN:CELL", where no folder has the whole name. */
static int timeline_split(const char *text, char **run, long *cell, struct err *e)
{
	const char *colon = strrchr(text, ':');
	char *end;

	*run = alloc_copy(text);
	*cell = 0;
	if (!colon || access(text, F_OK) == 0)
		return 0;
	*cell = strtol(colon + 1, &end, 10);
	if (*end || end == colon + 1 || *cell < 1)
		return err_set(e, -EINVAL, "--compare takes RUN or RUN:CELL, not '%s'", text);
	(*run)[colon - text] = '\0';
	return 0;
}

static int add_other(const struct options *o, struct store *s, struct timeline *t, struct err *e)
{
	struct cell_found found = {0};
	auto_free char *run = NULL;
	struct store *other = NULL;
	long cell;
	int rc = timeline_split(o->compare, &run, &cell, e);

	rc = rc ?: store_open(run, &other, e)
		?: add_cell(o, other, cell, 0, "compare RUN:CELL", t, &found, e);
	if (!rc) {
		auto_free char *title = alloc_format(
			"%s and %s", store_run_id(s), store_run_id(other));

		timeline_title(t, title, store_run_id(s));
	}
	cell_found_clear(&found);
	store_close(other);
	return rc;
}

static int choose_panes(
	const struct options *o, struct timeline *t, const struct cell_found *found, struct err *e)
{
	int32_t panes[2] = {TIMELINE_NONE, TIMELINE_NONE};

	for (size_t i = 0; i < o->servers.n; i++) {
		for (size_t k = 0; k < found->n_nodes; k++)
			if (!strcmp(found->names[k], o->servers.v[i]))
				panes[i] = found->nodes[k];
		if (panes[i] == TIMELINE_NONE)
			return err_set(e, -ENOENT, "the cell has no node '%s'", o->servers.v[i]);
	}
	timeline_panes(t, panes[0], panes[1]);
	return 0;
}

/* A new timeline of what the options ask for. '*cell': the one that was chosen. */
static int timeline_fill(
	const struct options *o, struct store *s, struct timeline **out, struct err *e)
{
	struct cell_found found = {0};
	struct timeline *t = NULL;
	int rc = timeline_new(&t, e);

	rc = rc ?: add_cell(o, s, o->cell, o->recording, "cell", t, &found, e);
	if (!rc && o->servers.n)
		rc = choose_panes(o, t, &found, e);
	if (!rc && o->compare)
		rc = add_other(o, s, t, e);
	cell_found_clear(&found);
	if (rc)
		timeline_free(t);
	else
		*out = t;
	return rc;
}

/* ---- writing ---- */

/* Without --output, and unless only other forms are asked for: RUN-cellN.html in this folder. */
static char *page_path(const struct options *o, const struct store *s, int64_t cell)
{
	if (o->output)
		return alloc_copy(o->output);
	if (o->perfetto || o->otlp)
		return NULL;
	return alloc_format("%s-cell%lld.html", store_run_id(s), (long long)cell);
}

static int write_all(const struct options *o, struct store *s, const char *page, struct err *e)
{
	const struct timeline_output files = {page, o->perfetto, o->otlp};
	struct timeline *t = NULL;
	int rc = timeline_fill(o, s, &t, e) ?: timeline_write(t, &files, e);

	timeline_free(t);
	return rc;
}

/* ---- the command ---- */

static int timeline_check(const struct options *o)
{
	if (timeline_is_stdout(o->output) + timeline_is_stdout(o->perfetto) +
			timeline_is_stdout(o->otlp) >
		1)
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
			"only one form can be written to standard output");
	if (o->servers.n && (o->servers.n != 2 || o->compare))
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
			"--server is given twice, to show two nodes one above the other, and "
			"without "
			"--compare");
	if (o->what.to_s && o->what.to_s <= o->what.from_s)
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE, "--to must be after --from");
	if (o->live &&
		(o->cell || o->recording || o->compare || o->output || o->perfetto || o->otlp))
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
			"--live shows the last cell that ended, in a browser: leave --cell, "
			"--recording, --compare, --output, --perfetto and --otlp out");
	if (o->port && !o->live)
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE, "--port needs --live");
	return 0;
}

static int write_run(const struct options *o, const char *folder)
{
	auto_json json_t *row = NULL;
	auto_free char *page = NULL;
	struct store *s = NULL;
	struct err e;
	int rc = store_open(folder, &s, &e), code = CULPRIT_EXIT_OK;

	rc = rc ?: cell_choose(s, o->cell, (size_t)o->recording, &row, &e);
	if (rc) {
		code = cmd_error("timeline", &e, ERR_USAGE);
	} else {
		page = page_path(o, s, jget_int(row, "cell"));
		if (page && !o->output && access(page, F_OK) == 0)
			code = cmd_fail("timeline", CULPRIT_EXIT_USAGE,
				"'%s' exists; '-o %s' replaces it", page, page);
		else if ((rc = write_all(o, s, page, &e)))
			code = cmd_error("timeline", &e,
				rc == -EINVAL || rc == -ENOENT || rc == -EBADMSG ? ERR_USAGE
										 : ERR_HARNESS);
	}
	store_close(s);
	return code;
}

/* A trace of 'culprit capture' in place of a run. */
static int write_capture(const struct options *o, const char *path)
{
	const struct timeline_output files = {o->output, o->perfetto, o->otlp};
	const struct capture_options what = {o->what.from_s, o->what.to_s};

	if (o->cell || o->recording || o->compare || o->servers.n || o->what.slower_s > 0 ||
		o->what.file_system || o->live)
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
			"'%s' is an application trace: --cell, --recording, --slower-than, "
			"--compare, --server, --file-system and --live are for runs",
			path);
	return timeline_capture_run(path, &o->replays, &what, &files);
}

static int timeline_run(const struct call *c)
{
	struct options *o = c->options;
	int code = timeline_check(o);

	if (code)
		return code;
	if (app_is_trace(c->args[0]))
		return write_capture(o, c->args[0]);
	if (o->replays.n)
		return cmd_fail("timeline", CULPRIT_EXIT_USAGE,
			"--replay is for a trace of 'culprit capture', and '%s' is none",
			c->args[0]);
	o->what.several = o->compare != NULL;
	if (o->live)
		return timeline_live_run(c->args[0], &o->what, (unsigned short)o->port);
	return write_run(o, c->args[0]);
}

#define AT(field) offsetof(struct options, field)
#define TIME(least) .min = least, .unit = UNIT_SECONDS
static const struct option_row rows[] = {
	{"cell", 0, OPTION_WHOLE, AT(cell), "N",
		"this cell of the run (default: the first scored one with a fault)", 1, 1e9},
	{"recording", 0, OPTION_WHOLE, AT(recording), "N",
		"of a cell with a flight recorder: what it wrote the N-th time (default: the last)",
		1, 1e3},
	{"from", 0, OPTION_QUANTITY, AT(what.from_s), "TIME",
		"only what begins from then on, from the start of the measurement: 12s", TIME(0)},
	{"to", 0, OPTION_QUANTITY, AT(what.to_s), "TIME",
		"only what begins before (default: the end)", TIME(1e-9)},
	{"slower-than", 0, OPTION_QUANTITY, AT(what.slower_s), "TIME",
		"only requests that took at least so long, with all that belongs to them: 50ms",
		TIME(0)},
	{"compare", 0, OPTION_TEXT, AT(compare), "RUN[:CELL]",
		"this cell, too, below the other; each from its own start"},
	{"server", 0, OPTION_LIST, AT(servers), "NAME",
		"given twice: these two nodes, one above the other"},
	{"replay", 0, OPTION_LIST, AT(replays), "RESULT",
		"of an application trace: what 'culprit replay --output' wrote; its bandwidth over "
		"time is drawn below the application's; may be repeated"},
	{"output", 'o', OPTION_TEXT, AT(output), "FILE",
		"write the page to FILE; - is standard output (default: RUN-cellN.html, or the "
		"trace's name with .html, in this folder, unless it exists or another form is "
		"asked for)"},
	{"perfetto", 0, OPTION_TEXT, AT(perfetto), "FILE",
		"write a trace for Perfetto (ui.perfetto.dev, trace_processor); - is standard "
		"output"},
	{"otlp", 0, OPTION_TEXT, AT(otlp), "FILE",
		"write OpenTelemetry spans (OTLP, JSON); - is standard output"},
	{"live", 0, OPTION_FLAG, AT(live), NULL,
		"serve the page on a loopback address while the run goes on: the last cell that "
		"ended, a new one as each cell ends; until ^C, or the run ends"},
	{"port", 0, OPTION_WHOLE, AT(port), "N", "of --live (default: any that is free)", 1, 65535},
	{"file-system", 0, OPTION_TEXT, AT(what.file_system), "NAME",
		"the adapter that describes the messages, its name or file (default: the one that "
		"the "
		"run was made with)"},
	{0},
};

const struct command timeline_command = {.name = "timeline",
	.summary = "draw a cell on a timeline",
	.arguments = "RUN | TRACE",
	.about = "Draws one cell of a run as an HTML file that opens offline: for each server and "
		 "client its requests, application's calls, FUSE requests and disk calls, with "
		 "arrows "
		 "from each to what it caused; requests in flight, disks, networks, processors and "
		 "memory as counters; the fault's onset and offset, and the verdicts, at their "
		 "moments. The nodes' clocks are brought together by what messages between them "
		 "allow; the page says by how much, and marks what stays doubtful.\n\n"
		 "Requests need a scenario with tracer = { \"ebpf\", mode = \"flow\", heads = true "
		 "}. "
		 "Without it, the page shows what the logs hold (calls in mode events, counters in "
		 "mode sums) and what is missing. The file holds host names.\n\n"
		 "Of an application trace ('culprit capture') it draws the ranks: their calls, and "
		 "between them computing, sleeping and waiting, with an arrow from each call to "
		 "those that waited for it; and bytes read and written over time, those of replays "
		 "below the application's.",
	.examples = "culprit timeline runs/NAME -o t.html\n"
		    "culprit timeline runs/NAME --cell 3 --from 10s --to 12s\n"
		    "culprit timeline runs/NAME --slower-than 50ms --server s1 --server s3\n"
		    "culprit timeline runs/NAME --compare runs/OTHER:2\n"
		    "culprit timeline runs/NAME --perfetto t.pftrace --otlp - | gzip >t.json.gz\n"
		    "culprit timeline runs/NAME --live\n"
		    "culprit timeline app.app --replay causal.json --replay afap.json -o app.html",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.run = timeline_run};
