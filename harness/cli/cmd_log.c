/* culprit log: a trace log as text, as JSON lines, or summed up; two of them side by side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/app.h"
#include "diag/query/scan.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/outfile.h"
#include "harness/cli/cmd.h"
#include "diag/log/log_view.h"
#include "harness/run/signals.h"
#include "harness/web/serve/compare.h"
#include "harness/web/serve/page_subject.h"

/* Names of --call to numbers, once the log's architecture is known. */
static int choose_calls(struct log_view *v, const char *arch, struct err *e)
{
	char names[1024], *save, *name;

	snprintf(names, sizeof(names), "%s", v->calls);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		int nr = call_number(arch, name);

		if (nr < 0)
			return err_set(
				e, -EINVAL, "there is no system call '%s' on %s", name, arch);
		v->want_call[nr] = true;
		v->some_calls = true;
	}
	return 0;
}

static int choose_keys(struct log_view *v, const char *text)
{
	static const struct {
		const char *name;
		enum view_by by;
	} keys[] = {{"call", BY_CALL}, {"path", BY_PATH}, {"process", BY_PROCESS},
		{"error", BY_ERROR}, {"file", BY_FILE}};
	char names[64], *save, *name;

	snprintf(names, sizeof(names), "%s", text);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		unsigned by = 0;

		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (!strcmp(keys[i].name, name))
				by = keys[i].by;
		if (!by)
			return -EINVAL;
		v->by |= by;
	}
	return v->by ? 0 : -EINVAL;
}

static int log_show(struct log_view *v, struct stream_item *item, struct err *e)
{
	if (!view_wants(v, item))
		return 0;
	if (v->summary)
		totals_add(v, item);
	else if (v->json)
		json_record(item);
	else
		text_record(v, item);
	return ferror(stdout) ? outfile_flush(stdout, e) : 0;
}

struct options {
	struct log_view view;
	struct option_list paths;
	long pid;
	double from_s, to_s, timeout_s;
	bool no_index, per_second;
	long limit;
	const char *compare;
};

static int64_t after(const struct log_head *head, double s)
{
	return head->start_ns + (int64_t)(s * 1e9);
}

/* What of the view can be decided before a record is examined. view_wants decides the rest. */
static void narrow(const struct options *o, const struct log_head *head, struct scan_filter *f)
{
	const struct log_view *v = &o->view;

	scan_filter_all(f, ~0u);
	f->always = 1u << RECORD_END | 1u << RECORD_LOST | 1u << RECORD_UNSEEN;
	f->either = v->pid;
	f->failed = v->errors;
	f->some_calls = v->some_calls;
	if (v->errors)
		f->types = 1u << RECORD_CALL | 1u << RECORD_SUM;
	if (v->some_calls)
		f->types = 1u << RECORD_CALL;
	for (uint32_t nr = 0; nr < VIEW_MAX_CALLS; nr++)
		if (v->want_call[nr])
			zone_set_bit(f->calls, zone_call(nr));
	if (o->from_s > 0)
		f->from_ns = after(head, o->from_s);
	if (o->to_s >= 0)
		f->to_ns = after(head, o->to_s);
}

static int open_scan(const struct options *o, struct log_view *v, const char *path,
	struct scan **out, struct err *e)
{
	static const struct stream_spec nothing_known;
	struct scan_spec spec = {.details = true, .state = true, .no_index = o->no_index};
	const struct log_head *head;
	int rc = scan_open(path, &nothing_known, out, e);

	if (rc)
		return rc;
	v->stream = scan_stream(*out);
	head = stream_head(v->stream);
	if (v->calls)
		rc = choose_calls(v, head->arch, e);
	narrow(o, head, &spec.filter);
	rc = rc ?: scan_begin(*out, &spec, e);
	if (rc)
		scan_close(*out);
	return rc;
}

static int log_print(struct log_view *v, struct scan *scan, struct err *e)
{
	struct stream_item *item;
	int rc = 0;

	if (!v->summary)
		(v->json ? json_head : text_head)(stream_head(v->stream));
	while (!rc && (rc = scan_next(scan, &item, e)) == 1)
		rc = log_show(v, item, e);
	if (v->summary)
		totals_print(v);
	return rc;
}

