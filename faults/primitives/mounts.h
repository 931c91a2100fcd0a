/*
 * Mounts: the file system that holds a path, and how to mount it again in the same way.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_MOUNTS_H
#define CULPRIT_FAULTS_PRIMITIVES_MOUNTS_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct mounted {
	unsigned major, minor;
	char root[256]; /* "/" but for bind mounts */
	char point[PATH_MAX];
	char type[64];
	char source[PATH_MAX];
	char options[256]; /* of the mount: "rw,noatime" */
	char super[512];   /* of the file system: "rw,errors=remount-ro" */
};

/* The mount that 'path' lies on. -ENOENT: no such path. */
int mounted_at(const char *path, struct mounted *m, struct err *e);

/* True if writes are refused: mounted so, or by the file system's own emergency (Linux 6.16 and
 * later say so in the super options alone). */
bool mounted_readonly(const struct mounted *m);

/* Flags for mount(2); 'data' gets the options that the file system itself understands. */
unsigned long mounted_flags(const struct mounted *m, char data[512]);

#endif
