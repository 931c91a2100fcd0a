/*
 * Control groups: where this machine keeps a controller, in a hierarchy of its own (version 1) or
 * in the unified one (version 2), and in which group a process is. cgroups(7).
 */
#ifndef CULPRIT_HARNESS_BASE_CGROUP_H
#define CULPRIT_HARNESS_BASE_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* CPUACCT counts processor time in version 1; version 2 does that without a controller. Pressure
 * is no controller: version 2 alone keeps it, next to version 1 as well. */
enum cgroup_controller {
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_MEMORY,
	CGROUP_CONTROLLERS,
	CGROUP_PRESSURE = CGROUP_CONTROLLERS,
	CGROUP_IO /* "blkio" in version 1 */
};

struct cgroup_place {
	unsigned version; /* 1 or 2; 0: the controller is in no hierarchy that is mounted here */
	/* Folder of the topmost group that is seen here; in a container that may be its own. */
	char root[PATH_MAX];
	char own[PATH_MAX]; /* folder of the process's group: 'root' or below it */
};

/* The first file system in 'mountinfo' (proc(5), of the caller) with the controller, and the place
 * in it of the process whose /proc/PID/cgroup is 'groups'. A group outside of what is mounted is
 * none. */
struct cgroup_place cgroup_place(
	const char *mountinfo, const char *groups, enum cgroup_controller c);
/* Of this process. */
struct cgroup_place cgroup_own(enum cgroup_controller c);

/* "memory"; NULL: it is none. Of CGROUP_IO that of version 2, "io". */
const char *cgroup_controller_name(enum cgroup_controller c);

/* The text of a file of a group; NULL: there is none. The caller frees. */
char *cgroup_read(const char *group, const char *file);

/* Writes a text of at most 63 bytes to a file of a group, at once. 0 or -errno. */
int cgroup_put(const char *group, const char *file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What a group allows: processors (0: as many as there are) and bytes of memory (0: all). Files
 * that are missing or odd allow all. */
double cgroup_processors(const char *group, unsigned version);
uint64_t cgroup_memory(const char *group, unsigned version);

/* Goes from place.own up to place.root, to the first group that limits what the controller is for,
 * and makes place.own that group. False: none does. */
bool cgroup_limited(struct cgroup_place *place, enum cgroup_controller c);

#endif
