/* The operations 'load', what the node has done since the last one and who did it, and 'cpu'. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "harness/agent/handle.h"
#include "harness/agent/ops.h"
#include "harness/base/load.h"
#include "harness/base/proc.h"

#define HEAVIEST 3
#define HEAVY_SHARE 0.02 /* of one processor: below it a process is not worth naming */

#define PF_KTHREAD 0x00200000

struct cpu_user {
	pid_t pid;
	struct procfs_stat st;
};

struct cpu_snapshot {
	struct load load;
	struct cpu_user *list; /* by pid */
	size_t n;
};

/* Of the last requests, without and with 'apart'. */
static struct cpu_snapshot last[2];

static int by_pid(const void *a, const void *b)
{
	const struct cpu_user *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int take_snapshot(struct cpu_snapshot *out, struct err *e)
{
	struct cpu_snapshot s = {0};
	auto_free struct cpu_user *list = NULL;
	auto_dir DIR *dir = NULL;
	size_t room = 0;
	int rc = load_read(&s.load, e);

	if (rc)
		return rc;
	dir = opendir("/proc");
	if (!dir)
		return err_errno(e, -errno, "cannot list '/proc'");
	for (pid_t pid; (pid = procfs_next(dir));) {
		struct cpu_user *more = list;

		if (s.n == room)
			more = realloc(list, (room += 512) * sizeof(*more));
		if (!more)
			return err_errno(e, -ENOMEM, "cannot list processes");
		list = more;
		list[s.n].pid = pid;
		s.n += procfs_stat(pid, 0, &list[s.n].st);
	}
	qsort(list, s.n, sizeof(*list), by_pid);
	s.list = AUTO_TAKE(list);
	*out = s;
	return 0;
}

static const struct cpu_user *ops_load_find(const struct cpu_snapshot *s, pid_t pid)
{
	const struct cpu_user key = {.pid = pid};

	return s->n ? bsearch(&key, s->list, s->n, sizeof(*s->list), by_pid) : NULL;
}

static bool has_tag(pid_t pid)
{
	auto_free char *env = NULL;
	size_t size;

	return !procfs_read(pid, "environ", &env, &size) && procfs_variable(env, size, PROCESS_TAG);
}

/* The file system's, what agents started, and the SSH session that this agent and its file
 * transfers belong to. */
static bool ops_load_is_own(
	const struct cpu_snapshot *s, const struct cpu_user *p, const json_t *pids)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)pids, i, v) {
		if (json_integer_value(v) == p->pid)
			return true;
	}
	if (has_tag(p->pid))
		return true;
	for (int depth = 0; p && depth < 16; depth++, p = ops_load_find(s, p->st.parent))
		if (p->pid == getpid() || (p->pid == getppid() && p->pid != 1))
			return true;
	return false;
}

struct heavy {
	const struct cpu_user *process;
	double cpu_s;
};

static void keep_heaviest(struct heavy *list, const struct cpu_user *p, double cpu_s)
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

static json_t *difference(
	const struct cpu_snapshot *was, const struct cpu_snapshot *is, const json_t *pids)
{
	double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK),
	       seconds = is->load.at_s - was->load.at_s, own_s = 0;
	struct heavy heaviest[HEAVIEST] = {{0}};
	json_t *heavy = json_array();

	for (size_t i = 0; i < is->n; i++) {
		const struct cpu_user *p = &is->list[i], *before = ops_load_find(was, p->pid);
		uint64_t ticks = p->st.user + p->st.system;

		if (before && before->st.start == p->st.start)
			ticks -= before->st.user + before->st.system;
		if (!ticks || p->st.flags & PF_KTHREAD)
			continue;
		if (ops_load_is_own(is, p, pids))
			own_s += (double)ticks * tick_s;
		else
			keep_heaviest(heaviest, p, (double)ticks * tick_s);
	}
	for (size_t i = 0; i < HEAVIEST && heaviest[i].process; i++)
		if (heaviest[i].cpu_s > HEAVY_SHARE * seconds)
			json_array_append_new(heavy,
				json_pack("{s:i, s:o, s:f}", "pid", (int)heaviest[i].process->pid,
					"comm",
					text_json(heaviest[i].process->st.comm,
						strlen(heaviest[i].process->st.comm)),
					"cpu_s", heaviest[i].cpu_s));
	return json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:o, s:f, s:I, s:I, s:o}", "seconds",
		seconds, "cpus", (int)is->load.cpus, "busy_s", is->load.busy_s - was->load.busy_s,
		"own_s", own_s, "iowait_s", is->load.iowait_s - was->load.iowait_s, "steal_s",
		is->load.steal_s - was->load.steal_s, "pressure_s",
		pressures(&was->load, &is->load), "load1", is->load.load1, "memory_bytes",
		(json_int_t)is->load.memory_bytes, "available_bytes",
		(json_int_t)is->load.available_bytes, "heavy", heavy);
}

/* Room where the agent keeps its journal, and tracers and programs what they write. */
static void add_room(json_t *result, const char *state)
{
	struct statvfs st;

	if (statvfs(state, &st) == 0)
		json_object_set_new(result, "state_bytes",
			json_integer((json_int_t)(st.f_bavail * st.f_frsize)));
	json_object_set_new(result, "state", text_json(state, strlen(state)));
}

int op_load(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct cpu_snapshot now, *was = &last[jget_true(args, "apart")];
	int rc = take_snapshot(&now, e);
	json_t *result;

	if (rc)
		return rc;
	result = difference(was->list ? was : &now, &now, jget(args, "pids"));
	add_room(result, a->state);
	agent_answer(a, id, result);
	free(was->list);
	*was = now;
	return 0;
}

/* Adds the processor time of a tracer and of the programs that it runs. */
static int add_tracer(const struct agent *a, const struct handle *h, double *sum, struct err *e)
{
	auto_free pid_t *pids = NULL;
	char tag[64];
	double cpu_s;
	int n;

	snprintf(tag, sizeof(tag), "%s/%s", a->session, h->name);
	n = proc_find_tagged(PROCESS_TAG, tag, false, &pids);
	for (int i = 0; i < n; i++)
		if (procfs_cpu(pids[i], &cpu_s))
			*sum += cpu_s;
	return n < 0 ? err_errno(e, n, "cannot look for the processes of %s", tag) : 0;
}

int op_cpu(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	double processes_s = 0, tracers_s = 0, cpu_s;
	const json_t *v;
	size_t i;
	int rc = 0;

	json_array_foreach(jget(args, "pids"), i, v) {
		if (!procfs_cpu((pid_t)json_integer_value(v), &cpu_s))
			return err_set(e, -ESRCH, "there is no process %lld",
				(long long)json_integer_value(v));
		processes_s += cpu_s;
	}
	for (const struct handle *h = a->handles; h && !rc; h = h->next)
		rc = h->kind == HANDLE_TRACE ? add_tracer(a, h, &tracers_s, e) : 0;
	if (!rc)
		agent_answer(a, id,
			json_pack(
				"{s:f, s:f}", "processes_s", processes_s, "tracers_s", tracers_s));
	return rc;
}
