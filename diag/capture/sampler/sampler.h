/*
 * The sampler's internals: its snapshots of the kernel at each whole second, and how two snapshots
 * become readings (diag/record/reading.h).
 *
 * A snapshot is a list of things (the node, an interface, the disk, a processor, a process, a task,
 * a socket), each with its raw counters and levels. A COUNT is the difference of a thing's counters
 * between two ticks one second apart, added up over the things; a thing without both ends does not
 * count. Things between two ticks are not seen: a socket that was closed loses its activity since
 * the last tick, and one that was opened and closed between two ticks leaves no trace; likewise
 * processes.
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
	THING_QDISC, /* the queueing disciplines of an interface */
	THING_DISK,
	THING_CPU,
	THING_CPU_GROUP,      /* a control group with a quota, for its processes */
	THING_PRESSURE_GROUP, /* a control group that keeps their pressure */
	THING_PROCESS,
	THING_TASK,
	THING_SOCKET
};

/* The other end of a socket, without its port if the socket was accepted. Compared byte by byte. */
struct socket_peer {
	uint8_t family; /* AF_INET (also ::ffff:1.2.3.4), AF_INET6 */
	uint8_t accepted;
	uint16_t port; /* network order */
	uint8_t address[16];
};

_Static_assert(READING_TOTAL <= 64, "thing.has has a bit for each");

struct thing {
	enum thing_kind kind;
	uint64_t id;   /* with the kind: identifies the thing in other snapshots */
	char name[16]; /* of a processor, an interface except lo, or its queues; else empty */
	bool fresh;    /* it began after the last tick: its counters were zero then */
	uint64_t has;  /* bit r: value[r] was read */
	uint64_t value[READING_TOTAL]; /* raw: snapshot.c knows the units */

	/* THING_SOCKET */
	uint32_t inode;      /* 0: not accepted yet, or closed by its process */
	uint16_t local_port; /* host order */
	bool listening;
	bool judged, ours; /* judged: the owner is known; ours: it is a sampled process */
	uint8_t missing;   /* ticks since it was last listed */
	struct socket_peer peer;
};

struct sampler_snapshot {
	int64_t real_ns, mono_ns, boot_ns; /* beginning of the reading */
	int64_t end_ns;                    /* CLOCK_REALTIME: end of the reading */
	bool sockets_listed;               /* completely */
	struct thing *things;              /* sorted by kind and id */
	size_t n;
	bool failed; /* out of memory: invalid */
};

/* Adds a thing without values; NULL if memory runs out. Valid until the next one is added. */
struct thing *snapshot_add(struct sampler_snapshot *s, enum thing_kind kind, uint64_t id);
void thing_set(struct thing *t, enum reading r, uint64_t value);
/* Sorts; keeps one of several things with the same kind and id. */
void snapshot_sort(struct sampler_snapshot *s);
struct thing *snapshot_find(const struct sampler_snapshot *s, enum thing_kind kind, uint64_t id);
void snapshot_clear(struct sampler_snapshot *s); /* keeps the memory */
void snapshot_free(struct sampler_snapshot *s);

/* A record to be written: as struct record_reading. */
struct sampled {
	enum reading what;
	const char *name;               /* of a single thing; NULL: of all */
	const struct socket_peer *peer; /* NULL: not a TCP reading */
	uint32_t count;
	double sum, max;
};

/* Calls 'each' for all readings of 'now', with COUNTs if 'counts' ('before' is a second earlier).
 * Order: by reading (if several named things add up to one reading, each of them follows it), then
 * by peer. Stops at the first result that is not 0, and returns it. */
int snapshot_readings(const struct sampler_snapshot *before, struct sampler_snapshot *now,
	bool counts, int (*each)(void *ctx, const struct sampled *r), void *ctx);

/* text.c: parses the kernel's texts, NUL-terminated; leaves out unexpected parts. */
struct process_stat {
	char state;
	uint64_t cpu_ticks, start_ticks, rss_pages;
};

void text_net_dev(const char *text, struct sampler_snapshot *s);
/* /proc/stat. */
void text_cpus(const char *text, struct sampler_snapshot *s);
void text_steal(const char *text, struct thing *t);
/* cpuacct.usage_percpu: the time of each processor for a control group. */
void text_usage_percpu(const char *text, struct sampler_snapshot *s);
/* The number in the line "NAME NUMBER", or "NAME: NUMBER kB". */
bool text_named(const char *text, const char *name, uint64_t *out);
void text_meminfo(const char *text, struct thing *t);
/* /proc/vmstat, or a group's memory.stat with 'prefix' before its names. */
void text_faults(const char *text, const char *prefix, struct thing *t);
bool text_diskstats(const char *text, unsigned major, unsigned minor, struct thing *t);
bool text_drive(const char *text, unsigned major, unsigned minor, struct thing *t);
bool text_pressure(const char *text, uint64_t *some_us);
bool text_process_stat(const char *text, struct process_stat *out);
bool text_schedstat(const char *text, uint64_t *wait_ns);
void text_io(const char *text, struct thing *t);
/* Finds the source of the file system with that device number in lines like "36 35 98:0 /mnt1 /mnt2
 * ... - ext3 /dev/root rw". */
