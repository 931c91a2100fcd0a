/* The command 'watch': judges series as they come. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag/import/prometheus.h"
#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/cli/cmd.h"
#include "harness/cli/diagnose.h"
#include "harness/live/exporter.h"
#include "harness/live/follow.h"
#include "harness/live/horizons.h"
#include "harness/live/chunks.h"
#include "harness/live/poll.h"
#include "harness/live/stop.h"
#include "harness/live/watch.h"

enum { PIECE_BYTES = 4 << 20 };
static const double look_s = 0.5; /* a file is examined so often */
static const double step_default_s = 15, interval_default_s = 30, history_cells = 32768;

struct options {
	const char *csv, *state, *export, *on_alarm;
	bool once, json;
	double interval_s;
	struct option_list horizons;
	struct series_options series;
	struct prometheus_given prometheus;
	struct fleet_given fleet;
};

/* One run of the command. */
struct job {
	const struct options *o;
	double horizon_s[HORIZONS_MAX];
	struct metric_models models;
	struct watch *watch;
	struct exporter *exporter;
	struct follow *file;
	struct chunks pieces;
	struct prometheus *server;
	struct prometheus_options server_options;
	struct poll poll;
	bool caught_up, formed;
	char *partial; /* why the server's last answer was partial, or NULL */
};

static void watch_tell(const char *sentence)
{
	cmd_fail("watch", 0, "%s", sentence);
}

static void tell_piece(void *ctx, const char *sentence)
{
	(void)ctx;
	watch_tell(sentence);
}

/* --- a growing file --- */

/* What is there has been read: judges it, and from now on judges as lines come. 1: that was all. */
static int catch_up(struct job *j, struct err *e)
{
	int rc = 0;

	if (!j->caught_up)
		rc = watch_look(j->watch, true, e);
	j->caught_up = true;
	watch_live(j->watch, true);
	return rc ? rc : j->o->once;
}

/* Takes in what is there. 0, 1 at the end, or a negative errno. */
static int take_file(struct job *j, struct err *e)
{
	struct follow_piece piece;
	int rc = follow_next(j->file, PIECE_BYTES, &piece, e);

	if (rc)
		return rc;
	switch (piece.state) {
	case FOLLOW_LINES:
		rc = chunks_feed(&j->pieces, piece.text, piece.size, watch_failed(j->watch), e);
		break;
	case FOLLOW_NEW: {
		char *text = alloc_format("%s %s; it is read from its start", j->o->csv, piece.why);

		watch_tell(text);
		free(text);
		chunks_new_file(&j->pieces);
		break;
	}
	case FOLLOW_NONE:
		/* A stream's end is its own; a file's is where it has been read to. */
		rc = follow_fd(j->file) < 0 ? catch_up(j, e) : 0;
		watch_publish(j->watch);
		if (!rc)
			stop_wait(follow_fd(j->file) < 0 ? look_s : 3600, follow_fd(j->file));
		break;
	case FOLLOW_ENDED: rc = watch_look(j->watch, true, e) ?: 1; break;
	}
	watch_source(j->watch, true, j->pieces.skipped);
	watch_publish(j->watch);
	return rc;
}

static int open_file(struct job *j, struct err *e)
{
	const char *name = strcmp(j->o->csv, "-") ? j->o->csv : "standard input";
	const struct import_format *f = import_formats;

	while (f->name && strcmp(f->name, "csv"))
		f++;
	j->pieces = (struct chunks){.source = name,
		.format = f,
		.how = j->o->series.how,
		.sink = watch_sink(j->watch),
		.tell = tell_piece};
	if (follow_open(j->o->csv, &j->file, e))
		return err_blame(e, ERR_USAGE, -EINVAL);
	watch_live(j->watch, follow_fd(j->file) >= 0 && !j->o->once);
	return 0;
}

static int run_file(struct job *j, struct err *e)
{
	int rc = open_file(j, e);

	while (!rc && !stop_asked)
		rc = take_file(j, e);
	return rc;
}

/* --- a Prometheus server --- */

/* Notes of the first answer, and of one that is partial for another reason than the last. */
static void tell_notes(struct job *j, struct import_said *said)
{
	bool changed = said->partial && (!j->partial || strcmp(said->partial, j->partial));

	for (size_t i = 0; i < said->n_notes && (!j->formed || changed); i++)
		watch_tell(said->notes[i]);
	if (j->partial && !said->partial)
		watch_tell("the server's answers are complete again");
	free(j->partial);
	j->partial = said->partial;
	said->partial = NULL;
}

static int query(void *ctx, double from_s, double to_s, const struct import_sink *sink,
	double *done_s, struct err *e)
{
	struct job *j = ctx;
	struct import_said said = {0};
	int rc = prometheus_query(j->server, from_s, to_s, sink, &said, done_s, e);

	if (!rc && !j->formed && said.form)
		watch_tell(said.form);
	if (!rc || said.partial) {
		watch_partial(j->watch, said.partial != NULL, to_s);
		tell_notes(j, &said);
	}
	j->formed |= !rc && said.form;
	import_said_clear(&said);
	return rc;
}

