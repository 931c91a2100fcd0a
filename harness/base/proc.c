/* Runs programs, and finds or kills processes. */
#include "harness/base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"

#define OUTPUT_MAX (1u << 20)
#define IN_EXEC_MAX_S 2
#define KILLED_S 5 /* to wait for a killed program; one stuck in the kernel is left */

/* Starts argv[0] in its own process group, without our input and output, which may carry a
 * protocol. Returns 0 or an errno. */
static int proc_start(const char *const argv[], int out_fd, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int rc;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawn_file_actions_init(&files);
	if (posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) ||
		posix_spawn_file_actions_adddup2(&files, out_fd, 1) ||
		posix_spawn_file_actions_adddup2(&files, out_fd, 2))
		rc = ENOMEM;
	else
		rc = posix_spawnp(pid, argv[0], &files, &attributes, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* Reads all output; drops the part beyond OUTPUT_MAX. Returns 0 or -ETIMEDOUT. */
static int proc_collect(int fd, double deadline, char *buf, size_t *len)
{
	char scrap[4096];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		double left = deadline ? deadline - clock_mono_s() : 3600;
		ssize_t n;
		int ready = left <= 0 ? 0 : poll(&p, 1, (int)(left * 1000) + 1);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0 && deadline)
			return -ETIMEDOUT;
		if (ready == 0)
			continue;
		n = *len < OUTPUT_MAX ? read(fd, buf + *len, OUTPUT_MAX - *len)
				      : read(fd, scrap, sizeof(scrap));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		*len += *len < OUTPUT_MAX ? (size_t)n : 0;
	}
}

static int wait_until(pid_t pid, double deadline, int *status)
{
	for (;;) {
		struct timespec nap = {.tv_nsec = 2000000};
		pid_t got = waitpid(pid, status, deadline ? WNOHANG : 0);

		if (got == pid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (deadline && clock_mono_s() > deadline)
			return -ETIMEDOUT;
		if (got == 0)
			nanosleep(&nap, NULL);
	}
}

int proc_run(const char *const argv[], double timeout_s, char **output, struct err *e)
{
	double deadline = timeout_s > 0 ? clock_mono_s() + timeout_s : 0;
	char *buf = malloc(OUTPUT_MAX + 1);
	int out[2], rc, status;
	size_t len = 0;
	pid_t pid;

	rc = !buf ? ENOMEM : pipe2(out, O_CLOEXEC) < 0 ? errno : 0;
	if (!rc) {
		rc = proc_start(argv, out[1], &pid);
		close(out[1]);
		if (rc)
			close(out[0]);
	}
	if (rc) {
		rc = err_errno(e, -rc, "cannot run '%s'", argv[0]);
		goto done;
	}
	rc = proc_collect(out[0], deadline, buf, &len);
	if (!rc)
		rc = wait_until(pid, deadline, &status);
	if (rc) {
		kill(-pid, SIGKILL);
		wait_until(pid, clock_mono_s() + KILLED_S, &status);
		rc = err_set(e, rc, "'%s' did not end within %g s", argv[0], timeout_s);
	} else {
		rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	close(out[0]);
done:
	if (buf)
		buf[len] = '\0';
	if (output)
		*output = buf;
	else
		free(buf);
	return rc;
}

int proc_run_ok(const char *const argv[], double timeout_s, char **output, struct err *e)
{
	char *text = NULL, command[512] = "", *line;
	int rc = proc_run(argv, timeout_s, &text, e);

	if (rc > 0) {
		size_t n = 0;

		for (int i = 0; argv[i] && n < sizeof(command); i++)
			n += (size_t)snprintf(
				command + n, sizeof(command) - n, "%s%s", i ? " " : "", argv[i]);
		for (n = text ? strlen(text) : 0; n && text[n - 1] == '\n'; n--)
			text[n - 1] = '\0';
		line = text ? strrchr(text, '\n') : NULL;
		rc = err_set(e, -EIO, "'%s' ended with %d: %.300s", command, rc,
			line ? line + 1 : (text && *text ? text : "it printed nothing"));
	}
	if (output)
		*output = text;
	else
		free(text);
	return rc;
}

/* Errors which mean that the process ended before its file was read, or must not be examined.
 * Other errors (no memory, no free descriptor) say nothing about the process. */
static bool is_gone(int rc)
{
	return rc == -ENOENT || rc == -ESRCH || rc == -EACCES || rc == -EPERM;
}

/* Fields of /proc/PID/stat by their numbers in proc_pid_stat(5). */
struct stat_fields {
	char state;               /* 3 */
	pid_t parent;             /* 4 */
	unsigned flags;           /* 9 */
	unsigned long long start; /* 22 */
	unsigned long env_start;  /* 50 */
};

static bool has_ended(const struct stat_fields *f)
{
	return f->state == 'Z' || f->state == 'X';
}

/* Returns -ESRCH if the process does not exist. A zombie still has its fields. */
static int read_fields(pid_t pid, struct stat_fields *f)
{
	char path[64], *text, *p;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	rc = file_read(path, &text, NULL, NULL);
	if (rc)
		return is_gone(rc) ? -ESRCH : rc;
	/* The name in parentheses may itself contain spaces and parentheses. */
	p = strrchr(text, ')');
	if (!p ||
		sscanf(p + 1,
			" %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d"
			" %*d %llu",
			&f->state, &f->parent, &f->flags, &f->start) != 4)
		rc = -ESRCH;
	/* Field 3 follows the parenthesis and one blank. */
	for (int field = 2; p && field < 50; field++)
		p = strchr(p + 1, ' ');
	f->env_start = p ? strtoul(p, NULL, 10) : 1;
	free(text);
	return rc;
}

/* Like read_fields, but also returns -ESRCH for a zombie. */
static int read_stat(pid_t pid, struct stat_fields *f)
{
	return read_fields(pid, f) ?: has_ended(f) ? -ESRCH : 0;
}

int proc_start_time(pid_t pid, uint64_t *ticks)
{
	struct stat_fields f;
	int rc = read_stat(pid, &f);

	if (!rc)
		*ticks = f.start;
	return rc;
}

/* One process in a snapshot of /proc. */
struct relative {
	struct proc_id id;
	pid_t parent;
	bool ended;   /* a zombie */
	bool ours;    /* the calling process, or an ancestor of it */
	bool reached; /* a descendant */
};

static struct relative *relative_of(struct relative *all, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].id.pid == pid)
			return &all[i];
	return NULL;
}

