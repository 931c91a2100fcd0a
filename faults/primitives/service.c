#include "faults/primitives/service.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/primitives/server.h"
#include "faults/primitives/storage.h"
#include "harness/base/file.h"

#define GRACE_S 3 /* between SIGTERM and SIGKILL; enough for a small storage */
#define LOCK_WAIT_S 60

static const int resources[] = {
	[SERVICE_NOFILE] = RLIMIT_NOFILE, [SERVICE_FSIZE] = RLIMIT_FSIZE, [SERVICE_AS] = RLIMIT_AS};

/* A number, or a name in /etc/passwd: the agent's own C library cannot use the node's name
 * services. */
static int find_user(const char *user, struct server_change *c, struct err *e)
{
	char *text, *line, *save = NULL;
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
	rc = err_set(e, -ENOENT, "there is no user '%s' in /etc/passwd", user);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, user, n) || line[n] != ':' ||
			sscanf(line + n + 1, "%*[^:]:%u:%u", &uid, &gid) != 2)
			continue;
		c->uid = uid;
		c->gid = gid;
		rc = 0;
	}
	free(text);
	return rc;
}

int service_prepare(const struct service_spec *s, const char *dir, const char *name, json_t **out,
	struct err *e)
{
	json_t *server = NULL, *storage = NULL, *inverse;
	struct server_change ignored;
	int rc = 0;

	if (s->user)
		rc = find_user(s->user, &ignored, e);
	if (!rc)
		rc = server_learn(s->pid, &server, e);
	if (!rc && s->storage) {
		storage = storage_describe(
			s->storage, s->prune, dir, name, s->size_bytes, s->inodes, s->spare);
		rc = storage_check(storage, e);
	}
	if (!rc) {
		inverse = json_pack("{s:s, s:O, s:O?, s:b}", "dir", dir, "server", server,
			"storage", storage, "again", !s->kill && !s->restart);
		if (inverse)
			*out = inverse;
		else
			rc = err_errno(e, -ENOMEM, "cannot describe the server");
	}
	json_decref(server);
	json_decref(storage);
	return rc;
}

/* Soft limits of a running server. They come last, since a program may raise its own at its
 * start. */
static int set_limits(const struct service_spec *s, pid_t pid, struct err *e)
{
	for (int i = 0; i < SERVICE_LIMITS; i++) {
		struct rlimit l;

		if (!s->limits[i])
			continue;
		if (prlimit(pid, resources[i], NULL, &l) < 0)
			return err_errno(e, -errno, "cannot limit process %d", (int)pid);
		l.rlim_cur = (rlim_t)s->limits[i];
		if (l.rlim_cur > l.rlim_max)
			return err_set(e, -EINVAL,
				"a limit of %lld is above the server's hard limit of %llu",
				(long long)s->limits[i], (unsigned long long)l.rlim_max);
		if (prlimit(pid, resources[i], &l, NULL) < 0)
			return err_errno(e, -errno, "cannot limit process %d", (int)pid);
	}
	return 0;
}

static int restart(
	const struct service_spec *s, const json_t *inverse, int lock, pid_t *pid, struct err *e)
{
	const json_t *server = json_object_get(inverse, "server"),
		     *storage = json_object_get(inverse, "storage");
	struct rlimit limits[RLIM_NLIMITS];
	struct server_change c = {.limits = limits};
	bool ignored;
	pid_t by_itself[1];
	int rc = server_limits(server, limits);

	/* Soft and hard, so that an unprivileged server cannot raise them at its start. */
	for (int i = 0; i < SERVICE_LIMITS; i++)
		if (s->limits[i])
			limits[resources[i]] = (struct rlimit){
				(rlim_t)s->limits[i], (rlim_t)s->limits[i]};
	if (s->user)
		rc = find_user(s->user, &c, e);
	if (!rc)
		rc = server_stop(server, GRACE_S, &ignored, e);
	if (!rc && json_is_object(storage))
		rc = storage_make(storage, lock, e);
	if (!rc && server_find(server, by_itself, 1) > 0 && (json_is_object(storage) || s->user))
		rc = err_set(
			e, -EBUSY, "a supervisor has already started the server again, as it was");
	return rc ? rc : server_start(server, &c, lock, pid, e);
}

int service_act(const struct service_spec *s, const json_t *inverse, pid_t *pid, struct err *e)
{
	const json_t *server = json_object_get(inverse, "server");
	pid_t found[1];
	bool was = false;
	int lock, rc;

	rc = server_lock(json_string_value(json_object_get(inverse, "dir")), LOCK_WAIT_S, &lock, e);
	if (rc)
		return rc;
	*pid = 0;
	if (server_find(server, found, 1) != 1)
		rc = err_set(e, -ESRCH, "the server has just ended by itself");
	else if (s->kill)
		rc = server_stop(server, 0, &was, e);
	else if (s->restart)
		rc = restart(s, inverse, lock, pid, e);
	else
		*pid = found[0];
	if (!rc && *pid)
		rc = set_limits(s, *pid, e);
	close(lock);
	return rc;
}

static int read_inverse(const json_t *inverse, const char **dir, const json_t **server,
	const json_t **storage, struct err *e)
{
	json_t *s, *t;

	if (json_unpack((json_t *)inverse, "{s:s, s:o, s:o}", "dir", dir, "server", &s, "storage",
		    &t) < 0 ||
		(*dir)[0] != '/' || !json_is_object(s) ||
		!json_is_array(json_object_get(s, "argv")))
		return err_set(e, -EBADMSG, "the inverse of a server is damaged");
	*server = s;
	*storage = json_is_object(t) ? t : NULL;
	return 0;
}

static bool is_again(const json_t *inverse)
{
	return json_is_true(json_object_get(inverse, "again"));
}

static int service_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	const json_t *server, *storage;
	const char *dir;
	int lock, rc;

	rc = read_inverse(inverse, &dir, &server, &storage, e);
	if (!rc)
		rc = server_lock(dir, LOCK_WAIT_S, &lock, e);
	if (rc)
		return rc;
	if (storage)
		rc = storage_is_mounted(storage, e);
	if (rc > 0)
		rc = server_stop(server, GRACE_S, was_there, e);
	if (!rc && storage)
		rc = storage_remove(storage, was_there, e);
	if (!rc)
		rc = server_restore(server, is_again(inverse), lock, was_there, e);
	close(lock);
	return rc;
}

static int service_verify(const json_t *inverse, struct err *e)
{
	const json_t *server, *storage;
	const char *dir;
	int rc = read_inverse(inverse, &dir, &server, &storage, e);

	if (!rc && storage)
		rc = storage_verify_gone(storage, e);
	if (rc)
		return rc;
	return server_verify(server, is_again(inverse), e);
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
