/*
 * Keys: what a cell's measurement depends on, named and hashed, so that an interrupted run goes on
 * only if it is still the same experiment.
 *
 * The inputs of a run are an object of names and values: phases, seed, parameters and texts (as
 * SHA-256) of the workloads and faults, tracers, hosts and their roles, the file system's adapter,
 * the agent, and the programs on the nodes. Detectors are kept apart, since recorded measurements
 * can be judged again. A cell's key is the SHA-256 over the inputs that concern it and its own
 * place in the plan.
 */
#ifndef CULPRIT_HARNESS_RUN_CELL_KEY_H
#define CULPRIT_HARNESS_RUN_CELL_KEY_H

#include <jansson.h>

#include "harness/run/cluster.h"
#include "harness/scenario/plan.h"

/* The inputs that are known without a node. New reference. */
int key_inputs(const struct scenario *s, const struct plan *p, const struct cluster *c,
	const char *only, json_t **inputs, struct err *e);

/* Adds the programs on the connected nodes: the workloads' (their 'needs') on the clients, the file
 * system's on servers and clients; "unknown" where a node has no sha256sum. */
int key_add_programs(
	struct scenario *s, const struct plan *p, struct cluster *c, json_t *inputs, struct err *e);

/* {detector: SHA-256 of its text}. New reference. */
int key_detectors(const struct scenario *s, json_t **texts, struct err *e);

/* What differs, "phases.fault is 20.0, was 25.0; ..."; NULL if nothing does. The caller frees. */
char *key_difference(const json_t *was, const json_t *is);

/* Accepts faults whose files have changed: marks their cells in the plan as outdated, and puts into
 * 'was' what 'is' has of them, but for the victims and workloads that the plan was drawn with. The
 * labels, "own, other", which the caller frees; NULL: none has changed. */
char *key_accept_faults(const struct scenario *s, struct plan *p, json_t *was, const json_t *is);

/* -EINVAL of the class ERR_SCENARIO: the run cannot be resumed because of the difference. */
int key_refuse(const char *difference, struct err *e);

/* Fills the key of every cell of the plan. */
void key_cells(
	const struct scenario *s, struct plan *p, const struct cluster *c, const json_t *inputs);

#endif
