/* Tests application traces of several nodes, from made-up logs: clocks do not count, numbers are
 * separate for each node, and processes that a launcher started belong to the application or
 * not. */
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
#include <netinet/in.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "diag/causal/causal.h"
#include "diag/record/calls.h"
#include "diag/record/log.h"

#define HOUR INT64_C(3600000000000)

static char paths[2][96], trace_path[96];
static struct causal_log logs[2];
static struct causal_counts counts;
static struct log_writer *w;
static int64_t now;
static size_t n_logs;
static const uint8_t salt[APP_SALT] = "salt";

/* Starts the next log; its node's clock is 'ahead' of the offset given for it. */
static void begin(const char *node, const char *address, bool launcher, int64_t ahead)
{
	struct causal_log *l = &logs[n_logs];

	if (w)
		assert_int_equal(log_writer_end(w, 0, NULL), 0);
	unlink(paths[n_logs]);
	assert_int_equal(log_writer_new(paths[n_logs], "ebpf", &w, NULL), 0);
	log_writer_how(w, LOG_FLOW | LOG_CAUSAL);
	*l = (struct causal_log){.path = paths[n_logs],
		.node = node,
		.root = *node == 'a' ? "/r" : "/other/r",
		.cwd = "/",
		.address = address,
		.launcher = launcher};
	n_logs++;
	now = 1700000000000000000 + ahead;
}

static void put(struct record *rec)
{
	assert_int_equal(log_write(w, rec, NULL), 0);
}

static void process(uint32_t pid, uint32_t parent, int what)
{
	struct record rec = {.type = RECORD_PROCESS};

	rec.process = (struct record_process){.start_ns = now += 1000,
		.pid = pid,
		.tid = pid,
		.parent = parent,
		.what = what,
		.name = "app"};
	put(&rec);
}

static void set(struct sockaddr_storage *out, const char *address, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, address, &in->sin_addr), 1);
}

/* Makes descriptor 'n' a connection. */
static void tcp(uint32_t pid, int n, const char *own, uint16_t own_port, const char *other,
	uint16_t other_port)
{
	struct record rec = {.type = RECORD_FD};

	rec.fd = (struct record_fd){.start_ns = now,
		.pid = pid,
		.fd = n,
		.open = true,
		.kind = FD_SOCKET,
		.sock_type = SOCK_STREAM,
		.path = "socket:[7]"};
	set(&rec.fd.local, own, own_port);
	set(&rec.fd.remote, other, other_port);
	put(&rec);
}

static void pipe_end(uint32_t pid, int n)
{
	struct record rec = {.type = RECORD_FD};

	rec.fd = (struct record_fd){.start_ns = now,
		.pid = pid,
		.fd = n,
		.open = true,
		.kind = FD_PIPE,
		.path = "pipe:[7]"};
	put(&rec);
}

/* Ten bytes, up to 'position'; 0: of a pipe. */
static void move(uint32_t pid, const char *name, int n, uint32_t position)
{
	struct record rec = {.type = RECORD_CALL};

	rec.call = (struct record_call){.start_ns = now += 1000,
		.service_ns = 500,
		.pid = pid,
		.tid = pid,
		.nr = (uint32_t)call_number("x86_64", name),
		.result = 10,
		.offset = -1,
		.positioned = position,
		.position = position,
		.timed = true};
	rec.call.args[0] = (uint64_t)n;
	rec.call.args[2] = 10;
	put(&rec);
}

/* An operation on the file 'name' below the root. */
static void op(uint32_t pid, const char *name)
{
	struct record rec = {.type = RECORD_CALL};
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", logs[n_logs - 1].root, name);
	rec.call = (struct record_call){.start_ns = now += 1000,
		.service_ns = 500,
		.pid = pid,
		.tid = pid,
		.nr = (uint32_t)call_number("x86_64", "unlink"),
		.result = -ENOENT,
		.offset = -1,
		.timed = true,
		.path = path};
	put(&rec);
}

/* For each rank its node and operations; in "a: x y<0:2\n", y waits for rank 0's second
 * operation. */
