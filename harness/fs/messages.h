/* A file system's messages and layers, from its Lua file. */
#ifndef CULPRIT_HARNESS_FS_MESSAGES_H
#define CULPRIT_HARNESS_FS_MESSAGES_H

#include "diag/flow/protocol.h"
#include "harness/lua/luax.h"

/* Reads 'messages' and 'layers' of the adapter's table at 'index'. '*out' (the caller calls
 * flow_protocol_clear) is all zeros, with id.size 0, if the table describes no messages. */
int messages_read(lua_State *L, int index, const struct luax_source *src, struct flow_protocol *out,
	struct err *e);

#endif
