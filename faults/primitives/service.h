/*
 * The service primitive: a server is killed, put under limits, or restarted in another way. The
 * inverse is the whole description of the server as it was. Undo compares that with the server and
 * does what is missing, wherever the act was cut off.
 *
 * The primitive 'readonly' also stops and starts a server.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_SERVICE_H
#define CULPRIT_FAULTS_PRIMITIVES_SERVICE_H

#include <sys/resource.h>

#include "faults/primitives/primitive.h"
#include "faults/primitives/storage.h"

enum service_limit { SERVICE_NOFILE, SERVICE_FSIZE, SERVICE_AS, SERVICE_LIMITS };

/* One request; 0 or NULL: not requested. */
struct service_spec {
	pid_t pid;
	bool restart; /* else it is left running, or killed */
	bool kill;
	const char *user;                  /* name or number; with restart */
	json_int_t limits[SERVICE_LIMITS]; /* soft; 0: unchanged */
	struct storage_spec storage;       /* path NULL: its own; with restart */
};

/* Describes the server and checks what can be checked. 'name' (SESSION-HANDLE) and 'dir' are the
 * session's. */
int service_prepare(const struct service_spec *s, const char *dir, const char *name,
	json_t **inverse, struct err *e);

/* Acts. '*pid' gets the server's, 0 after a kill. Half done on failure: undo follows. */
int service_act(const struct service_spec *s, const json_t *inverse, pid_t *pid, struct err *e);

extern const struct primitive service_primitive;

#endif
