/* Shared by the files of the judge. */
#ifndef CULPRIT_HARNESS_JUDGING_JUDGE_IMPL_H
#define CULPRIT_HARNESS_JUDGING_JUDGE_IMPL_H

#include "diag/judge/columns.h"
#include "diag/judge/detector.h"
#include "harness/judging/judge.h"

enum { AT_ONCE_MAX = 64 }; /* runs per call of a detector, to make the cost of a fork negligible */

/* A detector that takes part in a run. */
struct instance {
	struct detector *detector;
	/* Name in tables: the detector's name, with its parameters if another instance has the
	 * same name. */
	char *name;
	json_t *model;
	char *broken;      /* why it cannot judge, or NULL */
	unsigned timeouts; /* consecutive ones */
};

struct judge {
	struct instance *instances;
	size_t n_instances;
	/* {detector: {file: its SHA-256, params}} of the requested ones, as in cell_key.h. */
	json_t *texts;
	const char **names; /* alias i stands for the server names[i]; borrowed from 'servers' */
	char (*aliases)[24];
	const char **alias_list;
	size_t n_servers;
	json_t *servers;
	char key[80]; /* secret; seeds all random draws */
	struct store *store;
	/* For joined shards: a judge per shard, with its key, servers and training. */
	struct judge **parts;
	size_t n_parts;
	int64_t first, last; /* range of attempts of a part; first 0: all */
	json_t *file_system; /* meaning of its errors; NULL: unknown */
	int32_t seconds;     /* duration to which scored runs are cut */
	bool trained;
	unsigned failures;
	struct err failure; /* the first failure */
};

/* The measurements of an attempt in the form for detectors. */
struct evidence {
	struct detector_run run;
	struct columns *columns;
	json_t *events;
	json_t *clients; /* {alias: name} */
	char id[32];
};

/* A number for 'purpose' that nobody can predict without the key. */
uint64_t judge_draw(const struct judge *j, const char *purpose, int64_t index);

/* Loads these detectors ([{name, params}]) and the null detectors. On failure the caller clears
 * the loaded ones. */
int instances_load(struct judge *j, const json_t *detectors, struct err *e);
void instances_clear(struct judge *j);
/* Makes the model. A detector that fails in training then fails in every run; the others
 * continue. */
int instance_train(struct instance *in, const struct detector_run *list, size_t n, size_t planned,
	struct err *e);
/* Judges 'n' runs, at most AT_ONCE_MAX; a broken detector answers each with its reason. */
int instance_ask(struct instance *in, const struct evidence *ev, size_t n,
	struct detector_answer *answers, struct err *e);

/* Reads an attempt's first 'seconds' in the form for detectors. '*ev' is zero before; the caller
 * clears it, even on error. */
int evidence_read(
	struct judge *j, int64_t attempt, int32_t seconds, struct evidence *ev, struct err *e);
void evidence_clear(struct evidence *ev);

#endif
