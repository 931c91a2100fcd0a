/* Data fields of an adapter: storage, empty_storage, cannot, missing. */
#ifndef CULPRIT_HARNESS_FS_FACTS_H
#define CULPRIT_HARNESS_FS_FACTS_H

#include <jansson.h>

#include "harness/lua/luax.h"

/* Reads and checks these fields of the adapter's table at 'index'; their types are already
 * checked. 'src' is its file. '*out' is a new reference in the form of fs_facts. -EINVAL with
 * file and line. */
int facts_read(lua_State *L, int index, const struct luax_source *src, json_t **out, struct err *e);

#endif
