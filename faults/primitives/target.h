/*
 * A process that a primitive acts on and did not start: its number and start time, so that a later
 * process with the same number is left alone.
 */
#ifndef CULPRIT_FAULTS_TARGET_H
#define CULPRIT_FAULTS_TARGET_H

#include <jansson.h>
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

#endif
