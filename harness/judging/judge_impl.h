/* What the files of the judge share. */
#ifndef CULPRIT_HARNESS_JUDGING_JUDGE_IMPL_H
#define CULPRIT_HARNESS_JUDGING_JUDGE_IMPL_H

#include "diag/judge/columns.h"
#include "diag/judge/detector.h"
#include "harness/judging/judge.h"

enum {
	AT_ONCE_MAX = 64
}; /* runs that a detector is asked about in one call: a fork costs little then */

/* A detector as it takes part in a run. */
struct instance {
	struct detector *detector;
	/* In tables: the detector's name, with its parameters if another instance has that name,
	 * too. */
	char *name;
	json_t *model;
	char *broken;      /* why it cannot judge at all, or NULL */
	unsigned timeouts; /* one after the other */
};

struct judge {
	struct instance *instances;
	size_t n_instances;
	/* {detector: {file: its SHA-256, params}} of those that were asked for, as
	 * cell_key.h has it. */
	json_t *texts;
	const char **names; /* alias i stands for the server names[i]; borrowed from 'servers' */
	char (*aliases)[24];
	const char **alias_list;
	size_t n_servers;
	json_t *servers;
	char key[80]; /* secret; all random draws start from it */
	struct store *store;
	/* Of joined shards: a judge for each, with its key, servers and training. */
	struct judge **parts;
	size_t n_parts;
	int64_t first, last; /* the attempts of a part; first is 0: all */
	json_t *file_system; /* what its errors mean; NULL: not known */
	int32_t seconds;     /* that scored runs are cut to */
	bool trained;
	unsigned failures;
	struct err failure; /* the first */
};

/* What was measured in an attempt, as a detector gets it. */
struct evidence {
	struct detector_run run;
	struct columns *columns;
	json_t *events;
	json_t *clients; /* {alias: name} */
	char id[32];
};

/* A number for 'purpose' that cannot be predicted without the key. */
uint64_t judge_draw(const struct judge *j, const char *purpose, int64_t index);

/* Loads these detectors ([{name, params}]) and the null detectors. On failure the caller clears
 * what was loaded. */
int instances_load(struct judge *j, const json_t *detectors, struct err *e);
void instances_clear(struct judge *j);
/* Makes the model. A detector that fails in training then fails in every run; the others go on. */
int instance_train(struct instance *in, const struct detector_run *list, size_t n, size_t planned,
	struct err *e);
/* Asks about 'n' runs, at most AT_ONCE_MAX; a broken detector answers each with its reason. */
int instance_ask(struct instance *in, const struct evidence *ev, size_t n,
	struct detector_answer *answers, struct err *e);

/* Reads an attempt's first 'seconds' as detectors see them. '*ev' is all zero before; the caller
 * clears it, also in case of errors. */
int evidence_read(
	struct judge *j, int64_t attempt, int32_t seconds, struct evidence *ev, struct err *e);
void evidence_clear(struct evidence *ev);

#endif
