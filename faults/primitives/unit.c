/* Stops and starts the systemd unit that a server belongs to. */
#include "faults/primitives/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/storage.h"
#include "harness/base/proc.h"

#define ASK_S 10
/* systemd's own limit for a start or a stop is 90 s by default. */
#define ACT_S 100

/* The first component of a cgroup's path that is a service: the system manager's. A user's own
 * manager is one as well, but its services are not the system's. */
static bool service_in(const char *path, char name[UNIT_NAME_MAX])
{
	static const char suffix[] = ".service";

	for (const char *p = path; p; p = strchr(p, '/')) {
		size_t n = strcspn(++p, "/"), end = sizeof(suffix) - 1;

		if (n <= end || n >= UNIT_NAME_MAX || strncmp(p + n - end, suffix, end))
			continue;
		memcpy(name, p, n);
		name[n] = '\0';
		return strncmp(name, "user@", 5);
	}
	return false;
}

/* 1, 0 or -errno. */
static int find_service(pid_t pid, char name[UNIT_NAME_MAX])
{
	auto_free char *text = NULL;
	int rc = procfs_read(pid, "cgroup", &text, NULL);

	if (rc)
		return procfs_is_gone(rc) ? 0 : rc;
	PROCFS_EACH_LINE(line, text)
	{
		char *controller = strchr(line, ':'), *path;

		if (!controller || !(path = strchr(controller + 1, ':')))
			continue;
		if ((!strncmp(controller, "::", 2) || !strncmp(controller, ":name=systemd:", 14)) &&
			service_in(path + 1, name))
			return 1;
	}
	return 0;
}

int unit_main(const char *name, pid_t *pid, struct err *e)
{
	const char *const argv[] = {
		"systemctl", "show", "--no-pager", "--property=MainPID", "--", name, NULL};
	auto_free char *said = NULL;
	int rc = proc_run_ok(argv, ASK_S, &said, e);

	if (rc)
		return rc;
	if (!said || strncmp(said, "MainPID=", 8))
		return err_set(e, -EPROTO, "systemd does not say which process '%s' has", name);
	*pid = (pid_t)atoi(said + 8);
	return 0;
}

int unit_of(pid_t pid, char name[UNIT_NAME_MAX], struct err *e)
{
	pid_t main_pid = 0;
	int rc;

	if (access("/run/systemd/system", F_OK) < 0)
		return 0;
	rc = find_service(pid, name);
	if (rc < 0)
		return err_errno(e, rc, "cannot read the cgroup of process %d", (int)pid);
	rc = rc ? unit_main(name, &main_pid, e) : 0;
	return rc ?: main_pid == pid && pid > 0;
}

static int keeper_of(const char *name, char keeper[UNIT_NAME_MAX], struct err *e)
{
	int n = snprintf(keeper, UNIT_NAME_MAX, "culprit-keep-%s", name);

	return n < UNIT_NAME_MAX
		? 0
		: err_set(e, -ENAMETOOLONG, "the name of the unit '%s' is too long", name);
}

int unit_keep(const char *name, struct err *e)
{
	static const char *const show = "--property=Transient";
	const char *const ask[] = {"systemctl", "show", "--no-pager", show, "--", name, NULL};
	char keeper[UNIT_NAME_MAX], unit[UNIT_NAME_MAX + 8], after[UNIT_NAME_MAX + 24];
	const char *const begin[] = {"systemd-run", "--quiet", "--collect", unit, after,
		"--description=culprit: keeps a transient unit that a fault has ended",
		"--property=DefaultDependencies=no", "--service-type=oneshot",
		"--remain-after-exit", "--", "/bin/true", NULL};
	const char *const is_there[] = {"systemctl", "is-active", "--quiet", "--", keeper, NULL};
	auto_free char *said = NULL;
	int rc = keeper_of(name, keeper, e) ?: proc_run_ok(ask, ASK_S, &said, e);

	if (rc || !said || !strstr(said, "=yes") || !proc_run(is_there, ASK_S, NULL, NULL))
		return rc;
	/* A unit that another one refers to stays loaded; the order is nothing but a reference. */
	snprintf(unit, sizeof(unit), "--unit=%s", keeper);
	snprintf(after, sizeof(after), "--property=After=%s", name);
	return proc_run_ok(begin, ACT_S, NULL, e);
}

void unit_let_go(const char *name)
{
	char keeper[UNIT_NAME_MAX];
	const char *const stop[] = {"systemctl", "stop", "--quiet", "--", keeper, NULL};

	if (!keeper_of(name, keeper, NULL)) /* often there is none */
		proc_run(stop, ASK_S, NULL, NULL);
}

int unit_stop(const char *name, struct err *e)
{
	const char *const argv[] = {
		"systemctl", "stop", "--job-mode=ignore-dependencies", "--", name, NULL};

	return proc_run_ok(argv, ACT_S, NULL, e);
}

int unit_start(const char *name, int lock, struct err *e)
{
	const char *const reset[] = {"systemctl", "reset-failed", "--", name, NULL};
	const char *const start[] = {
		"systemctl", "start", "--job-mode=ignore-dependencies", "--", name, NULL};
	int rc;

	/* Only of a unit that has failed; it also clears the count of starts, which are limited. */
	proc_run(reset, ASK_S, NULL, NULL);
	rc = storage_run(start, lock, ACT_S, 0, e);
	if (!rc)
		unit_let_go(name);
	return rc;
}