static bool is_outage(int rc)
{
	return rc == -ECONNREFUSED || rc == -EHOSTUNREACH || rc == -ETIMEDOUT || rc == -EPROTO;
}

/* Asks once. An outage is told at its begin and at its end. */
static int take_server(struct job *j, double *since_s, struct err *e)
{
	bool failed_before = *since_s > 0;
	int rc = poll_once(&j->poll, (double)clock_real_ns() / 1e9, e);
	char *text;

	watch_source(j->watch, !rc, 0);
	/* Once it has answered, a refusal may pass too: rules are loaded, tokens renewed. */
	if (rc && !*watch_failed(j->watch) && !j->o->once && rc != -EINTR &&
		(is_outage(rc) || j->caught_up)) {
		if (!failed_before) {
			text = alloc_format("%s; it is asked again", e->text);
			watch_tell(text);
			free(text);
			*since_s = clock_mono_s();
		}
		rc = 0;
	} else if (!rc && failed_before) {
		text = alloc_format(
			"the server answers again, after %.0f s", clock_mono_s() - *since_s);
		watch_tell(text);
		free(text);
		*since_s = 0;
	}
	if (!rc && *since_s <= 0) {
		rc = watch_look(j->watch, !j->caught_up, e);
		j->caught_up = true;
	}
	watch_publish(j->watch);
	return rc;
}

static double longest_asked(const struct job *j)
{
	double s = 0;

	for (size_t i = 0; i < j->o->horizons.n; i++)
		s = fmax(s, j->horizon_s[i]);
	return s;
}

static int run_server(struct job *j, struct err *e)
{
	double step_s = j->server_options.step_s, since_s = 0, next_s = clock_mono_s();
	int rc = prometheus_new(&j->server_options, &j->server, e);

	if (rc)
		return rc;
	j->poll = (struct poll){.query = query,
		.ctx = j,
		.sink = watch_sink(j->watch),
		.step_s = step_s,
		.history_s = longest_asked(j) ?: history_cells * step_s};
	while (!rc && !stop_asked) {
		rc = take_server(j, &since_s, e);
		if (rc || j->o->once)
			break;
		/* No more than one try an interval, however long one takes. */
		next_s = fmax(
			next_s + (j->o->interval_s > 0 ? j->o->interval_s : interval_default_s),
			clock_mono_s());
		while (!stop_asked && clock_mono_s() < next_s)
			stop_wait(next_s - clock_mono_s(), -1);
	}
	return rc == -EINTR && stop_asked ? 0 : rc;
}

/* --- the command --- */

static int read_horizons(struct job *j, struct err *e)
{
	const struct option_list *list = &j->o->horizons;
	int rc = 0;

	if (list->n > HORIZONS_MAX)
		return err_set(e, -EINVAL, "--horizon may be given at most %d times", HORIZONS_MAX);
	for (size_t i = 0; i < list->n && !rc; i++) {
		rc = unit_parse(UNIT_SECONDS, list->v[i], &j->horizon_s[i], e);
		if (!rc && j->horizon_s[i] <= 0)
			rc = err_set(e, -EINVAL, "takes a time above 0, not '%s'", list->v[i]);
		if (rc)
			err_prefix(e, rc, "--horizon");
	}
	return rc;
}

static int watch_check(struct job *j, struct fleet_options *fleet, struct err *e)
{
	const struct options *o = j->o;
	int rc = prometheus_options_fill(&o->prometheus, &o->series.how, &j->server_options, e);
	struct stat st;

	if (rc < 0)
		return rc;
	if (!rc == (o->csv != NULL))
		return err_set(e, -EINVAL,
			o->csv ? "give --csv or --prometheus, not both"
			       : "watch what? --csv FILE (- is standard input) or "
				 "--prometheus URL");
	if (o->series.how.format && strcmp(o->series.how.format, "csv"))
		return err_set(e, -EINVAL,
			"only csv can be followed line by line, not '%s'; 'culprit diagnose' "
			"reads other formats",
			o->series.how.format);
	if (o->interval_s > 0 && o->csv)
		return err_set(e, -EINVAL, "--interval needs --prometheus");
	/* The capture may begin later; what is no folder is nobody's. */
	if (o->on_alarm && stat(o->on_alarm, &st) == 0 && !S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR,
			"--on-alarm takes the folder of 'culprit trace --inventory', and '%s' is "
			"%s",
			o->on_alarm, file_kind(st.st_mode));
	if (!rc && j->server_options.step_s <= 0)
		j->server_options.step_s = step_default_s;
	j->server_options.stop = &stop_asked;
	return read_horizons(j, e) ?: fleet_options_fill(&o->fleet, fleet, &j->models, e);
}

