/* Runs the detector 'fleet' on series and prints its findings. */
#include "harness/cli/diagnose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "diag/judge/ground_truth.h"
#include "harness/base/units.h"
#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/near.h"
#include "harness/cli/cmd.h"
#include "harness/table/fleet.h"

enum { TERMINAL_WIDTH = 100 };

#define complain(...) cmd_fail("diagnose", CULPRIT_EXIT_USAGE, __VA_ARGS__)

struct job {
	struct fleet_request *r;
	struct metric_models models;
	struct fleet_options options;
	char *source;
	struct prometheus_options server; /* without 'file' */
	struct fleet *fleet;
	struct import_said said;
	struct fleet_result *whole;
	struct fleet_view view;
	struct ground_truth labels;
	struct ranked *ranked;
	struct ranking_score score;
};

/* Errors in files are the user's. */
static int blame(struct err *e, int rc)
{
	return rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
}

static int read_prometheus(struct job *j, const struct import_sink *sink, struct err *e)
{
	double to = j->r->range.to_s != 0 ? j->r->range.to_s : (double)time(NULL);
	double last = j->r->range.last_s > 0 ? j->r->range.last_s : SECONDS_PER_WEEK;
	double from = j->r->range.from_s != 0 ? j->r->range.from_s : to - last;
	struct prometheus *p = NULL;
	int rc = prometheus_new(&j->server, &p, e);

	if (!rc)
		rc = prometheus_query(p, from, to, sink, &j->said, NULL, e);
	if (!rc && !j->said.samples)
		rc = err_blame(e, ERR_SCENARIO,
			err_set(e, -EINVAL, "%s: the queries give no series%s%s", j->server.url,
				j->said.partial ? "; " : "",
				j->said.partial ? j->said.partial : ""));
	prometheus_free(p);
	/* What only the server can mend is no error of usage. */
	return rc ? err_blame(e, rc == -EINVAL ? ERR_USAGE : ERR_CLUSTER, rc) : 0;
}

static int read_series(struct job *j, struct err *e)
{
	struct import_sink sink = fleet_sink(j->fleet);

	if (!j->r->files.n)
		return read_prometheus(j, &sink, e);
	j->r->series.how.from_s = j->r->range.from_s;
	j->r->series.how.to_s = j->r->range.to_s != 0 ? j->r->range.to_s
		: j->r->range.from_s != 0             ? HUGE_VAL
						      : 0;
	return blame(e, diagnose_files(&j->r->files, &j->r->series.how, &sink, &j->said, e));
}

/* The false alarms allowed in one window, so that those of a week, or of all windows of a shorter
 * recording, add up to what was asked for. */
static double alarms_of_window(const struct job *j, const struct windows *w)
{
	return j->options.alarms * fmin(1, fmax(w->length_s / SECONDS_PER_WEEK, 1 / (double)w->n));
}

static int judge_windows(struct job *j, struct err *e)
{
	double from_s, to_s;
	struct windows w;
	int rc;

	if (j->r->window_s <= 0 || !fleet_extent(j->fleet, &from_s, &to_s))
		return 0;
	rc = windows_cut(&w, from_s, to_s, j->r->window_s, fleet_unix_times(from_s), e);
	if (!rc)
		fleet_allow(j->fleet, alarms_of_window(j, &w));
	for (size_t i = 0; i < w.n && !rc; i++) {
		double from = windows_start(&w, i), to = windows_start(&w, i + 1);
		struct fleet_result *result = NULL;
		struct err why;
		int bad = fleet_judge(j->fleet, from, to, &result, &why);

		if (bad && bad != -EINVAL)
			rc = err_set(e, bad, "%s", why.text);
		else
			fleet_view_window(&j->view, from, to, result, why.text);
		if (!bad)
			fleet_result_free(result);
	}
	return blame(e, rc);
}

/* What was read: the address, the file, or "a.csv and 2 more files". */
static char *name_source(const struct job *j)
{
	const struct option_list *files = &j->r->files;
	const char *first = !files->n      ? j->server.url
		: strcmp(files->v[0], "-") ? files->v[0]
					   : "standard input";

	return files->n < 2 ? alloc_copy(first)
			    : alloc_format("%s and %zu more file%s", first, files->n - 1,
				      files->n == 2 ? "" : "s");
}

static bool is_measured(const struct job *j, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < j->whole->n_metrics; i++) {
		const char *have = j->whole->metrics[i].model->name;

		/* The metrics of a histogram are called NAME{le="BOUND"}. */
		if (!strncmp(have, name, n) && (!have[n] || have[n] == '{'))
			return true;
	}
	return false;
}

