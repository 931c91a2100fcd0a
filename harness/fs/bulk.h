/*
 * 'bulk' of a file system's Lua file (harness/fs/README.md), and its form in a run:
 *
 * {"above", "header", "check": {"offset", "size", "big", "mask", "add", "values": []}, "kind"}
 *
 * 'check' and 'kind' are omitted if heads do not identify bulk data; the object is empty if no
 * message is bulk data.
 */
#ifndef CULPRIT_HARNESS_FS_BULK_H
#define CULPRIT_HARNESS_FS_BULK_H

#include <jansson.h>

#include "diag/derive/message.h"
#include "diag/flow/protocol.h"
#include "harness/lua/luax.h"

/* Reads it from the adapter's table at 'index'; 'p' describes its messages (id.size 0: not
 * described). All zeros if the table has no 'bulk'. -EINVAL with file and line. */
int bulk_read(lua_State *L, int index, const struct luax_source *src, const struct flow_protocol *p,
	struct bulk_rule *out, struct err *e);

json_t *bulk_to_json(const struct bulk_rule *rule); /* new reference */

/* NULL, as in runs older than the rule: all zeros. -EINVAL for an invalid rule. */
int bulk_from_json(const json_t *v, struct bulk_rule *out, struct err *e);

#endif
