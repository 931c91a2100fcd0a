/*
 * Sampling: the sampler that runs on every server and client beside the tracer, in every run that
 * gives verdicts. It is no choice of a scenario: what it costs is little, and what it reads belongs
 * to the record.
 */
#ifndef CULPRIT_HARNESS_SAMPLING_H
#define CULPRIT_HARNESS_SAMPLING_H

#include "harness/cluster/cluster.h"
#include "harness/experiment/progress.h"

/* Tries it on all servers and clients at once and sets their 'sampled'. Where it cannot be had the
 * run goes on without, and one line says so. An errno where a node did not answer. */
int sampling_check(struct cluster *c, struct progress *p, struct err *e);

/* Arguments of trace.start for the member. New reference. */
json_t *sampling_args(const struct member *m, const char *out);

#endif
