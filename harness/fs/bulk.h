/*
 * 'bulk' of a file system's Lua file (harness/fs/README.md), and as it is kept with a run:
 *
 *   {"above", "header", "check": {"offset", "size", "big", "mask", "add", "values": []}, "kind"}
 *
 * 'check' and 'kind' are left out if messages' heads do not tell; the object is empty if no message
 * is bulk data.
 */
#ifndef CULPRIT_HARNESS_FS_BULK_H
#define CULPRIT_HARNESS_FS_BULK_H

#include <jansson.h>

#include "diag/derive/message.h"
#include "diag/flow/protocol.h"
#include "harness/lua/luax.h"

/* Reads it in the adapter's table at 'index', whose messages are 'p' (id.size 0: not described).
 * All zero if there is none. -EINVAL with file and line. */
int bulk_read(lua_State *L, int index, const struct luax_source *src, const struct flow_protocol *p,
	struct bulk_rule *out, struct err *e);

json_t *bulk_to_json(const struct bulk_rule *rule); /* new reference */

/* NULL, as of runs before there was such a rule: all zero. -EINVAL for what nobody wrote. */
int bulk_from_json(const json_t *v, struct bulk_rule *out, struct err *e);

#endif
