/* Keeps the lab's state in its folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

int state_lock(const char *dir, bool make, int *fd, struct err *e)
{
	struct lab_path path = lab_path(dir, "lock");
	struct stat held, named;

	for (;;) {
		int lock = open(path.s, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600);

		if (lock < 0)
			return err_errno(e, -errno, "cannot open '%s'", path.s);
		if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
			int rc = errno == EWOULDBLOCK
				? err_blame(e, ERR_USAGE,
					  err_set(e, -EBUSY,
						  "another 'culprit lab' is at work on '%s'", dir))
				: err_errno(e, -errno, "cannot lock '%s'", path.s);

			close(lock);
			return rc;
		}
		/* 'down' removes the file: then this lock protects nothing. */
		if (!fstat(lock, &held) && !stat(path.s, &named) && held.st_ino == named.st_ino &&
			held.st_dev == named.st_dev) {
			*fd = lock;
			return 0;
		}
		close(lock);
	}
}

struct lab_path lab_path(const char *dir, const char *fmt, ...)
{
	struct lab_path path;
	size_t n = (size_t)snprintf(path.s, sizeof(path.s), "%.*s/", PATH_MAX, dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path.s + n, sizeof(path.s) - n, fmt, ap);
	va_end(ap);
	return path;
}

void lab_put(struct lab_text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->s + t->n, sizeof(t->s) - t->n, fmt, ap);
	va_end(ap);
	if (t->n >= sizeof(t->s))
		child_die("too many nodes for one file");
}

void lab_save(struct lab_path path, mode_t mode, const char *text)
{
	child_must(file_write_atomic(path.s, mode, text, strlen(text), &child_err));
}

void state_save(const struct lab_options *o, const struct child *children, size_t n)
{
	json_t *list = json_array(), *state;
	char *text;

	for (size_t i = 0; i < n; i++) {
		uint64_t start = 0;

		proc_start_time(children[i].pid, &start);
		json_array_append_new(list,
			json_pack("{ss si sI}", "name", children[i].name, "pid",
				(int)children[i].pid, "start", (json_int_t)start));
	}
	state = json_pack("{sI so}", "since", (json_int_t)time(NULL), "processes", list);
	text = json_dumps(state, JSON_INDENT(2));
	lab_save(lab_path(o->dir, "state.json"), 0644, text);
	free(text);
	json_decref(state);
}

int state_load(const char *dir, json_t **state, struct err *e)
{
	*state = json_load_file(lab_path(dir, "state.json").s, 0, NULL);
	return *state ? 0 : err_set(e, -ENOENT, "there is no whole lab in '%s'", dir);
}

static pid_t live_pid(const json_t *process)
{
	pid_t pid = (pid_t)jget_int(process, "pid");
	uint64_t start;

	if (pid <= 0 || proc_start_time(pid, &start) ||
		start != (uint64_t)jget_int(process, "start"))
		return 0;
	return pid;
}

pid_t state_pid(const json_t *state, const char *name)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(state, "processes"), i, process) {
		const char *its = jget_text(process, "name");

		if (its && !strcmp(its, name))
			return live_pid(process);
	}
	return 0;
}
