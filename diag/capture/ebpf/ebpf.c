/*
 * The in-kernel tracer.
 *
 * Programs on the tracepoints sys_enter and sys_exit see every system call of the machine; a thread
 * under trace is known by its task storage, so that for all others a program is over after one
 * load. They were chosen because kernels without kprobes and with fentry refused have them, and
 * because they need no list of functions. What switching these two tracepoints on costs every call
 * on the machine, traced or not, is measured by ci/bench/ebpf.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "diag/capture/ebpf/ebpf.h"
#include "diag/capture/ebpf/rings.h"
#include "diag/capture/launch.h"
#include "diag/record/log.h"
#include "ebpf.skel.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

enum {
	DEFAULT_MEMORY = 64 << 20,
	OTHER_MAPS = 4 << 20, /* what all maps but the rings may take */
	LEAST_RING = 1 << 14, /* holds the longest event thrice */
	MOST_RING = 1 << 30,
	MOST_SUMS = 1 << 14,
	SOCKETS = 1 << 13, /* that may be in the midst of a message */
};

/* An event may be late in its ring by what its program takes after having read the clock. */
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
	struct call_rule rules[RULES];
	pid_t child;
	int child_status;
	int failed; /* the log could not be written: 'err' */
	struct err err;
};

static char last_words[256];

/* The first thing that libbpf complains about is the cause; the rest follows from it. */
static int keep_words(enum libbpf_print_level print_level, const char *format, va_list args)
{
	if (print_level == LIBBPF_WARN && !*last_words) {
		vsnprintf(last_words, sizeof(last_words), format, args);
		last_words[strcspn(last_words, "\n")] = '\0';
	}
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

/* Runs the program over all tasks. */
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

static int set_prefixes(struct ebpf *x, struct err *e)
{
	const struct trace_filter *f = &x->r->filter;
	struct stat st;

	if (f->n_paths > PREFIXES)
		return err_set(e, -EINVAL, "more than %d paths to filter by", PREFIXES);
	for (size_t i = 0; i < f->n_paths; i++) {
		struct prefix *p = (struct prefix *)&x->skel->rodata->prefixes[i];

		if (stat(f->paths[i], &st) < 0)
			return err_errno(e, -errno, "cannot filter by '%s'", f->paths[i]);
		p->ino = st.st_ino;
		p->dev = major(st.st_dev) << 20 | minor(st.st_dev);
		p->size = (uint32_t)strlen(f->paths[i]);
		while (p->size && f->paths[i][p->size - 1] == '/')
			p->size--;
		if (p->size >= PREFIX_MAX)
			return err_set(e, -EINVAL, "a path to filter by is shorter than %d bytes",
				PREFIX_MAX);
		memcpy((char *)x->skel->rodata->prefix_text[i], f->paths[i], p->size);
	}
	x->skel->rodata->n_prefixes = (uint32_t)f->n_paths;
	return 0;
}

/* The life of the programs: prepared (opened, their constants set), loaded (verified by the kernel,
 * their maps made; nothing runs), attached (they run for every call), detached, closed. */
static int prepare(struct ebpf *x, struct err *e)
{
	const struct trace_request *r = x->r;
	struct ebpf_bpf *skel;

	*last_words = '\0';
	libbpf_set_print(keep_words);
	x->cpus = libbpf_num_possible_cpus();
	if (x->cpus <= 0)
		return err_set(e, -EOPNOTSUPP, "cannot count the CPUs");
	x->ring_bytes = ring_size(r, x->cpus);
	skel = x->skel = ebpf_bpf__open();
	if (!skel)
		return err_errno(e, -EOPNOTSUPP, "cannot open the programs");
	rules_fill(r, x->rules);
	memcpy((void *)skel->rodata->rules, x->rules, sizeof(x->rules));
	skel->rodata->sums = r->mode == TRACE_SUMS;
	skel->rodata->has_cgroup = r->filter.cgroup != NULL;
	skel->rodata->has_tids = r->filter.n_tids > 0;
	skel->rodata->call_room = x->ring_bytes - x->ring_bytes / 8;
	skel->rodata->wake_at = x->ring_bytes / 4;
	bpf_map__set_max_entries(skel->maps.rings, (uint32_t)x->cpus);
	if (r->mode == TRACE_SUMS) {
		bpf_map__set_max_entries(skel->maps.second_sums, sum_entries(r, x->cpus));
		bpf_map__set_max_entries(skel->maps.messages, SOCKETS);
		bpf_map__set_max_entries(skel->maps.pollers, SOCKETS);
	}
	return set_prefixes(x, e);
}

static int load(struct ebpf *x, struct err *e)
{
	int rc = ebpf_bpf__load(x->skel);

	if (rc < 0)
		return err_set(e, -EOPNOTSUPP,
			"the kernel does not allow eBPF to this user (%s%s%s)", strerror(-rc),
			*last_words ? "; " : "", last_words);
	if (rings_new(bpf_map__fd(x->skel->maps.rings), x->cpus, x->ring_bytes, &x->rings, e) < 0)
		return -EOPNOTSUPP;
	return 0;
}

static int attach(struct ebpf *x, struct err *e)
{
	x->each_task = bpf_program__attach_iter(x->skel->progs.each_task, NULL);
	if (!x->each_task)
		return err_errno(e, -EOPNOTSUPP, "the kernel has no eBPF iterator over tasks");
	if (walk_tasks(x, ITER_LEARN, e) < 0)
		return -EOPNOTSUPP;
	if (ebpf_bpf__attach(x->skel) < 0)
		return err_set(e, -EOPNOTSUPP, "cannot attach to the kernel's tracepoints (%s)",
			last_words);
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

	if (fd < 0)
		return err_errno(e, -errno, "cannot open the cgroup '%s'", path);
	if (bpf_map_update_elem(bpf_map__fd(x->skel->maps.cgroups), &zero, &fd, 0) < 0)
		rc = err_errno(e, -errno, "'%s' is no cgroup (v2)", path);
	close(fd);
	return rc;
}

static int compare(const void *a, const void *b)
{
	uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;

	return p < q ? -1 : p > q;
}

static void do_nothing(void)
{
	for (int i = 0; i < BIAS_CALLS; i++)
		syscall(SYS_getppid);
}

/* Median service time of a call that does nothing, traced as here; 0 if it cannot be measured. */
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
	qsort(ns, BIAS_CALLS, sizeof(ns[0]), compare);
	return (int64_t)ns[BIAS_CALLS / 2];
}

