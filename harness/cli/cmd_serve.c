/* culprit serve: a run or logs on a page, while they grow as well. */
#include <errno.h>
#include <stdio.h>

#include "harness/cli/cmd.h"
#include "harness/web/serve/serve.h"
#include "harness/web/serve/views.h"
#include "harness/live/stop.h"

struct options {
	bool no_index, check;
	long cell, port;
	const char *views, *other, *beside;
	double timeout_s;
};

/* Says what is wrong with the views; how many are. -1: they cannot be read. */
static int check_views(const struct options *o, struct page_subject *session, struct err *e)
{
	struct snapshot *snap = page_subject_get(session);
	const struct query_spec spec = {.no_index = o->no_index, .params = view_params};
	struct query *q = NULL;
	struct views views = {0};
	int wrong = 0,
	    rc = views_read(o->views, &views, e) ?: page_subject_ask(snap, 0, &spec, &q, e);

	for (size_t i = 0; !rc && i < views.n; i++) {
		if (!views.v[i].of_runs || page_subject_is_run(session))
			view_check(&views.v[i], q);
		if (!views.v[i].wrong)
			continue;
		wrong++;
		cmd_fail("serve", 0, "%s", views.v[i].wrong);
	}
	query_free(q);
	views_clear(&views);
	page_subject_put(session, snap);
	return rc ? -1 : wrong;
}

static int cli_serve_serve(const struct serve_spec *spec)
{
	struct serve *s;
	struct err e;

	if (serve_open(spec, &s, &e))
		return cmd_error("serve", &e, ERR_HARNESS);
	puts(serve_url(s));
	fflush(stdout);
	while (!stop_asked)
		stop_wait(3600, -1);
	serve_close(s);
	return CULPRIT_EXIT_OK;
}

static int open_sessions(const struct call *c, struct serve_spec *spec, struct err *e)
{
	const struct options *o = c->options;
	int rc = page_subject_open(c->n, c->args, o->cell, &spec->session, e);

	if (!rc && o->beside)
		rc = page_subject_beside(spec->session, o->beside, e);
	if (!rc && o->other)
		rc = page_subject_open_named(o->other, &spec->other, e);
	return rc;
}

static int serve_run(const struct call *c)
{
	const struct options *o = c->options;
	struct serve_spec spec = {.views = o->views,
		.port = (unsigned short)o->port,
		.timeout_s = o->timeout_s,
		.no_index = o->no_index};
	struct err e;
	int code = CULPRIT_EXIT_USAGE, wrong;

	stop_catch();
	if (open_sessions(c, &spec, &e) || (wrong = check_views(o, spec.session, &e)) < 0)
		code = cmd_error("serve", &e, ERR_USAGE);
	else if (o->check)
		code = wrong ? CULPRIT_EXIT_USAGE : CULPRIT_EXIT_OK;
	else
		code = cli_serve_serve(&spec);
	page_subject_close(spec.session);
	page_subject_close(spec.other);
	return code;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"cell", 0, OPTION_WHOLE, AT(cell), "N", "of a run: only this cell", 1, 1e9},
	{"compare", 0, OPTION_TEXT, AT(other), "LOG|RUN[:CELL]",
		"what the page sets beside it (default: another cell of the run)"},
	{"beside", 0, OPTION_TEXT, AT(beside), "RUN",
		"with the folder of 'culprit trace --inventory': show the faults and verdicts of "
		"this run, too, which goes on (or went on) meanwhile on the same nodes"},
	{"port", 0, OPTION_WHOLE, AT(port), "N", "on 127.0.0.1 (default: any that is free)", 1,
		65535},
	{"views", 0, OPTION_TEXT, AT(views), "DIR",
		"folder of your views (default: ~/.config/culprit/views)"},
	{"check", 0, OPTION_FLAG, AT(check), NULL, "check the views, and end: 2 if one is wrong"},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"end a query that takes longer (default: 30s)", 0.001, 3600, UNIT_SECONDS},
	{"no-index", 0, OPTION_FLAG, AT(no_index), NULL,
		"read logs from their beginning; neither use nor make an index"},
	{0},
};

const struct command serve_command = {.name = "serve",
	.summary = "show logs, runs in a browser",
	.arguments = "RUN\nLOG ...",
	.about =
		"Serves a page on 127.0.0.1 until it is interrupted, and prints its address. Only "
		"who has the address, with the token in it, can look.\n\n"
		"The page shows calls by type and thread, latency, bytes, errors, files and their "
		"offsets over time, the events themselves, and of a run the fault and the "
		"verdicts; each panel is a query (culprit query). A run that goes on, and a log "
		"that is being written, is shown as it grows.\n\n"
		"A panel is a view: a file NAME.view with 'title:', 'chart:' (line, area, bars, "
		"heat, dots or table) and 'query:', then a SELECT. Yours are in "
		"~/.config/culprit/views; culprit's are in harness/web/serve/views. A wrong one is "
		"told with its line, on the page, too.",
	.examples = "culprit serve app.trace\n"
		    "culprit serve runs/NAME --cell 3\n"
		    "culprit serve before.trace --compare after.trace\n"
		    "culprit serve LIVE --beside runs/NAME\n"
		    "culprit serve app.trace --views ./views --check",
	.exits = "0 it was interrupted; 2 usage error, or no log or run; 3 it cannot listen.",
	ARGUMENTS(1, 1000),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.timeout_s = 30},
	.run = serve_run};
