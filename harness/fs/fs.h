/*
 * File-system adapters: what the harness must know about one file system, in a Lua file
 * harness/fs/TYPE.lua (typed in harness/lua/culprit.meta.lua).
 */
#ifndef CULPRIT_HARNESS_FS_FS_H
#define CULPRIT_HARNESS_FS_FS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/nodes/inventory.h"
#include "harness/lua/luax.h"

struct bulk_rule;
struct flow_protocol;
struct fs;

/* The adapter for 'type' ("glusterfs"), or at a path. -ENOENT with the types that exist. */
int fs_load(const char *type, struct fs **out, struct err *e);
void fs_free(struct fs *fs);

/* For readers of further fields: the adapter's table is at index 1, and the only value on the
 * stack. */
lua_State *fs_state(const struct fs *fs);
const struct luax_source *fs_source(const struct fs *fs);

/* Do its servers keep their data on a raw device ('storage = "device"')? */
bool fs_storage_is_device(const struct fs *fs);

/* The description of its messages (diag/flow/protocol.h), owned by 'fs'; NULL if it has none. */
const struct flow_protocol *fs_protocol(const struct fs *fs);

/* Which of its messages are bulk data (diag/derive/message.h); owned by 'fs'. */
const struct bulk_rule *fs_bulk(const struct fs *fs);

/* Which of 'processes' (the agent's 'processes' result) are the file system's on 'host': the
 * server's on a server, the client daemon's on a client. New reference to an array of pids,
 * possibly empty. */
int fs_pids(struct fs *fs, const struct host *host, const json_t *processes, json_t **pids,
	struct err *e);

/* The file system's servers or mounts on 'host', as the adapter's 'discover' finds them: new
 * reference to an array of objects with storage, service_port (servers), mount, source (clients),
 * volume, pid, how; unknown values are missing. Empty for outsiders, and if the adapter has no
 * 'discover'. */
int fs_look(
	struct fs *fs, const struct host *host, struct node *node, json_t **found, struct err *e);

/* Fills in what the inventory omits of 'host' (storage, service_port, mount) from 'found', if
 * exactly one entry fits; 'volume' may be NULL. -ENOENT: none fits; -ENOTUNIQ: several do; the
 * sentence lists them. */
int fs_complete(
	struct fs *fs, struct host *host, const char *volume, const json_t *found, struct err *e);

/* Has 'host' all that fs_complete would fill in? A server needs 'service_port' only if the
 * adapter's 'service' goes by it. */
bool fs_complete_already(struct fs *fs, const struct host *host);

/* One of 'found' in a few words, for people. */
void fs_describe(const json_t *one, char *buf, size_t size);

/* A command that ends with 0 on the client 'host' only if every server takes part. New reference to
 * an array of words; NULL if the adapter has no such command. */
int fs_probe(struct fs *fs, const struct host *host, json_t **argv, struct err *e);

/* Address (a name or a number; the caller frees) and port at which 'server' serves its clients: the
 * adapter's 'service', or else the inventory's address and service_port. Sockets are recognised by
 * it. Port 0: any port; stream.h says which sockets are the clients' then. */
int fs_service(
	struct fs *fs, const struct host *server, char **address, uint16_t *port, struct err *e);

/* What detectors must know about errors: {"lost_errnos": [...], "errno_map": {...}}. New
 * reference. */
int fs_errors(struct fs *fs, json_t **out, struct err *e);

/* What faults and workloads must know of it: {type: the adapter's name, storage: "folder" or
 * "device", empty_storage: {prune?, keep?} or a reason why there can be none, cannot: {fault:
 * reason}, missing: [step]}. New reference. */
json_t *fs_facts(const struct fs *fs);

#endif
