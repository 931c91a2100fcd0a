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
	struct fleet_options fleet; /* 'alarms' is for all horizons together */
	const double *horizon_s;
	size_t n_horizons; /* 0: the default ones */
	double step_s;     /* distance of samples; 0: found out */
	bool json;
	FILE *out;                 /* lines of findings */
	const char *state;         /* a file, or NULL */
	struct exporter *exporter; /* or NULL; borrowed */
	void (*tell)(const char *sentence);
	/* A capture's folder (capture.md), or NULL: it is told to write what it keeps when a
	 * finding begins, if samples are of now; at most once a minute, without waiting. */
	const char *on_alarm;
};

struct watch;

/* Restores the state, if there is a file of it. -EINVAL: it is none. Texts are borrowed. */
int watch_new(const struct watch_options *o, struct watch **w, struct err *e);
void watch_free(struct watch *w);

/* Samples later than this machine's clock by more than a day are dropped. */
struct import_sink watch_sink(struct watch *w);
/* From now on (or no longer) horizons are judged as soon as a sample makes them due; at first only
 * watch_look does that. For samples of all series in order of time. */
void watch_live(struct watch *w, bool live);
/* Judges the horizons that are due, or all whose samples suffice. What the detector cannot judge is
 * no error: see watch_unjudged. */
int watch_look(struct watch *w, bool all, struct err *e);

size_t watch_findings(const struct watch *w);
/* Why nothing has been judged so far, or NULL: something has been. */
const char *watch_unjudged(const struct watch *w);
/* Whether the sink has failed for another reason than its input, such as a full disk. */
const bool *watch_failed(const struct watch *w);

/* The source could be read, or not; lines skipped so far. For the exporter. */
void watch_source(struct watch *w, bool up, uint64_t skipped);
/* Whether the source's last answer, of samples up to 'to_s', was partial. Lines of findings say so
 * as long as the longest horizon has such samples. */
void watch_partial(struct watch *w, bool partial, double to_s);
/* Publishes the present numbers, at most once in half a second. */
void watch_publish(struct watch *w);

#endif
