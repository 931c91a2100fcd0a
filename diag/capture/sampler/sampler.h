/*
 * The sampler, inside: what it reads of the kernel at each whole second, and how two of those
 * become readings (diag/record/reading.h).
 *
 * At each tick it takes a snapshot: a list of things (the node, an interface, the disk, a
 * processor, a process, a task, a socket), each with the counters and levels that were read of it,
 * raw. A COUNT is the difference of one thing's counters between two ticks that lie one second
 * apart, added up over the things; a thing without both ends has no part in it. What was there at
 * neither tick is never seen: a socket that was closed takes with it what it did since the last
 * tick, and one that was opened and closed between two ticks leaves nothing; likewise processes.
 */
#ifndef CULPRIT_DIAG_CAPTURE_SAMPLER_SAMPLER_H
#define CULPRIT_DIAG_CAPTURE_SAMPLER_SAMPLER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag/record/reading.h"
#include "harness/base/cgroup.h"
#include "harness/base/err.h"

enum thing_kind {
	THING_NODE,
	THING_INTERFACE,
	THING_QDISC, /* those of an interface */
	THING_DISK,
	THING_CPU,
	THING_CPU_GROUP,      /* a control group with a quota, for its processes */
	THING_PRESSURE_GROUP, /* one that keeps their pressure */
	THING_PROCESS,
	THING_TASK,
	THING_SOCKET
};

/* The other end of a socket; of one that was accepted without its port. Compared byte by byte. */
struct socket_peer {
	uint8_t family; /* AF_INET (also ::ffff:1.2.3.4), AF_INET6 */
	uint8_t accepted;
	uint16_t port; /* network order */
	uint8_t address[16];
};

_Static_assert(READING_TOTAL <= 64, "thing.has has a bit for each");

struct thing {
	enum thing_kind kind;
	uint64_t id;   /* with the kind: the same thing at another tick */
	char name[16]; /* of a processor, an interface other than lo or its queues; else empty */
	bool fresh;    /* it began after the last tick: its counters stood at zero then */
	uint64_t has;  /* bit r: value[r] was read */
	uint64_t value[READING_TOTAL]; /* as the kernel gives it: snapshot.c knows the units */

	/* THING_SOCKET */
	uint32_t inode;      /* 0: not yet accepted, or closed by its process */
	uint16_t local_port; /* host order */
	bool listening;
	bool judged, ours; /* is it known whether it belongs to a sampled process; does it */
	uint8_t missing;   /* ticks since it was last listed */
	struct socket_peer peer;
};

struct sampler_snapshot {
	int64_t real_ns, mono_ns, boot_ns; /* when its reading began */
	int64_t end_ns;                    /* CLOCK_REALTIME: when it ended */
	bool sockets_listed;               /* completely */
	struct thing *things;              /* by kind and id once sorted */
	size_t n;
	bool failed; /* memory ran out: it is worth nothing */
};

/* Adds a thing without values; NULL when memory runs out. Valid until the next one is added. */
struct thing *snapshot_add(struct sampler_snapshot *s, enum thing_kind kind, uint64_t id);
void thing_set(struct thing *t, enum reading r, uint64_t value);
/* Sorts; of things with the same kind and id one stays. */
void snapshot_sort(struct sampler_snapshot *s);
struct thing *snapshot_find(const struct sampler_snapshot *s, enum thing_kind kind, uint64_t id);
void snapshot_clear(struct sampler_snapshot *s); /* keeps the memory */
void snapshot_free(struct sampler_snapshot *s);

/* One record to be: as struct record_reading. */
struct sampled {
	enum reading what;
	const char *name;               /* of the one thing that it is of; NULL: of all */
	const struct socket_peer *peer; /* NULL: no TCP reading */
	uint32_t count;
	double sum, max;
};

/* Calls 'each' for all readings of 'now', the COUNTs if 'counts' says that 'before' lies a second
 * before it; in the order of the readings (where several things with names add to one, each of them
 * follows it), and of the peers. Stops at and returns the first result
 * that is not 0. */
int snapshot_readings(const struct sampler_snapshot *before, struct sampler_snapshot *now,
	bool counts, int (*each)(void *ctx, const struct sampled *r), void *ctx);

/* text.c: the kernel's texts, ended by NUL; what is not as expected is left out. */
struct process_stat {
	char state;
	uint64_t cpu_ticks, start_ticks, rss_pages;
};

