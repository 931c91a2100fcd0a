/*
 * The in-kernel tracer.
 *
 * Programs on the tracepoints sys_enter and sys_exit see every system call of the machine. A thread
 * under trace is recognised by its task storage, so for all other threads a program ends after one
 * load. These tracepoints were chosen because kernels without kprobes, and kernels that refuse
 * fentry, have them, and because they need no list of functions. Enabling them has a cost for every
 * call on the machine, traced or not, which ci/bench/ebpf.sh measures.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "diag/capture/choice.h"
#include "diag/capture/control.h"
#include "diag/capture/ebpf/ebpf.h"
#include "diag/capture/ebpf/rings.h"
#include "diag/capture/launch.h"
#include "diag/record/log.h"
#include "ebpf.skel.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

enum {
	DEFAULT_MEMORY = 64 << 20,
	OTHER_MAPS = 4 << 20, /* limit of all maps except the rings */
	LEAST_RING = 1 << 14, /* holds the longest event three times */
	MOST_RING = 1 << 30,
	MOST_SUMS = 1 << 14,
	SOCKETS = 1 << 13,       /* that may be inside a message */
	FUSE_REQUESTS = 1 << 12, /* pending */
};

/* An event may be late in its ring by its program's run time after reading the clock. */
#define LATE_NS 2000000

struct ebpf {
	const struct trace_request *r;
	struct ebpf_bpf *skel;
	struct bpf_link *each_task;
	struct rings *rings;
	uint32_t ring_bytes;
	int cpus;
	struct ebpf_events *events;
	struct sums *sums; /* NULL in events mode */
	int64_t clock_ns;  /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	struct log_writer *log;
	struct control control;
	struct choice choice; /* in use */
	unsigned dumps;       /* files written on request */
	struct call_rule rules[RULES];
	pid_t child;
	int child_status;
	bool left;  /* the command was left on request */
	int failed; /* the log could not be written: 'err' */
	struct err err;
};

static struct refusal refusal;

static int keep_words(enum libbpf_print_level print_level, const char *format, va_list args)
{
	char *text = NULL;

	if (print_level == LIBBPF_WARN && vasprintf(&text, format, args) >= 0)
		refusal_add(&refusal, text);
	free(text);
	return 0;
}

/* Rings carry little in sums mode: the memory is for the sums. */
static uint32_t sum_entries(const struct trace_request *r, int cpus)
{
	uint64_t memory = r->memory_bytes ? r->memory_bytes : DEFAULT_MEMORY;
	uint64_t n = memory / 4 /
		(sizeof(struct sum_key) + 64 + sizeof(struct sum) * (uint64_t)cpus);

	return n < 64 ? 64 : n > MOST_SUMS ? MOST_SUMS : (uint32_t)n;
}

static uint32_t ring_size(const struct trace_request *r, int cpus)
{
	uint64_t memory = r->memory_bytes ? r->memory_bytes : DEFAULT_MEMORY;
	uint64_t size = LEAST_RING;

	if (r->mode == TRACE_SUMS)
		memory /= 4;
	memory -= memory > 2 * OTHER_MAPS ? OTHER_MAPS : memory / 2;
	while (size < MOST_RING && size * 2 * (uint64_t)cpus <= memory)
		size *= 2;
	return (uint32_t)size;
}

/* Runs the iterator program over all tasks. */
static int walk_tasks(struct ebpf *x, enum iter_mode mode, struct err *e)
{
	char ignored[64];
	ssize_t n;
	int fd;

	x->skel->bss->iter_mode = mode;
	fd = bpf_iter_create(bpf_link__fd(x->each_task));
	if (fd < 0)
		return err_errno(e, -errno, "cannot walk over the tasks");
	do
		n = read(fd, ignored, sizeof(ignored));
	while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	close(fd);
	return n < 0 ? err_errno(e, -errno, "cannot walk over the tasks") : 0;
}

/* From now on the programs record the calls selected by 'c'. They use the old filter or the new
 * one, never a mix. */
static int set_filter(struct ebpf *x, const struct choice *c, struct err *e)
{
	uint32_t at = x->skel->bss->filter_at + 1;
	int rc = filter_fill(c, true, &x->skel->bss->filters[at & 1], e);

	if (rc)
		return rc;
	x->choice = *c;
	__atomic_store_n(&x->skel->bss->filter_at, at, __ATOMIC_SEQ_CST);
	return 0;
}

