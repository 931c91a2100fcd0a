/*
 * File-system adapters: all knowledge about one file system is in a Lua file harness/fs/TYPE.lua
 * (typed in harness/lua/culprit.meta.lua).
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

/* The adapter for 'type' ("glusterfs"), or at a path. -ENOENT with the available types. */
int fs_load(const char *type, struct fs **out, struct err *e);
void fs_free(struct fs *fs);

/* For code that reads further fields: the adapter's table is the only value on the stack. */
lua_State *fs_state(const struct fs *fs);
const struct luax_source *fs_source(const struct fs *fs);

/* Do its servers store data on a raw device ('storage = "device"')? */
bool fs_storage_is_device(const struct fs *fs);

/* The description of its messages (diag/flow/protocol.h), owned by 'fs'; NULL if it has none. */
const struct flow_protocol *fs_protocol(const struct fs *fs);

/* The rule that identifies bulk data (diag/derive/message.h); owned by 'fs'. */
const struct bulk_rule *fs_bulk(const struct fs *fs);

/* The file system's processes on 'host' among 'processes' (the agent's 'processes' result): the
 * server's on a server, the client daemon's on a client. New reference to an array of pids,
 * possibly empty. */
int fs_pids(struct fs *fs, const struct host *host, const json_t *processes, json_t **pids,
	struct err *e);

/* The file system's servers or mounts on 'host', from the adapter's 'discover': a new reference
 * to an array of objects with storage, service_port (servers), mount, source (clients), volume,
 * pid, how; unknown values are omitted. Empty for outsiders, and if the adapter has no
 * 'discover'. */
int fs_look(
	struct fs *fs, const struct host *host, struct node *node, json_t **found, struct err *e);

/* Fills in missing values of 'host' (storage, service_port, mount) from 'found' if exactly one
 * entry matches; 'volume' may be NULL. -ENOENT: no match; -ENOTUNIQ: several matches, which the
 * sentence lists. */
int fs_complete(
	struct fs *fs, struct host *host, const char *volume, const json_t *found, struct err *e);

/* Does 'host' have all values that fs_complete would fill in? A server needs 'service_port' only
 * if the adapter's 'service' depends on it. */
bool fs_complete_already(struct fs *fs, const struct host *host);

/* Describes one entry of 'found' in a few words. */
void fs_describe(const json_t *one, char *buf, size_t size);

/* A command that exits with 0 on the client 'host' only if every server works. New reference to
 * an array of words; NULL if the adapter has no such command. */
int fs_probe(struct fs *fs, const struct host *host, json_t **argv, struct err *e);

/* The command by which the file system itself says on 'host' how it is. New reference to an array
 * of words; NULL if it cannot be asked there. */
int fs_health(struct fs *fs, const struct host *host, json_t **argv, struct err *e);

/* Address (a name or a number; the caller frees) and port at which 'server' serves its clients,
 * which identify its sockets: from the adapter's 'service', otherwise the inventory's address and
 * service_port. Port 0: any port; stream.h defines which sockets then belong to clients. */
int fs_service(
	struct fs *fs, const struct host *server, char **address, uint16_t *port, struct err *e);

/* Facts about errors for detectors: {"lost_errnos": [...], "errno_map": {...}}. New reference. */
int fs_errors(struct fs *fs, json_t **out, struct err *e);

/* Facts for faults and workloads: {type: the adapter's name, storage: "folder" or "device",
 * empty_storage: {prune?, keep?} or a reason why it is impossible, cannot: {fault: reason},
 * missing: [step]}. New reference. */
json_t *fs_facts(const struct fs *fs);

#endif
