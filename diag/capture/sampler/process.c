/* Finds the sampled processes and reads their processor time, memory and sockets. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/base/file.h"
#include "harness/base/vec.h"

enum { MAX_PROCESSES = 4096, PID_BITS = 22 };

struct one {
	pid_t pid;
	struct process_stat stat;
};

struct processes {
	struct one *list;
	size_t n;
	uint32_t *sockets;
	size_t n_sockets;
	struct process_groups groups;
};

static bool read_stat(pid_t pid, struct process_stat *out)
{
	char path[32], *text;
	bool there;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, &text, NULL, NULL) < 0)
		return false;
	there = text_process_stat(text, out) && !strchr("ZXx", out->state);
	free(text);
	return there;
}

static int sampler_process_add(struct processes *p, pid_t pid)
{
	struct one one = {.pid = pid}, *more;

	for (size_t i = 0; i < p->n; i++)
		if (p->list[i].pid == pid)
			return 0;
	if (p->n == MAX_PROCESSES || !read_stat(pid, &one.stat))
		return -ESRCH;
	more = vec_room(p->list, p->n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->list = more;
	p->list[p->n++] = one;
	return 0;
}

static DIR *open_tasks(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

/* The file 'name' of the task of 'd'; NULL: the task has ended, or the file is not readable. The
 * caller frees. */
static char *task_text(pid_t pid, const struct dirent *d, const char *name)
{
	char path[320], *text;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", (int)pid, d->d_name, name);
	return isdigit((unsigned char)*d->d_name) && file_read(path, &text, NULL, NULL) == 0 ? text
											     : NULL;
}

/* The list grows during the walk, so children's children are also added. A child that outlives its
 * parent stays on the list. */
static void add_children(struct processes *p)
{
	for (size_t i = 0; i < p->n; i++) {
		pid_t pid = p->list[i].pid;
		DIR *dir = open_tasks(pid);
		struct dirent *d;

		while (dir && (d = readdir(dir))) {
			char *text = task_text(pid, d, "children"), *end;

			for (char *at = text; at && *at; at = end) {
				long child = strtol(at, &end, 10);

				if (end == at)
					break;
				sampler_process_add(p, (pid_t)child);
			}
			free(text);
		}
		if (dir)
			closedir(dir);
	}
}

int processes_new(const pid_t *pids, size_t n, struct processes **out, struct err *e)
{
	struct processes *p = calloc(1, sizeof(*p));
	int rc = p ? 0 : err_errno(e, -ENOMEM, "cannot look at processes");

	for (size_t i = 0; i < n && !rc; i++) {
		rc = sampler_process_add(p, pids[i]);
		if (rc)
			err_set(e, rc, "there is no process %d", (int)pids[i]);
	}
	if (rc)
		processes_free(p);
	else
		*out = p;
	return rc;
}

bool processes_refresh(struct processes *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct one one = {.pid = p->list[i].pid};

		/* Another process may have the number by now. */
		if (read_stat(one.pid, &one.stat) &&
			one.stat.start_ticks == p->list[i].stat.start_ticks)
			p->list[kept++] = one;
	}
	p->n = kept;
	add_children(p);
	return p->n > 0;
}

static void read_tasks(
	const struct one *one, uint64_t process_id, bool fresh, struct sampler_snapshot *s)
{
	DIR *dir = open_tasks(one->pid);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char *text = task_text(one->pid, d, "schedstat");
		struct thing *t;
		uint64_t ns;

		if (text && text_schedstat(text, &ns) &&
			(t = snapshot_add(s, THING_TASK,
				 process_id << PID_BITS ^ strtoull(d->d_name, NULL, 10)))) {
			t->fresh = fresh;
			thing_set(t, READING_PROCESS_WAIT, ns);
		}
		free(text);
	}
	if (dir)
		closedir(dir);
}

void processes_read(
	struct processes *p, const struct sampler_snapshot *before, struct sampler_snapshot *s)
{
	const uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);

	for (size_t i = 0; i < p->n; i++) {
		const struct one *one = &p->list[i];
		uint64_t id = one->stat.start_ticks << PID_BITS ^ (uint64_t)one->pid;
		struct thing *t = snapshot_add(s, THING_PROCESS, id);
		char path[32], *text;
		bool fresh;

		if (!t)
			return;
		/* The start time is rounded down. */
		fresh = t->fresh = (int64_t)((one->stat.start_ticks + 1) * tick_ns) >=
			before->boot_ns;
		thing_set(t, READING_PROCESS_CPU, one->stat.cpu_ticks);
		thing_set(t, READING_PROCESS_MEMORY, one->stat.rss_pages);
		snprintf(path, sizeof(path), "/proc/%d/io", (int)one->pid);
		if (file_read(path, &text, NULL, NULL) == 0) {
			text_io(text, t);
			free(text);
		}
		read_tasks(one, id, fresh || snapshot_find(before, THING_PROCESS, id), s);
		snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)one->pid);
		if (file_read(path, &text, NULL, NULL) == 0) {
			process_groups_see(&p->groups, text);
			free(text);
		}
	}
	process_groups_read(&p->groups, s);
}

static int process_by_number(const void *a, const void *b)
{
	const uint32_t *p = a, *q = b;

	return *p < *q ? -1 : *p > *q;
}

static void add_socket(struct processes *p, uint32_t inode)
{
	uint32_t *more = vec_room(p->sockets, p->n_sockets, sizeof(*more));

	if (!more)
		return;
	p->sockets = more;
	p->sockets[p->n_sockets++] = inode;
}

const uint32_t *processes_sockets(struct processes *p, size_t *n)
{
	p->n_sockets = 0;
	/* Processes started since then also have sockets. */
	add_children(p);
	for (size_t i = 0; i < p->n; i++) {
		char path[32], target[64];
		struct dirent *d;
		DIR *dir;

		snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->list[i].pid);
		dir = opendir(path);
		while (dir && (d = readdir(dir))) {
			ssize_t len = readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1);

			if (len <= 8 || memcmp(target, "socket:[", 8))
				continue;
			target[len] = '\0';
			add_socket(p, (uint32_t)strtoul(target + 8, NULL, 10));
		}
		if (dir)
			closedir(dir);
	}
	if (p->n_sockets)
		qsort(p->sockets, p->n_sockets, sizeof(*p->sockets), process_by_number);
	*n = p->n_sockets;
	return p->sockets;
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	free(p->list);
	free(p->sockets);
	process_groups_clear(&p->groups);
	free(p);
}
