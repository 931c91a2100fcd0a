/* Ops that only look, and those about the session itself. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/capture.h"
#include "harness/agent/agent.h"
#include "harness/agent/journal.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

int op_ping(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	(void)args;
	(void)e;
	agent_answer(a, id,
		json_pack("{s:I, s:I}", "time_ns", (json_int_t)clock_real_ns(), "mono_ns",
			(json_int_t)clock_ns(CLOCK_MONOTONIC)));
	return 0;
}

/* /proc/PID/NAME as JSON text without its last newline; NULL if it is gone. */
static json_t *proc_text(pid_t pid, const char *name)
{
	char path[64], *text;
	json_t *value;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	if (file_read(path, &text, &size, NULL))
		return NULL;
	if (size && text[size - 1] == '\n')
		size--;
	value = text_json(text, size);
	free(text);
	return value;
}

static json_t *command_line(pid_t pid)
{
	json_t *list = json_array();
	char path[64], *text, *p;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	if (file_read(path, &text, &size, NULL))
		return list;
	for (p = text; p < text + size; p += strlen(p) + 1)
		json_array_append_new(list, text_json(p, strlen(p)));
	free(text);
	return list;
}

static json_t *describe_process(pid_t pid, const char *wanted)
{
	char path[64], exe[PATH_MAX], copy[PATH_MAX], *stat, *p, state[2] = "";
	uint64_t ticks;
	json_t *comm;
	ssize_t n;
	int ppid;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	/* Kernel threads have none; a program replaced on disk is still that program. */
	p = strstr(exe, " (deleted)");
	if (p)
		*p = '\0';
	strcpy(copy, exe);
	if (wanted && strcmp(basename(copy), wanted))
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (proc_start_time(pid, &ticks) || file_read(path, &stat, NULL, NULL))
		return NULL;
	p = strrchr(stat, ')');
	n = p ? sscanf(p + 1, " %1s %d", state, &ppid) : 0;
	free(stat);
	comm = proc_text(pid, "comm");
	if (n != 2 || !comm) {
		json_decref(comm);
		return NULL;
	}
	return json_pack("{s:i, s:i, s:s, s:o, s:o, s:o, s:I}", "pid", (int)pid, "ppid", ppid,
		"state", state, "comm", comm, "exe", text_json(exe, strlen(exe)), "cmdline",
		command_line(pid), "start_ticks", (json_int_t)ticks);
}

int op_processes(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *wanted = json_string_value(json_object_get(args, "exe"));
	json_t *list = json_array(), *one;
	struct dirent *d;
	DIR *dir = opendir("/proc");

	if (!dir) {
		json_decref(list);
		return err_errno(e, -errno, "cannot list '/proc'");
	}
	while ((d = readdir(dir))) {
		pid_t pid = (pid_t)atoi(d->d_name);

		one = pid > 0 ? describe_process(pid, wanted) : NULL;
		if (one)
			json_array_append_new(list, one);
	}
	closedir(dir);
	agent_answer(a, id, json_pack("{s:o}", "processes", list));
	return 0;
}

int op_check(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *what = json_string_value(json_object_get(args, "what"));
	enum packets_backend backend;
	struct err why = {""};
	int rc = 0;

	if (!strncmp(what, "packets.", 8)) {
		rc = packets_check(a->packets_backend, &backend, &why);
		if (!rc)
			err_set(&why, 0, "%s", packets_backend_name(backend));
	} else if (!strncmp(what, "trace.", 6)) {
		if (geteuid() != 0)
			rc = err_set(&why, -EPERM, "tracing other users' processes needs root");
		else if (strcmp(what, "trace.start"))
			rc = trace_able(what + 6, a->dir, &why);
	} else if (!strncmp(what, "limits.", 7) || !strncmp(what, "signal.", 7)) {
		if (geteuid() != 0)
			rc = err_set(&why, -EPERM, "acting on other users' processes needs root");
	} else if (!strncmp(what, "service.", 8) || !strncmp(what, "fs.", 3)) {
		if (geteuid() != 0)
			rc = err_set(&why, -EPERM,
				"acting on servers and their file systems needs root");
	} else if (strcmp(what, "run") && strncmp(what, "process.", 8)) {
		return err_set(e, -EINVAL,
			"cannot check '%s'; packets.drop, process.start, limits.set, signal.stop, "
			"and run can be",
			what);
	}
	agent_answer(a, id, json_pack("{s:b, s:s}", "able", rc == 0, "reason", why.text));
	return 0;
}

static void undo_undone(struct agent *a, struct handle *h, const struct guard_message *m)
{
	if (m->rc)
		agent_refuse(a, h->request_id, m->rc, &m->err);
	else
		agent_answer(a, h->request_id, json_pack("{s:b}", "undone", m->was_there));
}

int op_undo(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, json_string_value(json_object_get(args, "handle")), -1, &h, e);

	if (rc)
		return rc;
	h->request_id = json_incref(id);
	handle_undo(a, h, undo_undone);
	return 0;
}

int op_bye(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	(void)args;
	(void)e;
	a->bye_id = json_incref(id);
	agent_end(a, 0, "bye");
	return 0;
}