/* The request's selection, with its paths. */
static int first_choice(struct ebpf *x, struct err *e)
{
	const struct trace_filter *f = &x->r->filter;

	if (f->choice)
		x->choice = *f->choice;
	if (x->r->mode == TRACE_SUMS && (x->choice.calls || x->choice.n_clients))
		return err_set(e, -EINVAL,
			"sums cannot be chosen by kind of call or by client; events and flow can");
	if (f->n_paths > CHOICE_PATHS)
		return err_set(e, -EINVAL, "more than %d paths to filter by", CHOICE_PATHS);
	for (size_t i = 0; i < f->n_paths; i++) {
		if (strlen(f->paths[i]) >= CHOICE_PATH)
			return err_set(e, -EINVAL,
				"a path to filter by must be shorter than %d bytes", CHOICE_PATH);
		strcpy(x->choice.paths[x->choice.n_paths++], f->paths[i]);
	}
	x->skel->rodata->filters_on = x->r->control_fd || !choice_is_all(&x->choice);
	return filter_fill(&x->choice, x->r->control_fd, &x->skel->bss->filters[0], e);
}

/* Does the kernel, with the types 'kernel', or its module (may be NULL) have this tracepoint? */
static bool has_tracepoint(struct btf *kernel, const char *name, const char *module)
{
	struct btf *own = NULL;
	char type[64];
	bool found;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	found = kernel && btf__find_by_name_kind(kernel, type, BTF_KIND_TYPEDEF) > 0;
	if (kernel && !found && module) {
		own = btf__load_module_btf(module, kernel);
		found = own && btf__find_by_name_kind(own, type, BTF_KIND_TYPEDEF) > 0;
		btf__free(own);
	}
	return found;
}

/* io_uring has its own tracepoints, which kernels may lack. */
static void follow_rings(struct ebpf *x, struct btf *kernel)
{
	bool there = has_tracepoint(kernel, "io_uring_submit_req", NULL) &&
		has_tracepoint(kernel, "io_uring_complete", NULL);

	bpf_program__set_autoload(x->skel->progs.on_ring_submit, there);
	bpf_program__set_autoload(x->skel->progs.on_ring_complete, there);
	for (uint32_t nr = 0; there && nr < RULES; nr++)
		if (x->rules[nr].action == ACT_RING)
			x->rules[nr].action = ACT_NONE;
}

/* Enables the additional programs of a log of flows, and names of threads, which sums do not
 * need. */
static void follow_flows(struct ebpf *x, struct btf *kernel)
{
	bool flow = x->r->mode == TRACE_FLOW, fuse = false, ends = false;

	x->skel->rodata->flow = flow;
	x->skel->rodata->heads = flow && x->r->heads;
	x->skel->rodata->causal = flow && x->r->causal;
	bpf_program__set_autoload(x->skel->progs.on_switch, flow && x->r->causal);
	if (flow) {
		fuse = has_tracepoint(kernel, "fuse_request_send", "fuse");
		ends = has_tracepoint(kernel, "fuse_request_end", "fuse");
		bpf_map__set_max_entries(x->skel->maps.fuse_requests, FUSE_REQUESTS);
	}
	if (flow && !fuse)
		fprintf(stderr,
			"culprit-agent trace: this kernel does not show requests to FUSE "
			"mounts (Linux 6.10 does, once the module fuse is loaded)\n");
	bpf_program__set_autoload(x->skel->progs.on_fuse_send, fuse);
	bpf_program__set_autoload(x->skel->progs.on_fuse_end, fuse && ends);
	bpf_program__set_autoload(x->skel->progs.on_rename,
		x->r->mode != TRACE_SUMS && has_tracepoint(kernel, "task_rename", NULL));
}

/* Finds out which tracepoints the kernel has. Its types are megabytes, so they are read once for
 * all. */
static void follow_what_is_there(struct ebpf *x)
{
	struct btf *kernel = btf__load_vmlinux_btf();

	follow_rings(x, kernel);
	follow_flows(x, kernel);
	btf__free(kernel);
}

