/*
 * Reads the logs of a run: each log once, for all results derived from it.
 */
#ifndef CULPRIT_DIAG_DERIVE_DERIVE_H
#define CULPRIT_DIAG_DERIVE_DERIVE_H

#include "diag/derive/events.h"
#include "diag/derive/metrics.h"
#include "diag/record/stream.h"

/* Adds the log 'path' to the metrics and the events; either may be NULL. '*lost' (may be NULL) gets
 * the number of records that the tracer lost. Errors as stream_run; also -EINVAL for an unknown
 * architecture. After an error 'm' and 'ev' may only be freed. */
int derive_log(const char *path, const struct stream_spec *spec, struct metrics *m,
	struct events *ev, uint64_t *lost, struct err *e);

#endif