/* All processes, in the order of /proc. The count or -errno. */
static ssize_t look_at_all(struct relative **out)
{
	struct relative *all = NULL, *more;
	DIR *dir = opendir("/proc");
	struct dirent *d;
	size_t n = 0;
	int rc = dir ? 0 : -errno;

	while (!rc && (d = readdir(dir))) {
		pid_t pid = (pid_t)atoi(d->d_name);
		struct stat_fields f;

		rc = pid > 0 ? read_fields(pid, &f) : -ESRCH;
		if (!rc && !(n & (n - 1))) {
			more = reallocarray(all, n ? 2 * n : 1, sizeof(*all));
			if (more)
				all = more;
			else
				rc = -ENOMEM;
		}
		if (!rc)
			all[n++] = (struct relative){
				.id = {pid, f.start}, .parent = f.parent, .ended = has_ended(&f)};
		rc = rc == -ESRCH ? 0 : rc;
	}
	if (dir)
		closedir(dir);
	if (rc)
		free(all);
	else
		*out = all;
	return rc ?: (ssize_t)n;
}

/* Appends the children of 'parent' not reached yet to the 'n' in 'found'; returns the new count. */
static size_t reach_children(
	struct relative *all, size_t n_all, pid_t parent, struct proc_id *found, size_t n)
{
	for (size_t i = 0; i < n_all; i++) {
		if (all[i].parent != parent || all[i].reached || all[i].ours)
			continue;
		all[i].reached = true;
		found[n++] = all[i].id;
	}
	return n;
}

int proc_descendants(const pid_t *of, size_t n_of, struct proc_id **out)
{
	struct relative *all = NULL, *r;
	ssize_t n_all = look_at_all(&all);
	struct proc_id *found = n_all < 0 ? NULL : calloc((size_t)n_all + 1, sizeof(*found));
	size_t n = 0, live = 0;

	if (!found) {
		free(all);
		return n_all < 0 ? (int)n_all : -ENOMEM;
	}
	for (pid_t at = getpid(); (r = relative_of(all, (size_t)n_all, at)) && !r->ours;
		at = r->parent)
		r->ours = true;
	for (size_t i = 0; i < n_of; i++)
		n = reach_children(all, (size_t)n_all, of[i], found, n);
	for (size_t i = 0; i < n; i++)
		n = reach_children(all, (size_t)n_all, found[i].pid, found, n);
	/* Zombies are needed only to reach their children. */
	for (size_t i = 0; i < n; i++)
		if (!relative_of(all, (size_t)n_all, found[i].pid)->ended)
			found[live++] = found[i];
	free(all);
	*out = found;
	return (int)live;
}

