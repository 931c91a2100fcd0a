/*
 * Scenario: a user's Lua file. Loading checks everything that can be known without a node, so that
 * mistakes are reported before any host is touched.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_SCENARIO_H
#define CULPRIT_HARNESS_SCENARIO_SCENARIO_H

#include "harness/scenario/gate_limits.h"
#include "harness/scenario/part.h"
#include "harness/scenario/recorder.h"
#include "harness/scenario/tracing.h"

struct detector_choice {
	char *name;     /* built-in name, or path of a Lua file */
	json_t *params; /* object */
};

enum measure {
	MEASURE_VERDICTS, /* cells of fixed length, workload x fault; detectors judge them */
	MEASURE_RUNTIME,  /* cells that run their workload once to its end, workload x tracer */
};

struct scenario {
	char *path, *name, *summary;
	char *inventory; /* path, or NULL: the command line says, or the lab's */
	enum measure measure;
	struct tracing *tracers; /* one, but for MEASURE_RUNTIME */
	size_t n_tracers;
	struct tracing second; /* a second tracer, into its own run; name NULL: none */
	struct recorder recorder;
	lua_State *L; /* holds the parts' functions */
	struct part *workloads, *faults;
	size_t n_workloads, n_faults;
	size_t n_matrix; /* workloads that are combined with faults; the rest is for training */
	struct detector_choice *detectors;
	size_t n_detectors;
	double before_s, fault_s, after_s; /* phases of a cell */
	size_t *training;                  /* indices into 'workloads', fault-free */
	size_t n_training;
	long training_repeats;
	double limit_s;         /* MEASURE_RUNTIME: longer workloads make their attempts invalid */
	double prepare_limit_s; /* of a command that prepares a workload */
	struct gates gates;
	int abort_ref;      /* Lua: the function abort_if; LUA_NOREF: none */
	bool stop_on_abort; /* the run ends when it holds; else the next cell follows */
	long repeats;       /* of each scored cell */
	long controls;      /* cells of the fault "none" for each workload and repeat */
	long attempts;      /* at most, for one cell */
	long seed;          /* -1: drawn at the start and logged */
	char *text;         /* the file's own text, for the record */
};

/* Path of the scenario that 'name' means: a file, or one of culprit's own by its name ("quick").
 * The caller frees. -ENOENT with the nearest name. */
int scenario_find(const char *name, char **path, struct err *e);

/* -EINVAL with "FILE:LINE: ..." */
int scenario_load(const char *path, struct scenario **out, struct err *e);

/* After scenario_load failed: appends the first mistake of each fault, workload and detector entry
 * and of the file that it names, as far as the scenario's table can be read. '*detectors' gets
 * those that can be loaded, [{name, params}]. */
void scenario_mistakes(const char *path, json_t *mistakes, json_t **detectors);

/* Options of the command line that override the file. -EINVAL as for the file. */
int scenario_set_tracer(struct scenario *s, const char *name, struct err *e);
int scenario_set_second(struct scenario *s, const char *name, struct err *e);
void scenario_free(struct scenario *s);

#endif
