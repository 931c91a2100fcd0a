/*
 * Control groups (cgroups(7)): where this machine mounts a controller (version 1 has one
 * hierarchy per controller, version 2 a unified one), and which group a process is in.
 */
#ifndef CULPRIT_HARNESS_BASE_CGROUP_H
#define CULPRIT_HARNESS_BASE_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* CPUACCT counts processor time in version 1; version 2 counts it without a controller. Pressure
 * has no controller: only version 2 keeps it, even on machines that also mount version 1. */
enum cgroup_controller {
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_MEMORY,
	CGROUP_CONTROLLERS,
	CGROUP_PRESSURE = CGROUP_CONTROLLERS,
	CGROUP_IO /* "blkio" in version 1 */
};

struct cgroup_place {
	unsigned version; /* 1 or 2; 0: no mounted hierarchy has the controller */
	/* Folder of the topmost visible group; inside a container that can be the container's
	 * group. */
	char root[PATH_MAX];
	char own[PATH_MAX]; /* folder of the process's group: 'root' or below it */
};

/* Finds the first file system in 'mountinfo' (proc(5), of the caller) with the controller, and in
 * it the group of the process whose /proc/PID/cgroup is 'groups'. A group outside the mounted
 * part counts as not found. */
struct cgroup_place cgroup_place(
	const char *mountinfo, const char *groups, enum cgroup_controller c);
/* The same for the calling process. */
struct cgroup_place cgroup_own(enum cgroup_controller c);

/* "memory"; NULL: no controller. CGROUP_IO is that of version 2, "io". */
const char *cgroup_controller_name(enum cgroup_controller c);

/* The content of a group's file, or NULL if the file does not exist. The caller frees it. */
char *cgroup_read(const char *group, const char *file);

/* Writes a text of at most 63 bytes to a file of a group, at once. 0 or -errno. */
int cgroup_put(const char *group, const char *file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A group's limits: processors (0: no limit) and bytes of memory (0: no limit). Missing or
 * malformed files mean no limit. */
double cgroup_processors(const char *group, unsigned version);
uint64_t cgroup_memory(const char *group, unsigned version);

/* Moves place.own up towards place.root, to the first group that has a limit for this controller.
 * Returns false if no group has one. */
bool cgroup_limited(struct cgroup_place *place, enum cgroup_controller c);

#endif