bool text_mount_source(
	const char *mountinfo, unsigned major, unsigned minor, char *source, size_t size);

/* node.c */
struct disk_device {
	bool there;
	unsigned major, minor;
	/* the drive that holds the partition, or the device itself */
	unsigned drive_major, drive_minor;
};

/* The device below 'path', or 'path' itself if it is a block device. A logical volume on one device
 * is a part of that device's drive. -ENODEV: none, with the reason. */
int disk_find(const char *path, struct disk_device *out, struct err *why);
struct group;
void node_read(const struct disk_device *d, struct group *g, struct sampler_snapshot *s);

/* group.c: the control groups that limit this process (see reading.h). */
struct group {
	struct cgroup_place cpu, memory; /* 'own' limits; version 0: no limit */
	char usage[PATH_MAX];            /* the group that counts the time of 'cpu' */
	/* Time allowed by the quota but not used, added up over all looks. */
	uint64_t idle_ns, used_ns;
	int64_t looked_ns; /* 0: not yet */
};

/* 'places': by enum cgroup_controller. */
void group_find(const struct cgroup_place places[CGROUP_CONTROLLERS], struct group *out);
/* False: no group limits the processors, so the machine's count. */
bool group_read_cpu(struct group *g, struct sampler_snapshot *s, struct thing *node);
/* 'machine_bytes': memory that the machine could still allocate, which also limits the group. */
bool group_read_memory(const struct group *g, uint64_t machine_bytes, struct thing *node);

/* PSI of the machine or of a group; values that the kernel does not keep are left out. */
void group_read_pressure(const char *folder, const char *file, enum reading r, struct thing *t);

/* The control groups of the sampled processes. */
struct process_group {
	char *groups; /* /proc/PID/cgroup of its processes */
	bool seen;    /* since the last reading */
	struct cgroup_place cpu, pressure;
};
enum { PROCESS_GROUPS = 64 }; /* further groups are not read */
struct process_groups {
	char *mountinfo; /* NULL: not read yet */
	struct process_group *list[PROCESS_GROUPS];
	size_t n;
};

/* 'groups' is the /proc/PID/cgroup of one of the processes. */
void process_groups_see(struct process_groups *g, const char *groups);
/* Reads the groups seen since the last time. */
void process_groups_read(struct process_groups *g, struct sampler_snapshot *s);
void process_groups_clear(struct process_groups *g);

/* process.c: the sampled processes: the given ones and their descendants. */
struct processes;
int processes_new(const pid_t *pids, size_t n, struct processes **out, struct err *e);
/* Updates the list; false: all have ended. */
bool processes_refresh(struct processes *p);
void processes_read(
	struct processes *p, const struct sampler_snapshot *before, struct sampler_snapshot *s);
/* The sorted inode numbers of their sockets, 'n' of them. Still owned by 'p'. */
const uint32_t *processes_sockets(struct processes *p, size_t *n);
void processes_free(struct processes *p);

/* tcp.c: sockets of this network namespace. */
struct tcp;
/* -EOPNOTSUPP: this kernel does not list sockets. */
int tcp_new(struct tcp **out, struct err *e);
/* Adds a thing for each socket to 's', sorts 's', and determines each socket's owner, first from
 * 'before'. */
int tcp_read(struct tcp *t, struct processes *p, const struct sampler_snapshot *before,
	struct sampler_snapshot *s, struct err *e);
/* Part of tcp_read: adds the sockets of a netlink message, which may be damaged. 1: more follow; 0:
 * the end; -errno from the kernel. */
int tcp_parse(const void *data, size_t size, struct sampler_snapshot *s);
void tcp_free(struct tcp *t);

/* qdisc.c: queueing disciplines of this network namespace. */
struct netlink;
/* Adds a thing for each interface. -errno: this kernel does not list them (or 'n' is NULL). */
int qdisc_read(struct netlink *n, struct sampler_snapshot *s);
/* Part of qdisc_read, like tcp_parse: a thing's 'id' is the interface's number. */
int qdisc_parse(const void *data, size_t size, struct sampler_snapshot *s);

#endif
