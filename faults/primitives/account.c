/* What the processes of one tag have read, written and computed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "harness/base/proc.h"

struct seen {
	pid_t pid, parent;
	uint64_t ticks; /* its start time */
	bool live, final;
	struct process_usage usage;
};

struct process_account {
	char tag[64];
	struct seen *seen;
	size_t n;
	struct process_usage gone; /* of processes that ended and were not counted to a parent */
	struct process_usage last; /* what was returned; sums never fall */
};

int process_account_new(const char *tag, struct process_account **out)
{
	struct process_account *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	snprintf(a->tag, sizeof(a->tag), "%s", tag);
	*out = a;
	return 0;
}

void process_account_free(struct process_account *a)
{
	if (a)
		free(a->seen);
	free(a);
}

/* Also of a zombie. */
static bool usage_read(pid_t pid, struct procfs_stat *st, struct process_usage *u)
{
	auto_free char *io = NULL;

	if (procfs_read(pid, "io", &io, NULL) || !procfs_stat(pid, 0, st))
		return false;
	u->rchar = procfs_number(io, "rchar: ");
	u->wchar = procfs_number(io, "wchar: ");
	u->read_bytes = procfs_number(io, "\nread_bytes: ");
	u->write_bytes = procfs_number(io, "\nwrite_bytes: ");

	u->cpu_s = (double)(st->user + st->system + st->child_user + st->child_system) /
		(double)sysconf(_SC_CLK_TCK);
	u->rss_bytes = st->rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

static void account_add(struct process_usage *to, const struct process_usage *u)
{
	to->read_bytes += u->read_bytes;
	to->write_bytes += u->write_bytes;
	to->rchar += u->rchar;
	to->wchar += u->wchar;
	to->cpu_s += u->cpu_s;
}

static struct seen *account_find(struct process_account *a, pid_t pid)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->seen[i].pid == pid)
			return &a->seen[i];
	return NULL;
}

static int account_note(struct process_account *a, pid_t pid, bool final)
{
	struct seen *s = account_find(a, pid), *more;
	struct process_usage u;
	struct procfs_stat st;

	if (!usage_read(pid, &st, &u) || (s && !final && s->ticks != st.start))
		return 0;
	if (!s) {
		more = realloc(a->seen, (a->n + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		a->seen = more;
		s = &more[a->n++];
	}
	*s = (struct seen){.pid = pid,
		.parent = st.parent,
		.ticks = st.start,
		.live = !final,
		.final = final,
		.usage = u};
	return 0;
}

#define KEEP_MAX(u, v, member) ((u)->member = (u)->member > (v)->member ? (u)->member : (v)->member)

int process_account_update(
	struct process_account *a, struct process_usage *u, int *live, struct err *e)
{
	struct process_usage sum;
	pid_t *pids = NULL;
	size_t kept = 0;
	int n, rc = 0;

	n = proc_find_tagged(PROCESS_TAG, a->tag, false, &pids);
	if (n < 0)
		return err_errno(e, n, "cannot look for the processes of %s", a->tag);
	for (size_t i = 0; i < a->n; i++)
		a->seen[i].live = false;
	for (int i = 0; i < n && !rc; i++)
		rc = account_note(a, pids[i], false);
	free(pids);
	/* In the middle of its exec, or as a zombie, it shows no tag, but its figures are counted
	 * nowhere else. */
	for (size_t i = 0; i < a->n && !rc; i++)
		if (!a->seen[i].live && !a->seen[i].final)
			rc = account_note(a, a->seen[i].pid, false);
	if (rc)
		return err_errno(e, rc, "cannot count the processes of %s", a->tag);
	for (size_t i = 0; i < a->n; i++) {
		const struct seen *parent = account_find(a, a->seen[i].parent);

		/* The kernel adds a reaped child's figures to its parent's. The figures of a parent
		 * that has gone as well are older than that. */
		if (!a->seen[i].live && !(parent && (parent->live || parent->final)))
			account_add(&a->gone, &a->seen[i].usage);
	}
	for (size_t i = 0; i < a->n; i++)
		if (a->seen[i].live)
			a->seen[kept++] = a->seen[i];
	a->n = kept;
	sum = a->gone;
	a->last.rss_bytes = 0;
	for (size_t i = 0; i < a->n; i++) {
		account_add(&sum, &a->seen[i].usage);
		a->last.rss_bytes += a->seen[i].usage.rss_bytes;
	}
	KEEP_MAX(&a->last, &sum, read_bytes);
	KEEP_MAX(&a->last, &sum, write_bytes);
	KEEP_MAX(&a->last, &sum, rchar);
	KEEP_MAX(&a->last, &sum, wchar);
	KEEP_MAX(&a->last, &sum, cpu_s);
	*u = a->last;
	*live = n;
	return 0;
}

void process_account_exit(struct process_account *a, pid_t pid)
{
	(void)account_note(a, pid, true);
}