static int set_up(struct job *j, struct err *e)
{
	struct watch_options w = {.horizon_s = j->horizon_s,
		.n_horizons = j->o->horizons.n,
		.json = j->o->json,
		.out = stdout,
		.state = j->o->state,
		.on_alarm = j->o->on_alarm,
		.tell = watch_tell};
	int rc = watch_check(j, &w.fleet, e);

	if (rc)
		return rc;
	stop_catch();
	if (j->o->export)
		rc = exporter_open(j->o->export, &j->exporter, e);
	if (rc)
		return j->exporter ? rc : err_prefix(e, rc, "--export");
	if (j->exporter) {
		char *text = alloc_format("metrics at %s", exporter_address(j->exporter));

		stop_removes(exporter_path(j->exporter));
		watch_tell(text);
		free(text);
	}
	if (!j->o->csv)
		w.step_s = j->server_options.step_s;
	w.exporter = j->exporter;
	return watch_new(&w, &j->watch, e);
}

static void watch_clear(struct job *j)
{
	/* First, so that nobody finds a socket without a server. */
	exporter_close(j->exporter);
	stop_removes(NULL);
	watch_free(j->watch);
	follow_close(j->file);
	chunks_clear(&j->pieces);
	poll_clear(&j->poll);
	prometheus_free(j->server);
	free(j->partial);
	metric_models_clear(&j->models);
}

/* The exit code of a watch that was not interrupted. */
static int watch_conclude(const struct job *j)
{
	if (watch_findings(j->watch))
		return CULPRIT_EXIT_SHORT;
	if (watch_unjudged(j->watch))
		return cmd_fail("watch", CULPRIT_EXIT_USAGE, "nothing could be judged: %s",
			watch_unjudged(j->watch));
	return CULPRIT_EXIT_OK;
}

static int watch_run(const struct call *c)
{
	struct options *o = c->options;
	struct job j = {.o = o};
	struct err e = {0};
	int rc, code;

	if (series_options_check("watch", &o->series))
		return CULPRIT_EXIT_USAGE;
	rc = set_up(&j, &e);
	if (rc) {
		code = cmd_error("watch", &e, ERR_USAGE);
	} else {
		rc = o->csv ? run_file(&j, &e) : run_server(&j, &e);
		code = rc < 0        ? cmd_error("watch", &e, ERR_UNCLASSED)
			: stop_asked ? CULPRIT_EXIT_OK
				     : watch_conclude(&j);
	}
	watch_clear(&j);
	return code;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"csv", 0, OPTION_TEXT, AT(csv), "FILE",
		"follow this CSV file as lines are appended, also when it is rotated; - is "
		"standard input"},
	{"once", 0, OPTION_FLAG, AT(once), NULL, "judge what is there, and end; for cron"},
	{"interval", 0, OPTION_QUANTITY, AT(interval_s), "TIME",
		"with --prometheus: ask every TIME (default: 30s)", .min = 0.1, .max = 86400,
		.unit = UNIT_SECONDS},
	{"horizon", 0, OPTION_LIST, AT(horizons), "TIME",
		"judge the last TIME; may be repeated (default: 64, 512, 4096 and 32768 times the "
		"distance of two samples, as memory allows)"},
	{"state", 0, OPTION_TEXT, AT(state), "FILE",
		"keep open findings in this file, so that a restart does not print them again"},
	{"export", 0, OPTION_TEXT, AT(export), "ADDRESS",
		"offer metrics for Prometheus at unix:/PATH, 127.0.0.1:PORT or [::1]:PORT"},
	{"on-alarm", 0, OPTION_TEXT, AT(on_alarm), "FOLDER",
		"when a finding begins, have the capture of 'culprit trace --inventory -o FOLDER' "
		"write its last seconds; at most once a minute, and only while samples are less "
		"than 2 min old"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print a JSON object a line"},
	{"", 0, OPTION_GROUP, AT(series), NULL, "columns and labels", .group = series_rows},
	{"", 0, OPTION_GROUP, AT(prometheus), NULL, "a Prometheus server",
		.group = prometheus_rows},
	{"", 0, OPTION_GROUP, AT(fleet), NULL, "the detector", .group = fleet_rows},
	{0},
};

const struct command watch_command = {.name = "watch",
	.summary = "judge series as they come",
	.arguments = "--csv FILE\n--prometheus URL --query PROMQL",
	.about = "Judges series as they come with the detector 'fleet'. Prints a line when a "
		 "finding begins and a line when it ends.\n\n"
		 "It judges several horizons: the last minutes, hours, days ... Each is judged "
		 "again whenever a sixteenth of it has passed, and --false-alarms holds for all of "
		 "these looks together. A finding ends when no horizon shows it any longer.\n\n"
		 "Lines of a file must be in order of time. The command ends with SIGINT or "
		 "SIGTERM, or at the end of standard input. More: harness/live/watch.md.",
	.examples = "culprit watch --csv /var/log/disks.csv --export unix:/run/culprit.sock\n"
		    "culprit watch --prometheus http://127.0.0.1:9090 --query disk_latency\n"
		    "culprit watch --once --csv disks.csv --state /var/lib/culprit/disks.json",
	.exits = "0 no finding is open, or ended by a signal; 1 a finding is open at the end; 2 "
		 "usage or input error, or nothing could be judged; 3 it failed.",
	ARGUMENTS(0, 0),
	OPTIONS(rows, struct options),
	.run = watch_run};
