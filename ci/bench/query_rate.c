/*
 * How fast a log is asked on one core: records a second of whole scans, and the time of questions
 * that the zone index narrows. Processor time, so that other programs do not count.
 *
 *     query_rate FILE RECORDS [make]
 *
 * writes FILE, a log of a database: 33 threads that read and write 40 files, one of which is opened
 * anew now and then, and ask what is done every million records. It stays, and is used again. With
 * 'make' nothing is asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "diag/query/query.h"
#include "diag/query/scan.h"
#include "harness/base/clock.h"

enum { PID = 100, THREADS = 33, FILES = 40, STEP_NS = 2000, RARE = 1000000 };

static const int64_t first_ns = 1700000000000000000;

static void fail(const struct err *e)
{
	fprintf(stderr, "query_rate: %s\n", e->text);
	exit(1);
}

static double cpu_s(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static void open_file(struct log_writer *log, int fd, int64_t now)
{
	struct record r = {.type = RECORD_FD};
	char path[64];
	struct err e;

	snprintf(path, sizeof(path), "/srv/db/%06lld.sst", (long long)(now / 1000 % 1000000));
	r.fd = (struct record_fd){.start_ns = now,
		.pid = PID,
		.fd = fd,
		.open = true,
		.kind = FD_FILE,
		.path = path,
		.tag = {0x801, (uint64_t)(now / 1000), now}};
	if (log_write(log, &r, &e))
		fail(&e);
}

static void make_log(const char *path, uint64_t records)
{
	const uint32_t pread64 = (uint32_t)call_number("x86_64", "pread64"),
		       pwrite64 = (uint32_t)call_number("x86_64", "pwrite64"),
		       futex = (uint32_t)call_number("x86_64", "futex"),
		       fsync = (uint32_t)call_number("x86_64", "fsync");
	int64_t now = first_ns;
	struct log_writer *log;
	struct err e;

	if (log_writer_new(path, "bench", &log, &e))
		fail(&e);
	for (int fd = 0; fd < FILES; fd++)
		open_file(log, fd, now++);
	for (uint64_t i = 0; i < records; i++) {
		struct record r = {.type = RECORD_CALL};
		const uint64_t x = i * 0x9e3779b97f4a7c15u >> 20;

		now += STEP_NS;
		if (i % 50000 == 0)
			open_file(log, (int)(x % FILES), now);
		r.call.seq = i;
		r.call.service_ns = 500 + (int64_t)(x % 40000);
		r.call.start_ns = now - r.call.service_ns;
		r.call.pid = PID;
		r.call.tid = PID + (uint32_t)(x >> 8) % THREADS;
		r.call.nr = i % RARE == RARE / 2 ? fsync
			: x % 4 == 0             ? futex
			: x % 4 == 1             ? pwrite64
						 : pread64;
		r.call.args[0] = (x >> 16) % FILES;
		r.call.args[1] = 0x7f687c010000 + (x & 0xf000);
		r.call.args[2] = 4096;
		r.call.args[3] = (x >> 4 & 0xfffff) * 4096;
		r.call.result = r.call.nr == futex || r.call.nr == fsync ? 0 : 4096;
		r.call.offset = r.call.result ? (int64_t)r.call.args[3] : -1;
		if (log_write(log, &r, &e))
			fail(&e);
	}
	if (log_writer_end(log, 0, &e))
		fail(&e);
}

static int count(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	(void)n, (void)cells, (void)e;
	++*(uint64_t *)ctx;
	return 0;
}

static double ask(const char *path, bool index, const char *sql, uint64_t *rows)
{
	const struct query_log log = {.path = path, .name = path};
	const struct query_spec spec = {.logs = &log, .n_logs = 1, .no_index = !index};
	const struct query_sink sink = {.row = count, .ctx = rows};
	double took = -cpu_s();
	struct query *q;
	struct err e;

	*rows = 0;
	if (query_new(&spec, &q, &e) || query_run(q, sql, &sink, &e))
		fail(&e);
	query_free(q);
	return took + cpu_s();
}

/* Decoding alone: what a reader of the log takes, without SQL and with all of each call. */
static double read_all(const char *path, bool brief)
{
	const struct record *rec;
	struct log_reader *r;
	double took = -cpu_s();
	struct err e;
	int rc;

	if (log_reader_new(path, &r, &e))
		fail(&e);
	log_reader_detail(r, brief ? LOG_BRIEF : LOG_WHOLE);
	while ((rc = log_next(r, &rec, &e)) == 1)
		;
	if (rc)
		fail(&e);
	log_reader_free(r);
	return took + cpu_s();
}

int main(int argc, char **argv)
{
	static const struct {
		bool index;
		const char *sql, *what;
	} asked[] = {
		{false, "select count(*) from events where service_ns > 1000000000",
			"scan, a condition that nothing fulfils"},
		{false, "select count(*) from events where call = 'fsync'", "scan, rare calls"},
		{false, "select count(*) from events", "scan, all rows counted"},
		{false, "select call, count(*), sum(bytes) from events group by call",
			"scan, grouped by call"},
		{false, "select call, sum(calls), sum(bytes) from totals group by call",
			"scan, summed by call"},
		{false, "select second, thread, sum(bytes) from totals group by 1, 2",
			"scan, summed by second and thread"},
		{false, "select path, sum(bytes) from totals group by path",
			"scan, summed by path"},
		{true, "select count(*) from events where call = 'fsync'",
			"index is made, rare calls"},
		{true, "select time_ns, thread, path from events where call = 'fsync'",
			"index, rare calls with their paths"},
		{true,
			"select call, path, count(*) from events where time_ns between "
			"1700000010000000000 and 1700000010100000000 group by 1, 2",
			"index, 0.1 s with paths"},
	};
	uint64_t records, rows;
	double took;

	if (argc != 3 && !(argc == 4 && !strcmp(argv[3], "make"))) {
		fprintf(stderr, "usage: query_rate FILE RECORDS [make]\n");
		return 2;
	}
	records = strtoull(argv[2], NULL, 10);
	if (access(argv[1], F_OK))
		make_log(argv[1], records);
	if (argc == 4)
		return 0;
	for (int brief = 0; brief < 2; brief++) {
		took = read_all(argv[1], brief);
		printf("%-44s %8.3f s  %6.1f million records/s\n",
			brief ? "reader, without arguments" : "reader", took,
			(double)records / took / 1e6);
	}
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		took = ask(argv[1], asked[i].index, asked[i].sql, &rows);
		printf("%-44s %8.3f s  %6.1f million records/s, %llu rows\n", asked[i].what, took,
			(double)records / took / 1e6, (unsigned long long)rows);
	}
	return 0;
}
