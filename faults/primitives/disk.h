/*
 * The disk primitive: makes the disk of a server's storage slow, lets it stall, or lets reads of it
 * fail. How depends on what the storage is:
 *
 *	lab     a modelled disk of 'culprit lab' does it itself (harness/lab/disk_model.h). Its
 *	        control file is in the node; the inverse is what the file said before
 *	cgroup  any block device, and a rate alone: the server's processes move to a control group
 *	        with a limit, and back to their own groups
 *
 * The first that can is used, and reported. Undo does no I/O on the disk until that is as it was:
 * it may hang.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_DISK_H
#define CULPRIT_FAULTS_PRIMITIVES_DISK_H

#include <sys/types.h>

#include "faults/primitives/primitive.h"

/* What the disk is to be; 0: as it is. */
struct disk_spec {
	const char
		*path; /* on the storage's file system, or the block device that the storage is */
	double latency_s;    /* added to each request */
	double rate;         /* bytes/s at most */
	double factor;       /* a request takes so many times its own time */
	double stall_s;      /* the disk does nothing for so long, ... */
	double every_s;      /* ... in each period of this length; 0: once */
	double errors_pct;   /* share of reads that fail with EIO */
	pid_t pid;           /* with errors_pct: the server that lives on it */
	const json_t *pids;  /* the servers' processes, for cgroup; NULL: not known */
	const char *backend; /* the only one that may be used; NULL: any */
};

/* Finds the backend that can do it here and makes the inverse. Changes nothing. 'name' is unique on
 * the machine, 'dir' has the journal. -EINVAL: nothing is asked for, or it contradicts itself;
 * -ENOTSUP: no backend can do it; -EPERM: the journal's folder is on the disk; -EBUSY: the disk is
 * slowed already.
 *
 * Reads of a file system's own data may fail, too, whereupon ext4 turns read-only. So the inverse
 * of errors is disk_errors_primitive's: it checks the file system where that has happened, with the
 * server stopped, as readonly.h does. */
int disk_prepare(const struct disk_spec *spec, const char *dir, const char *name, json_t **inverse,
	struct err *e);

/* "lab" */
const char *disk_backend_name(const json_t *inverse);

/* The act that 'inverse' undoes. */
int disk_act(const json_t *inverse, struct err *e);

/* What the disk and the backend have counted, as operation disk.counters has it. */
int disk_counters(const json_t *inverse, json_t **out, struct err *e);

/* "modelled-disk STATE" for the fingerprint; "" if the node has none. */
void disk_fingerprint(char *buf, size_t size);

#endif
