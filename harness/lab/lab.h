/*
 * The embedded lab: a small real storage cluster on this machine. Each node is a set of
 * namespaces (net, mount, pid, uts) with its own address, sshd and hostname; each server has a
 * modelled disk (disk_model.h) and a shaped NIC. The rest of culprit knows only the inventory file
 * that the lab writes.
 *
 * All files of a lab are in its folder; all its processes carry CULPRIT_LAB=<dir> in their
 * environment; its mounts are in its own mount namespaces; its loop devices detach at the last
 * close. So a lab ends with its processes, and lab_down finds them without a record of what 'up'
 * did.
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
#define LAB_MAX_MANAGERS 8

struct lab_options {
	char dir[PATH_MAX]; /* absolute */
	char subnet[24];    /* IPv4 with prefix length, "10.77.0.0/24" */
	unsigned servers, clients, outsiders;
	char fs[PATH_MAX];  /* a file system's name, or the path of its Lua file */
	char settings[256]; /* its parameters, "key=value,..." */
	char layout[32];    /* empty: its first */
	double disk_rate;   /* bytes/s */
	double disk_seek_s;
	double storage_bytes, spare_bytes;
	double nic_rate;     /* bytes/s, each way, of servers and clients */
	double nic_queue_s;  /* how long a packet waits for a NIC at most, at that rate */
	double cpus;         /* processors of a node; 0: all of the machine's, shared */
	double memory_bytes; /* memory of a node; 0: the machine's, shared */
	bool no_offload;     /* packets of at most 1500 bytes; else up to 64 KiB at once */
	bool tcp_2009;       /* losses are recovered without tail loss probes, RACK and F-RTO */
	unsigned managers;   /* nodes that the file system needs besides; lab_up sets it */
};

/* Initialises the options to the defaults of 'culprit lab up'. */
#define LAB_DEFAULTS                                                                               \
	{                                                                                          \
		.dir = LAB_DIR, .subnet = "10.77.0.0/24", .servers = 4, .clients = 2,              \
		.outsiders = 1, .fs = "glusterfs", .disk_rate = 8e6, .disk_seek_s = 4e-3,          \
		.storage_bytes = 1 << 30, .spare_bytes = 512 << 20, .nic_rate = 100e6 / 8,         \
		.nic_queue_s = 50e-3                                                               \
	}

/* -EINVAL with a sentence if no lab can be built from them. */
int lab_options_check(const struct lab_options *o, struct err *e);

/* Privilege, devices, and programs, also those of the file system 'fs'; the sentence says what to
 * do. -EPERM, -ENODEV, -ENOENT. */
int lab_prerequisites(const char *fs, struct err *e);

/* Builds the lab, and completes the options with what follows from the file system; returns when
 * every client can write and read a file. 0, or 1 if this very lab was up already. The remains of a
 * crash are removed first. On failure only the logs are left, in the folder. -EBUSY: another
 * command works on the folder.
 * -EEXIST: a lab with other options is up there, or the folder is not a lab's. -EADDRINUSE: this
 * machine uses the subnet. What the user can mend is ERR_USAGE. */
int lab_up(struct lab_options *o, struct err *e);

/* Removes the lab, whole or half-built. 0, or 1 if there was none. -EBUSY, -EEXIST as lab_up. */
int lab_down(const char *dir, struct err *e);

/* Describes the lab in '*out' (a new reference): "state" is "none", "up" or "broken" (half-built,
 * or a process has died), then options and "nodes", see README.md. */
int lab_status(const char *dir, json_t **out, struct err *e);

/* Runs argv on a node, with this process's standard streams, in folder "/".
 * Returns its exit code (128+signal). -ENOENT: no such lab or node. */
int lab_exec(const char *dir, const char *node, char **argv, struct err *e);

/* The lab's own processes, 'culprit lab build|switch|node|disk', which only lab_up starts. 'name'
 * is the node's, for the last two. Returns an exit code. */
int lab_child_main(const char *what, const char *dir, const char *name);

#endif
