/*
 * Scenario: what a user's Lua file asks for. Loading it checks everything that can be known
 * without a node, so that a mistake is said before any host is touched.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_H
#define CULPRIT_HARNESS_SCENARIO_H

#include "harness/run/part.h"

struct detector_choice {
	char *name;      /* built-in name, or path of a Lua file */
	json_t *params;  /* object */
};

struct scenario {
	char *path, *name, *summary;
	char *inventory;             /* path, or NULL: the command line says, or the lab's */
	char *tracer;                /* "ptrace" */
	lua_State *L;                /* holds the parts' functions */
	struct part *workloads, *faults;
	size_t n_workloads, n_faults;
	size_t n_matrix;             /* of the workloads: those under which faults are run; the rest is for training */
	struct detector_choice *detectors;
	size_t n_detectors;
	double before_s, fault_s, after_s; /* phases of a cell */
	size_t *training;            /* indices into 'workloads', fault-free */
	size_t n_training;
	long training_repeats;
	long repeats;                /* of each scored cell */
	long attempts;               /* at most, for one cell */
	long seed;                   /* -1: drawn at the start and logged */
	char *text;                  /* the file's own text, for the record */
};

/* -EINVAL with "FILE:LINE: ..." */
int scenario_load(const char *path, struct scenario **out, struct err *e);
void scenario_free(struct scenario *s);

#endif
