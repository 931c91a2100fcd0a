/*
 * Reading the logs of a run: each log once, for everything that is derived from it.
 */
#ifndef CULPRIT_DIAG_DERIVE_DERIVE_H
#define CULPRIT_DIAG_DERIVE_DERIVE_H

#include "diag/derive/events.h"
#include "diag/derive/metrics.h"
#include "diag/record/stream.h"

/* Adds the log 'path' to the metrics and to the events; either may be NULL. '*lost' (may be NULL)
 * gets the number of records that the tracer lost. Errors as stream_run; -EINVAL also for an
 * architecture whose calls are not known. After an error 'm' and 'ev' are good for freeing only. */
int derive_log(const char *path, const struct stream_spec *spec, struct metrics *m,
	struct events *ev, uint64_t *lost, struct err *e);

#endif
