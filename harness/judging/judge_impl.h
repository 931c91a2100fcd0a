/*
 * What the files of the judge share; nobody else includes it.
 */
#ifndef CULPRIT_HARNESS_JUDGE_IMPL_H
#define CULPRIT_HARNESS_JUDGE_IMPL_H

#include "diag/judge/columns.h"
#include "diag/judge/detector.h"
#include "harness/judging/judge.h"

enum { AT_ONCE_MAX = 64 }; /* runs that a seat is asked of */

struct entrant {
	struct detector *detector;
	char *name; /* in tables: the detector's, with the parameters it was given where the name stands twice */
	json_t *model;
	char *broken;      /* why it cannot judge at all, or NULL */
	unsigned timeouts; /* one after the other */
};

struct judge {
	struct entrant *entrants;
	size_t n_entrants;
	const char **names; /* alias i belongs to the server names[i]; borrowed from 'servers' */
	char (*aliases)[24];
	const char **alias_list;
	size_t n_servers;
	json_t *servers;
	char key[80]; /* of all that is drawn here */
	struct store *store;
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

/* A number for 'purpose' that nobody can tell who does not have the key. */
uint64_t judge_draw(const struct judge *j, const char *purpose, int64_t index);

/* judge_seat.c: loads these detectors ([{name, params}]) and the null detectors; on failure what
 * was loaded is left to entrants_clear. */
int entrants_load(struct judge *j, const json_t *detectors, struct err *e);
void entrants_clear(struct judge *j);
/* A seat's model; a detector that fails in training fails in every run, and the others go on. */
int entrant_train(struct entrant *s, const struct detector_run *list, size_t n, struct err *e);
/* What one seat says of some runs; one that is broken says so of each. */
int entrant_ask(struct entrant *s, const struct evidence *ev, size_t n,
	struct detector_answer *answers, struct err *e);

/* judge_evidence.c: what of an attempt is shown, cut to 'seconds'; '*ev' is all zero before, and is
 * cleared by the caller, also in case of errors. */
int evidence_read(
	struct judge *j, int64_t attempt, int32_t seconds, struct evidence *ev, struct err *e);
void evidence_clear(struct evidence *ev);

#endif