/* The life of the programs: prepared (opened, constants set), loaded (verified by the kernel, maps
 * made; not running), attached (running for every call), detached, closed. */
static int ebpf_prepare(struct ebpf *x, struct err *e)
{
	const struct trace_request *r = x->r;
	struct ebpf_bpf *skel;

	libbpf_set_print(keep_words);
	x->cpus = libbpf_num_possible_cpus();
	if (x->cpus <= 0)
		return err_set(e, -EOPNOTSUPP, "cannot count the CPUs");
	x->ring_bytes = ring_size(r, x->cpus);
	skel = x->skel = ebpf_bpf__open();
	if (!skel)
		return err_errno(e, -EOPNOTSUPP, "cannot open the programs");
	rules_fill(r, x->rules);
	follow_what_is_there(x);
	memcpy((void *)skel->rodata->rules, x->rules, sizeof(x->rules));
	rules_async((uint16_t *)skel->rodata->async_calls);
	skel->rodata->sums = r->mode == TRACE_SUMS;
	skel->rodata->has_cgroup = r->filter.cgroup != NULL;
	skel->rodata->has_tids = r->filter.n_tids > 0;
	skel->rodata->call_room = x->ring_bytes - x->ring_bytes / 8;
	skel->rodata->wake_at = x->ring_bytes / 4;
	bpf_map__set_max_entries(skel->maps.rings, (uint32_t)x->cpus);
	if (r->mode == TRACE_SUMS) {
		skel->rodata->bulk_above = r->bulk_above;
		skel->rodata->bulk_header = r->bulk_header;
		bpf_map__set_max_entries(skel->maps.described, 1);
		bpf_map__set_max_entries(skel->maps.second_sums, sum_entries(r, x->cpus));
		bpf_map__set_max_entries(skel->maps.messages, SOCKETS);
		bpf_map__set_max_entries(skel->maps.pollers, SOCKETS);
	}
	return first_choice(x, e);
}

static int ebpf_load(struct ebpf *x, struct err *e)
{
	int rc;

	/* Looking for tracepoints that a kernel may lack has left warnings. */
	refusal = (struct refusal){0};
	rc = ebpf_bpf__load(x->skel);
	if (rc < 0)
		return refusal_say(&refusal, rc, e);
	if (rings_new(bpf_map__fd(x->skel->maps.rings), x->cpus, x->ring_bytes, &x->rings, e) < 0)
		return -EOPNOTSUPP;
	return 0;
}

static int ebpf_attach(struct ebpf *x, struct err *e)
{
	x->each_task = bpf_program__attach_iter(x->skel->progs.each_task, NULL);
	if (!x->each_task)
		return err_errno(e, -EOPNOTSUPP, "the kernel has no eBPF iterator over tasks");
	if (walk_tasks(x, ITER_LEARN, e) < 0)
		return -EOPNOTSUPP;
	if (ebpf_bpf__attach(x->skel) < 0)
		return err_set(e, -EOPNOTSUPP, "cannot attach to the kernel's tracepoints (%s)",
			refusal.first);
	return 0;
}

static int add_numbers(
	const struct bpf_map *map, const pid_t *numbers, size_t n, uint32_t value, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t key = (uint32_t)numbers[i];

		if (bpf_map_update_elem(bpf_map__fd(map), &key, &value, 0) < 0)
			return err_errno(
				e, -errno, "cannot tell the kernel about process %d", numbers[i]);
	}
	return 0;
}

