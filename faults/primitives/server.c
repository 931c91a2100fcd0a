/* Stopping a server and starting it again. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/server_impl.h"
#include "faults/primitives/target.h"
#include "faults/primitives/unit.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"

#define GONE_S 60
#define HOLD_S 1
#define LISTEN_S 30
#define SETTLE_S 0.3
#define FORKED_SETTLE_S 2
#define ABSENT_S 1.5 /* between two processes of one server, at most */
#define GRACE_S 3

int server_lock(const char *dir, double wait_s, int *out, struct err *e)
{
	double deadline = clock_mono_s() + wait_s;
	auto_fd int fd = -1;
	char path[PATH_MAX];
	/* After a reboot the folder may be gone with the memory that it was in. */
	int rc = file_mkdirs(dir, 0700, e);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/server.lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		rc = -errno;
		if (rc != -EWOULDBLOCK || !procfs_nap(deadline))
			return err_errno(
				e, rc, "something else is still changing the server: '%s'", path);
	}
	*out = fd;
	fd = -1;
	return 0;
}

/* Adds the processes that are the server, and the descendants of all; drops those that have ended.
 * A descendant is known even once its parent has ended. The count, or -errno. */
static int server_gather(const json_t *server, struct targets *all)
{
	pid_t pids[8];
	struct target t;
	int n = server_find(server, pids, 8), rc = n < 0 ? n : 0;

	for (int i = 0; i < n && !rc; i++) {
		rc = target_open(pids[i], &t, NULL);
		rc = rc == -ESRCH ? 0 : rc ?: targets_add(all, &t);
	}
	rc = rc ?: targets_look(all, NULL);
	return rc < 0 ? rc : all->n;
}

/* A process that has a signal forks no more: once a look finds no further descendant, none is
 * missed by SIGKILL. If we are killed in between, server_verify finds the server stopped. */
static void hold_all(const json_t *server, struct targets *all, double deadline)
{
	int before = 0, n = all->n;

	while (n > before && n > 1 && clock_mono_s() <= deadline) {
		before = n;
		targets_signal(all, SIGSTOP, false, NULL);
		n = server_gather(server, all);
	}
}

/* SIGKILL is sent in every round, and to the descendants: a process that was just started has
 * missed the first one. The signal is sent at least once, even without any time to wait. 'all' has
 * what is known of the server, and gets what is left. */
static int server_end(
	const json_t *server, struct targets *all, int signo, double timeout_s, pid_t *who)
{
	double deadline = clock_mono_s() + timeout_s;
	int n;

	if (signo != SIGKILL)
		targets_signal(all, signo, false, NULL);
	while ((n = server_gather(server, all)) != 0) {
		if (n > 0)
			*who = all->list[0].pid;
		if (n > 0 && signo == SIGKILL) {
			hold_all(server, all, clock_mono_s() + HOLD_S);
			/* The server last: by it an undo finds those that are left. */
			targets_signal(all, SIGKILL, true, NULL);
		}
		if (clock_mono_s() > deadline)
			return n < 0 ? n : -EBUSY;
		procfs_nap(deadline);
	}
	return 0;
}

/* Threads may hold files after the first thread has lost its arguments: the process must be gone,
 * or be a zombie with that thread alone. */
static void wait_released(const struct targets *all)
{
	double deadline = clock_mono_s() + GONE_S;
	struct procfs_stat st;
	char path[64];
	struct stat dir;

	for (int i = 0; i < all->n; i++) {
		const struct target *t = &all->list[i];

		snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
		while (procfs_stat(t->pid, 0, &st) && st.start == t->ticks &&
			(st.state != 'Z' || stat(path, &dir) < 0 || dir.st_nlink > 3) &&
			procfs_nap(deadline))
			;
	}
}

/* A crash is a SIGKILL, and systemd is told afterwards, so that it does not start the server again.
 * Else systemd stops it as its unit says. */