static void is(const char *want, const uint8_t *with)
{
	const struct causal_spec spec = {
		.logs = logs, .n_logs = n_logs, .comment = "", .kernel = "", .salt = with};
	struct err e = {.text = ""};
	struct app_cursor *c;
	struct app_trace *t;
	struct app_op one;
	char got[512] = "";
	size_t n = 0;

	assert_int_equal(log_writer_end(w, 0, NULL), 0);
	w = NULL;
	if (causal_make(trace_path, &spec, &counts, &e) || app_open(trace_path, &t, &e))
		fail_msg("%s", e.text);
	n_logs = 0;
	for (uint32_t i = 0; i < app_n_threads(t); i++) {
		n += (size_t)sprintf(got + n, "%s:", app_rank(t, app_thread(t, i)->rank)->node);
		assert_int_equal(app_cursor_new(t, i, &c), 0);
		while (app_next(c, &one, &e) > 0) {
			n += (size_t)sprintf(
				got + n, " %s", with ? "-" : app_file(t, one.file)->path);
			for (uint32_t k = 0; k < one.n_edges; k++)
				n += (size_t)sprintf(got + n, "<%u:%u", one.edges[k].thread,
					(unsigned)one.edges[k].ops);
		}
		app_cursor_free(c);
		got[n++] = '\n';
		got[n] = '\0';
	}
	app_free(t);
	assert_string_equal(got, want);
}

/* From one node to the other and back. Processes and pipes have the same numbers on both. */
static void there_and_back(int64_t ahead, uint32_t position)
{
	begin("a", "10.0.0.1", false, 0);
	process(5, 0, PROCESS_START);
	tcp(5, 3, "10.0.0.1", 1000, "10.0.0.2", 2000);
	pipe_end(5, 4);
	op(5, "x");
	move(5, "write", 4, 0);
	op(5, "y");
	move(5, "write", 3, position + 10);
	move(5, "read", 3, position + 10);
	op(5, "z");
	process(5, 0, PROCESS_EXIT);
	begin("b", "10.0.0.2", false, ahead);
	process(5, 0, PROCESS_START);
	tcp(5, 3, "10.0.0.2", 2000, "10.0.0.1", 1000);
	pipe_end(5, 4);
	move(5, "read", 4, 0);
	op(5, "x");
	move(5, "read", 3, position + 10);
	op(5, "v");
	move(5, "write", 3, position + 10);
	process(5, 0, PROCESS_EXIT);
}

static void clocks_do_not_count(void **state)
{
	const int64_t ahead[] = {-HOUR, 0, HOUR};

	(void)state;
	for (int i = 0; i < 3; i++) {
		there_and_back(ahead[i], 1);
		is("a: x y z<1:2\nb: x v<0:2\n", NULL);
		assert_int_equal(counts.forced, 0);
		assert_int_equal(counts.running, 0);
	}
}

static void positions_wrap_with_any_clock(void **state)
{
	(void)state;
	there_and_back(-HOUR, UINT32_MAX - 5);
	is("a: x y z<1:2\nb: x v<0:2\n", NULL);
	there_and_back(HOUR, UINT32_MAX - 5);
	is("a: x y z<1:2\nb: x v<0:2\n", NULL);
}

/* One node sends for a long time before the other, by its own clock, begins to receive. */
static void sender_may_be_gigabytes_ahead(void **state)
{
	const uint32_t part = 0x7fff0000;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(i ? "b" : "a", NULL, false, i * HOUR);
		process(5, 0, PROCESS_START);
		if (i)
			tcp(5, 3, "10.0.0.2", 2000, "10.0.0.1", 1000);
		else
			tcp(5, 3, "10.0.0.1", 1000, "10.0.0.2", 2000);
		for (uint32_t k = 0; k < 4; k++) {
			if (!i)
				op(5, "x");
			move(5, i ? "read" : "write", 3, 10 + k * part);
			if (i)
				op(5, "y");
		}
	}
	is("a: x x x x\nb: y<0:1 y<0:2 y<0:3 y<0:4\n", NULL);
}

static void node_names_can_be_anonymised(void **state)
{
	(void)state;
	there_and_back(0, 1);
	is("node0: - - -<1:2\nnode1: - -<0:2\n", salt);
}

static void loopback_addresses_belong_to_one_node(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(i ? "b" : "a", NULL, false, i * 100000);
		process(5, 0, PROCESS_START);
		process(6, 5, PROCESS_START);
		tcp(5, 3, "127.0.0.1", 1000, "127.0.0.1", 2000);
		tcp(6, 3, "127.0.0.1", 2000, "127.0.0.1", 1000);
		op(5, "x");
		if (!i)
			move(5, "write", 3, 10);
		move(6, "read", 3, 10);
		op(6, "y");
	}
	is("a: x\na: y<0:1\nb: x\nb: y\n", NULL);
}