static int set_cgroup(struct ebpf *x, const char *path, struct err *e)
{
	uint32_t zero = 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	struct statfs fs;

	if (fd < 0)
		return err_errno(e, -errno, "cannot open the cgroup '%s'", path);
	if (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		rc = err_set(e, -EINVAL, "'%s' is not a cgroup (v2)", path);
	else if (bpf_map_update_elem(bpf_map__fd(x->skel->maps.cgroups), &zero, &fd, 0) < 0)
		rc = err_errno(e, -errno, "cannot record the cgroup '%s'", path);
	close(fd);
	return rc;
}

static int ebpf_compare(const void *a, const void *b)
{
	uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;

	return p < q ? -1 : p > q;
}

static void do_nothing(void)
{
	for (int i = 0; i < BIAS_CALLS; i++)
		syscall(SYS_getppid);
}

/* Median service time of a call that does nothing, under this tracer; 0 if it cannot be
 * measured. */
static int64_t measure_bias_ns(struct ebpf *x)
{
	const struct bpf_map *targets = x->skel->maps.targets;
	uint64_t ns[BIAS_CALLS];
	struct launch l;

	if (launch_fork(&l, NULL, do_nothing, NULL) < 0)
		goto out;
	if (add_numbers(targets, &l.pid, 1, TARGET_BIAS, NULL) == 0 &&
		walk_tasks(x, ITER_ATTACH, NULL) == 0)
		launch_go(&l, NULL);
	else
		kill(l.pid, SIGKILL);
	waitpid(l.pid, NULL, 0);
	bpf_map_delete_elem(bpf_map__fd(targets), &l.pid);
out:
	launch_close(&l);
	if (x->skel->bss->n_bias < BIAS_CALLS)
		return 0;
	memcpy(ns, x->skel->bss->bias_ns, sizeof(ns));
	qsort(ns, BIAS_CALLS, sizeof(ns[0]), ebpf_compare);
	return (int64_t)ns[BIAS_CALLS / 2];
}

/* Ends pending asynchronous operations of a process (0: of all) without a result. */
static void end_asyncs(struct ebpf *x, uint32_t pid, int64_t now_ns)
{
	int fd = bpf_map__fd(x->skel->maps.asyncs);
	struct async_key key, next;
	struct async_op op;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;

	while (more) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (bpf_map_lookup_elem(fd, &key, &op) < 0)
			continue;
		/* Another program may have begun its own under that number by now. */
		if (pid && (op.pid != pid || (int64_t)op.start_ns + x->clock_ns > now_ns))
			continue;
		bpf_map_delete_elem(fd, &key);
		if (!x->sums)
			events_async(x->events, &op, now_ns);
	}
}

static void write_record(void *ctx, struct record *rec)
{
	struct ebpf *x = ctx;

	bool process_end = rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXIT &&
		rec->process.pid == rec->process.tid;

	/* Before the process's record, after which its descriptors are gone. */
	if (process_end || (rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXEC))
		end_asyncs(x, rec->process.pid, rec->process.start_ns);
	/* Its other threads were judged by the old name. */
	if (rec->type == RECORD_PROCESS && rec->process.what == PROCESS_NAME && x->choice.n_names)
		__atomic_fetch_add(&x->skel->bss->filter_at, 2, __ATOMIC_SEQ_CST);
	if (x->sums && process_end)
		sums_end_messages(x->sums, rec->process.pid, x->clock_ns);
	if (!x->failed)
		x->failed = log_write(x->log, rec, &x->err);
}

static void set_clock(struct ebpf *x)
{
	x->clock_ns = clock_real_ahead_ns();
	x->skel->bss->clock_ns = x->clock_ns;
	events_clock(x->events, x->clock_ns);
}

static void drain(struct ebpf *x, uint64_t until_ns)
{
	const struct ev *ev;
	uint32_t size;

	while (!x->failed && (ev = rings_next(x->rings, until_ns, &size)))
		if (events_feed(x->events, ev, size) < 0)
			x->failed = err_set(&x->err, -ENOMEM, "out of memory");
	rings_release(x->rings);
}

static void read_sums(struct ebpf *x, int64_t now_ns)
{
	if (sums_read(x->sums, now_ns) < 0 && !x->failed)
		x->failed = err_set(&x->err, -ENOMEM, "out of memory");
}

static void write_unseen(struct ebpf *x)
{
	uint64_t totals[UNSEEN_COUNT] = {[UNSEEN_CHANGES] = events_corrected(x->events)};

	_Static_assert((int)NOT_RINGS == UNSEEN_RINGS && (int)NOT_REQUESTS == UNSEEN_REQUESTS &&
			(int)NOT_MAPPINGS == UNSEEN_MAPPINGS && (int)NOT_FOREIGN == UNSEEN_FOREIGN,
		"the programs count in the order of the records");
	for (size_t i = 0; i < UNSEEN_KINDS; i++)
		totals[i] = x->skel->bss->unseen[i];
	if (!x->failed)
		x->failed = log_unseen(x->log, totals, &x->err);
}

