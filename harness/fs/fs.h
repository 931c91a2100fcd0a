/*
 * File-system adapters: what the harness must know of one file system, as a Lua file
 * harness/fs/TYPE.lua (typed in harness/lua/culprit.meta.lua).
 */
#ifndef CULPRIT_HARNESS_FS_H
#define CULPRIT_HARNESS_FS_H

#include <jansson.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/inventory/inventory.h"

struct fs;

/* The adapter for 'type' ("glusterfs"). -ENOENT, with the types that there are. */
int fs_load(const char *type, struct fs **out, struct err *e);
void fs_free(struct fs *fs);

/* Which of 'processes' (the agent's 'processes' result) are the file system's on 'host': the server's
 * on a server, the client daemon's on a client. New reference to an array of pids, possibly empty. */
int fs_pids(struct fs *fs, const struct host *host, const json_t *processes, json_t **pids, struct err *e);

/* A command that ends with 0 on the client 'host' only if every server takes part. New reference to an array of
 * words; NULL where the adapter knows no such command. */
int fs_probe(struct fs *fs, const struct host *host, json_t **argv, struct err *e);

/* Address (a name or a number, malloced; the caller's) and port at which 'server' serves its clients: the adapter's
 * 'service', or else the inventory's address and service_port. Sockets are known by it. */
int fs_service(struct fs *fs, const struct host *server, char **address, uint16_t *port, struct err *e);

/* What diagnosers must know of errors: {"lost_errnos": [...], "errno_map": {...}}. New reference. */
int fs_errors(struct fs *fs, json_t **out, struct err *e);

#endif
