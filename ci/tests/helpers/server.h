/* What a child of the forking server (server.c) says to its client at first. */
#ifndef CULPRIT_CI_TESTS_HELPERS_SERVER_H
#define CULPRIT_CI_TESTS_HELPERS_SERVER_H

#include <sys/types.h>

struct server_child {
	pid_t server, child, program; /* 'program' is the child's */
};

#endif