void text_net_dev(const char *text, struct sampler_snapshot *s);
/* /proc/stat. */
void text_cpus(const char *text, struct sampler_snapshot *s);
void text_steal(const char *text, struct thing *t);
/* cpuacct.usage_percpu: what each processor did for a control group. */
void text_usage_percpu(const char *text, struct sampler_snapshot *s);
/* The number in the line "NAME NUMBER", or "NAME: NUMBER kB". */
bool text_named(const char *text, const char *name, uint64_t *out);
void text_meminfo(const char *text, struct thing *t);
/* /proc/vmstat, or a group's memory.stat, whose names may have 'prefix'. */
void text_faults(const char *text, const char *prefix, struct thing *t);
bool text_diskstats(const char *text, unsigned major, unsigned minor, struct thing *t);
/* The drive_ readings. */
bool text_drive(const char *text, unsigned major, unsigned minor, struct thing *t);
bool text_pressure(const char *text, uint64_t *some_us);
bool text_process_stat(const char *text, struct process_stat *out);
bool text_schedstat(const char *text, uint64_t *wait_ns);
void text_io(const char *text, struct thing *t);
/* "36 35 98:0 /mnt1 /mnt2 ... - ext3 /dev/root rw": the source of the file system with that device
 * number. */
bool text_mount_source(
	const char *mountinfo, unsigned major, unsigned minor, char *source, size_t size);

/* node.c */
struct disk_device {
	bool there;
	unsigned major, minor;
	unsigned drive_major, drive_minor; /* the drive of which it is a partition, or itself */
};

/* The device below 'path', or the block device that it is. A logical volume on one device is a part
 * of that one's drive. -ENODEV: there is none, with why. */
int disk_find(const char *path, struct disk_device *out, struct err *why);
struct group;
void node_read(const struct disk_device *d, struct group *g, struct sampler_snapshot *s);

/* group.c: the control groups that limit this process (reading.h says which). */
struct group {
	struct cgroup_place cpu, memory; /* 'own' limits; version 0: none does */
	char usage[PATH_MAX];            /* the group that counts cpu's time */
	/* What its quota would have allowed beyond what it used, added up over all looks. */
	uint64_t idle_ns, used_ns;
	int64_t looked_ns; /* 0: not yet */
};

/* 'places': by enum cgroup_controller. */
void group_find(const struct cgroup_place places[CGROUP_CONTROLLERS], struct group *out);
/* False: no group limits them, so they are the machine's. */
bool group_read_cpu(struct group *g, struct sampler_snapshot *s, struct thing *node);
/* 'machine_bytes' is what the machine could still give out, of which a group's part is part. */
bool group_read_memory(const struct group *g, uint64_t machine_bytes, struct thing *node);

/* PSI of the machine or of a group; what the kernel does not keep is left out. */
void group_read_pressure(const char *folder, const char *file, enum reading r, struct thing *t);

/* The control groups of the sampled processes. */
struct process_group {
	char *groups; /* /proc/PID/cgroup of processes in it */
	bool seen;    /* since the last reading */
	struct cgroup_place cpu, pressure;
};
enum { PROCESS_GROUPS = 64 }; /* more are not read */
struct process_groups {
	char *mountinfo; /* NULL: not yet read */
	struct process_group *list[PROCESS_GROUPS];
	size_t n;
};

/* 'groups' is the /proc/PID/cgroup of one of the processes. */
void process_groups_see(struct process_groups *g, const char *groups);
/* Those that were seen since the last time. */
void process_groups_read(struct process_groups *g, struct sampler_snapshot *s);
void process_groups_clear(struct process_groups *g);

/* process.c: the processes that are sampled: those that were named, and what they start. */
struct processes;
int processes_new(const pid_t *pids, size_t n, struct processes **out, struct err *e);
/* Looks anew who is there; false: nobody any more. */
bool processes_refresh(struct processes *p);
void processes_read(
	struct processes *p, const struct sampler_snapshot *before, struct sampler_snapshot *s);
/* Inode numbers of their sockets, sorted: n of them. They stay the processes'. */
const uint32_t *processes_sockets(struct processes *p, size_t *n);
void processes_free(struct processes *p);

/* tcp.c: sockets of this network namespace. */
struct tcp;
/* -EOPNOTSUPP: this kernel does not list sockets. */
int tcp_new(struct tcp **out, struct err *e);
/* Adds a thing a socket to 's', which is sorted afterwards, and says of each whose it is, looking
 * at 'before' first. */
int tcp_read(struct tcp *t, struct processes *p, const struct sampler_snapshot *before,
	struct sampler_snapshot *s, struct err *e);
/* Part of tcp_read: adds the sockets of a netlink message, however damaged. 1: more follow; 0: that
 * was all; -errno as the kernel says. */
int tcp_parse(const void *data, size_t size, struct sampler_snapshot *s);
void tcp_free(struct tcp *t);

/* qdisc.c: queueing disciplines of this network namespace. */
struct netlink;
/* Adds a thing an interface. -errno: this kernel does not list them (or 'n' is NULL). */
int qdisc_read(struct netlink *n, struct sampler_snapshot *s);
/* Part of qdisc_read, as tcp_parse: a thing's 'id' is the interface's number. */
int qdisc_parse(const void *data, size_t size, struct sampler_snapshot *s);

#endif
