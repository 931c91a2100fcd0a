/*
 * What the lab's own files share.
 *
 * 'culprit lab up' holds the lock, and removes everything if a step fails. It starts 'lab build',
 * which carries the tag, has its own mount namespace and starts the rest: the switch, one node for
 * each host, and one disk for each server. Each has a control socket to the builder and dies with
 * it until it is told to stay.
 */
#ifndef CULPRIT_HARNESS_LAB_LAB_IMPL_H
#define CULPRIT_HARNESS_LAB_LAB_IMPL_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "harness/inventory/inventory.h"
#include "harness/lab/lab.h"

#define LAB_CONTROL_FD 3 /* in children: the control socket; then passed descriptors */
#define LAB_STORAGE_FD 4
#define LAB_SPARE_FD 5

#define LAB_PORT 24007 /* of a brick */
#define LAB_STORAGE "/srv/brick"
#define LAB_MOUNT "/mnt/fs"
#define LAB_NODE_RUN "/run/culprit" /* a node's own folder, inside the node */
#define LAB_LINE_ROOM 1200          /* longest message of a child, in bytes */

/* Requests that a disk holds at a time, like a drive's own queue. */
#define LAB_DISK_QUEUE 16

/* --- layout.c: the nodes that follow from the options --- */

struct lab_node {
	char name[16]; /* "s1" */
	enum role role;
	unsigned number; /* 1, 2 ... within its role */
	char address[INET_ADDRSTRLEN];
};

const char *lab_role_name(enum role role);
unsigned lab_node_count(const struct lab_options *o);
/* i-th node: servers first, then clients, then outsiders. */
struct lab_node lab_node_at(const struct lab_options *o, unsigned i);
int lab_node_find(const struct lab_options *o, const char *name, struct lab_node *n, struct err *e);
/* This machine's own address in the lab's network, and the network's prefix length. */
void lab_host_address(const struct lab_options *o, char address[INET_ADDRSTRLEN], unsigned *prefix);
/* Name of this machine's one interface to the lab, from the folder's name. */
void lab_host_link(const char *dir, char name[IFNAMSIZ]);

json_t *lab_options_json(const struct lab_options *o);
int lab_options_save(const struct lab_options *o, struct err *e);
int lab_options_load(const char *dir, struct lab_options *o, struct err *e);
bool lab_options_same(const struct lab_options *a, const struct lab_options *b);

/* --- child.c: the control socket --- */

struct child {
	char name[32]; /* for messages: "s1", "disk of s1" */
	pid_t pid;
	int sock;     /* -1: none */
	bool waiting; /* for its next word */
};

/* Starts this program as 'lab WHAT --dir DIR [--name NAME]' in new namespaces ('flags' of
 * clone(2)). fds (ending with -1) become LAB_STORAGE_FD and so on. stderr goes to 'log'. */
int child_start(struct child *c, const char *dir, const char *what, const char *name, int flags,
	const int *fds, const char *log, struct err *e);
/* Tells the children to go on to their next step. */
int child_go(struct child *c, size_t n, struct err *e);
/* Waits until each says "ready". A child's error or death and the timeout are errors. */
int child_wait_ready(struct child *c, size_t n, double timeout_s, struct err *e);

/* In the child, first: it dies with the parent until child_commit. */
void child_begin(int sock);
void child_say(int sock, const char *word);
void child_fail(int sock, const struct err *e);
/* Waits for child_go; false if the parent is gone. */
bool child_wait(int sock);
/* Stays alive without the parent; closes the socket. */
void child_commit(int sock);
/* Reports the error if 'rc' is one; else says "ready", waits for the word to go on, and commits.
 * False if the child must end. */
bool child_settle(int sock, int rc, const struct err *e);

/* --- network.c --- */

/* Each writes its commands for ip(8) and tc(8) to files and runs them. */
int network_links(
	const struct lab_options *o, pid_t switch_pid, const struct child *nodes, struct err *e);
int network_switch(const struct lab_options *o, struct err *e);
int network_node(const struct lab_options *o, const struct lab_node *n, struct err *e);
/* -EADDRINUSE if an interface or route of this machine overlaps with the lab's subnet. */
int network_check(const struct lab_options *o, struct err *e);

/* --- loop.c --- */

/* Attaches 'backing' to a free loop device that detaches itself at the last close. '*fd' is
 * open. */
int loop_attach(const char *backing, int *fd, struct err *e);
/* Waits until no loop device's backing file lies under 'dir'; detaches them by force at
 * 'timeout_s'. */
int loop_sweep(const char *dir, double timeout_s, struct err *e);

/* --- keys.c --- */

/* Makes DIR/id_ed25519, hosts, known_hosts, and each node's folder with key and sshd_config. */
int keys_make(const struct lab_options *o, struct err *e);
/* "ssh-ed25519 AAAA...": a node's public host key; the caller frees. */
int keys_host_key(const char *dir, const char *node, char **key, struct err *e);

/* --- gluster.c --- */

int gluster_write_volfiles(const struct lab_options *o, struct err *e);
/* Starts the brick; returns when it listens. For pid 1 of a server. */
int gluster_brick(struct err *e);
/* Mounts the client; returns when every brick is connected and a file was written and read. */
int gluster_client(const struct lab_options *o, const char *name, struct err *e);

/* --- state.c: what was built, and is it alive --- */

/* Writes DIR/NAME, readable by all or, if 'secret', by root only. */
int lab_save(const char *dir, const char *name, bool secret, const char *text, struct err *e);
/* Writes 'v' (stolen; NULL: out of memory) to DIR/NAME. */
int lab_save_json(const char *dir, const char *name, json_t *v, struct err *e);

int state_lock(const char *dir, bool make, int *fd, struct err *e);
int state_save(const struct lab_options *o, const struct child *children, size_t n, struct err *e);
int state_inventory(const struct lab_options *o, const dev_t *spares, struct err *e);
/* -ENOENT: no whole lab in 'dir'. '*state' is the caller's. */
int state_load(const char *dir, json_t **state, struct err *e);
/* The pid of a process of the lab by its name; 0 if it is dead. */
pid_t state_pid(const json_t *state, const char *name);
/* True if every process of the lab lives, and every server and client has its GlusterFS daemon;
 * else 'why' says what is missing. Daemons are seen by root only. */
bool state_whole(const struct lab_options *o, const json_t *state, char why[64]);

/* --- sweep.c --- */

/* Kills every process of the lab in 'dir' and removes devices, links and the folder. */
int sweep(const char *dir, struct err *e);

#endif
