/* What an adapter's data fields say (storage, empty_storage, cannot, missing). */
#ifndef CULPRIT_HARNESS_FS_FACTS_H
#define CULPRIT_HARNESS_FS_FACTS_H

#include <jansson.h>

#include "harness/lua/luax.h"

/* Reads and checks them in the adapter's table at 'index', whose fields have their types; 'src' is
 * its file. '*out' is as fs_facts has it: a new reference. -EINVAL with file and line. */
int facts_read(lua_State *L, int index, const struct luax_source *src, json_t **out, struct err *e);

#endif
