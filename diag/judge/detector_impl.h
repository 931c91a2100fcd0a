/* What the parts of the detector runtime share; not for others. */
#ifndef CULPRIT_DIAG_DETECTOR_IMPL_H
#define CULPRIT_DIAG_DETECTOR_IMPL_H

#include "diag/judge/columns.h"
#include "diag/judge/detector.h"
#include "harness/lua/luax.h"

struct detector {
	char *path;
	bool external; /* a program: no Lua state */
	lua_State *L;  /* its definition is the only thing on the stack, at 1; new for every call */
	struct luax_source src; /* of a program: its path only */
	char *name, *summary;
	json_t *params;
	bool trains, events;

	/* The sandbox's account. */
	lua_Alloc alloc;
	void *alloc_ud;
	size_t memory; /* bytes in use */
	bool limited;  /* user code runs: limits apply */
	bool out_of_memory, out_of_time;
	unsigned long steps; /* thousands of instructions in this call */
	unsigned long steps_max;
	unsigned refusals; /* of memory, one after the other */
};

/* A state that knows nothing of an earlier one, with the file's definition at 1. */
int sandbox_load(struct detector *d, struct err *e);
void sandbox_close(struct detector *d);

/* A run with columns, made from its samples if it came without; to be closed with the one that was
 * given. */
int run_open(const struct detector_run *given, struct detector_run *run, struct err *e);
void run_close(const struct detector_run *given, struct detector_run *run);

/* All metrics that there may be: names, and units (NULL: not known). */
size_t run_metrics(const struct detector_run *run);
const char *run_metric(const struct detector_run *run, size_t i);
const char *run_unit(const struct detector_run *run, size_t i);
bool run_is_service_time(const struct detector_run *run, size_t i);
bool run_lists(const struct detector_run *run,
	size_t i); /* is it a service time, or has it samples? (of an open run) */

/* The table that detectors see (culprit.Run); the run, an open one, must outlive the state.
 * 'before' is the number of series (metrics times servers) in the runs that were pushed before. */
void run_push(lua_State *L, const struct detector_run *run, size_t before);

struct external_answer {
	int rc;
	json_t *said; /* the JSON that the program answered with; NULL on failure */
	struct err why;
};

/* What a program knows before it is asked: {"model": its own}, or, if it makes none, {"training":
 * the runs}. */
int external_train(const struct detector *d, const struct detector_run *runs, size_t n,
	json_t **model, struct err *e);
/* Shows a program that and a run to judge, 'n' times, each time to a new process; several run side
 * by side. 0, and an answer to each; an error where no question could be put at all. */
int external_ask(const struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct external_answer *answers, size_t n,
	struct err *e);
size_t external_at_once(void);                        /* so many */
json_t *external_run(const struct detector_run *run); /* as the program sees it */

/* More instructions for a run of so many servers times seconds. */
void sandbox_allow(struct detector *d, double server_seconds);

/* Calls the function 'name' of the definition with the 'nargs' values on top of the stack, within
 * the limits; leaves one result. -E2BIG when a limit was reached. */
int detector_call(struct detector *d, const char *name, int nargs, struct err *e);

#endif
