/*
 * A process that a primitive acts on and did not start: its number and start time, so that a later
 * process with the same number is left alone. A server may fork a process for each of its clients:
 * what is done to it is done to its descendants as well.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_TARGET_H
#define CULPRIT_FAULTS_PRIMITIVES_TARGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/base/err.h"

struct target {
	pid_t pid;
	uint64_t ticks; /* start time, clock ticks since boot */
};

/* -ESRCH: there is none; -EINVAL: process 1, or the caller itself. */
int target_open(pid_t pid, struct target *t, struct err *e);

/* From members "pid" and "start_ticks"; -EBADMSG. */
int target_read(const json_t *inverse, struct target *t, struct err *e);

/* 1, or 0 once it has ended, a zombie included; -errno when that cannot be found out. */
int target_alive(const struct target *t, struct err *e);

/* As target_alive, but 0 while it lives, and -ESRCH once it has ended. */
int target_require(const struct target *t, struct err *e);

/* Processes, each once. */
struct targets {
	struct target *list; /* allocated */
	int n;
};

void targets_clear(struct targets *all);
#define auto_targets __attribute__((cleanup(targets_clear)))

/* Behind the others. -ENOMEM. */
int targets_add(struct targets *all, const struct target *t);

/* Those that have ended are dropped; the live descendants of the others are added (see
 * proc_descendants), the parents of one process before their children. The number added. */
int targets_look(struct targets *all, struct err *e);

/* Sends the signal to each, the last one first if 'children_first'. One that has ended is no error.
 * -errno of the first that may not be signalled. */
int targets_signal(const struct targets *all, int signo, bool children_first, struct err *e);

/* An inverse of what acts on 'pid' and its descendants: their "pid" and "start_ticks", and
 * "descendants", a list of both. New reference. Errors as target_open. */
int target_inverse(pid_t pid, json_t **inverse, struct err *e);

/* The processes that an inverse names and that live, with the descendants that they have now. One
 * of the inverse is found even if its parent has ended. 'all' is zero before. */
int targets_read(const json_t *inverse, struct targets *all, struct err *e);

#endif
