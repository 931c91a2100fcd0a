/* Tests application traces of made-up logs: edges, operations, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "diag/causal/causal.h"
#include "diag/record/calls.h"
#include "diag/record/log.h"

static char log_path[128], trace_path[128];
static struct log_writer *w;
static int64_t now;
static uint32_t on_tid; /* of the next call; 0: the process's first thread */
static uint64_t lost;
static struct causal_counts counts;

static void begin(uint32_t how)
{
	unlink(log_path);
	assert_int_equal(log_writer_new(log_path, "ebpf", &w, NULL), 0);
	log_writer_how(w, how);
	now = 1700000000000000000;
	on_tid = 0;
	lost = 0;
}

static void put(struct record *rec)
{
	assert_int_equal(log_write(w, rec, NULL), 0);
}

static void process(uint32_t pid, uint32_t tid, uint32_t parent, int what)
{
	struct record rec = {.type = RECORD_PROCESS};

	rec.process = (struct record_process){.start_ns = now += 1000,
		.pid = pid,
		.tid = tid,
		.parent = parent,
		.what = what,
		.name = "app"};
	put(&rec);
}

static void fd(uint32_t pid, int n, enum fd_kind kind, const char *path, uint64_t peer)
{
	struct record rec = {.type = RECORD_FD};

	rec.fd = (struct record_fd){.start_ns = now,
		.pid = pid,
		.fd = n,
		.open = path,
		.kind = kind,
		.path = path ? path : "",
		.peer = peer};
	rec.fd.local.ss_family = kind == FD_SOCKET ? AF_UNIX : AF_UNSPEC;
	put(&rec);
}

static void call_at(uint32_t pid, const char *name, int64_t result, uint64_t a, uint64_t b,
	uint64_t c, uint64_t d, const char *path, const char *path2)
{
	struct record rec = {.type = RECORD_CALL};

	rec.call = (struct record_call){.start_ns = now += 1000,
		.service_ns = 500,
		.pid = pid,
		.tid = on_tid ? on_tid : pid,
		.nr = (uint32_t)call_number("x86_64", name),
		.args = {a, b, c, d},
		.result = result,
		.offset = -1,
		.timed = true,
		.path = path,
		.path2 = path2};
	put(&rec);
}

static void call(uint32_t pid, const char *name, int64_t result, uint64_t a, uint64_t b)
{
	call_at(pid, name, result, a, b, 0, 0, NULL, NULL);
}

static void op(uint32_t pid)
{
	call_at(pid, "unlink", -ENOENT, 0, 0, 0, 0, "/r/x", NULL);
}

static struct app_trace *made(void)
{
	static const struct causal_log one = {
		.path = log_path, .node = "", .root = "/r", .cwd = "/r"};
	static const struct causal_spec spec = {
		.logs = &one, .n_logs = 1, .comment = "", .kernel = ""};
	struct app_trace *t;
	struct err e = {.text = ""};

	assert_int_equal(log_writer_end(w, lost, NULL), 0);
	if (causal_make(trace_path, &spec, &counts, &e) || app_open(trace_path, &t, &e))
		fail_msg("%s", e.text);
	return t;
}

static void text_is(const char *want)
{
	struct app_trace *t = made();
	char *text, *out, *line, *save;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(app_print(t, UINT32_MAX, f, NULL), 0);
	fclose(f);
	app_free(t);
	/* For each operation its number and what it waited for. */
	out = calloc(1, size + 1);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strchr(line, ' ');

		if (*line < '0' || *line > '9')
			continue;
		strncat(out, line, (size_t)(space - line));
		for (char *at = line; (at = strstr(at, " after="));) {
			size_t n = strcspn(at + 7, " ");

			strcat(out, "<");
			strncat(out, at + 7, n);
			at += 7;
		}
		strcat(out, "\n");
	}
	assert_string_equal(out, want);
	free(out);
	free(text);
}

static void forks_and_waits_are_edges(void **state)
{
	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	op(1);
	process(2, 2, 1, PROCESS_START);
	op(2); /* the child's call is recorded before its parent's fork has returned */
	call(1, "clone", 2, 0, 0);
	op(1);
	op(2);
	process(2, 2, 0, PROCESS_EXIT);
	call(1, "wait4", 2, 2, 0);
	op(1);
	text_is("0.0:1\n0.0:2\n0.0:3<1.0:2\n1.0:1<0.0:1\n1.0:2\n");
}

