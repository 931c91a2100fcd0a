/* Kills, limits or restarts a server, and brings it back as it was. */
#include "faults/primitives/service.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/server.h"
#include "faults/primitives/target.h"
#include "harness/base/file.h"

#define GRACE_S 3 /* between SIGTERM and SIGKILL; enough for a small storage */
#define LOCK_WAIT_S 60

static const int resources[] = {
	[SERVICE_NOFILE] = RLIMIT_NOFILE, [SERVICE_FSIZE] = RLIMIT_FSIZE, [SERVICE_AS] = RLIMIT_AS};

/* A number, or a name in /etc/passwd: the agent's own C library cannot use the node's name
 * services. */
static int find_user(const char *user, struct server_change *c, struct err *e)
{
	auto_free char *text = NULL;
	size_t n = strlen(user);
	unsigned uid, gid;
	int rc;

	c->as_user = true;
	if (isdigit((unsigned char)*user)) {
		c->uid = c->gid = (uid_t)atoi(user);
		return 0;
	}
	rc = file_read("/etc/passwd", &text, NULL, e);
	if (rc)
		return rc;
	PROCFS_EACH_LINE(line, text)
	{
		if (strncmp(line, user, n) || line[n] != ':' ||
			sscanf(line + n + 1, "%*[^:]:%u:%u", &uid, &gid) != 2)
			continue;
		c->uid = uid;
		c->gid = gid;
		return 0;
	}
	return err_set(e, -ENOENT, "there is no user '%s' in /etc/passwd", user);
}

/* Next to its storage. */
static bool is_changed(const struct service_spec *s)
{
	return s->user || s->limits[SERVICE_NOFILE] || s->limits[SERVICE_FSIZE] ||
		s->limits[SERVICE_AS];
}

/* A soft limit alone cannot be above the hard one. */
static int check_limits(const struct service_spec *s, struct err *e)
{
	struct rlimit all[RLIM_NLIMITS];
	int rc = s->restart ? 0 : limits_of(s->pid, all, e);

	for (int i = 0; i < SERVICE_LIMITS && !s->restart && !rc; i++) {
		const rlim_t hard = all[resources[i]].rlim_max;

		if (s->limits[i] && (rlim_t)s->limits[i] > hard)
			rc = err_set(e, -EINVAL,
				"a limit of %lld is above the server's hard limit of %llu",
				(long long)s->limits[i], (unsigned long long)hard);
	}
	return rc;
}

int service_prepare(const struct service_spec *s, const char *dir, const char *name, json_t **out,
	struct err *e)
{
	auto_json json_t *server = NULL, *storage = NULL;
	struct server_change ignored;
	int rc = s->user ? find_user(s->user, &ignored, e) : 0;

	rc = rc ?: server_learn(s->pid, &server, e) ?: check_limits(s, e);
	if (!rc && s->restart && is_changed(s) && server_is_walled(server))
		rc = err_set(e, -EXDEV,
			"process %d of %s has a namespace of its own, so it can be "
			"started only as it was",
			(int)s->pid, server_unit(server));
	if (!rc && s->storage.path) {
		storage = storage_describe(&s->storage, dir, name);
		rc = storage_check(storage, e);
	}
	if (rc)
		return rc;
	*out = json_pack("{s:s, s:O, s:O?, s:b}", "dir", dir, "server", server, "storage", storage,
		"again", !s->kill && !s->restart);
	return *out ? 0 : err_errno(e, -ENOMEM, "cannot describe the server");
}

static int set_limits_of(const struct service_spec *s, pid_t pid, struct err *e)
{
	struct rlimit all[RLIM_NLIMITS];
	int rc = limits_of(pid, all, e);

	for (int i = 0; i < SERVICE_LIMITS && !rc; i++) {
		struct rlimit *l = &all[resources[i]];

		if (!s->limits[i])
			continue;
		l->rlim_cur = (rlim_t)s->limits[i];
		rc = limits_put(pid, resources[i], l);
		if (rc)
			err_errno(e, rc, "cannot limit process %d", (int)pid);
	}
	return rc;
}

/* Soft limits of a running server and its descendants. They come last, since a program may raise
 * its own at its start. The server is limited first, so a look that finds nothing new has found
 * all: children inherit limits. */