static bool is_process(pid_t pid)
{
	char path[32], *text, *at;
	bool yes;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (file_read(path, &text, NULL, NULL) < 0)
		return false;
	at = strstr(text, "\nTgid:");
	yes = at && strtol(at + 6, NULL, 10) == pid;
	free(text);
	return yes;
}

/* Adds earlier descendants of the processes. */
static int add_descendants(struct ebpf *x, const pid_t *pids, size_t n, struct err *e)
{
	auto_free struct proc_id *below = NULL;
	int found = proc_descendants(pids, n, &below), rc = 0;

	if (found < 0)
		return err_errno(e, found, "cannot look for the descendants of the processes");
	for (int i = 0; i < found && !rc; i++)
		rc = add_numbers(x->skel->maps.targets, &below[i].pid, 1, 0, e);
	return rc;
}

static int follow_pids(struct ebpf *x, struct err *e)
{
	const struct trace_request *r = x->r;
	auto_free pid_t *pids = calloc(r->n_pids, sizeof(*pids));
	uint64_t before;
	size_t n = 0;
	int rc;

	if (!pids)
		return err_errno(e, -ENOMEM, "cannot follow processes");
	for (size_t i = 0; i < r->n_pids; i++) {
		if (is_process(r->pids[i]))
			pids[n++] = r->pids[i];
		else if (!r->skip_ended || (i + 1 == r->n_pids && !n))
			return err_set(e, -ESRCH, "there is no process %d", r->pids[i]);
	}
	rc = add_numbers(x->skel->maps.targets, pids, n, 0, e);
	/* Until a pass finds nothing new: a thread or process may have been started by one that was
	 * not attached yet. */
	do {
		before = x->skel->bss->started;
		if (rc == 0 && !r->no_descendants)
			rc = add_descendants(x, pids, n, e);
		if (rc == 0)
			rc = walk_tasks(x, ITER_ATTACH, e);
	} while (rc == 0 && x->skel->bss->started != before);
	if (rc == 0)
		rc = walk_tasks(x, ITER_DESCRIBE, e);
	x->skel->bss->recording = true;
	return rc;
}

static int follow_command(struct ebpf *x, struct err *e)
{
	struct launch l;
	int rc = launch_fork(&l, x->r->command, NULL, e);

	x->child = l.pid;
	x->skel->bss->recording = true;
	if (rc == 0)
		rc = add_numbers(x->skel->maps.targets, &l.pid, 1, TARGET_COMMAND, e);
	if (rc == 0)
		rc = walk_tasks(x, ITER_ATTACH, e);
	if (rc == 0)
		rc = launch_go(&l, e);
	launch_close(&l);
	if (rc < 0 && l.pid)
		waitpid(l.pid, NULL, 0);
	return rc;
}

/* Writes the contents of the ring into a separate file. A failure does not end the capture. */
static int dump(struct ebpf *x, struct err *e)
{
	auto_free char *path = NULL;
	int rc;

	if (!x->r->ring_ns)
		return err_set(
			e, -EINVAL, "there is no ring to write: start the capture with --ring");
	if (asprintf(&path, "%s.%u", x->r->out, x->dumps + 1) < 0) {
		path = NULL;
		return err_errno(e, -ENOMEM, "cannot write the ring");
	}
	drain(x, (uint64_t)clock_ns(CLOCK_MONOTONIC));
	rc = log_writer_dump(x->log, path, e);
	x->dumps += rc == 0;
	return rc;
}

/* Marks in the log what is recorded from now on, after the calls recorded before. */
static int mark(struct ebpf *x, struct err *e)
{
	auto_free char *chosen = choice_is_all(&x->choice) ? strdup("") : choice_text(&x->choice);
	auto_free char *text = NULL;
	struct record rec = {.type = RECORD_MARK, .mark = {.start_ns = clock_real_ns()}};

	if (!chosen ||
		asprintf(&text, "%s%s%s", x->skel->bss->recording ? "on" : "off",
			*chosen ? " filter " : "", chosen) < 0) {
		text = NULL;
		return err_errno(e, -ENOMEM, "cannot mark the change in the log");
	}
	drain(x, (uint64_t)clock_ns(CLOCK_MONOTONIC));
	rec.mark.text = text;
	write_record(x, &rec);
	return 0;
}

