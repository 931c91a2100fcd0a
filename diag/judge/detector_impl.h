/* Shared by the files of the detector runtime. */
#ifndef CULPRIT_DIAG_JUDGE_DETECTOR_IMPL_H
#define CULPRIT_DIAG_JUDGE_DETECTOR_IMPL_H

#include "diag/judge/child.h"
#include "diag/judge/columns.h"
#include "diag/judge/detector.h"
#include "harness/lua/luax.h"

struct detector {
	char *path;
	bool external;          /* a program: no Lua state */
	lua_State *L;           /* a new one for each call, with the definition at stack index 1 */
	struct luax_source src; /* of a program: only its path */
	char *name, *summary;
	char digest[72]; /* "sha256:HEX" */
	json_t *params;
	bool trains, events;
};

/* Makes a fresh state with the file's definition at index 1. The text is read once, so that an edit
 * during a run does not mix two versions of a detector. */
int sandbox_load(struct detector *d, struct err *e);
void sandbox_close(struct detector *d);

/* Returns a run with columns, made from its samples if it has none. run_close needs both runs. */
struct detector_run run_open(const struct detector_run *given);
void run_close(const struct detector_run *given, struct detector_run *run);

/* All metrics that a run may have: names, and units (NULL: unknown). */
size_t run_metrics(const struct detector_run *run);
const char *run_metric(const struct detector_run *run, size_t i);
const char *run_unit(const struct detector_run *run, size_t i);
bool run_is_service_time(const struct detector_run *run, size_t i);
/* Is it a service time, or does it have samples? For an open run. */
bool run_lists(const struct detector_run *run, size_t i);

/* Pushes the table that detectors see (culprit.Run); the open run must outlive the state. 'before'
 * is the number of series (metrics times servers) in the runs pushed before. */
void run_push(lua_State *L, const struct detector_run *run, size_t before);

/* Columns of a series: names, beginning with COLUMN_MEAN's; NULL at the end. */
extern const char *const series_fields[];

/* A program's knowledge before it judges: {"model": its own}, or, if it makes none, {"training":
 * the runs}. New reference. */
int program_train(const struct detector *d, const struct detector_run *runs, size_t n,
	json_t **model, struct err *e);
/* Gives each run to a new process, several in parallel; returns an answer to each (in 'verdicts',
 * unchecked). */
void program_ask(const struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n);

#endif