/* During exec, between the new address space and its first page, a process shows no environment
 * (env_start is 0); on a busy machine this can last. Kernel threads and exiting processes look
 * the same, but their flags identify them. */
static bool in_exec(pid_t pid)
{
	enum { EXITING = 0x4 /* PF_EXITING */, KERNEL_THREAD = 0x200000 /* PF_KTHREAD */ };
	struct stat_fields f;

	return !read_stat(pid, &f) && !(f.flags & (EXITING | KERNEL_THREAD)) && f.env_start == 0;
}

/* The kernel hides field 50 of processes that we may not examine. */
static bool may_look(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &st) && (geteuid() == 0 || st.st_uid == geteuid());
}

/* Does the process's environment contain the tag? 1, 0, or -errno if it cannot be read. */
static int carries(pid_t pid, const char *tag, size_t tag_len, bool prefix, double deadline)
{
	struct timespec nap = {.tv_nsec = 1000000};
	char path[64], *env = NULL, *p;
	bool found = false;
	size_t size = 0;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	while (!(rc = file_read(path, &env, &size, NULL)) && !size) {
		free(env);
		if (!may_look(pid) || !in_exec(pid) || clock_mono_s() > deadline)
			return 0;
		nanosleep(&nap, NULL);
	}
	if (rc)
		return is_gone(rc) ? 0 : rc;
	for (p = env; p < env + size && !found; p += strlen(p) + 1)
		found = !strncmp(p, tag, tag_len) && (prefix || p[tag_len] == '\0');
	free(env);
	return found;
}

int proc_find_tagged(const char *name, const char *value, bool prefix, pid_t **pids)
{
	struct dirent *d;
	pid_t *list = NULL;
	int n = 0, tag_len;
	double deadline = clock_mono_s() + IN_EXEC_MAX_S;
	char *tag;
	DIR *dir;

	tag_len = asprintf(&tag, "%s=%s", name, value);
	if (tag_len < 0)
		return -ENOMEM;
	dir = opendir("/proc");
	if (!dir) {
		free(tag);
		return -errno;
	}
	while (n >= 0 && (d = readdir(dir))) {
		pid_t pid = (pid_t)atoi(d->d_name), *more;
		uint64_t ticks;
		int rc = pid > 0 ? carries(pid, tag, (size_t)tag_len, prefix, deadline) : 0;

		if (rc < 0)
			n = rc;
		if (rc <= 0 || proc_start_time(pid, &ticks))
			continue;
		more = reallocarray(list, (size_t)n + 1, sizeof(*list));
		if (more)
			(list = more)[n++] = pid;
		else
			n = -ENOMEM;
	}
	closedir(dir);
	free(tag);
	if (n < 0)
		free(list);
	else
		*pids = list;
	return n;
}

int proc_kill_tagged(
	const char *name, const char *value, bool prefix, double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;
	int clear = 0;

	for (;;) {
		struct timespec nap = {.tv_nsec = 3000000};
		pid_t *pids = NULL, survivor = 0;
		int n = proc_find_tagged(name, value, prefix, &pids);

		for (int i = 0; i < n; i++) {
			if (pids[i] == getpid())
				continue;
			survivor = pids[i];
			kill(pids[i], SIGKILL);
		}
		free(pids);
		if (n < 0)
			return err_errno(e, n, "cannot look for processes with %s=%s", name, value);
		/* Scan twice: a reader of /proc may miss a process that was just forked. */
		clear = survivor ? 0 : clear + 1;
		if (clear == 2)
			return 0;
		if (survivor && clock_mono_s() > deadline)
			return err_set(e, -ETIMEDOUT, "process %d with %s=%s survives SIGKILL",
				(int)survivor, name, value);
		nanosleep(&nap, NULL);
	}
}