static int obey_filter(struct ebpf *x, const char *words, struct err *e)
{
	struct choice c;
	int rc = choice_parse(words, &c, e);

	if (!rc && x->sums && (c.calls || c.n_clients))
		rc = err_set(e, -EINVAL, "sums cannot be chosen by kind of call or by client");
	return rc ?: set_filter(x, &c, e);
}

static int obey(struct ebpf *x, const char *line, struct err *e)
{
	int rc = 0;

	if (!strcmp(line, "write"))
		return dump(x, e);
	if (!strncmp(line, "filter ", 7))
		rc = obey_filter(x, line + 7, e);
	else if (!strcmp(line, "on") || !strcmp(line, "off"))
		x->skel->bss->recording = !strcmp(line, "on");
	else
		rc = err_set(e, -EINVAL, "control lines are on, off, write and filter ...");
	return rc ?: mark(x, e);
}

static void take_orders(struct ebpf *x)
{
	const char *line;
	struct err e;

	if (trace_take_write() && dump(x, &e) < 0)
		trace_complain(0, e.text);
	while ((line = control_line(&x->control))) {
		bool done = obey(x, line, &e) == 0;

		control_answer(&x->control, done ? "" : "error: ", done ? line : e.text);
	}
}

/* Runs until all processes have ended, a signal says stop, or the log fails. */
static void ebpf_run(struct ebpf *x)
{
	const volatile uint64_t *live = &x->skel->bss->live;
	int stop;

	while (*live && !x->failed) {
		if (!rings_filled(x->rings, x->ring_bytes / 4))
			rings_wait(x->rings, 1000);
		drain(x, (uint64_t)clock_ns(CLOCK_MONOTONIC) - LATE_NS);
		stop = trace_take_stop();
		x->left = stop == TRACE_LEAVE;
		if (x->left || (stop && !x->r->command))
			break;
		if (stop > 0)
			trace_pass_stop(x->child, stop, false);
		take_orders(x);
		if (trace_take_tick() && !x->failed) {
			set_clock(x);
			if (x->sums)
				read_sums(x, clock_real_ns());
			write_unseen(x);
			if (!x->failed)
				x->failed = log_flush(x->log, &x->err);
		}
	}
}

/* Detaches the programs; calls that threads are inside of are recorded as unfinished. Returns the
 * total loss. */
