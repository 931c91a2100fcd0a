/* Kills what belongs to a lab and waits until it is gone. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

/* Is it 'culprit lab disk ...'? */
static bool is_disk(pid_t pid)
{
	static const char start[] = "culprit\0lab\0disk";
	char *line;
	size_t size;
	bool yes;

	if (file_read(lab_path("/proc", "%d/cmdline", (int)pid).s, &line, &size, NULL))
		return false;
	yes = size >= sizeof(start) && !memcmp(line, start, sizeof(start));
	free(line);
	return yes;
}

/* Kills all processes but the disks, which drop their delays: so file systems unmount in order. */
static int kill_users(const char *dir, double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;

	for (;;) {
		pid_t *pids = NULL;
		bool survivor = false;
		int n = proc_find_tagged(LAB_TAG, dir, false, &pids);

		for (int i = 0; i < n; i++) {
			bool disk = is_disk(pids[i]);

			if (pids[i] == getpid())
				continue;
			kill(pids[i], disk ? SIGUSR1 : SIGKILL);
			survivor |= !disk;
		}
		free(pids);
		if (n < 0)
			return err_errno(e, n, "cannot look for the lab's processes");
		/* A node that hangs in its disk ends when the disk does, next. */
		if (!survivor || clock_mono_s() > deadline)
			return 0;
		usleep(5000);
	}
}

static int remove_link(const char *dir, struct err *e)
{
	char name[IFNAMSIZ];
	const char *const argv[] = {"ip", "link", "delete", "dev", name, NULL};
	int rc;

	lab_host_link(dir, name);
	if (!if_nametoindex(name))
		return 0;
	rc = proc_run_ok(argv, 10, NULL, e);
	/* The kernel removes it with the switch's namespace, perhaps just now. */
	return rc && if_nametoindex(name) ? rc : 0;
}

static bool is_log(const char *name)
{
	return !strcmp(name, "log") || !strcmp(name, "build.log");
}

/* The lock goes last: it marks the folder as a lab's. */
static int remove_folder(const char *dir, enum sweep what, struct err *e)
{
	DIR *folder = opendir(dir);
	struct dirent *d;
	int rc = 0;

	if (!folder)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "cannot open '%s'", dir);
	while (!rc && (d = readdir(folder))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
			!strcmp(d->d_name, "lock") || (what == SWEEP_BUT_LOGS && is_log(d->d_name)))
			continue;
		rc = file_remove_tree(lab_path(dir, "%s", d->d_name).s, e);
	}
	closedir(folder);
	if (rc || what == SWEEP_BUT_LOGS)
		return rc;
	if (unlink(lab_path(dir, "lock").s) < 0 && errno != ENOENT)
		return err_errno(e, -errno, "cannot remove '%s/lock'", dir);
	/* Another 'up' may have made its lock there in the meantime. */
	if (rmdir(dir) < 0 && errno != ENOTEMPTY && errno != ENOENT)
		return err_errno(e, -errno, "cannot remove '%s'", dir);
	return 0;
}

int sweep(const char *dir, enum sweep what, struct err *e)
{
	int rc = kill_users(dir, 10, e);

	rc = rc ? rc : loop_sweep(dir, 10, e);
	rc = rc ? rc : proc_kill_tagged(LAB_TAG, dir, false, 10, e);
	rc = rc ? rc : loop_sweep(dir, 0, e);
	rc = rc ? rc : groups_remove(dir, 10, e);
	rc = rc ? rc : remove_link(dir, e);
	rc = rc ? rc : remove_folder(dir, what, e);
	if (!rc && !strcmp(dir, LAB_DIR))
		rmdir("/run/culprit");
	return rc;
}
