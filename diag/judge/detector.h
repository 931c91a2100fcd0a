/*
 * Detectors: Lua files, or programs, that look at measurements and name the guilty servers, or
 * nobody.
 *
 * A detector sees opaque run ids, server names as the caller gives them, and samples; it can know
 * its text, its parameters, its model and the run. Its form and its library are typed in
 * detector.meta.lua. It has no io, os, load, require, debug, coroutines or metatables. Each call is
 * made in a fresh state and in a child process, with the limits of luax.h on memory and processor
 * time (more time for large runs), so nothing is carried from one run to the next, and a detector
 * that crashes or does not end fails alone.
 *
 * A program reads JSON lines and answers with one (the protocol is in diag/detectors/README.md). It
 * is started for each run, as nobody, in namespaces that hold /usr, its own file and an empty /tmp:
 * see confine.h.
 *
 * A server's name must mean the same server in every run of one detector (thresholds are per
 * server); a caller that does not trust the names gives aliases.
 *
 * Complaints read "FILE:LINE: sentence" if the mistake is in the detector's file.
 */
#ifndef CULPRIT_DIAG_JUDGE_DETECTOR_H
#define CULPRIT_DIAG_JUDGE_DETECTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

struct columns;

/* What was measured in one run; all is borrowed for the length of a call. */
struct detector_run {
	const char *id;             /* opaque: it must tell neither fault nor workload */
	int32_t seconds;            /* seconds 0 .. seconds-1 */
	const char *const *servers; /* names or aliases */
	size_t n_servers;
	/* In any order; those of one second are added up. 'server' is an index into 'servers'. */
	const struct sample *samples;
	size_t n_samples;
	/* The same in less memory, for large runs; NULL: made from samples for each call. */
	const struct columns *columns;
	/* What samples' 'metric' is an index into; NULL: the names of enum metric. */
	const char *const *metrics;
	size_t n_metrics;
	/* Events of the logs: an array of culprit.Event (detector.meta.lua), in the order of
	 * time_s, servers by the names above, clients by opaque names; and the meaning of the file
	 * system's errors (culprit.FileSystemErrors). NULL: not known. */
	const json_t *events;
	const json_t *file_system;
};

struct detector;

/* 'name' is a built-in one ("peer-threshold") or the path of a Lua file or program (with a slash or
 * ending in ".lua"; what does not end in ".lua" must be executable). 'params' (may be NULL;
 * borrowed) is an object of name -> number, boolean or string with unit. -EINVAL for a file that
 * does not fit its form, or a parameter that it does not have; -ENOENT if there is no such
 * detector, with the nearest name. */
int detector_load(const char *name, const json_t *params, struct detector **out, struct err *e);
void detector_free(struct detector *d);

const char *detector_name(const struct detector *d); /* as the file says */
/* "sha256:HEX" of the text that was loaded, or of the program. */
const char *detector_digest(const struct detector *d);
const char *detector_summary(const struct detector *d);
bool detector_trains(const struct detector *d);       /* does it want fault-free runs? */
bool detector_wants_events(const struct detector *d); /* does it look at more than samples? */
/* Is it a program? Programs do without training runs if there are none. */
bool detector_external(const struct detector *d);
const json_t *detector_params(const struct detector *d);
/* Its parameters as the file declares them, {name: {default, help, unit, min, max, integer}}; empty
 * for a program. Of a detector that was just loaded. New reference. */
json_t *detector_declared(const struct detector *d); /* all of them, in base units; borrowed */

/* Fault-free runs -> model, a JSON object (empty for a detector that does not train); the caller's.
 * -EINVAL if the detector fails; -E2BIG if it needs too much memory; -ETIMEDOUT if too much time;
 * -EPROTO if its process crashes. */
int detector_train(struct detector *d, const struct detector_run *runs, size_t n, json_t **model,
	struct err *e);

/* Run -> verdicts, an array of
 *     { "metric": "dread"|...|"any", "indicted": ["B"], "abstain": false, "reason": "...",
 *       "evidence": {...}, "time_s": {"B": 12}, "resource": "disk" }
 * "indicted" is sorted, without duplicates, and empty for an abstention; "time_s" is when each of
 * them would first have been indicted. "reason", "evidence", "time_s" and "resource" may be
 * missing. There is at most one verdict for a metric. "any" is always there and last: the
 * detector's own, or else the union over the metrics that did not abstain (an abstention if all
 * did), with the earliest times, and the resource of the first metric that indicts. 'model' is what
 * detector_train returned, or an equal object from a file; borrowed. */
int detector_diagnose(struct detector *d, const json_t *model, const struct detector_run *run,
	json_t **verdicts, struct err *e);

struct detector_answer {
	int rc;           /* as detector_train's */
	json_t *verdicts; /* the caller's; NULL on failure */
	struct err why;
};

/* The same for 'n' runs, each kept from what is known of the others. 0, and an answer to each; an
 * error if nothing could be asked. */
int detector_diagnose_all(struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n,
	struct err *e);

/* Names of the null detectors, which every table shows for comparison; ended by NULL. */
const char *const *detector_nulls(void);
bool detector_is_null(const char *name);

/* 'yes': a program runs unconfined (but without privilege) where it cannot be confined. The default
 * is an error. */
void detector_trust_programs(bool yes);

/* Calls 'fn' for each built-in detector, by name; stops at the first result that is not 0. */
int detector_each(int (*fn)(void *ctx, const struct detector *d), void *ctx, struct err *e);

#endif
