/*
 * The op 'load': what the node did since it was last asked, and whose doing it was.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "harness/agent/agent.h"
#include "harness/base/file.h"
#include "harness/base/load.h"

#define HEAVIEST 3
#define HEAVY_SHARE 0.02 /* of one processor: below it a process is not worth naming */

struct process {
	pid_t pid, ppid;
	unsigned long long started, ticks;
	char comm[32];
	bool kernel;
};

struct snapshot {
	struct load load;
	struct process *list;
	size_t n;
};

/* What was seen when it was last asked; one agent, one caller. */
static struct snapshot last;

static bool read_process(pid_t pid, struct process *out)
{
	unsigned long long user, system;
	char path[64], *text, *open, *close;
	unsigned flags;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, &text, NULL, NULL))
		return false;
	*out = (struct process){.pid = pid};
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (open && close)
		n = sscanf(close + 1,
			" %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
			&out->ppid, &flags, &user, &system, &out->started);
	if (n == 5) {
		out->ticks = user + system;
		out->kernel = flags & 0x00200000; /* PF_KTHREAD */
		snprintf(out->comm, sizeof(out->comm), "%.*s", (int)(close - open - 1), open + 1);
	}
	free(text);
	return n == 5;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int take_snapshot(struct snapshot *out, struct err *e)
{
	struct snapshot s = {0};
	struct dirent *d;
	size_t room = 0;
	DIR *dir;
	int rc = load_read(&s.load, e);

	if (rc)
		return rc;
	dir = opendir("/proc");
	if (!dir)
		return err_errno(e, -errno, "cannot list '/proc'");
	while (!rc && (d = readdir(dir))) {
		pid_t pid = (pid_t)atoi(d->d_name);

		if (s.n == room) {
			struct process *more = realloc(s.list, (room + 512) * sizeof(*more));

			if (!more) {
				rc = err_errno(e, -ENOMEM, "cannot list processes");
				break;
			}
			s.list = more;
			room += 512;
		}
		s.n += pid > 0 && read_process(pid, &s.list[s.n]);
	}
	closedir(dir);
	if (rc) {
		free(s.list);
		return rc;
	}
	qsort(s.list, s.n, sizeof(*s.list), by_pid);
	*out = s;
	return 0;
}

static const struct process *find(const struct snapshot *s, pid_t pid)
{
	const struct process key = {.pid = pid};

	return s->n ? bsearch(&key, s->list, s->n, sizeof(*s->list), by_pid) : NULL;
}

static bool has_tag(pid_t pid)
{
	char path[64], *env;
	bool found = false;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (file_read(path, &env, &size, NULL))
		return false;
	for (const char *p = env; p < env + size && !found; p += strlen(p) + 1)
		found = !strncmp(p, PROCESS_TAG "=", strlen(PROCESS_TAG) + 1);
	free(env);
	return found;
}

/* The file system's, what agents started, and the SSH session that this agent and its file
 * transfers belong to. */
static bool is_own(const struct snapshot *s, const struct process *p, const json_t *pids)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)pids, i, v) if (json_integer_value(v) == p->pid) return true;
	for (int depth = 0; p && depth < 16; depth++, p = find(s, p->ppid))
		if (p->pid == getpid() || (p->pid == getppid() && p->pid != 1))
			return true;
		else if (depth == 0 && has_tag(p->pid))
			return true;
	return false;
}

struct heavy {
	const struct process *process;
	double cpu_s;
};

static void keep_heaviest(struct heavy *list, const struct process *p, double cpu_s)
{
	size_t i = HEAVIEST;

	while (i > 0 && list[i - 1].cpu_s < cpu_s)
		i--;
	if (i == HEAVIEST)
		return;
	memmove(&list[i + 1], &list[i], (HEAVIEST - i - 1) * sizeof(*list));
	list[i] = (struct heavy){p, cpu_s};
}

static json_t *pressures(const struct load *was, const struct load *is)
{
	static const char *const names[] = {
		[LOAD_CPU] = "cpu", [LOAD_IO] = "io", [LOAD_MEMORY] = "memory"};
	json_t *all = json_object();

	for (int i = 0; i < N_PRESSURES; i++)
		json_object_set_new(all, names[i],
			was->pressure_s[i] < 0 || is->pressure_s[i] < 0
				? json_null()
				: json_real(is->pressure_s[i] - was->pressure_s[i]));
	return all;
}

static json_t *difference(const struct snapshot *was, const struct snapshot *is, const json_t *pids)
{
	double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK),
	       seconds = is->load.at_s - was->load.at_s, own_s = 0;
	struct heavy heaviest[HEAVIEST] = {{0}};
	json_t *heavy = json_array();

	for (size_t i = 0; i < is->n; i++) {
		const struct process *p = &is->list[i], *before = find(was, p->pid);
		unsigned long long ticks = p->ticks;

		if (before && before->started == p->started)
			ticks -= before->ticks;
		if (!ticks || p->kernel)
			continue;
		if (is_own(is, p, pids))
			own_s += (double)ticks * tick_s;
		else
			keep_heaviest(heaviest, p, (double)ticks * tick_s);
	}
	for (size_t i = 0; i < HEAVIEST && heaviest[i].process; i++)
		if (heaviest[i].cpu_s > HEAVY_SHARE * seconds)
			json_array_append_new(heavy,
				json_pack("{s:i, s:o, s:f}", "pid", (int)heaviest[i].process->pid,
					"comm",
					text_json(heaviest[i].process->comm,
						strlen(heaviest[i].process->comm)),
					"cpu_s", heaviest[i].cpu_s));
	return json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:o, s:f, s:I, s:I, s:o}", "seconds",
		seconds, "cpus", (int)is->load.cpus, "busy_s", is->load.busy_s - was->load.busy_s,
		"own_s", own_s, "iowait_s", is->load.iowait_s - was->load.iowait_s, "steal_s",
		is->load.steal_s - was->load.steal_s, "pressure_s",
		pressures(&was->load, &is->load), "load1", is->load.load1, "memory_bytes",
		(json_int_t)is->load.memory_bytes, "available_bytes",
		(json_int_t)is->load.available_bytes, "heavy", heavy);
}

int op_load(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct snapshot now;
	int rc = take_snapshot(&now, e);

	if (rc)
		return rc;
	agent_answer(
		a, id, difference(last.list ? &last : &now, &now, json_object_get(args, "pids")));
	free(last.list);
	last = now;
	return 0;
}
