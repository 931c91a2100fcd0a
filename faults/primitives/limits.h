/*
 * The limits primitive: the soft limit of a resource of a running process and its descendants
 * (Kasick et al. 2009, section 5: a server that may open no more files). The hard limit stays,
 * since it could not always be raised again. The inverse is the previous soft limit of each.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_LIMITS_H
#define CULPRIT_FAULTS_PRIMITIVES_LIMITS_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "faults/primitives/primitive.h"

#define LIMITS_UNLIMITED (-1) /* in JSON */

/* {NAME: {soft, hard}} of process 'pid' as /proc/PID/limits has them; new reference. -ESRCH. */
int limits_read(pid_t pid, json_t **out, struct err *e);

/* All of them, by their numbers. From /proc, too: without CAP_SYS_RESOURCE, which containers lack,
 * prlimit(2) refuses those of another user's process. -ESRCH. */
int limits_of(pid_t pid, struct rlimit out[RLIM_NLIMITS], struct err *e);

/* As prlimit(2) sets it, and without CAP_SYS_RESOURCE the soft one of another user's process, too.
 * 0, or -errno. */
int limits_put(pid_t pid, int number, const struct rlimit *limit);

/* As prlimit(1) calls it: "nofile". */
const char *limits_name(int number);

/* What takes limits_set back; new reference. 'resource' as prlimit(1) calls it: as, core, cpu,
 * data, fsize, memlock, nofile, nproc, rss, stack. -ESRCH; -EINVAL: unknown resource. */
int limits_inverse(pid_t pid, const char *resource, json_t **inverse, struct err *e);

/* Sets the soft limit (LIMITS_UNLIMITED: none), and looks whether it is so. -ESRCH: the process has
 * ended; -EINVAL: above its hard limit. */
int limits_set(const json_t *inverse, int64_t soft, struct err *e);

#endif
