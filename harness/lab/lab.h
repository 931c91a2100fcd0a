/*
 * The embedded lab: a small real GlusterFS cluster on this machine. Each node is a set of
 * namespaces (net, mount, pid, uts) with its own address, sshd and hostname; each server has a
 * modelled disk (disk.h) and a shaped NIC. The rest of culprit knows only the inventory file
 * that the lab writes.
 *
 * Everything that a lab names lies in its folder; every process of it carries CULPRIT_LAB=<dir>
 * in its environment; its mounts lie in mount namespaces of its own; its loop devices detach
 * themselves at the last close. So a lab goes when its processes go, and lab_down finds them
 * without any record of what 'up' had done so far.
 */
#ifndef CULPRIT_HARNESS_LAB_LAB_H
#define CULPRIT_HARNESS_LAB_LAB_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "harness/base/err.h"

#define LAB_TAG "CULPRIT_LAB"
#define LAB_DIR "/run/culprit/lab"
#define LAB_MAX_OF_A_ROLE 20

enum lab_layout { LAB_DISTRIBUTE, LAB_DISPERSE };

struct lab_options {
	char dir[PATH_MAX]; /* absolute */
	char subnet[24];    /* IPv4 with prefix length, "10.77.0.0/24" */
	unsigned servers, clients, outsiders;
	enum lab_layout layout;
	double disk_rate; /* bytes/s */
	double disk_seek_s;
	double storage_bytes, spare_bytes;
	double nic_rate; /* bytes/s, each way, of servers and clients */
	bool no_cache;   /* clients' page cache is out of the way of every program, see README.md */
};

/* Initialises the options to the defaults of 'culprit lab up'. */
#define LAB_DEFAULTS                                                                               \
	{                                                                                          \
		.dir = LAB_DIR, .subnet = "10.77.0.0/24", .servers = 4, .clients = 2,              \
		.outsiders = 1, .layout = LAB_DISTRIBUTE, .disk_rate = 8e6, .disk_seek_s = 4e-3,   \
		.storage_bytes = 1 << 30, .spare_bytes = 512 << 20, .nic_rate = 100e6 / 8          \
	}

/* -EINVAL with a sentence if no lab can be built from them. */
int lab_options_check(const struct lab_options *o, struct err *e);

/* Privilege, devices and programs; the sentence says what to do. -EPERM, -ENODEV, -ENOENT. */
int lab_prerequisites(struct err *e);

/* Brings the lab up; returns when every client can write and read a file. 0, or 1 if just this lab
 * was up already. What a crash had left in the folder is swept first. On failure nothing is left.
 * -EBUSY: another command is at work on the folder. -EEXIST: a lab with other options is up there,
 * or the folder is somebody else's. -EADDRINUSE: the subnet is this machine's already. */
int lab_up(const struct lab_options *o, struct err *e);

/* Takes it down, whole or half-built. 0, or 1 if there was none. -EBUSY, -EEXIST as lab_up. */
int lab_down(const char *dir, struct err *e);

/* Writes what there is to '*out' (the caller's): "state" is "none", "up" or "broken" (half-built,
 * or something has died), then the options and "nodes" as README.md says. */
int lab_status(const char *dir, json_t **out, struct err *e);

/* Runs argv in a node, with this process's standard streams, in folder "/".
 * Returns its exit code (128+signal). -ENOENT: no such lab or node. */
int lab_exec(const char *dir, const char *node, char **argv, struct err *e);

/* The lab's own processes: 'culprit lab build|node|switch|disk', started by lab_up alone. */
int lab_build_main(const char *dir);
int lab_node_main(const char *dir, const char *name);
int lab_switch_main(const char *dir);
int lab_disk_main(const char *dir, const char *name);

#endif