static void write_record(void *ctx, struct record *rec)
{
	struct ebpf *x = ctx;

	bool process_end = rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXIT &&
		rec->process.pid == rec->process.tid;

	/* Before its record: with that its descriptors mean nothing any more. */
	if (x->sums && process_end)
		sums_end_messages(x->sums, rec->process.pid, x->clock_ns);
	if (!x->failed)
		x->failed = log_write(x->log, rec, &x->err);
}

static void set_clock(struct ebpf *x)
{
	x->clock_ns = clock_real_ns() - clock_ns(CLOCK_MONOTONIC);
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

static int follow_pids(struct ebpf *x, struct err *e)
{
	const struct trace_request *r = x->r;
	uint64_t before;
	int rc;

	for (size_t i = 0; i < r->n_pids; i++)
		if (!is_process(r->pids[i]))
			return err_set(e, -ESRCH, "there is no process %d", r->pids[i]);
	rc = add_numbers(x->skel->maps.targets, r->pids, r->n_pids, 0, e);
	/* Until a pass finds nothing new: threads may have been started by one that was not
	 * attached yet. */
	do {
		before = x->skel->bss->started;
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

/* Until all have ended, a signal says stop, or the log fails. */
static void run(struct ebpf *x)
{
	const volatile uint64_t *live = &x->skel->bss->live;
	int stop;

	while (*live && !x->failed) {
		if (!rings_filled(x->rings, x->ring_bytes / 4))
			rings_wait(x->rings, 1000);
		drain(x, (uint64_t)clock_ns(CLOCK_MONOTONIC) - LATE_NS);
		stop = trace_take_stop();
		if (stop && !x->r->command)
			break;
		if (stop > 0)
			kill(x->child, stop);
		if (trace_take_tick() && !x->failed) {
			set_clock(x);
			if (x->sums)
				read_sums(x, clock_real_ns());
			if (!x->failed)
				x->failed = log_flush(x->log, &x->err);
		}
	}
}

/* Takes the programs off; what threads are inside of is recorded as such. Returns what was lost in
 * all. */
static uint64_t detach(struct ebpf *x)
{
	struct account accounts[x->cpus];
	uint32_t zero = 0;
	uint64_t lost = 0;
	struct err e;

	ebpf_bpf__detach(x->skel);
	/* Until no program runs any more. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	if (x->skel->bss->live && walk_tasks(x, ITER_LEAVE, &e) < 0 && !x->failed) {
		x->failed = -EIO;
		x->err = e;
	}
	drain(x, UINT64_MAX);
	events_end(x->events);
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

static void close_all(struct ebpf *x)
{
	log_writer_free(x->log);
	events_free(x->events);
	sums_free(x->sums);
	rings_free(x->rings);
	bpf_link__destroy(x->each_task);
	ebpf_bpf__destroy(x->skel);
}

static int start(struct ebpf *x, struct err *e)
{
	const struct trace_filter *f = &x->r->filter;
	int rc = 0;

	if (f->cgroup)
		rc = set_cgroup(x, f->cgroup, e);
	if (rc == 0)
		rc = add_numbers(x->skel->maps.tids, f->tids, f->n_tids, 0, e);
	if (rc == 0)
		rc = x->r->command ? follow_command(x, e) : follow_pids(x, e);
	return rc;
}

int ebpf_trace(const struct trace_request *r, struct err *why)
{
	struct ebpf x = {.r = r};
	uint64_t lost;
	struct err e;
	int rc, code = 0;

	rc = prepare(&x, why);
	if (rc == 0)
		rc = load(&x, why);
	if (rc == 0)
		rc = attach(&x, why);
	if (rc < 0) {
		close_all(&x);
		return rc == -EOPNOTSUPP ? rc : trace_complain(TRACE_EXIT_USAGE, why->text);
	}
	rc = log_writer_new(r->out, "ebpf", &x.log, &e);
	if (rc < 0) {
		code = trace_complain(TRACE_EXIT_USAGE, e.text);
		goto out;
	}
	log_writer_bias(x.log, measure_bias_ns(&x));
	rc = log_flush(x.log, &e); /* the head: a log from now on, whatever becomes of us */
	x.events = events_new(x.rules, write_record, &x);
	if (r->mode == TRACE_SUMS)
		x.sums = sums_new(bpf_map__fd(x.skel->maps.second_sums),
			bpf_map__fd(x.skel->maps.messages), bpf_map__fd(x.skel->maps.pollers),
			x.cpus, write_record, &x);
	if (rc < 0 || !x.events || (r->mode == TRACE_SUMS && !x.sums)) {
		code = trace_complain(TRACE_EXIT_NOT_WHOLE, rc < 0 ? e.text : "out of memory");
		goto out;
	}
	set_clock(&x);
	trace_signals();
	rc = start(&x, &e);
	if (rc < 0) {
		unlink(r->out);
		code = trace_complain(
			r->command ? TRACE_EXIT_NO_PROGRAM : TRACE_EXIT_USAGE, e.text);
		goto out;
	}
	trace_ready(r);
	run(&x);
	lost = detach(&x);
	if (r->command) {
		while (waitpid(x.child, &x.child_status, 0) < 0 && errno == EINTR)
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
	close_all(&x);
	return code;
}
