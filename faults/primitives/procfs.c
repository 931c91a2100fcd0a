/* Reads /proc for the primitives and the agent. */
#include "faults/primitives/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"

int procfs_read(pid_t pid, const char *name, char **text, size_t *size)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return file_read(path, text, size, NULL);
}

int procfs_link(pid_t pid, const char *name, char out[PATH_MAX])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	n = readlink(path, out, PATH_MAX - 1);
	out[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -errno : 0;
}

bool procfs_stat(pid_t pid, pid_t tid, struct procfs_stat *out)
{
	unsigned long long user, system, start;
	long long child_user, child_system, rss;
	char name[64] = "stat", *open, *close;
	auto_free char *text = NULL;
	int n = 0;

	if (tid)
		snprintf(name, sizeof(name), "task/%d/stat", (int)tid);
	if (procfs_read(pid, name, &text, NULL))
		return false;
	/* The name in parentheses may hold spaces and parentheses. */
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (open && close)
		n = sscanf(close + 1,
			" %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d %*d "
			"%*d %llu %*u %lld",
			&out->state, &out->parent, &out->flags, &user, &system, &child_user,
			&child_system, &start, &rss);
	if (n == 9) {
		out->user = user;
		out->system = system;
		out->child_user = (uint64_t)child_user;
		out->child_system = (uint64_t)child_system;
		out->start = start;
		out->rss_pages = (uint64_t)rss;
		snprintf(out->comm, sizeof(out->comm), "%.*s", (int)(close - open - 1), open + 1);
	}
	return n == 9;
}

bool procfs_cpu(pid_t pid, double *seconds)
{
	struct procfs_stat st;
	struct timespec own;
	clockid_t clock;

	if (!procfs_stat(pid, 0, &st) || clock_getcpuclockid(pid, &clock) ||
		clock_gettime(clock, &own))
		return false;
	*seconds = (double)own.tv_sec + (double)own.tv_nsec * 1e-9 +
		(double)(st.child_user + st.child_system) / (double)sysconf(_SC_CLK_TCK);
	return true;
}

bool procfs_is_gone(int rc)
{
	return rc == -ENOENT || rc == -ESRCH || rc == -EACCES || rc == -EPERM;
}

pid_t procfs_next(DIR *dir)
{
	struct dirent *d;
	pid_t pid = 0;

	while (dir && !pid && (d = readdir(dir)))
		pid = atoi(d->d_name);
	return pid;
}

const char *procfs_after(const char *text, const char *label)
{
	const char *p = strstr(text, label);

	return p ? p + strlen(label) : NULL;
}

uint64_t procfs_number(const char *text, const char *label)
{
	const char *at = procfs_after(text, label);

	return at ? strtoull(at, NULL, 10) : 0;
}

int procfs_line(const char *path, char *buf, size_t size, struct err *e)
{
	auto_free char *text = NULL;
	int rc = file_read(path, &text, NULL, e);

	snprintf(buf, size, "%.*s", rc ? 0 : (int)strcspn(text, "\n"), rc ? "" : text);
	return rc;
}

int procfs_words(
	pid_t pid, const char *name, json_t *(*make)(const char *text, size_t size), json_t **out)
{
	auto_json json_t *list = json_array();
	auto_free char *text = NULL;
	size_t size = 0;
	int rc = procfs_read(pid, name, &text, &size);

	for (const char *p = text; !rc && p < text + size; p += strlen(p) + 1)
		rc = json_array_append_new(list, make(p, strlen(p))) ? -ENOMEM : 0;
	if (!rc)
		*out = AUTO_TAKE(list);
	return rc;
}

const char *procfs_variable(const char *env, size_t size, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = env; p < env + size; p += strlen(p) + 1)
		if (!strncmp(p, name, n) && p[n] == '=')
			return p + n + 1;
	return NULL;
}

bool procfs_nap(double deadline)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	return clock_mono_s() <= deadline;
}
