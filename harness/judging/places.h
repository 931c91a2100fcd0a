/*
 * The description of the cluster in an attempt (detail.reduction), so that its traces can be read
 * without the cluster:
 *
 *   {"servers": [{"name", "address", "port", "storage", "storage_device", "clock_offset_ns",
 *                 "sampled"}],
 *    "clients": [{"name", "mount", "clock_offset_ns", "sampled"}],
 *    "bulk": in the form of harness/fs/bulk.h}
 *
 * address: numeric; storage, storage_device ("7:5"), mount: null if it has none;
 * clock_offset_ns: the node's clock minus the orchestrator's; sampled: a log of the node's sampler
 * exists
 */
#ifndef CULPRIT_HARNESS_JUDGING_PLACES_H
#define CULPRIT_HARNESS_JUDGING_PLACES_H

#include <jansson.h>

#include "diag/derive/message.h"
#include "diag/record/stream.h"

/* A server or a client. */
struct place {
	const char *name, *mount;
	int64_t offset_ns;
	bool sampled;
};

struct places {
	struct stream_server *servers;
	struct place *place; /* servers, then clients */
	size_t n_servers, n;
	char **names; /* names of 'place'; borrowed */
	struct bulk_rule bulk;
};

/* '*out' must be zero; the caller clears it, even on error. It borrows from 'cluster'. -EINVAL
 * for an invalid description. */
int places_read(struct places *out, const json_t *cluster, struct err *e);
void places_clear(struct places *p);

bool places_is_server(const struct places *p, const struct place *one);
/* NULL: no place has this name. */
const struct place *places_find(const struct places *p, const char *name);

/* The logs of a node in its attempt's folder: NODE.fs.trace, ... */
enum place_log { PLACE_FS, PLACE_SECOND, PLACE_APP, PLACE_SAMPLES, PLACE_LOGS };
extern const char *const place_log_names[PLACE_LOGS]; /* "fs.trace" */

/* Path of an attempt's folder, RUN/cells/0007.1. 'row' has its cell and number. malloced. */
char *places_folder(const char *run, const json_t *row);
/* The specification for reading a log of this node. Borrows from 'p'. */
struct stream_spec places_stream(
	const struct places *p, const struct place *one, enum place_log log);

#endif
