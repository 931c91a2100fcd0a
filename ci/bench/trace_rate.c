/*
 * How fast trace logs are read: trace_rate DIR
 *
 * Makes a log as a busy file server's (4 threads; reads, writes, epoll, sockets) with a million
 * calls, one of flows with heads, and one ten times as long, then reads each in a process of its
 * own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "harness/base/clock.h"

static uint64_t rng = 88172645463325252u;

static uint64_t draw(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static void die(const struct err *e)
{
	fprintf(stderr, "trace_rate: %s\n", e->text);
	exit(1);
}

/* Where a connection is, and the header of a message. */
static void add_flow(struct record_call *c)
{
	static uint32_t positions[64];
	static uint8_t bytes[RECORD_HEAD];
	uint32_t *at = &positions[c->args[0]];

	if (c->nr != 19 && c->nr != 20)
		return;
	*at += (uint32_t)c->result;
	c->positioned = true;
	c->position = *at;
	for (size_t i = 0; i < sizeof(bytes); i += 8)
		memcpy(bytes + i, &(uint64_t){draw()}, 8);
	c->head = bytes;
	c->head_size = RECORD_HEAD;
}

static void make(const char *path, uint64_t n, bool flows)
{
	static const uint32_t calls[] = {232 /* epoll_wait */, 19 /* readv */, 17 /* pread64 */,
		18 /* pwrite64 */, 20 /* writev */};
	int64_t now = clock_real_ns();
	struct log_writer *w;
	struct err e;

	if (log_writer_new(path, "ptrace", &w, &e) < 0)
		die(&e);
	for (uint64_t i = 0; i < n; i++) {
		struct record rec = {.type = RECORD_CALL};
		struct record_call *c = &rec.call;

		now += 2000 + (int64_t)(draw() % 30000);
		*c = (struct record_call){
			.seq = i + 1,
			.start_ns = now,
			.service_ns = 1000 + (int64_t)(draw() % 2000000),
			.pid = 4000,
			.tid = 4000 + (uint32_t)(draw() % 4),
			.nr = calls[draw() % 5],
			.args = {5 + draw() % 20, 0x7f0000000000 + draw() % 16 * 131072, 131072,
				draw() % 4096 * 4096},
			.result = (int64_t)(draw() % 131072),
			.offset = -1,
		};
		if (flows)
			add_flow(c);
		if (log_write(w, &rec, &e) < 0)
			die(&e);
	}
	if (log_writer_end(w, 0, &e) < 0)
		die(&e);
}

/* In a child, so that its memory is its own. */
static void measure(const char *path, uint64_t n, const char *what)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct fdtable *fds = fdtable_new();
		const struct record *rec;
		struct log_reader *r;
		struct rusage use;
		uint64_t sum = 0;
		struct stat st;
		struct err e;
		double cpu_s;
		int rc;

		if (log_reader_new(path, &r, &e) < 0)
			die(&e);
		while ((rc = log_next(r, &rec, &e)) > 0) {
			fdtable_feed(fds, rec);
			if (rec->type == RECORD_CALL)
				sum += (uint64_t)rec->call.service_ns + rec->call.position;
		}
		if (rc < 0)
			die(&e);
		getrusage(RUSAGE_SELF, &use);
		stat(path, &st);
		cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			(double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
		printf("read %8llu calls%s: %5.2f million records/s of CPU, %4.1f bytes/record, "
		       "%ld KiB resident%s\n",
			(unsigned long long)n, what, (double)n / cpu_s / 1e6,
			(double)st.st_size / (double)n, use.ru_maxrss, sum ? "" : " (empty)");
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2)
		return 2;
	for (int i = 0; i < 3; i++) {
		uint64_t n = i == 2 ? 10000000 : 1000000;

		snprintf(path, sizeof(path), "%s/log-%llu", argv[1], (unsigned long long)n);
		make(path, n, i == 1);
		measure(path, n, i == 1 ? " with heads" : "");
		unlink(path);
	}
	return 0;
}
