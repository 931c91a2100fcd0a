/*
 * The service primitive: a server that is killed, put under limits, or restarted in another way.
 * Its inverse is the whole description of the server as it was, which undo makes true again,
 * wherever the act was cut off and whatever the server has done meanwhile: it looks, and does what
 * is missing.
 *
 * The file-system primitive 'readonly' is the other one that stops and starts a server.
 */
#ifndef CULPRIT_FAULTS_SERVICE_H
#define CULPRIT_FAULTS_SERVICE_H

#include <sys/resource.h>

#include "faults/primitives/primitive.h"

enum service_limit { SERVICE_NOFILE, SERVICE_FSIZE, SERVICE_AS, SERVICE_LIMITS };

/* One request. What is not asked for is 0 or NULL. */
struct service_spec {
	pid_t pid;
	bool restart; /* else it is left running, or killed */
	bool kill;
	const char *user;                  /* name or number; with restart */
	json_int_t limits[SERVICE_LIMITS]; /* soft; 0: as it is */
	const char *storage;               /* folder; with restart */
	const char *prune;                 /* see storage.h */
	json_int_t size_bytes, inodes, spare;
};

/* Learns the server and checks all that can be. 'name' (SESSION-HANDLE) and 'dir' are of the
 * session. */
int service_prepare(const struct service_spec *s, const char *dir, const char *name,
	json_t **inverse, struct err *e);

/* Acts. '*pid' gets the server's, 0 after a kill. Half done on failure: undo follows. */
int service_act(const struct service_spec *s, const json_t *inverse, pid_t *pid, struct err *e);

extern const struct primitive service_primitive;

#endif
