/* What the parts of the detector runtime share; not for others. */
#ifndef CULPRIT_DIAG_DETECTOR_IMPL_H
#define CULPRIT_DIAG_DETECTOR_IMPL_H

#include "diag/detectors/detector.h"
#include "harness/base/lua/luax.h"

struct detector {
	char *path;
	bool external;          /* a program: no Lua state */
	lua_State *L;           /* its definition is the only thing on the stack, at 1; new for every call */
	struct luax_source src; /* of a program: its path only */
	char *name, *summary;
	json_t *params;
	bool trains, events;

	/* The sandbox's account. */
	lua_Alloc alloc;
	void *alloc_ud;
	size_t memory;          /* bytes in use */
	bool limited;           /* user code runs: limits apply */
	bool out_of_memory, out_of_time;
	unsigned long steps;    /* thousands of instructions in this call */
	unsigned refusals;      /* of memory, one after the other */
};

/* A state that knows nothing of an earlier one, with the file's definition at 1. */
int sandbox_load(struct detector *d, struct err *e);
void sandbox_close(struct detector *d);

/* One metric of one server, second by second (arrays of run->seconds; NaN in mean and max: no sample). */
void series_fill(const struct detector_run *run, size_t metric, uint32_t server, double *mean, double *count,
		 double *max, double *bytes);
const char *run_metric(const struct detector_run *run, size_t i); /* its name, or NULL past the last */

/* Is the metric listed in the run: a service time, or one that has samples? 'listed' has room for run_metrics of them. */
size_t run_metrics(const struct detector_run *run);
void run_list(const struct detector_run *run, bool *listed);
bool run_is_service_time(const struct detector_run *run, size_t i);
const char *run_unit(const struct detector_run *run, size_t i); /* NULL: not known */

struct external_answer {
	int rc;
	json_t *said;    /* the JSON that the program answered with; NULL on failure */
	struct err why;
};

/* Shows a program the training runs and a run to judge, 'n' times, each time to a new process; several run side by
 * side. 0, and an answer to each; an error where no question could be put at all. */
int external_ask(const struct detector *d, const json_t *training, const struct detector_run *const *runs,
		 struct external_answer *answers, size_t n, struct err *e);
size_t external_at_once(void); /* so many */
json_t *external_run(const struct detector_run *run); /* as the program sees it */

/* Calls the function 'name' of the definition with the 'nargs' values on top of the stack, within the
 * limits; leaves one result. -E2BIG when a limit was reached. */
int detector_call(struct detector *d, const char *name, int nargs, struct err *e);

#endif