static void threads_are_joined(void **state)
{
	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	op(1);
	process(1, 7, 0, PROCESS_START);
	call(1, "clone3", 7, 0, 0);
	on_tid = 7;
	op(1);
	process(1, 7, 0, PROCESS_EXIT);
	on_tid = 0;
	call_at(1, "futex", 0, 0x1000, FUTEX_WAIT, 7, 0, NULL, NULL);
	op(1);
	text_is("0.0:1\n0.0:2<0.1:1\n0.1:1<0.0:1\n");
}

static void futex_wakes_are_edges(void **state)
{
	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	process(1, 7, 0, PROCESS_START);
	op(1);
	on_tid = 7;
	call_at(1, "futex", 0, 0x1000, FUTEX_WAIT, 0, 0, NULL, NULL);
	op(1);
	on_tid = 0;
	call_at(1, "futex", 1, 0x1000, FUTEX_WAKE, 1, 0, NULL, NULL); /* returns later */
	op(1);
	text_is("0.0:1\n0.0:2\n0.1:1<0.0:1\n");
}

static void chain(void)
{
	begin(LOG_FLOW | LOG_CAUSAL);
	for (uint32_t p = 1; p <= 3; p++) {
		process(p, p, 0, PROCESS_START);
		fd(p, 3, FD_PIPE, "pipe:[1]", 0);
		fd(p, 4, FD_PIPE, "pipe:[2]", 0);
		fd(p, 5, FD_PIPE, "pipe:[3]", 0);
	}
}

static void implied_edges_are_left_out(void **state)
{
	(void)state;
	chain();
	op(1);
	call(1, "write", 1, 3, 0); /* to 2 */
	call(1, "write", 1, 4, 0); /* to 3 */
	call(2, "read", 1, 3, 0);
	op(2);
	call(2, "write", 1, 5, 0); /* to 3 */
	call(3, "read", 1, 4, 0);
	call(3, "read", 1, 5, 0);
	op(3);
	op(3);
	text_is("0.0:1\n1.0:1<0.0:1\n2.0:1<1.0:1\n2.0:2\n");
}

static void edges_pass_through_processes_without_operations(void **state)
{
	(void)state;
	chain();
	op(1);
	call(1, "write", 1, 3, 0);
	call(2, "read", 1, 3, 0);
	call(2, "write", 1, 4, 0);
	call(3, "read", 1, 4, 0);
	op(3);
	text_is("0.0:1\n1.0:1<0.0:1\n");
}

static void connections_before_the_first_call_make_no_edges(void **state)
{
	(void)state;
	chain();
	call(1, "write", 1, 3, 0);
	call(2, "read", 1, 3, 0);
	call(2, "write", 1, 4, 0);
	call(1, "read", 1, 4, 0);
	op(1);
	op(2);
	text_is("0.0:1\n1.0:1\n");
}

/* A sending call may return after the receiving one. */
static void sends_that_return_after_the_receive_count(void **state)
{
	(void)state;
	chain();
	op(1);
	call(2, "read", 2, 3, 0);
	op(2);
	call(2, "write", 1, 4, 0);
	call(1, "write", 1, 3, 0);
	call(1, "write", 4, 3, 0);
	call(1, "read", 1, 4, 0);
	op(1);
	text_is("0.0:1\n0.0:2<1.0:1\n1.0:1<0.0:1\n");
}

static void untraced_senders_are_not_waited_for(void **state)
{
	(void)state;
	chain();
	op(1);
	call(1, "read", 5, 3, 0); /* no traced process wrote it */
	call(2, "read", 9, 4, 0);
	op(2);
	call(2, "write", 3, 4, 0);
	op(1);
	text_is("0.0:1\n0.0:2\n1.0:1\n");
}

static void unix_sockets_are_matched_by_their_peers(void **state)
{
	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	process(2, 2, 0, PROCESS_START);
	fd(1, 3, FD_SOCKET, "socket:[10]", 0); /* connected, not accepted */
	op(1);
	call(1, "sendto", 8, 3, 0);
	fd(2, 9, FD_SOCKET, "socket:[20]", 10); /* accepted */
	call(2, "recvfrom", 8, 9, 0);
	op(2);
	call(2, "write", 2, 9, 0);
	call(1, "read", 2, 3, 0);
	op(1);
	text_is("0.0:1\n0.0:2<1.0:1\n1.0:1<0.0:1\n");
}

