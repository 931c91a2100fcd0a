/* Logs that are made up call by call, and what the findings say of them. */
#ifndef CULPRIT_CI_TESTS_QUERY_PLANTED_H
#define CULPRIT_CI_TESTS_QUERY_PLANTED_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "ci/tests/scratch.h"
#include "harness/base/file.h"
#include "harness/judging/findings.h"

enum { PID = 50, FD = 7 };

#define START_NS 1700000000000000000 /* second 0 */

/* The thread that acts, the descriptor it uses, what a call takes, and the pause before it. */
static struct {
	uint32_t pid, tid;
	int fd;
	int64_t service_ns, pause_ns;
} who = {PID, PID, FD, 100, 1000};

static char path[128];
static struct log_writer *writer;
static struct stream_spec place; /* where the log at hand was recorded; zero: not known */
static uint64_t seq;
static int64_t now;

static inline void put(struct record r)
{
	struct err e;

	assert_int_equal(log_write(writer, &r, &e), 0);
}

static inline void begin_as(const char *name)
{
	struct err e;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	now = START_NS;
	seq = 0;
	assert_int_equal(log_writer_new(path, "test", &writer, &e), 0);
}

static inline void begin(void)
{
	begin_as("log");
}

static inline void end_log(void)
{
	struct err e;

	assert_int_equal(log_writer_end(writer, 0, &e), 0);
	writer = NULL;
}

/* The descriptor means this file from now on; 'first_ns' 0: it was not seen before. */
static inline void opened_on(const char *name, uint64_t device, uint64_t inode, int64_t first_ns)
{
	now += who.pause_ns;
	put((struct record){.type = RECORD_FD,
		.fd = {.start_ns = now,
			.pid = who.pid,
			.fd = who.fd,
			.open = true,
			.kind = FD_FILE,
			.path = name,
			.tag = {.device = device,
				.inode = inode,
				.first_ns = first_ns ? first_ns : now}}});
}

static inline void opened(const char *name, uint64_t inode)
{
	opened_on(name, 0x801, inode, 0);
}

static inline void named(const char *name)
{
	put((struct record){.type = RECORD_PROCESS,
		.process = {.start_ns = now,
			.pid = who.pid,
			.tid = who.tid,
			.what = PROCESS_NAME,
			.name = name}});
}

static inline void call(struct record_call c, const char *name)
{
	now += who.pause_ns;
	c.seq = ++seq;
	c.start_ns = now;
	c.service_ns = who.service_ns;
	c.pid = who.pid;
	c.tid = who.tid;
	c.nr = (uint32_t)call_number("x86_64", name);
	put((struct record){.type = RECORD_CALL, .call = c});
	now += who.service_ns;
}

static inline void moved(const char *name, int64_t offset, uint64_t count, int64_t result)
{
	call((struct record_call){.args = {(uint64_t)who.fd, 0x1000, count, (uint64_t)offset},
		     .result = result,
		     .offset = offset},
		name);
}

static inline void synced(void)
{
	call((struct record_call){.args = {(uint64_t)who.fd}, .offset = -1}, "fsync");
}

static inline void renamed(const char *from, const char *to)
{
	call((struct record_call){.path = from, .path2 = to, .offset = -1}, "rename");
}

struct found {
	int n;
	char name[64], text[1024], evidence[1024];
};

static inline int take(void *ctx, const struct finding *f, struct err *e)
{
	struct found *found = ctx;

	(void)e;
	found->n++;
	snprintf(found->name, sizeof(found->name), "%s", f->name);
	snprintf(found->text, sizeof(found->text), "%s", f->text);
	snprintf(found->evidence, sizeof(found->evidence), "%s", f->evidence ? f->evidence : "");
	return 0;
}

static inline int count(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	(void)n, (void)cells, (void)e;
	++*(int *)ctx;
	return 0;
}

/* Looks for all findings, or one; the evidence must be a query that shows something. */
static inline struct found search_in(const struct query_log *logs, size_t n, const char *name)
{
	const struct query_spec spec = {.logs = logs, .n_logs = n};
	struct found found = {0};
	int rows = 0;
	const struct query_sink sink = {.row = count, .ctx = &rows};
	struct err e = {.text = ""};
	struct query *q;

	assert_int_equal(query_new(&spec, &q, &e), 0);
	if (findings_search(q, name, take, &found, &e))
		fail_msg("%s", e.text);
	if (*found.evidence) {
		if (query_run(q, found.evidence, &sink, &e))
			fail_msg("%s", e.text);
		assert_true(rows > 0);
	}
	for (size_t i = 0; query_problem(q, i); i++)
		fail_msg("%s", query_problem(q, i));
	query_free(q);
	return found;
}

/* The same of the log at hand, which ends here. */
static inline struct found search_for(const char *name)
{
	const struct query_log log = {.path = path,
		.name = "log",
		.node = "s1",
		.spec = place,
		.in_attempt = true,
		.cell = 1,
		.attempt = 1,
		.start_ns = START_NS};

	if (writer)
		end_log();
	return search_in(&log, 1, name);
}

/* Exactly one finding, of this name, whose text holds 'words'. */
static inline void finds(const char *name, const char *words)
{
	struct found f = search_for(NULL);

	if (f.n != 1 || strcmp(f.name, name) != 0 || !strstr(f.text, words))
		fail_msg("%d findings; the last: %s: %s", f.n, f.name, f.text);
}

static inline void finds_nothing(void)
{
	struct found f = search_for(NULL);

	if (f.n)
		fail_msg("%s: %s", f.name, f.text);
}

static inline int setup(void **state)
{
	return make_dir(state) || setenv("XDG_CACHE_HOME", dir, 1);
}

#endif