/* A declaration with a typing error would have no effect. */
static void note_unknown(struct job *j)
{
	const char **names = alloc_zero(j->whole->n_metrics + 1, sizeof(*names));
	char hint[96];

	for (size_t i = 0; i < j->whole->n_metrics; i++)
		names[i] = j->whole->metrics[i].model->name;
	for (size_t i = 0; i < j->models.n; i++)
		if (!is_measured(j, j->models.v[i].name))
			import_note(&j->said, "'%s' is declared, but there is no such metric%s",
				j->models.v[i].name, near_hint(j->models.v[i].name, names, hint));
	free(names);
}

/* A member counts as accused if an entry accuses it. */
static int score(struct job *j, struct err *e)
{
	const struct fleet_result *r = j->whole;
	struct ranked *members;
	int rc;

	if (!j->r->output.labels)
		return 0;
	members = j->ranked = alloc_zero(r->n_members + 1, sizeof(*members));
	for (size_t i = 0; i < r->n_members; i++)
		members[i].path = r->members[i].path;
	for (size_t i = 0; i < j->view.n_ranking; i++)
		members[j->view.ranking[i].member].severity = j->view.ranking[i].severity;
	for (size_t i = 0; i < j->view.n_entries; i++)
		if (fleet_accuses(&j->view.entries[i].f))
			members[j->view.entries[i].f.member].indicted = true;
	rc = ground_truth_apply(&j->labels, r->from_s, r->to_s, members, r->n_members, e);
	if (rc)
		return blame(e, rc);
	j->score = ranking_score(members, r->n_members, RANKING_SEED);
	j->view.score = &j->score;
	j->view.ranked = members;
	return 0;
}

static int diagnose_fleet_judge(struct job *j, struct err *e)
{
	const struct fleet_request *r = j->r;
	int rc = fleet_judge(j->fleet, 0, 0, &j->whole, e);

	if (rc && !j->said.samples && (r->range.from_s != 0 || r->range.to_s != 0))
		return blame(
			e, err_set(e, rc, "%s: no sample lies between --from and --to", j->source));
	if (rc)
		return blame(e, err_prefix(e, rc, "%s", j->source));
	note_unknown(j);
	j->view = (struct fleet_view){.source = j->source,
		.said = &j->said,
		.whole = j->whole,
		.options = &j->options,
		.window_s = r->window_s,
		.rank = (size_t)r->output.rank,
		.all_windows = r->output.all_windows};
	rc = judge_windows(j, e);
	if (rc)
		return rc;
	fleet_view_finish(&j->view);
	return score(j, e);
}

static int write_report(const struct job *j, struct err *e)
{
	struct file_text t;
	int rc;

	if (!j->r->output.report)
		return 0;
	rc = file_text_open(&t, e);
	if (rc)
		return rc;
	rc = fleet_page(&j->view, j->fleet, t.f, e);
	if (!rc)
		return file_text_save(&t, j->r->output.report, 0644, e);
	file_text_save(&t, NULL, 0, NULL);
	return rc;
}

/* Twelve digits keep milliseconds of Unix times, and are read more easily than seventeen. */
static void print_json(const struct fleet_view *v)
{
	json_t *o = fleet_json(v);

	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	putchar('\n');
	json_decref(o);
}

static void diagnose_fleet_clear(struct job *j)
{
	free(j->source);
	ranking_score_clear(&j->score);
	free(j->ranked);
	ground_truth_clear(&j->labels);
	fleet_view_clear(&j->view);
	if (j->whole)
		fleet_result_free(j->whole);
	import_said_clear(&j->said);
	if (j->fleet)
		fleet_free(j->fleet);
	metric_models_clear(&j->models);
}

/* What can be checked before anything long is read. */
static int diagnose_fleet_prepare(struct job *j, struct err *e)
{
	const struct fleet_request *r = j->r;
	int rc = fleet_options_fill(&r->fleet, &j->options, &j->models, e);

	if (!rc) {
		j->options.step_s = r->step_s;
		rc = prometheus_options_fill(&r->prometheus, &r->series.how, &j->server, e);
	}
	if (rc > 0)
		rc = 0; /* files are read */
	j->source = name_source(j);
	if (!rc && r->output.labels)
		rc = blame(e, ground_truth_read(r->output.labels, &j->labels, e));
	return rc ? rc : (j->fleet = fleet_new(&j->options), 0);
}

