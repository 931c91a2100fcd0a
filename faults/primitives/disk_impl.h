/* What disk.c and its backends share. */
#ifndef CULPRIT_FAULTS_PRIMITIVES_DISK_IMPL_H
#define CULPRIT_FAULTS_PRIMITIVES_DISK_IMPL_H

#include <limits.h>

#include "faults/primitives/disk.h"

/* The block device that a storage lies on; it may be a partition. */
struct disk_storage {
	unsigned major, minor;
	char path[PATH_MAX];
};

struct disk_backend {
	const char *name;
	/* The part of the inverse that is the backend's. -ENOTSUP: it cannot do this here, another
	 * backend may. 'name' is unique on the machine, 'dir' has the journal. */
	int (*prepare)(const struct disk_spec *spec, const struct disk_storage *device,
		const char *dir, const char *name, json_t **how, struct err *e);
	/* 'how' is what prepare made; -EBADMSG: it is not. */
	int (*act)(const json_t *how, struct err *e);
	/* Adds what it has counted to 'out', which has the device's own figures. */
	int (*count)(const json_t *how, json_t *out, struct err *e);
	/* As of struct primitive. */
	int (*undo)(const json_t *how, bool *was_there, struct err *e);
	int (*verify_undone)(const json_t *how, struct err *e);
};

/* disk_lab.c, disk_cgroup.c */
extern const struct disk_backend disk_lab, disk_cgroup;

/* Writes 'text' to a file in one piece. 0 or -errno. */
int disk_put(const char *path, const char *text);

#endif
