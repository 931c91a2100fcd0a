/*
 * Detectors: Lua files or programs that examine measurements and name the guilty servers, or none.
 *
 * A detector sees opaque run ids, server names as the caller gives them, and samples; it knows only
 * its text, its parameters, its model and the run. Its form and its library are typed in
 * detector.meta.lua. It has no io, os, load, require, debug, coroutines or metatables. Each call
 * runs in a fresh state and in a child process, with the limits of luax.h on memory and processor
 * time (more time for large runs). So no state passes from one run to the next, and a detector that
 * crashes or hangs fails alone.
 *
 * A program reads JSON lines and answers with one (the protocol is in diag/detectors/README.md).
 * Each run starts it anew, as nobody, in namespaces that hold /usr, the program's file and an empty
 * /tmp: see confine.h.
 *
 * A server's name must mean the same server in every run of one detector, since thresholds are per
 * server. A caller that does not trust the names passes aliases.
 *
 * Errors in the detector's file read "FILE:LINE: sentence".
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

/* The measurements of one run; all borrowed for the length of a call. */
struct detector_run {
	const char *id;             /* opaque: must reveal neither fault nor workload */
	int32_t seconds;            /* seconds 0 .. seconds-1 */
	const char *const *servers; /* names or aliases */
	size_t n_servers;
	/* In any order; samples of one second are added up. 'server' is an index into 'servers'. */
	const struct sample *samples;
	size_t n_samples;
	/* The same in less memory, for large runs; NULL: each call makes them from the samples. */
	const struct columns *columns;
	/* Names for the samples' 'metric'; NULL: those of enum metric. */
	const char *const *metrics;
	size_t n_metrics;
	/* Events of the logs: an array of culprit.Event (detector.meta.lua) in the order of time_s,
	 * with the server names above and opaque client names; and the meaning of the file system's
	 * errors (culprit.FileSystemErrors). NULL: unknown. */
	const json_t *events;
	const json_t *file_system;
};

struct detector;

/* 'name' is a built-in detector ("peer-threshold") or the path of a Lua file or program (with a
 * slash or ending in ".lua"; other files must be executable). 'params' (may be NULL; borrowed) is
 * an object of name -> number, boolean or string with unit. -EINVAL for a file of another form or
 * an unknown parameter; -ENOENT for an unknown detector, with the nearest name. */
int detector_load(const char *name, const json_t *params, struct detector **out, struct err *e);
void detector_free(struct detector *d);

const char *detector_name(const struct detector *d); /* from its file */
/* "sha256:HEX" of the loaded text or the program. */
const char *detector_digest(const struct detector *d);
const char *detector_summary(const struct detector *d);
bool detector_trains(const struct detector *d);       /* does it need fault-free runs? */
bool detector_wants_events(const struct detector *d); /* does it use more than samples? */
/* Is it a program? Programs work without training runs if there are none. */
bool detector_external(const struct detector *d);
const json_t *detector_params(const struct detector *d);
/* Its parameters as the file declares them, {name: {default, help, unit, min, max, integer}}; empty
 * for a program. Only for a detector that was just loaded. New reference. */
json_t *detector_declared(const struct detector *d); /* all parameters, in base units; borrowed */

/* Fault-free runs -> model, a JSON object (empty for a detector that does not train); owned by the
 * caller. -EINVAL if the detector fails; -E2BIG if it needs too much memory; -ETIMEDOUT if too much
 * time; -EPROTO if its process crashes. */
int detector_train(struct detector *d, const struct detector_run *runs, size_t n, json_t **model,
	struct err *e);

/* Run -> verdicts, an array of
 *     { "metric": "dread"|...|"any", "indicted": ["B"], "abstain": false, "reason": "...",
 *       "evidence": {...}, "time_s": {"B": 12}, "resource": "disk" }
 * "indicted" is sorted, without duplicates, and empty for an abstention; "time_s" is when each of
 * them would first have been indicted. "reason", "evidence", "time_s" and "resource" may be
 * missing. Each metric has at most one verdict. "any" is always there, and last: the detector's own
 * verdict, or else the union over the metrics that did not abstain (an abstention if all did), with
 * the earliest times, and the resource of the first metric that indicts. 'model' is the result of
 * detector_train, or an equal object from a file; borrowed. */
int detector_diagnose(struct detector *d, const json_t *model, const struct detector_run *run,
	json_t **verdicts, struct err *e);

struct detector_answer {
	int rc;           /* as of detector_train */
	json_t *verdicts; /* owned by the caller; NULL on failure */
	struct err why;
};

/* The same for 'n' runs; each call knows only its own run. 0, and an answer to each; an error if no
 * run could be judged. */
int detector_diagnose_all(struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n,
	struct err *e);

/* Names of the null detectors, which every table shows for comparison; NULL at the end. */
const char *const *detector_nulls(void);
bool detector_is_null(const char *name);

/* 'yes': a program that cannot be confined runs unconfined, but without privilege. The default is
 * an error. */
void detector_trust_programs(bool yes);

/* Calls 'fn' for each built-in detector, by name; stops at the first result that is not 0. */
int detector_each(int (*fn)(void *ctx, const struct detector *d), void *ctx, struct err *e);

#endif