/* 0, or an exit code after a complaint. */
static int diagnose_fleet_check(struct fleet_request *r)
{
	if (r->files.n && r->prometheus.url)
		return complain("give --csv FILE or --prometheus URL, not both");
	if (r->output.all_windows && r->window_s <= 0)
		return complain("--all-windows needs --window TIME");
	if (r->range.last_s > 0 && (r->files.n || r->range.from_s != 0))
		return complain(r->files.n
				? "--last needs --prometheus; of a file, give --from and --to"
				: "give --last or --from, not both");
	if (r->range.from_s != 0 && r->range.to_s != 0 && r->range.from_s >= r->range.to_s)
		return complain("--from must be before --to");
	if (r->output.report && !strcmp(r->output.report, "-"))
		return complain("--report takes a file: the findings go to standard output");
	return series_options_check("diagnose", &r->series) ? CULPRIT_EXIT_USAGE : 0;
}

int diagnose_fleet(struct fleet_request *r)
{
	struct job j = {.r = r};
	struct err e = {0};
	int code = diagnose_fleet_check(r), rc;

	if (code)
		return code;
	rc = diagnose_fleet_prepare(&j, &e) ?: read_series(&j, &e) ?: diagnose_fleet_judge(&j, &e);
	if (rc) {
		code = cmd_error("diagnose", &e, ERR_USAGE);
	} else {
		if (r->json)
			print_json(&j.view);
		else
			fleet_text(&j.view, isatty(STDOUT_FILENO) ? TERMINAL_WIDTH : 0, stdout);
		if (write_report(&j, &e))
			code = cmd_error("diagnose", &e, ERR_HARNESS);
		else if (!j.view.n_ranking)
			code = complain("no member could be judged: each needs two peers in its "
					"group or beside it, and enough samples");
		else if (r->output.fail && j.view.n_entries)
			code = CULPRIT_EXIT_SHORT;
	}
	diagnose_fleet_clear(&j);
	return code;
}

static int set_time(void *field, const char *text, struct err *e)
{
	double *time_s = field;

	if (!import_time(text, 1, time_s) && *time_s != 0)
		return 0;
	return err_set(e, -EINVAL,
		"takes a time, as 2026-11-02, 2026-11-02T14:00:00Z or seconds, not '%s'", text);
}

static int set_rank(void *field, const char *text, struct err *e)
{
	long *rank = field;
	char *end;

	*rank = text ? strtol(text, &end, 10) : 20;
	if (text && (end == text || *end || *rank < 1 || *rank > 100000000))
		return err_set(e, -EINVAL, "takes a number of members, not '%s'", text);
	return 0;
}

#define AT(part, field)                                                                            \
	(offsetof(struct fleet_request, part.field) - offsetof(struct fleet_request, part))
#define TIME .min = 1e-9, .unit = UNIT_SECONDS
const struct option_row fleet_range_rows[] = {
	{"from", 0, OPTION_CALL, AT(range, from_s), "TIME",
		"leave out what is before: 2026-11-02, 2026-11-02T14:00:00Z (UTC), or seconds",
		.set = set_time},
	{"to", 0, OPTION_CALL, AT(range, to_s), "TIME",
		"leave out what is after (with --prometheus, default: now)", .set = set_time},
	{"last", 0, OPTION_QUANTITY, AT(range, last_s), "TIME",
		"with --prometheus: from so long before --to (default: 1w)", TIME},
	{0},
};

const struct option_row fleet_output_rows[] = {
	{"rank", 0, OPTION_CALL, AT(output, rank), "N",
		"list the N worst members, findings or not (default: 20)", .set = set_rank,
		.optional = true},
	{"all-windows", 0, OPTION_FLAG, AT(output, all_windows), NULL,
		"with --window: list the findings of each window"},
	{"labels", 0, OPTION_TEXT, AT(output, labels), "FILE",
		"score findings and ranking by this list (or CSV) of members known to be ill"},
	{"report", 0, OPTION_TEXT, AT(output, report), "FILE",
		"write one HTML page with plots; it opens offline"},
	{"fail", 0, OPTION_FLAG, AT(output, fail), NULL,
		"end with exit code 1 if there is a finding"},
	{0},
};

const char *fleet_request_given(const struct fleet_request *r)
{
	const char *name = fleet_options_given(&r->fleet);

	if (!name)
		name = series_options_given(&r->series);
	return name                     ? name
		: r->prometheus.url     ? "prometheus"
		: r->range.from_s != 0  ? "from"
		: r->range.to_s != 0    ? "to"
		: r->range.last_s > 0   ? "last"
		: r->output.rank        ? "rank"
		: r->output.all_windows ? "all-windows"
		: r->output.labels      ? "labels"
		: r->output.report      ? "report"
		: r->output.fail        ? "fail"
					: NULL;
}