static int stop_unit(const json_t *server, struct targets *all, double grace_s, struct err *e)
{
	const char *unit = server_unit(server);
	pid_t who;
	int rc = unit ? unit_keep(unit, e) : 0;

	if (rc || !unit)
		return rc;
	if (grace_s <= 0)
		server_end(server, all, SIGKILL, 0, &who);
	return unit_stop(unit, e);
}

int server_stop(const json_t *server, double grace_s, bool *was_there, struct err *e)
{
	auto_targets struct targets all = {0}, at_first = {0};
	int n = server_gather(server, &all), rc = n < 0 ? n : 0;
	pid_t who = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = targets_add(&at_first, &all.list[i]);
	if (rc)
		return err_errno(e, rc, "cannot look for the server");
	if (n)
		*was_there = true;
	rc = stop_unit(server, &all, grace_s, e);
	if (rc)
		return rc;
	if (grace_s > 0)
		rc = server_end(server, &all, SIGTERM, grace_s, &who);
	if (grace_s <= 0 || rc)
		rc = server_end(server, &all, SIGKILL, GONE_S, &who);
	wait_released(&at_first);
	return rc ? err_set(e, rc, "the server, process %d, does not end", (int)who) : 0;
}

static char **words(const json_t *list)
{
	size_t n = json_array_size(list);
	char **all = calloc(n + 1, sizeof(*all));

	for (size_t i = 0; all && i < n; i++)
		if (!(all[i] = server_bytes(json_array_get(list, i))))
			return NULL;
	return all;
}

