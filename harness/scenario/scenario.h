/*
 * Scenario: what a user's Lua file asks for. Loading it checks everything that can be known
 * without a node, so that a mistake is said before any host is touched.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_H
#define CULPRIT_HARNESS_SCENARIO_H

#include "harness/scenario/gate_limits.h"
#include "harness/scenario/part.h"
#include "harness/scenario/tracing.h"

struct detector_choice {
	char *name;     /* built-in name, or path of a Lua file */
	json_t *params; /* object */
};

enum measure {
	MEASURE_VERDICTS, /* cells of fixed length, workload x fault; detectors judge them */
	MEASURE_RUNTIME, /* cells that run their workload once to its end, workload x tracer; how long that takes */
};

struct scenario {
	char *path, *name, *summary;
	char *inventory; /* path, or NULL: the command line says, or the lab's */
	enum measure measure;
	struct tracing *tracers; /* one, but for MEASURE_RUNTIME */
	size_t n_tracers;
	struct tracing second; /* its records are a run of their own; name NULL: none */
	lua_State *L;          /* holds the parts' functions */
	struct part *workloads, *faults;
	size_t n_workloads, n_faults;
	size_t n_matrix; /* of the workloads: those under which faults are run; the rest is for training */
	struct detector_choice *detectors;
	size_t n_detectors;
	double before_s, fault_s, after_s; /* phases of a cell */
	size_t *training;                  /* indices into 'workloads', fault-free */
	size_t n_training;
	long training_repeats;
	double limit_s; /* MEASURE_RUNTIME: a workload that takes longer makes its attempt invalid */
	double prepare_limit_s; /* a command that prepares a workload may take so long */
	struct gates gates;
	long repeats;  /* of each scored cell */
	long controls; /* cells of the fault "none" a workload and repeat */
	long attempts; /* at most, for one cell */
	long seed;     /* -1: drawn at the start and logged */
	char *text;    /* the file's own text, for the record */
};

/* -EINVAL with "FILE:LINE: ..." */
int scenario_load(const char *path, struct scenario **out, struct err *e);

/* What the command line says in place of the file. -EINVAL as for the file. */
int scenario_set_tracer(struct scenario *s, const char *name, struct err *e);
int scenario_set_second(struct scenario *s, const char *name, struct err *e);
void scenario_free(struct scenario *s);

#endif
