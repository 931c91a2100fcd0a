/*
 * Detectors: Lua files, or programs, that look at measurements and name the guilty server, or
 * nobody.
 *
 * A detector sees opaque run ids, the servers' names as the caller gives them, and samples; what it
 * can know is its text, its parameters, its model and the run. Its form and everything it can call
 * is typed in detector.meta.lua. It runs without io, os, load, require, debug, coroutines and
 * metatables, and with a limit on instructions and memory; every call begins in a state of its own,
 * so that nothing is carried from one run to the next.
 *
 * A program reads JSON lines and answers with one (README.md has the protocol). It is started anew
 * for each run, as nobody, in namespaces of its own that hold /usr, its own file and an empty /tmp:
 * see confine.h.
 *
 * Servers' names must mean the same server in every run of one detector (thresholds are per
 * server); a caller that does not trust the names gives aliases.
 *
 * Complaints read "FILE:LINE: sentence" wherever the fault is in the detector's file.
 */
#ifndef CULPRIT_DIAG_DETECTOR_H
#define CULPRIT_DIAG_DETECTOR_H

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
	const struct sample
		*samples; /* 'server' is an index into 'servers'; in any order, added up */
	size_t n_samples;
	const struct columns *
		columns; /* the same in less room, for large runs; NULL: made from samples for each call */
	/* Names of the metrics, which samples' 'metric' is an index into; NULL: those of enum
	 * metric. */
	const char *const *metrics;
	size_t n_metrics;
	/* What the logs say besides: an array of objects as detector.meta.lua types them
	 * (culprit.Event), in the order of time_s, servers by the names above, clients by names
	 * that mean nothing else; and what the file system's errors mean
	 * (culprit.FileSystemErrors). NULL: none, not known. */
	const json_t *events;
	const json_t *file_system;
};

struct detector;

/* 'name' is a built-in one ("peer-threshold") or the path of a Lua file or program (with a slash or
 * ending in ".lua"; what does not end in ".lua" must be executable). 'params' (may be NULL;
 * borrowed) is an object of name -> number, boolean or string with unit. -EINVAL for a file that
 * does not fit its form, or a parameter that it does not have; -ENOENT where there is no such
 * detector, with the nearest name. */
int detector_load(const char *name, const json_t *params, struct detector **out, struct err *e);
void detector_free(struct detector *d);

const char *detector_name(const struct detector *d); /* as the file says */
const char *detector_summary(const struct detector *d);
bool detector_trains(const struct detector *d);       /* does it want fault-free runs? */
bool detector_wants_events(const struct detector *d); /* does it look at more than samples? */
bool detector_external(
	const struct detector *d); /* is it a program? (it does without, if there are none) */
const json_t *detector_params(const struct detector *d); /* all of them, in base units; borrowed */

/* Fault-free runs -> model, a JSON object (empty for a detector that does not train); the caller's.
 * -EINVAL when the detector fails; -E2BIG when it used up its instructions or memory. */
int detector_train(struct detector *d, const struct detector_run *runs, size_t n, json_t **model,
	struct err *e);

/* Run -> verdicts, an array of
 *     { "metric": "dread"|...|"any", "indicted": ["B"], "abstain": false, "reason": "...",
 *     "evidence": {...},
 *       "time_s": {"B": 12}, "resource": "disk" }
 * where indicted is sorted, has no doubles and is empty for an abstention; time_s says when each of
 * them would first have been indicted. "reason", "evidence", "time_s" and "resource" may be
 * missing. At most one verdict a metric. "any" is always there, last: the detector's own, or else
 * the union over the metrics that did not abstain (an abstention if all did), with the earliest
 * times, and the resource of the first metric that indicts. 'model' is what detector_train gave, or
 * its equal read back from a file; borrowed. */
int detector_diagnose(struct detector *d, const json_t *model, const struct detector_run *run,
	json_t **verdicts, struct err *e);

struct detector_answer {
	int rc;           /* as of detector_diagnose */
	json_t *verdicts; /* the caller's; NULL on failure */
	struct err why;
};

/* The same of 'n' runs, and nothing of one is known in another: programs for several of them run
 * side by side, each in a confinement of its own. 0, and an answer to each; an error where nothing
 * could be asked at all. */
int detector_diagnose_all(struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n,
	struct err *e);
/* So many runs are worth giving to it at a time. */
size_t detector_at_once(const struct detector *d);

/* Names of the null detectors, built in, ended by NULL: what every table shows beside the
 * others. */
const char *const *detector_nulls(void);
bool detector_is_null(const char *name);

/* Programs run unconfined (but still without privilege) where they cannot be confined; else that is
 * an error. */
void detector_trust_programs(bool yes);

/* Calls 'fn' for each built-in detector, by name; stops at the first result that is not 0. */
int detector_each(int (*fn)(void *ctx, const struct detector *d), void *ctx, struct err *e);

#endif