/* The command: process 2 of 'a', whose children 3 and 4 log in to 'b'. */
static void two_logins(void)
{
	begin("a", "10.0.0.1", false, 0);
	process(2, 0, PROCESS_START);
	op(2, "x");
	for (uint32_t p = 3; p <= 4; p++) {
		process(p, 2, PROCESS_START);
		tcp(p, 3, "10.0.0.1", (uint16_t)(1000 + p), "10.0.0.2", 22);
		move(p, "write", 3, 10);
	}
	begin("b", "10.0.0.2", true, 0);
	process(100, 1, PROCESS_START);
	pipe_end(100, 2);
}

/* A session 'pid' of the launcher, from port 'from' of 'address', and the command that it runs. */
static void session(uint32_t pid, const char *address, uint16_t from, const char *name)
{
	process(pid, 100, PROCESS_START);
	tcp(pid, 3, "10.0.0.2", 22, address, from);
	pipe_end(pid, 2);
	move(pid, "write", 2, 0); /* to the launcher's log, as all sessions do */
	move(pid, "read", 3, 10);
	process(pid + 1, pid, PROCESS_START);
	op(pid + 1, name);
}

static void sessions_belong_by_their_connections(void **state)
{
	(void)state;
	two_logins();
	session(110, "10.0.0.9", 1003, "stranger");
	session(120, "10.0.0.1", 1004, "second"); /* it started earlier */
	session(130, "10.0.0.1", 1005, "stranger");
	session(140, "10.0.0.1", 1003, "first");
	is("a: x\nb: first\nb: second\n", NULL);
	assert_null(counts.outside[0]);
	assert_int_equal(counts.running, 3);
}

static void daemons_belong_by_their_connections_back(void **state)
{
	(void)state;
	two_logins();
	/* Its login used an earlier connection; it then connects to the command. */
	process(110, 100, PROCESS_START);
	process(111, 110, PROCESS_START);
	tcp(111, 5, "10.0.0.2", 3000, "10.0.0.1", 1004);
	tcp(111, 6, "10.0.0.2", 22, "10.0.0.1", 1004);
	op(111, "y");
	move(111, "read", 6, 10);
	op(111, "z");
	is("a: x\nb: y z\n", NULL);
}

/* 'sender': the launcher. */
static void receive_from(bool sender)
{
	begin("a", "10.0.0.1", false, 0);
	process(2, 0, PROCESS_START);
	tcp(2, 3, "10.0.0.1", 1000, "10.0.0.2", 2000);
	tcp(2, 4, "10.0.0.1", 1001, "10.0.0.7", 2000);
	move(2, "read", 4, 10);
	op(2, "x");
	if (sender)
		tcp(2, 5, "10.0.0.1", 1002, "10.0.0.2", 22);
	move(2, "read", sender ? 5 : 3, 10);
	begin("b", "10.0.0.2", true, 0);
	process(100, 1, PROCESS_START);
	if (sender) {
		tcp(100, 5, "10.0.0.2", 22, "10.0.0.1", 1002);
		move(100, "write", 5, 10);
	}
	session(110, "10.0.0.9", 1003, "stranger");
	is("a: x\n", NULL);
}

static void data_from_untraced_processes_is_reported(void **state)
{
	(void)state;
	receive_from(true);
	assert_null(counts.outside[0]);
	receive_from(false);
	assert_string_equal(counts.outside[0], "a");
	assert_string_equal(counts.outside[1], "b");
}

static int prepare(void **state)
{
	int rc = make_dir(state);

	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", dir);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_do_not_count),
		cmocka_unit_test(positions_wrap_with_any_clock),
		cmocka_unit_test(sender_may_be_gigabytes_ahead),
		cmocka_unit_test(node_names_can_be_anonymised),
		cmocka_unit_test(loopback_addresses_belong_to_one_node),
		cmocka_unit_test(sessions_belong_by_their_connections),
		cmocka_unit_test(daemons_belong_by_their_connections_back),
		cmocka_unit_test(data_from_untraced_processes_is_reported),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, remove_dir);
}
