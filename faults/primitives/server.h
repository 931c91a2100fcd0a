/*
 * A server program on the node: described from /proc, stopped, and started again as it was.
 *
 * It does not belong to the agent: it has no tag and its own session, and outlives agent and
 * guard. Its executable and argument list identify it over restarts, so no other process may have
 * the same ones, but for its descendants: a server may fork a process for each client. They are
 * stopped with it, and never started. A server that its supervisor has already started again is
 * used as it is.
 *
 * The started server has the same arguments, environment, folder, umask, user, groups, limits,
 * priority, OOM score, cgroup, standard descriptors (files and devices; pipes and sockets become
 * /dev/null), and ignores SIGHUP, SIGPIPE and SIGXFSZ if it did. One that became another user after
 * its start, as daemons do, is started as the one that started it, and has to become that user
 * again. Not restored: capabilities below its user's, seccomp, CPU affinity and scheduling class. A
 * server in another namespace or root folder is refused, since that could not be entered again,
 * unless systemd can start it there.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_SERVER_H
#define CULPRIT_FAULTS_PRIMITIVES_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* The service of systemd that a description names; NULL: none. Such a server is stopped and started
 * by systemctl, and may be in a mount, IPC or host-name namespace of its own (PrivateTmp=). Started
 * differently (server_change) it is a process of ours, outside the unit, until it is started as it
 * was. */
const char *server_unit(const json_t *server);

/* True if it cannot be started but by systemd: it is in its own namespace. */
bool server_is_walled(const json_t *server);

/* Everything that server_start needs, as JSON. -ESRCH: no such process; -EXDEV: in another
 * namespace;
 * -EBUSY: there are two of the same arguments; -EPERM: its limits are above what we could give
 * again. */
int server_learn(pid_t pid, json_t **server, struct err *e);

/* The live processes that are it; at most 'room'. Not their descendants: a process that it forked
 * for a client is a part of it. The count (two: it is started twice), or -errno when that cannot be
 * found out. */
int server_find(const json_t *server, pid_t *pids, int room);
/* As server_find, but where there are several it looks again for a while: what the server has
 * forked is nobody's descendant once its parent has ended, and looks like the server until it is
 * another program. */
int server_find_patiently(const json_t *server, pid_t *pids, int room);

/* True if 'pid' runs under the user and limits that were learnt. */
bool server_unchanged(const json_t *server, pid_t pid);

/* True if it listens on every port on which it listened. */
bool server_listens(const json_t *server, pid_t pid);

/* Sends SIGTERM if 'grace_s' > 0, then SIGKILL, to it and its descendants, and waits until all are
 * gone: at most 60 s, which one in the middle of a write to a slow disk may need. */
int server_stop(const json_t *server, double grace_s, bool *was_there, struct err *e);

struct server_change {
	const struct rlimit *limits; /* RLIM_NLIMITS of them, or NULL: as they were */
	bool as_user;
	uid_t uid;
	gid_t gid;
};

/* Starts it, as it was but for 'change' (may be NULL), and waits up to 30 s until it listens as it
 * did. 'lock' is held by every child until it has become the server. */
int server_start(const json_t *server, const struct server_change *change, int lock, pid_t *pid,
	struct err *e);

/* Makes it run as it was, if it does not. 'again': also if it is still the very process that was
 * learnt: one that met errors may remember them (a GlusterFS brick whose health check has failed
 * ends itself half a minute later). */
int server_restore(const json_t *server, bool again, int lock, bool *was_there, struct err *e);

/* 0 if it runs as it was, and listens; -EBUSY and what is not so. */
int server_verify(const json_t *server, bool again, struct err *e);

/* Act and undo may run in different processes. The holder of this lock in 'dir' may be changing the
 * server or its storage, and so may children that inherited it. Closing it releases it. */
int server_lock(const char *dir, double wait_s, int *fd, struct err *e);

/* Soft and hard limits as learnt: RLIM_NLIMITS of them. */
int server_limits(const json_t *server, struct rlimit *limits);

#endif
