/* What the files of 'culprit diagnose' and 'watch' share: options, series files, fleets. */
#ifndef CULPRIT_HARNESS_CLI_DIAGNOSE_H
#define CULPRIT_HARNESS_CLI_DIAGNOSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "diag/fleet/fleet.h"
#include "diag/import/import.h"
#include "diag/import/prometheus.h"
#include "harness/base/err.h"
#include "harness/cli/options.h"

/* ---- series_options.c ---- */

/* Options that say how series from elsewhere are read, for every command that takes a file of them;
 * an OPTION_GROUP row includes them:
 *
 *     struct options { struct series_options series; ... };
 *     {"", 0, OPTION_GROUP, AT(series), NULL, "reading the file", .group = series_rows},
 *     if (series_options_check("watch", &o->series))
 *             return CULPRIT_EXIT_USAGE;
 *     import_file(path, &o->series.how, ...);
 *
 * The names --metric and --metrics are free for declarations (diag/fleet/metric.h). */

struct series_options {
	struct import_options how; /* whole after series_options_check */
	struct option_list groups, only;
};
extern const struct option_row series_rows[];

/* Checks what was given and completes 'how', which points into '*o' and into argv. 0, or -EINVAL
 * after a complaint in the name of 'command'. */
int series_options_check(const char *command, struct series_options *o);
/* The name of the first option that was given, for "--NAME needs --csv"; NULL: none was. */
const char *series_options_given(const struct series_options *o);

/* ---- prometheus_options.c ---- */

/* Options that name a Prometheus server and a query, for 'diagnose' and 'watch'; an OPTION_GROUP
 * row over a struct prometheus_given includes them. */

struct prometheus_given {
	const char *url;
	struct option_list queries;
	double step_s, timeout_s;
	const char *token_file, *password_file, *ca_file, *cert_file, *key_file;
};

extern const struct option_row prometheus_rows[];

/* Fills '*o' from 'given' and 'how' (which labels are member and groups; may be NULL); '*o' borrows
 * from both. 0: it is ready for prometheus_new. 1: there is no --prometheus. -EINVAL with a
 * sentence: an option is missing, or needs --prometheus. */
int prometheus_options_fill(const struct prometheus_given *given, const struct import_options *how,
	struct prometheus_options *o, struct err *e);

/* ---- fleet_options.c ---- */

/* Options of the detector 'fleet', for every command that runs it; an OPTION_GROUP row over a
 * struct fleet_given includes them. */

struct fleet_given {
	struct option_list metrics;
	const char *metrics_file;
	double alarms, least, shortest_pct, memory_bytes; /* 0: the detector's default */
};

extern const struct option_row fleet_rows[];

/* Fills '*o' and '*models' (zero at first; o->models is 'models', the caller clears it) from what
 * was given and from the defaults. -EINVAL: a declaration is wrong. */
int fleet_options_fill(const struct fleet_given *given, struct fleet_options *o,
	struct metric_models *models, struct err *e);
/* The name of the first option that was given, or NULL. */
const char *fleet_options_given(const struct fleet_given *given);

/* ---- diagnose_windows.c ---- */

/* Windows of time of equal length. Where times are Unix times they begin at whole multiples of it
 * in UTC: an hour's at the hour, a day's at midnight, a week's on Monday. */

struct windows {
	double from_s, length_s;
	size_t n;
};

/* Windows that hold [from_s, to_s]. -E2BIG for very many. */
int windows_cut(struct windows *w, double from_s, double to_s, double length_s, bool unix_times,
	struct err *e);
/* When a window begins; of the n-th, when the last one ends. */
double windows_start(const struct windows *w, size_t i);

/* ---- diagnose_files.c ---- */

/* Inside 'culprit diagnose --csv': several files of series, read in turn as if they were one. */

/* Reads 'files' into the sink. '*said', zero at first, is that of all of them; a file that was
 * understood unlike the first one has a note. -EINVAL, besides what import_file returns: a series
 * has samples of the same time in two files, so that its key does not tell two members apart. */
int diagnose_files(const struct option_list *files, const struct import_options *how,
	const struct import_sink *sink, struct import_said *said, struct err *e);

/* ---- diagnose_csv.c ---- */

/* Inside 'culprit diagnose --csv': detectors on time series from elsewhere. */

struct csv_options {
	struct option_list files; /* paths, or "-" */
	const char *csv;          /* the first, NULL: none */
	const char **trains;      /* fault-free files */
	size_t n_trains;
	const struct import_options *how; /* of all files; NULL: find out */
	bool has_until;
	double train_until_s;    /* if has_until, rows before it are training */
	double window_s, step_s; /* 0: one window; 0: as in the file */
	/* [{name, params}]; if empty: peer-robust, or with training peer-threshold */
	const json_t *detectors;
};

/* '*verdicts' becomes [{what, from_s, to_s, detector, verdict}], with times as in the file; if a
 * detector failed, the verdict has an "error", and '*failed' counts it. -EINVAL with FILE:LINE if a
 * file is wrong. */
int diagnose_csv(const struct csv_options *o, json_t **verdicts, unsigned *failed, struct err *e);

/* ---- diagnose_fleet.c ---- */

/* 'culprit diagnose' of series from elsewhere by the detector 'fleet': reads, judges, prints. */

struct fleet_request {
	struct series_options series;
	struct prometheus_given prometheus;
	struct fleet_given fleet;
	struct {
		double from_s, to_s; /* Unix seconds; 0: without bound */
		double last_s;
	} range;
	struct {
		long rank;
		bool all_windows, fail;
		const char *labels, *report;
	} output;
	/* Options that all detectors have. */
	struct option_list files; /* none: Prometheus is asked */
	double window_s, step_s;
	bool json;
};

/* Rows over .range and .output. */
extern const struct option_row fleet_range_rows[], fleet_output_rows[];

/* The name of the first option that only this detector has and that was given, or NULL. */
const char *fleet_request_given(const struct fleet_request *r);
/* Returns the exit code, after a complaint unless it is 0 or that of --fail. */
int diagnose_fleet(struct fleet_request *r);

#endif