static int server_put_text(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Back to its cgroup: a login session's cgroup may be killed with the session. Best effort. */
static void join_cgroups(const json_t *server)
{
	auto_free char *text = server_bytes(jget(server, "cgroups"));

	if (!text)
		return;
	PROCFS_EACH_LINE(line, text)
	{
		char path[PATH_MAX + 64], *controller = strchr(line, ':'), *at;

		if (!controller || !(at = strchr(controller + 1, ':')))
			continue;
		*at++ = '\0';
		controller++;
		if (!strncmp(controller, "name=", 5))
			controller += 5;
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s/cgroup.procs", controller, at);
		server_put_text(path, "0");
	}
}

static int put_descriptor(const json_t *pair, int fd)
{
	char *path = server_bytes(json_array_get(pair, 0));
	int got;

	if (!path)
		return -ENOMEM;
	got = open(path, (int)json_integer_value(json_array_get(pair, 1)) | O_NOCTTY | O_CLOEXEC);
	/* A log may have been moved away since. */
	if (got < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		got = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (got < 0 || (got != fd && dup2(got, fd) < 0))
		return -errno;
	if (got == fd)
		fcntl(got, F_SETFD, 0);
	return 0;
}

static int put_descriptors(const json_t *server)
{
	json_t *pair;
	size_t fd;
	int rc = 0;

	json_array_foreach(jget(server, "descriptors"), fd, pair) {
		if (!json_is_array(pair))
			close((int)fd);
		else
			rc = rc ?: put_descriptor(pair, (int)fd);
	}
	return rc;
}

static id_t id_at(const json_t *list, size_t i)
{
	return (id_t)json_integer_value(json_array_get(list, i));
}

static int become_user(const json_t *server, const struct server_change *c)
{
	const json_t *groups = jget(server, "groups"), *start = jget(server, "start_uid"),
		     *u = start ? start : jget(server, "uid"),
		     *g = jget(server, start ? "start_gid" : "gid");
	/* Nobody knows the groups of the root that started it: they are the agent's. */
	const bool by_root = start && id_at(u, 1) == 0;
	gid_t list[64];
	size_t n = json_array_size(groups);

	if (c && c->as_user)
		return setgroups(0, NULL) || setresgid(c->gid, c->gid, c->gid) ||
				setresuid(c->uid, c->uid, c->uid)
			? -errno
			: 0;
	n = n < 64 ? n : 64;
	for (size_t i = 0; i < n; i++)
		list[i] = id_at(groups, i);
	return (geteuid() == 0 && !by_root && setgroups(n, list)) ||
			setresgid(id_at(g, 0), id_at(g, 1), id_at(g, 2)) ||
			setresuid(id_at(u, 0), id_at(u, 1), id_at(u, 2))
		? -errno
		: 0;
}

/* An agent that is not root may not lower it: then it stays as it is. */
static int put_oom_score(int64_t value)
{
	char text[32];
	int rc;

	snprintf(text, sizeof(text), "%lld", (long long)value);
	rc = server_put_text("/proc/self/oom_score_adj", text);
	return rc == -EACCES || rc == -EPERM ? 0 : rc;
}

/* Why a grandchild could not become the server. */
struct failure {
	int code;
	int limit; /* that could not be set; -1: none */
};

/* Without the right to raise a limit, the current one will do if it is the same. */
static int put_limits(const struct rlimit *l, int *refused)
{
	struct rlimit now;

	for (int i = 0; i < RLIM_NLIMITS; i++)
		if ((getrlimit(i, &now) || now.rlim_cur != l[i].rlim_cur ||
			    now.rlim_max != l[i].rlim_max) &&
			setrlimit(i, &l[i]) < 0) {
			*refused = i;
			return -errno;
		}
	return 0;
}

/* In a grandchild. The lock ends with exec, when the server can be found by its arguments. */
static struct failure become(
	const json_t *server, const struct server_change *c, int lock, int failed)
{
	char **argv = words(jget(server, "argv")), **env = words(jget(server, "env"));
	char *exe = server_bytes(jget(server, "exe")), *cwd = server_bytes(jget(server, "cwd"));
	const int keep[] = {lock, failed};
	struct rlimit limits[RLIM_NLIMITS];
	struct failure f = {.limit = -1};

	if (!argv || !env || !exe || !cwd)
		return (struct failure){-ENOMEM, -1};
	process_close_others(keep, 2);
	process_default_signals();
	for (int signo = 1; signo < 32; signo++)
		if (jget_int(server, "ignored") >> (signo - 1) & 1)
			signal(signo, SIG_IGN);
	if (!server_unit(server))
		join_cgroups(server);
	f.code = put_oom_score(jget_int(server, "oom_score_adj"));
	setpriority(PRIO_PROCESS, 0, (int)jget_int(server, "nice"));
	umask((mode_t)jget_int(server, "umask"));
	f.code = f.code ?: put_descriptors(server) ?: (chdir(cwd) < 0 ? -errno : 0);
	f.code = f.code ?: server_limits(server, limits);
	f.code = f.code ?: put_limits(c && c->limits ? c->limits : limits, &f.limit);
	f.code = f.code ?: become_user(server, c);
	if (!f.code)
		execve(exe, argv, env);
	f.code = f.code ?: -errno;
	return f;
}

static int launch(const json_t *server, const struct server_change *c, int lock, struct err *e)
{
	struct failure f = {.limit = -1};
	int failed[2], status;
	pid_t pid;

	if (pipe2(failed, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start the server");
	pid = fork();
	if (pid == 0) {
		setsid();
		pid = fork();
		if (pid == 0) {
			f = become(server, c, lock, failed[1]);
			if (write(failed[1], &f, sizeof(f)) < 0)
				_exit(126);
			_exit(127);
		}
		_exit(pid < 0);
	}
	f.code = pid < 0 ? -errno : 0;
	close(failed[1]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status)
		f.code = -EAGAIN;
	if (!f.code && read(failed[0], &f, sizeof(f)) != (ssize_t)sizeof(f))
		f.code = 0;
	close(failed[0]);
	if (f.code && f.limit >= 0)
		return err_errno(e, f.code, "cannot start the server: cannot set its limit %s",
			limits_name(f.limit));
	return f.code ? err_errno(e, f.code, "cannot start the server") : 0;
}

static bool has_forked(pid_t pid)
{
	auto_free struct proc_id *below = NULL;

	return proc_descendants(&pid, 1, &below) > 0;
}

/* A server that goes into the background is two processes for a while, of which the parent may
 * listen as well, until it ends. A server that forks for its clients remains two. */
static int wait_listening(
	const json_t *server, const struct server_change *c, pid_t *pid, struct err *e)
{
	/* One that becomes another user may listen before. */
	const bool switches = jget(server, "start_uid") && !(c && c->as_user);
	double now = clock_mono_s(), deadline = now + LISTEN_S, since = now, there = now;
	pid_t pids[8], was = 0;

	for (;;) {
		int n = server_find(server, pids, 8);
		bool good = n == 1 && server_listens(server, pids[0]) &&
			(!switches || server_is_its_user(server, pids[0]));

		now = clock_mono_s();
		if (!good || pids[0] != was)
			since = now;
		was = good ? pids[0] : 0;
		if (good && now - since >= SETTLE_S &&
			(now - since >= FORKED_SETTLE_S || !has_forked(pids[0]))) {
			*pid = pids[0];
			return 0;
		}
		if (n != 0)
			there = now;
		if (now - there > ABSENT_S)
			return err_set(
				e, -ECHILD, "the server was started, and ended before it listened");
		if (now > deadline)
			return err_set(e, -ETIMEDOUT,
				"the server was started, but does not listen as before%s within "
				"%d s",
				switches ? ", as the user that it was," : "", LISTEN_S);
		procfs_nap(deadline);
	}
}

int server_start(
	const json_t *server, const struct server_change *c, int lock, pid_t *pid, struct err *e)
{
	pid_t pids[1];
	int n = server_find(server, pids, 1);

	if (n < 0)
		return err_errno(e, n, "cannot look for the server");
	/* Its own supervisor may have been quicker. */
	if (!n)
		n = server_unit(server) && !c ? unit_start(server_unit(server), lock, e)
					      : launch(server, c, lock, e);
	return n < 0 ? n : wait_listening(server, c, pid, e);
}

static bool is_learnt_one(const json_t *server, pid_t pid)
{
	uint64_t ticks;

	return pid == jget_int(server, "pid") && !proc_start_time(pid, &ticks) &&
		(int64_t)ticks == jget_int(server, "start_ticks");
}

int server_restore(const json_t *server, bool again, int lock, bool *was_there, struct err *e)
{
	pid_t pid;

	if (!server_verify(server, again, NULL)) {
		if (server_unit(server))
			unit_let_go(server_unit(server));
		return 0;
	}
	*was_there = true;
	return server_stop(server, GRACE_S, was_there, e)
		?: server_start(server, NULL, lock, &pid, e);
}

/* Does systemd watch it again? */
static int verify_unit(const json_t *server, pid_t pid, struct err *e)
{
	const char *unit = server_unit(server);
	pid_t main_pid = 0;
	int rc = unit ? unit_main(unit, &main_pid, e) : 0;

	return rc || !unit || main_pid == pid
		? rc
		: err_set(e, -EBUSY, "the server, process %d, is not the one of %s", (int)pid,
			  unit);
}

int server_verify(const json_t *server, bool again, struct err *e)
{
	struct procfs_stat st;
	pid_t pids[2];
	int n = server_find_patiently(server, pids, 2), who;

	if (n < 0)
		return err_errno(e, n, "cannot look for the server");
	if (n != 1)
		return err_set(e, -EBUSY, "the server %s", n ? "runs twice" : "does not run");
	who = (int)pids[0];
	if (again && is_learnt_one(server, pids[0]))
		return err_set(
			e, -EBUSY, "the server, process %d, has not been started again", who);
	if (procfs_stat(pids[0], 0, &st) && st.state == 'T')
		return err_set(e, -EBUSY, "the server, process %d, is stopped", who);
	if (!server_unchanged(server, pids[0]))
		return err_set(e, -EBUSY,
			"the server, process %d, has not the user and limits that it had", who);
	if (!server_listens(server, pids[0]))
		return err_set(
			e, -EBUSY, "the server, process %d, does not listen where it did", who);
	return verify_unit(server, pids[0], e);
}