static uint64_t detach(struct ebpf *x)
{
	struct account accounts[x->cpus];
	uint32_t zero = 0;
	uint64_t lost = 0;
	struct err e;

	ebpf_bpf__detach(x->skel);
	/* Waits until no program is running. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	if (x->skel->bss->live && walk_tasks(x, ITER_LEAVE, &e) < 0 && !x->failed) {
		x->failed = -EIO;
		x->err = e;
	}
	drain(x, UINT64_MAX);
	events_end(x->events);
	end_asyncs(x, 0, clock_real_ns());
	write_unseen(x);
	if (x->skel->bss->unseen[NOT_RINGS])
		fprintf(stderr,
			"culprit-agent trace: %llu calls of io_uring_enter: this kernel does not "
			"show the reads and writes of io_uring\n",
			(unsigned long long)x->skel->bss->unseen[NOT_RINGS]);
	if (x->sums) {
		sums_end_messages(x->sums, 0, x->clock_ns);
		read_sums(x, INT64_MAX);
	}
	if (bpf_map_lookup_elem(bpf_map__fd(x->skel->maps.accounts), &zero, accounts) == 0)
		for (int cpu = 0; cpu < x->cpus; cpu++) {
			lost += accounts[cpu].lost;
			if (accounts[cpu].pending)
				events_lost(x->events, (uint32_t)cpu, accounts[cpu].pending,
					(uint64_t)clock_ns(CLOCK_MONOTONIC));
		}
	if (x->skel->bss->missed && !x->failed)
		x->failed = err_set(&x->err, -ENOMEM,
			"%llu threads could not be traced: the kernel had no memory for them",
			(unsigned long long)x->skel->bss->missed);
	return lost;
}

static void ebpf_close_all(struct ebpf *x)
{
	log_writer_free(x->log);
	ebpf_events_free(x->events);
	sums_free(x->sums);
	rings_free(x->rings);
	bpf_link__destroy(x->each_task);
	ebpf_bpf__destroy(x->skel);
}

static int ebpf_start(struct ebpf *x, struct err *e)
{
	const struct trace_filter *f = &x->r->filter;
	int rc = add_numbers(x->skel->maps.tids, f->tids, f->n_tids, 0, e);

	if (rc == 0)
		rc = x->r->command ? follow_command(x, e) : follow_pids(x, e);
	return rc;
}

static struct sums *new_sums(struct ebpf *x)
{
	const struct sums_spec spec = {.sums_fd = bpf_map__fd(x->skel->maps.second_sums),
		.messages_fd = bpf_map__fd(x->skel->maps.messages),
		.pollers_fd = bpf_map__fd(x->skel->maps.pollers),
		.cpus = x->cpus,
		.bulk_above = x->r->bulk_above,
		.bulk_header = x->r->bulk_header,
		.fn = write_record,
		.ctx = x};

	return sums_new(&spec);
}

int ebpf_trace(const struct trace_request *r, struct err *why)
{
	static const enum log_how how[] = {
		[TRACE_EVENTS] = LOG_EVENTS, [TRACE_SUMS] = LOG_SUMS, [TRACE_FLOW] = LOG_FLOW};
	struct ebpf x = {.r = r, .control = {.fd = r->control_fd}};
	uint64_t lost;
	struct err e;
	int rc, code = 0;

	rc = ebpf_prepare(&x, why);
	if (rc == 0)
		rc = ebpf_load(&x, why);
	if (rc == 0)
		rc = ebpf_attach(&x, why);
	if (rc == 0 && r->filter.cgroup)
		rc = set_cgroup(&x, r->filter.cgroup, why);
	if (rc < 0) {
		ebpf_close_all(&x);
		return rc == -EOPNOTSUPP ? rc : trace_complain(TRACE_EXIT_USAGE, why->text);
	}
	rc = log_writer_new(r->out, "ebpf", &x.log, &e);
	if (rc < 0) {
		code = trace_complain(TRACE_EXIT_USAGE, e.text);
		goto out;
	}
	log_writer_bound(x.log, r->bound_bytes);
	log_writer_bias(x.log, measure_bias_ns(&x));
	log_writer_how(x.log,
		(uint32_t)how[r->mode] | (r->heads && r->mode == TRACE_FLOW ? LOG_HEADS : 0) |
			(r->causal && r->mode == TRACE_FLOW ? LOG_CAUSAL : 0));
	if (r->ring_ns)
		rc = log_writer_keep(x.log, r->ring_ns, r->ring_bytes, &e);
	if (rc == 0)
		/* writes the head, so the file is a log even if the tracer dies */
		rc = log_flush(x.log, &e);
	x.events = ebpf_events_new(x.rules, write_record, &x);
	if (r->mode == TRACE_SUMS)
		x.sums = new_sums(&x);
	if (rc < 0 || !x.events || (r->mode == TRACE_SUMS && !x.sums)) {
		code = trace_complain(TRACE_EXIT_NOT_WHOLE, rc < 0 ? e.text : "out of memory");
		goto out;
	}
	set_clock(&x);
	trace_signals();
	rc = ebpf_start(&x, &e);
	if (rc < 0) {
		unlink(r->out);
		code = trace_complain(
			r->command ? TRACE_EXIT_NO_PROGRAM : TRACE_EXIT_USAGE, e.text);
		goto out;
	}
	if (!choice_is_all(&x.choice))
		x.failed = mark(&x, &x.err);
	trace_ready(r);
	ebpf_run(&x);
	lost = detach(&x);
	if (r->command) {
		while (waitpid(x.child, &x.child_status, x.left ? WNOHANG : 0) < 0 &&
			errno == EINTR)
			;
		code = trace_exit_code(x.child_status);
	}
	if (!x.failed) {
		x.failed = log_writer_end(x.log, lost, &x.err);
		x.log = NULL;
	}
	if (x.failed)
		code = trace_complain(TRACE_EXIT_NOT_WHOLE, x.err.text);
out:
	ebpf_close_all(&x);
	return code;
}