/* A trace of 'culprit capture'. */
static int print_app(const char *path, const struct options *o)
{
	struct app_trace *t;
	struct err e;
	int rc;

	if (o->view.json || o->view.by || o->view.calls || o->paths.n || o->pid || o->from_s ||
		o->to_s >= 0 || o->view.errors || o->view.name || o->view.tags)
		return cmd_fail("log", CULPRIT_EXIT_USAGE,
			"'%s' is a trace of 'culprit capture': only --summary chooses what is "
			"printed",
			path);
	rc = app_open(path, &t, &e);
	if (rc)
		return cmd_error("log", &e, ERR_USAGE);
	rc = o->view.summary ? app_print_summary(t, stdout, &e)
			     : app_print(t, UINT32_MAX, stdout, &e);
	app_free(t);
	return rc ? cmd_error("log", &e, ERR_HARNESS) : CULPRIT_EXIT_OK;
}

/* ---- --compare ---- */

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

static int compare_show(const struct options *o, const json_t *compared)
{
	int code = CULPRIT_EXIT_OK;
	const json_t *problem;
	size_t i;

	json_array_foreach(jget(compared, "problems"), i, problem)
		code = cmd_fail("log", CULPRIT_EXIT_USAGE, "%s", json_string_value(problem));
	if (o->view.json) {
		json_dumpf(compared, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		compare_text(compared, o->limit, stdout);
	}
	return code;
}

static int log_compare(const struct options *o, const char *first)
{
	auto_json json_t *compared = NULL;
	struct side sides[2] = {0};
	struct err e;
	int code,
		rc = open_side(o, first, &sides[0], &e) ?: open_side(o, o->compare, &sides[1], &e);

	if (!rc) {
		const struct compare_side a = {page_subject_name(sides[0].served), sides[0].asked},
					  b = {page_subject_name(sides[1].served), sides[1].asked};

		rc = compare_sessions(&a, &b, o->per_second, &compared, &e);
	}
	code = rc ? cmd_error("log", &e, ERR_HARNESS) : compare_show(o, compared);
	close_side(&sides[0]);
	close_side(&sides[1]);
	return code;
}

static int log_run(const struct call *c)
{
	struct options *o = c->options;
	struct log_view *v = &o->view;
	struct scan *scan;
	struct err e;
	int rc;

	if (o->compare)
		return log_compare(o, c->args[0]);
	if (v->json && v->summary)
		return cmd_fail("log", CULPRIT_EXIT_USAGE,
			"--summary and --json: JSON is of records; 'culprit query --json' sums up");
	if (v->by && !v->summary)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "--by needs --summary");
	if (app_is_trace(c->args[0]))
		return print_app(c->args[0], o);
	if (o->paths.n > VIEW_MAX_PATHS)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "at most %d times --path, not '%s'",
			VIEW_MAX_PATHS, o->paths.v[VIEW_MAX_PATHS]);
	while (v->n_paths < o->paths.n) {
		v->paths[v->n_paths] = o->paths.v[v->n_paths];
		v->n_paths++;
	}
	v->pid = (uint32_t)o->pid;
	rc = open_scan(o, v, c->args[0], &scan, &e);
	if (rc < 0)
		return cmd_error("log", &e, ERR_USAGE);
	rc = log_print(v, scan, &e);
	rc = rc ?: outfile_flush(stdout, &e);
	totals_free(v->totals);
	scan_close(scan);
	if (rc < 0)
		return cmd_error(
			"log", &e, rc == -EBADMSG || rc == -EINVAL ? ERR_DAMAGED : ERR_HARNESS);
	return CULPRIT_EXIT_OK;
}