static void tcp(uint32_t pid, const char *name, int64_t result, uint32_t position)
{
	struct record rec = {.type = RECORD_CALL};

	rec.call = (struct record_call){.start_ns = now += 1000,
		.pid = pid,
		.tid = pid,
		.nr = (uint32_t)call_number("x86_64", name),
		.args = {3},
		.result = result,
		.offset = -1,
		.positioned = true,
		.position = position,
		.timed = true};
	put(&rec);
}

static void tcp_socket(uint32_t pid, uint16_t own, uint16_t other)
{
	struct record rec = {.type = RECORD_FD};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	rec.fd = (struct record_fd){.start_ns = now,
		.pid = pid,
		.fd = 3,
		.open = true,
		.kind = FD_SOCKET,
		.path = "socket:[1]",
		.sock_type = SOCK_STREAM};
	a.sin_port = htons(own);
	memcpy(&rec.fd.local, &a, sizeof(a));
	a.sin_port = htons(other);
	memcpy(&rec.fd.remote, &a, sizeof(a));
	put(&rec);
}

static void positions_may_wrap(void **state)
{
	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	process(2, 2, 0, PROCESS_START);
	tcp_socket(1, 1, 2);
	tcp_socket(2, 2, 1);
	op(1);
	tcp(1, "sendto", 16, UINT32_MAX - 3);
	op(1);
	tcp(1, "sendto", 16, 12);
	tcp(2, "recvfrom", 16, UINT32_MAX - 3);
	op(2);
	tcp(2, "recvfrom", 6, 2);
	op(2);
	text_is("0.0:1\n0.0:2\n1.0:1<0.0:1\n1.0:2<0.0:2\n");
}

static void calls_become_operations(void **state)
{
	struct app_trace *t;
	char *text;
	size_t size;
	FILE *f;

	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	fd(1, 0, FD_FILE, "/r/in", 0);
	call_at(1, "openat", 3, (uint64_t)AT_FDCWD, 0, O_RDWR | O_CREAT, 0600, "sub/../new", NULL);
	fd(1, 3, FD_FILE, "/r/new", 0);
	call_at(1, "openat", 4, (uint64_t)AT_FDCWD, 0, O_RDONLY, 0, "/etc/hosts", NULL);
	fd(1, 4, FD_FILE, "/etc/hosts", 0);
	call_at(1, "read", 9, 4, 0, 9, 0, NULL, NULL);
	call_at(1, "pwrite64", 5, 3, 0, 10, 100, NULL, NULL);
	call(1, "dup", 5, 3, 0);
	fd(1, 5, FD_FILE, "/r/new", 0);
	call(1, "close", 0, 3, 0); /* another descriptor of the handle is open */
	fd(1, 3, FD_FILE, NULL, 0);
	call(1, "fsync", 0, 5, 0);
	call_at(1, "read", 7, 0, 0, 8, 0, NULL, NULL);
	call(1, "close", 0, 5, 0);
	fd(1, 5, FD_FILE, NULL, 0);
	call_at(1, "rename", 0, 0, 0, 0, 0, "new", "./old");
	call_at(1, "unlinkat", 0, (uint64_t)AT_FDCWD, 0, AT_REMOVEDIR, 0, "/r//d", NULL);
	call_at(1, "stat", 0, 0, 0, 0, 0, "/r/", NULL); /* the root itself: not captured */
	call_at(1, "open", -EACCES, 0, O_RDONLY, 0, 0, "/r/no", NULL);
	t = made();
	f = open_memstream(&text, &size);
	assert_int_equal(app_print(t, 0, f, NULL), 0);
	fclose(f);
	assert_non_null(strstr(text, "open(\"new\", handle=2, flags=0x42, mode=0600) = 0"));
	assert_non_null(strstr(text, "pwrite(\"new\", handle=2, size=10) = 5"));
	assert_non_null(strstr(text, "fsync(\"new\", handle=2) = 0"));
	assert_non_null(strstr(text, "read(\"in\", handle=1, size=8) = 7"));
	assert_non_null(strstr(text, "close(\"new\", handle=2) = 0"));
	assert_non_null(strstr(text, "rename(\"new\", \"old\") = 0"));
	assert_non_null(strstr(text, "rmdir(\"d\") = 0"));
	assert_non_null(strstr(text, "open(\"no\", flags=0x0) = -13"));
	assert_int_equal(app_n_ops(t), 8);
	assert_true(app_handle(t, 1)->before);
	assert_false(app_handle(t, 2)->before);
	free(text);
	app_free(t);
}

