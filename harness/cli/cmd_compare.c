/* culprit compare: two recorded sessions side by side. */
#include <errno.h>

#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/run/signals.h"
#include "harness/web/serve/compare.h"
#include "harness/web/serve/page_subject.h"

struct options {
	bool json, per_second, no_index;
	long limit;
	double timeout_s;
};

struct side {
	struct page_subject *served;
	struct snapshot *snap;
	struct query *asked;
};

static int open_side(const struct options *o, const char *what, struct side *side, struct err *e)
{
	const struct query_spec spec = {
		.no_index = o->no_index, .timeout_s = o->timeout_s, .interrupted = signals_catch()};
	int rc = page_subject_open_named(what, &side->served, e);
	int64_t attempt;

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	side->snap = page_subject_get(side->served);
	attempt = page_subject_has_one_cell(side->snap)
		? page_subject_first_choice(side->served, side->snap)
		: 0;
	if (o->per_second && !attempt && page_subject_is_run(side->served))
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL, "--per-second is for logs and single cells: '%s:CELL'",
				what));
	return page_subject_ask(side->snap, attempt, &spec, &side->asked, e);
}

static void close_side(struct side *side)
{
	query_free(side->asked);
	if (side->snap)
		page_subject_put(side->served, side->snap);
	page_subject_close(side->served);
}

static int compare_show(const struct options *o, json_t *compared)
{
	int code = CULPRIT_EXIT_OK;
	const json_t *problem;
	size_t i;

	json_array_foreach(jget(compared, "problems"), i, problem)
		code = cmd_fail("compare", CULPRIT_EXIT_USAGE, "%s", json_string_value(problem));
	if (o->json)
		cmd_print_json(json_incref(compared));
	else
		compare_text(compared, o->limit, stdout);
	return code;
}

static int compare_run(const struct call *c)
{
	const struct options *o = c->options;
	auto_json json_t *compared = NULL;
	struct side sides[2] = {0};
	struct err e;
	int code,
		rc = open_side(o, c->args[0], &sides[0], &e)
		?: open_side(o, c->args[1], &sides[1], &e);

	if (!rc) {
		const struct compare_side a = {page_subject_name(sides[0].served), sides[0].asked},
					  b = {page_subject_name(sides[1].served), sides[1].asked};

		rc = compare_sessions(&a, &b, o->per_second, &compared, &e);
	}
	code = rc ? cmd_error("compare", &e, ERR_HARNESS) : compare_show(o, compared);
	close_side(&sides[0]);
	close_side(&sides[1]);
	return code;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"per-second", 0, OPTION_FLAG, AT(per_second), NULL,
		"divide counts and bytes by the session's length"},
	{"limit", 0, OPTION_WHOLE, AT(limit), "N",
		"print at most so many rows of a table (default: 20)", 1, 1e6},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print JSON, with all rows"},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"end a query that takes longer (default: 10min)", 0.001, 1e7, UNIT_SECONDS},
	{"no-index", 0, OPTION_FLAG, AT(no_index), NULL,
		"read logs from their beginning; neither use nor make an index"},
	{0},
};

const struct command compare_command = {.name = "compare",
	.summary = "set two recorded sessions side by side",
	.arguments = "A B",
	.about =
		"Compares two logs, two runs (RUN) or two cells of runs (RUN:CELL): calls by type, "
		"errors, files and threads, with how many, how many bytes and how long: in A, in "
		"B, and B / A. Of a cell it takes the confirmed attempt.\n\n"
		"p50 and p99 are estimated from powers of two. 'culprit serve A --compare B' "
		"shows the same in a browser.",
	.examples = "culprit compare before.trace after.trace\n"
		    "culprit compare runs/NAME:1 runs/NAME:4 --per-second",
	.exits = "0 compared; 2 usage error, or a log is damaged or cut short (what could be read "
		 "is compared); 3 the time limit, or an interrupt.",
	ARGUMENTS(2, 2),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.timeout_s = 600, .limit = 20},
	.run = compare_run};
