/* What server_learn.c and server.c share. */
#ifndef CULPRIT_FAULTS_PRIMITIVES_SERVER_IMPL_H
#define CULPRIT_FAULTS_PRIMITIVES_SERVER_IMPL_H

#include <limits.h>

#include "faults/primitives/server.h"

/* The bytes that a text of the server's JSON stands for; the caller frees. NULL: no text, or no
 * memory. */
char *server_bytes(const json_t *value);

/* True if 'pid' runs as the user and group that were learnt. */
bool server_is_its_user(const json_t *server, pid_t pid);

#endif
