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
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/nodes/inventory.h"
#include "harness/lab/lab.h"

/* In children: the control socket; of a server, then its disk's two partitions. */
#define LAB_CONTROL_FD 3
#define LAB_STORAGE_FD 4
#define LAB_SPARE_FD 5

#define LAB_STORAGE "/srv/storage"
#define LAB_MOUNT "/mnt/fs"
#define LAB_NODE_RUN "/run/culprit"      /* a node's own folder, inside the node */
#define LAB_CONTROL LAB_NODE_RUN "/disk" /* a server's disk: its file "control" (disk_model.h) */

/* Requests that a disk holds at a time, like a drive's own queue. */
#define LAB_DISK_QUEUE 16

/* A path below a lab's folder. It lasts as long as the statement: lab_path(dir, "log/%s", n).s */
struct lab_path {
	char s[PATH_MAX + 2 * NAME_MAX];
};
struct lab_path lab_path(const char *dir, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* --- layout.c: the nodes that follow from the options --- */

struct lab_node {
	unsigned i;      /* servers first, then clients, outsiders, managers */
	unsigned number; /* 1 of "s1" */
	char name[16];   /* "s1" */
	enum role role;  /* of a manager: ROLE_OUTSIDER */
	bool manager;    /* runs services that are not under test; not in the inventory */
	char address[INET_ADDRSTRLEN];
};

unsigned lab_node_count(const struct lab_options *o);
const char *lab_role_name(const struct lab_node *n);
struct lab_node lab_node_at(const struct lab_options *o, unsigned i);
/* The first 'count' nodes. */
#define lab_each(n, o, count)                                                                      \
	for (struct lab_node n = lab_node_at(o, 0); n.i < (count); n = lab_node_at(o, n.i + 1))
int lab_node_find(const struct lab_options *o, const char *name, struct lab_node *n, struct err *e);
/* The lab's network, in host order, and the length of its prefix. -EINVAL if it is none. */
int lab_network(const struct lab_options *o, uint32_t *network, unsigned *prefix);
/* The address at 'offset' in it; this machine's own is at 1. */
void lab_address(const struct lab_options *o, unsigned offset, char address[INET_ADDRSTRLEN]);
/* Name of this machine's one interface to the lab, from the folder's name. */
void lab_host_link(const char *dir, char name[IFNAMSIZ]);

json_t *lab_options_json(const struct lab_options *o);
int lab_options_save(const struct lab_options *o, struct err *e);
int lab_options_load(const char *dir, struct lab_options *o, struct err *e);
bool lab_options_same(const struct lab_options *a, const struct lab_options *b);

/* --- child.c: the lab's own processes --- */

struct child {
	char name[32]; /* for messages: "s1", "disk of s1" */
	pid_t pid;
	int sock;     /* -1: none */
	bool waiting; /* for its next word */
};

/* Starts this program as 'lab WHAT --dir DIR [--name NAME]' in new namespaces ('flags' of
 * clone(2)). 'disk' (may be NULL) becomes LAB_STORAGE_FD and LAB_SPARE_FD. stdout and stderr go to
 * 'log'. */
int child_start(struct child *c, const char *dir, const char *what, const char *name, int flags,
	const int disk[2], struct lab_path log, struct err *e);
/* Waits until each says "ready". A child's error or death and the timeout are errors, and so is the
 * death of any of 'all', whose unused ones have no socket. */
int child_wait_ready(struct child *c, size_t n, const struct child *all, size_t n_all,
	double timeout_s, struct err *e);
/* How a process ended: "was killed by signal 11 (SEGV)". */
void child_describe_end(const siginfo_t *info, char text[64]);

/* All below are called in children only. An error ends the process, and with it the lab that is
 * being built: it goes to standard error, and to the parent as the reason. */
void child_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Dies with the sentence in child_err if 'rc' is negative. */
void child_must(int rc);
extern struct err child_err;
/* Dies with the sentence and errno if 'result' is negative, else returns it. */
int child_try(int result, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Tells the child's own children to continue with their next step. */
void child_go(struct child *c, size_t n);
/* Tells the parent that this step is done. */
void child_ready(void);
/* Waits for child_go. */
void child_wait(void);
/* The same, of a node: dies as soon as one of its programs has failed. */
void child_wait_with_programs(const struct lab_node *n);
/* Stays alive without the parent; closes the socket. */
void child_commit(void);
/* The end of setting up: all three. */
void child_settle(void);

void build_main(const struct lab_options *o);
void node_main(const struct lab_options *o, const struct lab_node *n) __attribute__((noreturn));
void switch_main(const struct lab_options *o) __attribute__((noreturn));
/* Returns an exit code. */
int disk_main(const struct lab_options *o, const char *name);

/* --- programs.c: what a node's pid 1 has started and leaves running --- */

/* Room for the end of a program's log in an error. */
#define LAB_SAID_MAX 520

void programs_add(const char *name, pid_t pid);
/* -ECHILD if one has ended other than with 0 (as those do that go into the background): how, and
 * the last lines of its log. */
int programs_check(const struct lab_node *n, struct err *e);
/* "; log/s1/server.log ends with: ..." of the program that was started last; "" if none was. */
void programs_last_words(const struct lab_node *n, char text[LAB_SAID_MAX]);

/* --- groups.c: the nodes' processors and memory --- */

/* Can this machine do it? -EINVAL, -ENODEV, or what the kernel says. */
int groups_check(const struct lab_options *o, struct err *e);
/* In a child: makes the nodes' groups with their limits. */
void groups_make(const struct lab_options *o);
/* Puts the calling process into a node's groups. 0 or -errno. */
int groups_enter(const struct lab_options *o, const struct lab_node *n);
/* Is there any group of the lab in 'dir'? */
bool groups_there(const char *dir);
/* Removes them all, once the processes have ended. */
int groups_remove(const char *dir, double timeout_s, struct err *e);

/* --- network.c --- */

/* In children: each writes its commands for ip(8) and tc(8) to files and runs them. */
void network_links(const struct lab_options *o, pid_t switch_pid, const struct child *nodes);
void network_switch(const struct lab_options *o);
void network_node(const struct lab_options *o, const struct lab_node *n);
/* -EADDRINUSE if an interface or route of this machine overlaps with the lab's subnet. */
int network_check(const struct lab_options *o, struct err *e);

/* --- loop.c --- */

/* In a child: attaches 'backing' to a free loop device that detaches itself at the last close, with
 * two partitions of these sizes (bytes, whole sectors); their descriptors. */
void loop_attach(const char *backing, const uint64_t sizes[2], int parts[2]);
/* /dev/loopNpM of such a descriptor. */
struct lab_path loop_path(int part);
/* Waits until no loop device's backing file lies under 'dir'; detaches them by force at
 * 'timeout_s'. */
int loop_sweep(const char *dir, double timeout_s, struct err *e);

/* --- keys.c --- */

/* In a child: makes DIR/id_ed25519, hosts, known_hosts, and each node's folder with key and
 * sshd_config. */
void keys_make(const struct lab_options *o);

/* Looks for a program in PATH. -ENOENT names the package, or says where else to get it. */
int lab_program(const char *program, const char *package, struct err *e);

/* --- client.c --- */

/* In a client: writes a file that is larger than any piece that file systems cut, reads it back and
 * removes it. */
int client_try_file(const char *name, struct err *e);

/* --- state.c: the lab's files; what was built, and is it alive --- */

/* The text of a file, which grows by lab_put. Its room is for the largest lab. */
struct lab_text {
	size_t n;
	char s[32768];
};
void lab_put(struct lab_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* In a child: writes a file of the lab. */
void lab_save(struct lab_path path, mode_t mode, const char *text);

int state_lock(const char *dir, bool make, int *fd, struct err *e);
/* In a child. 'loops': the servers' storage and spare. */
void state_save(const struct lab_options *o, const struct child *children, size_t n);
struct recipe;
void state_inventory(const struct lab_options *o, const struct recipe *r, const int (*loops)[2]);
/* -ENOENT: no whole lab in 'dir'. '*state' is the caller's. */
int state_load(const char *dir, json_t **state, struct err *e);
/* The pid of a process of the lab by its name; 0 if it is dead. */
pid_t state_pid(const json_t *state, const char *name);
/* True if every process of the lab lives, and every server and client has the processes of its file
 * system; else 'why' says what is missing. They are seen by root only. */
bool state_whole(const struct lab_options *o, const json_t *state, char why[256]);

/* --- sweep.c --- */

/* What of the folder sweep leaves. */
enum sweep {
	SWEEP_ALL,
	SWEEP_BUT_LOGS, /* and the lock, so that the folder is a lab's still */
};
/* Kills every process of the lab in 'dir' and removes devices, links and the folder. */
int sweep(const char *dir, enum sweep what, struct err *e);

#endif
