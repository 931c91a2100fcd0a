/*
 * Series judged as they come: samples go through the sink into the detector FLEET; horizons that
 * are due are judged, findings begin and end, are printed, kept in the state file and published.
 *
 *     rc = watch_new(&options, &w, &e);
 *     import into watch_sink(w), as often as there is something
 *     rc = watch_look(w, false, &e);
 *     watch_free(w);
 */
#ifndef CULPRIT_HARNESS_LIVE_WATCH_H
#define CULPRIT_HARNESS_LIVE_WATCH_H

#include <stdbool.h>
#include <stdio.h>

#include "diag/fleet/fleet.h"
#include "diag/import/import.h"
#include "harness/live/exporter.h"

struct watch_options {
	struct fleet_options fleet; /* 'alarms' is the total of all horizons */
	const double *horizon_s;
	size_t n_horizons; /* 0: the defaults */
	double step_s;     /* interval of samples; 0: detect */
	bool json;
	FILE *out;                 /* lines of findings */
	const char *state;         /* a file, or NULL */
	struct exporter *exporter; /* or NULL; borrowed */
	void (*tell)(const char *sentence);
	/* A capture's folder (capture.md), or NULL: the capture is ordered to write its records
	 * when a finding begins, if the samples are current; at most once a minute, without
	 * waiting. */
	const char *on_alarm;
};

struct watch;

/* Restores the state from its file, if it exists. -EINVAL: invalid state. Strings are borrowed. */
int watch_new(const struct watch_options *o, struct watch **w, struct err *e);
void watch_free(struct watch *w);

/* Drops samples later than this machine's clock by more than a day. */
struct import_sink watch_sink(struct watch *w);
/* While enabled, horizons are judged as soon as a sample makes them due; otherwise only
 * watch_look judges. For samples of all series in order of time. */
void watch_live(struct watch *w, bool live);
/* Judges the due horizons, or all with enough samples. Data that the detector cannot judge is not
 * an error: see watch_unjudged. */
int watch_look(struct watch *w, bool all, struct err *e);

size_t watch_findings(const struct watch *w);
/* Why nothing has been judged so far, or NULL after a judgement. */
const char *watch_unjudged(const struct watch *w);
/* Has the sink failed for a reason other than its input, such as a full disk? */
const bool *watch_failed(const struct watch *w);

/* For the exporter: whether the source could be read; number of lines skipped so far. */
void watch_source(struct watch *w, bool up, uint64_t skipped);
/* Records whether the source's last answer, with samples up to 'to_s', was partial. Findings say
 * so while the longest horizon contains such samples. */
void watch_partial(struct watch *w, bool partial, double to_s);
/* Publishes the current numbers, at most once in half a second. */
void watch_publish(struct watch *w);

#endif