static void map_something(uint32_t pid, int what)
{
	if (what < 2)
		call_at(pid, "mmap", 4096, 0, 4096, PROT_READ | PROT_WRITE,
			what ? MAP_SHARED : MAP_PRIVATE, NULL, NULL);
	else
		call_at(pid, "shmat", 4096, 7, 0, what == 2 ? 0 : SHM_RDONLY, 0, NULL, NULL);
}

static void shared_memory_is_reported(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		bool shared = what == 1 || what == 2;
		struct app_trace *t;

		begin(LOG_FLOW | LOG_CAUSAL);
		for (uint32_t p = 1; p <= 2; p++) {
			process(p, p, 0, PROCESS_START);
			fd(p, 0, FD_FILE, "/dev/shm/segment", 0); /* mmap's fifth argument is 0 */
			op(p);
			map_something(p, what);
		}
		t = made();
		assert_int_equal(app_about(t)->shared_memory, shared);
		assert_int_equal(counts.sharing, shared ? 2 : 0);
		assert_int_equal(counts.alone, shared ? 2 : 0);
		app_free(t);
	}
}

/* Three processes share memory; messages show that one waits for another. */
static void ranks_that_share_memory_without_edges_are_counted(void **state)
{
	struct app_trace *t;

	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	for (uint32_t p = 1; p <= 3; p++) {
		process(p, p, 0, PROCESS_START);
		fd(p, 0, FD_FILE, "/dev/shm/segment", 0);
		map_something(p, 1);
		fd(p, 3, FD_PIPE, "pipe:[1]", 0);
		op(p);
	}
	call(1, "write", 1, 3, 0);
	call(2, "read", 1, 3, 0);
	op(2);
	t = made();
	assert_int_equal(counts.edges, 1);
	assert_int_equal(counts.sharing, 3);
	assert_int_equal(counts.alone, 1);
	app_free(t);
}

static void refused(const char *why)
{
	static const struct causal_log one = {
		.path = log_path, .node = "", .root = "/r", .cwd = "/r"};
	static const struct causal_spec spec = {
		.logs = &one, .n_logs = 1, .comment = "", .kernel = ""};
	struct err e = {.text = ""};

	assert_int_equal(log_writer_end(w, lost, NULL), 0);
	unlink(trace_path);
	assert_true(causal_make(trace_path, &spec, &counts, &e) < 0);
	if (!strstr(e.text, why))
		fail_msg("%s", e.text);
	assert_int_equal(access(trace_path, F_OK), -1);
}

static void incomplete_logs_are_refused(void **state)
{
	(void)state;
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	refused("made no call on a file below '/r'");
	begin(LOG_FLOW | LOG_CAUSAL);
	process(1, 1, 0, PROCESS_START);
	op(1);
	lost = 3;
	refused("the tracer lost 3 records");
	begin(LOG_FLOW);
	process(1, 1, 0, PROCESS_START);
	op(1);
	refused("has no processor times");
}

static int prepare(void **state)
{
	int rc = make_dir(state);

	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", dir);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forks_and_waits_are_edges),
		cmocka_unit_test(threads_are_joined),
		cmocka_unit_test(futex_wakes_are_edges),
		cmocka_unit_test(implied_edges_are_left_out),
		cmocka_unit_test(edges_pass_through_processes_without_operations),
		cmocka_unit_test(connections_before_the_first_call_make_no_edges),
		cmocka_unit_test(sends_that_return_after_the_receive_count),
		cmocka_unit_test(untraced_senders_are_not_waited_for),
		cmocka_unit_test(unix_sockets_are_matched_by_their_peers),
		cmocka_unit_test(positions_may_wrap),
		cmocka_unit_test(calls_become_operations),
		cmocka_unit_test(shared_memory_is_reported),
		cmocka_unit_test(ranks_that_share_memory_without_edges_are_counted),
		cmocka_unit_test(incomplete_logs_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, remove_dir);
}
