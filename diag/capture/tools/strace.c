/* strace(1), with which Kasick et al. 2009 (table 2) compare their tracer: every call with its
 * time, as text. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/tools/tool.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

static bool traced_by(const char *status_path, pid_t tool)
{
	char *text, *at;
	bool yes;

	if (file_read(status_path, &text, NULL, NULL) < 0)
		return true; /* the thread has ended */
	at = strstr(text, "\nTracerPid:");
	yes = at && strtol(at + 11, NULL, 10) == tool;
	free(text);
	return yes;
}

static bool is_ready(const struct external *x)
{
	bool all = true;

	for (size_t i = 0; i < x->n_pids && all; i++) {
		char path[320];
		struct dirent *d;
		DIR *dir;

		snprintf(path, sizeof(path), "/proc/%d/task", (int)x->pids[i]);
		dir = opendir(path);
		while (dir && all && (d = readdir(dir))) {
			snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)x->pids[i],
				d->d_name);
			all = d->d_name[0] == '.' || traced_by(path, x->tool);
		}
		if (dir)
			closedir(dir);
	}
	return all;
}

/* On the stop signal strace detaches, closes its file, and dies of the signal. */
static int strace_finish(struct external *x, int code, bool stopped, struct err *e)
{
	if (stopped && code && code != 128 + x->stop_signal)
		return err_set(e, -EIO, "strace did not end properly, but with code %d", code);
	return 0;
}

/* strace follows new forks; earlier descendants must be named. Processes that are forked after this
 * look and before strace attaches are missing. */
static int add_descendants(struct external *x, pid_t **all)
{
	auto_free struct proc_id *below = NULL;
	int count = proc_descendants(x->pids, x->n_pids, &below);
	size_t n = x->n_pids;

	if (count < 0)
		return trace_complain(TRACE_EXIT_USAGE, "cannot look for descendants");
	*all = calloc(n + (size_t)count + 1, sizeof(**all));
	if (!*all)
		return trace_complain(TRACE_EXIT_USAGE, "out of memory");
	memcpy(*all, x->pids, n * sizeof(**all));
	for (int i = 0; i < count; i++) {
		bool named = false;

		for (size_t k = 0; k < x->n_pids; k++)
			named |= x->pids[k] == below[i].pid;
		if (!named)
			(*all)[n++] = below[i].pid;
	}
	x->pids = *all;
	x->n_pids = n;
	return 0;
}

int strace_trace(const struct trace_request *r, struct err *why)
{
	struct external x = {.request = r,
		.name = "strace",
		.stop_signal = SIGTERM,
		.death_signal = SIGTERM,
		.ends_by_itself = true,
		.is_ready = is_ready,
		.finish = strace_finish};
	char *program = external_find("strace", NULL), *numbers = NULL;
	const char **argv = NULL;
	pid_t *all = NULL;
	size_t n = 0;
	int code;

	if (!program)
		return err_set(why, -EOPNOTSUPP,
			"there is no strace here; on Debian: apt-get install strace");
	code = external_begin(&x);
	if (code)
		goto out;
	if (!r->command && !r->no_descendants) {
		code = add_descendants(&x, &all);
		if (code) {
			unlink(r->out);
			goto out;
		}
	}
	argv = calloc(2 * x.n_pids + 16, sizeof(*argv));
	numbers = calloc(x.n_pids, 16);
	if (!argv || !numbers) {
		code = trace_complain(TRACE_EXIT_USAGE, "out of memory");
		goto out;
	}
	argv[n++] = program;
	argv[n++] = "-f";
	argv[n++] = "-q";
	argv[n++] = "-T";
	argv[n++] = "-ttt";
	argv[n++] = "-o";
	argv[n++] = r->out;
	for (size_t i = 0; i < x.n_pids; i++) {
		snprintf(numbers + 16 * i, 16, "%d", (int)x.pids[i]);
		argv[n++] = "-p";
		argv[n++] = numbers + 16 * i;
	}
	x.argv = argv;
	code = external_run(&x);
out:
	free(argv);
	free(all);
	free(numbers);
	free(program);
	return code;
}
