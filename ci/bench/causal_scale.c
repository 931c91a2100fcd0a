/*
 * Scale by simulation: causal_scale DIR RANKS CALLS writes the log of an application, in which each
 * rank writes to its own file, talks to its neighbours every 10 calls, and all meet in a barrier
 * (a tree of messages) every 1000; makes the application trace of it in its own process; opens
 * that. Prints what both took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/causal/causal.h"
#include "diag/record/calls.h"
#include "diag/record/log.h"
#include "harness/base/clock.h"

enum { NEIGHBOURS = 10, BARRIER = 1000, CPU_NS = 20000 };

static struct log_writer *w;
static int64_t now = 1700000000000000000;
static uint32_t ranks;
static uint64_t *cpu;

static void put(struct record *rec)
{
	struct err e;

	if (log_write(w, rec, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(3);
	}
}

static void descriptor(uint32_t rank, int fd, enum fd_kind kind, const char *path)
{
	struct record rec = {.type = RECORD_FD};

	rec.fd = (struct record_fd){.start_ns = now,
		.pid = rank + 1,
		.fd = fd,
		.open = true,
		.kind = kind,
		.path = path};
	put(&rec);
}

static void call(uint32_t rank, int nr, uint32_t fd, int64_t result, int64_t offset)
{
	struct record rec = {.type = RECORD_CALL};

	rec.call = (struct record_call){.start_ns = now += 100,
		.service_ns = 50000,
		.pid = rank + 1,
		.tid = rank + 1,
		.nr = (uint32_t)nr,
		.args = {fd, 0, (uint64_t)result, offset < 0 ? 0 : (uint64_t)offset},
		.result = result,
		.offset = offset,
		.timed = true,
		.cpu_ns = cpu[rank] += CPU_NS,
		.cpu_call_ns = 5000};
	cpu[rank] += 5000;
	put(&rec);
}

/* Descriptor 10: from the left neighbour, 11: to the right one; 12: from the children in the tree
 * to the parent, own end; 13: to the parent; 14: from the parent; 15 and 16: to the children. */
static void connect_all(void)
{
	char path[64];

	for (uint32_t r = 0; r < ranks; r++) {
		struct record rec = {.type = RECORD_PROCESS};

		rec.process = (struct record_process){.start_ns = now,
			.pid = r + 1,
			.tid = r + 1,
			.what = PROCESS_START,
			.name = "rank"};
		put(&rec);
		snprintf(path, sizeof(path), "/r/file%u", r);
		descriptor(r, 3, FD_FILE, path);
		for (int fd = 10; fd <= 16; fd++) {
			const uint32_t of[] = {(r + ranks - 1) % ranks, r, 0x100000 + r,
				0x100000 + (r - 1) / 2, 0x200000 + r, 0x200000 + 2 * r + 1,
				0x200000 + 2 * r + 2};

			snprintf(path, sizeof(path), "pipe:[%u]", of[fd - 10]);
			descriptor(r, fd, FD_PIPE, path);
		}
	}
}

static void barrier(int rd, int wr)
{
	for (uint32_t r = ranks; r-- > 0;) {
		for (uint32_t child = 2 * r + 1; child <= 2 * r + 2 && child < ranks; child++)
			call(r, rd, 12, 8, -1);
		if (r)
			call(r, wr, 13, 8, -1);
	}
	for (uint32_t r = 0; r < ranks; r++) {
		if (r)
			call(r, rd, 14, 8, -1);
		for (uint32_t child = 2 * r + 1; child <= 2 * r + 2 && child < ranks; child++)
			call(r, wr, 15 + child - 2 * r - 1, 8, -1);
	}
}

static void simulate(uint64_t calls)
{
	int rd = call_number("x86_64", "read"), wr = call_number("x86_64", "write"),
	    op = call_number("x86_64", "pwrite64");

	connect_all();
	for (uint64_t n = 1; n <= calls; n++) {
		for (uint32_t r = 0; r < ranks; r++)
			call(r, op, 3, 65536, (int64_t)n * 65536);
		for (uint32_t r = 0; r < ranks && n % NEIGHBOURS == 0; r++)
			call(r, wr, 11, 8, -1);
		for (uint32_t r = 0; r < ranks && n % NEIGHBOURS == 0; r++)
			call(r, rd, 10, 8, -1);
		if (n % BARRIER == 0)
			barrier(rd, wr);
	}
}

static int merge(const char *log, const char *out)
{
	struct causal_log one = {.path = log, .node = "", .root = "/r", .cwd = "/r"};
	struct causal_spec spec = {.logs = &one, .n_logs = 1, .comment = "simulated", .kernel = ""};
	struct causal_counts n;
	struct err e;

	if (!causal_make(out, &spec, &n, &e)) {
		printf("ranks=%u operations=%llu messages=%llu edges=%llu forced=%llu ", n.ranks,
			(unsigned long long)n.operations, (unsigned long long)n.messages,
			(unsigned long long)n.edges, (unsigned long long)n.forced);
		return 0;
	}
	fprintf(stderr, "%s\n", e.text);
	return 3;
}

static int open_it(const char *log, const char *out)
{
	struct app_trace *t;
	struct err e;

	(void)log;
	if (!app_open(out, &t, &e)) {
		app_free(t);
		return 0;
	}
	fprintf(stderr, "%s\n", e.text);
	return 3;
}

/* In its own process, whose memory is told. */
static int timed(const char *what, int (*fn)(const char *log, const char *out), const char *log,
	const char *out)
{
	double start = clock_mono_s();
	struct rusage u;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		status = fn(log, out);
		fflush(stdout);
		_exit(status);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) < 0 || status)
		return 3;
	printf("%s_s=%.1f %s_cpu_s=%.1f %s_mb=%ld ", what, clock_mono_s() - start, what,
		clock_rusage_s(&u), what, u.ru_maxrss / 1024);
	return 0;
}

int main(int argc, char **argv)
{
	char log[4096], out[4096];
	struct stat st;
	int rc;

	if (argc != 4 || (ranks = (uint32_t)atoi(argv[2])) < 2)
		return 2;
	snprintf(log, sizeof(log), "%s/log", argv[1]);
	snprintf(out, sizeof(out), "%s/trace", argv[1]);
	cpu = calloc(ranks, sizeof(*cpu));
	if (!cpu || log_writer_new(log, "ebpf", &w, NULL))
		return 3;
	log_writer_how(w, LOG_FLOW | LOG_CAUSAL);
	simulate(strtoull(argv[3], NULL, 10));
	if (log_writer_end(w, 0, NULL) || stat(log, &st))
		return 3;
	printf("log_mb=%lld ", (long long)st.st_size >> 20);
	rc = timed("merge", merge, log, out);
	if (!rc)
		rc = timed("open", open_it, log, out);
	if (!rc && !stat(out, &st))
		printf("trace_mb=%lld\n", (long long)st.st_size >> 20);
	free(cpu);
	return rc;
}