static int set_limits(const struct service_spec *s, pid_t pid, struct err *e)
{
	auto_targets struct targets all = {0};
	struct target t;
	int n = 0, more, rc = target_open(pid, &t, e) ?: targets_add(&all, &t);

	do {
		for (; n < all.n && !rc; n++) {
			rc = set_limits_of(s, all.list[n].pid, e);
			if (n && rc == -ESRCH)
				rc = 0;
		}
		more = rc ?: targets_look(&all, e);
		n = more > 0 ? all.n - more : n;
	} while (more > 0);
	return more;
}

/* The inverse, read. */
struct service_inverse {
	const char *dir;
	json_t *server, *storage; /* storage NULL: none */
	int again;
};

/* Reads it and, unless 'lock' is NULL, takes the lock, which the caller closes. */
static int open_inverse(const json_t *inverse, struct service_inverse *i, int *lock, struct err *e)
{
	if (json_unpack((json_t *)inverse, "{s:s, s:o, s:o, s?b}", "dir", &i->dir, "server",
		    &i->server, "storage", &i->storage, "again", &i->again) < 0 ||
		i->dir[0] != '/' || !json_is_array(json_object_get(i->server, "argv")))
		return err_set(e, -EBADMSG, "the inverse of a server is damaged");
	i->storage = json_is_object(i->storage) ? i->storage : NULL;
	return lock ? server_lock(i->dir, LOCK_WAIT_S, lock, e) : 0;
}

/* Shown by ps, and by the agent if it takes too long. */
static void begin_step(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static int restart(const struct service_spec *s, const struct service_inverse *i, int lock,
	pid_t *pid, struct err *e)
{
	struct rlimit limits[RLIM_NLIMITS];
	struct server_change c = {.limits = limits};
	pid_t by_itself[1];
	bool ignored;
	int rc = server_limits(i->server, limits);

	/* Soft and hard, so that an unprivileged server cannot raise them at its start. */
	for (int l = 0; l < SERVICE_LIMITS; l++)
		if (s->limits[l])
			limits[resources[l]] = (struct rlimit){
				(rlim_t)s->limits[l], (rlim_t)s->limits[l]};
	if (s->user)
		rc = find_user(s->user, &c, e);
	begin_step("culprit-stop");
	rc = rc ?: server_stop(i->server, GRACE_S, &ignored, e);
	begin_step("culprit-storage");
	rc = rc ?: (i->storage ? storage_make(i->storage, lock, e) : 0);
	if (!rc && server_find(i->server, by_itself, 1) > 0 && (i->storage || s->user))
		rc = err_set(
			e, -EBUSY, "a supervisor has already started the server again, as it was");
	begin_step("culprit-start");
	return rc ?: server_start(i->server, is_changed(s) ? &c : NULL, lock, pid, e);
}

int service_act(const struct service_spec *s, const json_t *inverse, pid_t *pid, struct err *e)
{
	struct service_inverse i = {0};
	auto_fd int lock = -1;
	pid_t found[1];
	bool was = false;
	int rc = open_inverse(inverse, &i, &lock, e);

	if (rc)
		return rc;
	*pid = 0;
	if (server_find(i.server, found, 1) != 1)
		return err_set(e, -ESRCH, "the server has just ended by itself");
	if (s->kill)
		return server_stop(i.server, 0, &was, e);
	if (s->restart)
		rc = restart(s, &i, lock, pid, e);
	else
		*pid = found[0];
	return rc ?: set_limits(s, *pid, e);
}

static int service_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct service_inverse i = {0};
	auto_fd int lock = -1;
	int rc = open_inverse(inverse, &i, &lock, e);

	if (!rc && i.storage) {
		rc = storage_is_mounted(i.storage, e);
		if (rc > 0)
			rc = server_stop(i.server, GRACE_S, was_there, e);
		rc = rc ?: storage_remove(i.storage, was_there, e);
	}
	return rc ?: server_restore(i.server, i.again, lock, was_there, e);
}

static int service_verify(const json_t *inverse, struct err *e)
{
	struct service_inverse i = {0};
	int rc = open_inverse(inverse, &i, NULL, e);

	rc = rc ?: (i.storage ? storage_verify_gone(i.storage, e) : 0);
	return rc ?: server_verify(i.server, i.again, e);
}

const struct primitive service_primitive = {
	.name = "service",
	/* The boot starts the server; mounts and loop devices are gone; the file goes with the
	 * session's folder. */
	.ends_with_boot = true,
	.slow = true,
	.undo = service_undo,
	.verify_undone = service_verify,
};