static int set_by(void *field, const char *text, struct err *e)
{
	if (!choose_keys(field, text))
		return 0;
	return err_set(e, -EINVAL,
		"takes call, error, path, process, file, or several of them with commas, not '%s'",
		text);
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"summary", 'c', OPTION_FLAG, AT(view.summary), NULL,
		"print sums, the longest first: seconds, mean, median and 99th percentile "
		"(estimated from powers of two), maximum, calls, errors, bytes"},
	{"by", 0, OPTION_CALL, AT(view), "KEY,...",
		"rows of --summary: call, error, path, process, file (its tag), or several of them "
		"(default: call; with --errors: call,error)",
		.set = set_by},
	{"json", 0, OPTION_FLAG, AT(view.json), NULL, "print one JSON object per line"},
	{"tags", 0, OPTION_FLAG, AT(view.tags), NULL,
		"with each file descriptor its file's tag: device|inode|first seen. It tells a "
		"file from a later one with the same inode number (--json always has it)"},
	{"call", 0, OPTION_TEXT, AT(view.calls), "NAME,...", "only these calls: read,pread64"},
	{"pid", 0, OPTION_WHOLE, AT(pid), "PID", "only this process or thread", 1, 4294967295},
	{"name", 0, OPTION_TEXT, AT(view.name), "NAME", "only processes and threads of this name"},
	{"path", 0, OPTION_LIST, AT(paths), "PREFIX",
		"only calls on files at or below this path, or that name one; may be repeated"},
	{"errors", 0, OPTION_FLAG, AT(view.errors), NULL, "only calls that failed"},
	{"from", 0, OPTION_QUANTITY, AT(from_s), "TIME",
		"only records that begin this long after the log's beginning, or later", 0, 1e9,
		UNIT_SECONDS},
	{"to", 0, OPTION_QUANTITY, AT(to_s), "TIME",
		"only records that begin this long after the log's beginning, or earlier", 0, 1e9,
		UNIT_SECONDS},
	{"no-index", 0, OPTION_FLAG, AT(no_index), NULL,
		"read the log from its beginning; neither use nor make an index"},
	{"compare", 0, OPTION_TEXT, AT(compare), "LOG|RUN[:CELL]",
		"print sums of two logs, runs or cells of runs side by side: calls by type, "
		"errors, files and threads in both, and the ratio",
		.allows = "json|limit|no-index|per-second|timeout"},
	{"per-second", 0, OPTION_FLAG, AT(per_second), NULL,
		"with --compare: divide counts and bytes by the session's length",
		.needs = "compare"},
	{"limit", 0, OPTION_WHOLE, AT(limit), "N",
		"with --compare: print at most so many rows of a table (default: 20)", 1, 1e6,
		.needs = "compare"},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"with --compare: end a query that takes longer (default: 10min)", 0.001, 1e7,
		UNIT_SECONDS, .needs = "compare"},
	{0},
};

const struct command log_command = {.name = "log",
	.summary = "print a log, compare logs",
	.arguments = "FILE\nLOG|RUN[:CELL] --compare LOG|RUN[:CELL]",
	.about =
		"Prints a trace log ('-': standard input), one line per record: time (UTC), "
		"process/thread, its name, the call with its paths and with what its descriptors "
		"meant at that moment, its result ('?': it did not return), its service time in "
		"seconds, and what the call does not say itself: the offset in the file at which "
		"it began, or how many bytes its buffers asked for.\n\n"
		"A log of sums (culprit trace --mode sums) has one line per second, process, "
		"class of call and class of descriptor.\n\n"
		"A trace of 'culprit capture' has one line per operation: rank.thread:number, "
		"start, the call, and what was before it: processor time (compute), sleep (away), "
		"and the operations of other threads that it waited for (after). --summary prints "
		"what the trace is, with a row per rank.\n\n"
		"--call, --pid, --errors, --from and --to spare reading: of logs of 1 MiB and more "
		"an index is kept in ~/.cache/culprit/index, which can be removed at any time.\n\n"
		"--compare takes the confirmed attempt of a cell. p50 and p99 are estimated from "
		"powers of two. 'culprit serve A --compare B' shows the same in a browser.",
	.examples = "culprit log --path /var/log/app.log --tags LOG   the story of one file\n"
		    "culprit log -c --by process,call LOG             where time goes\n"
		    "culprit log -c --errors --by call,error,path LOG which files were not found\n"
		    "culprit log before.trace --compare after.trace   what changed\n"
		    "culprit log runs/NAME:1 --compare runs/NAME:4 --per-second",
	.exits = "0 printed; 2 usage error, or a log is damaged or cut short (what could be read "
		 "is printed); 3 the output cannot be written, the time limit, or an interrupt.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.to_s = -1, .timeout_s = 600, .limit = 20},
	.run = log_run};
