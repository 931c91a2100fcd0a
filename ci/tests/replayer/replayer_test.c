/* The replay of hand-made traces: order, stalls, files, errors, time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "ci/tests/patience.h"
#include "ci/tests/replayer/nodes.h"
#include "ci/tests/scratch.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/replayer/files.h"

/* A trace that is being made: ranks of one thread each. */
struct making {
	struct app_writer *w;
	char path[128], root[128];
	uint32_t ranks;
};

static void begin(struct making *m, const char *name, uint32_t ranks, uint32_t threads)
{
	snprintf(m->path, sizeof(m->path), "%s/%s.app", dir, name);
	snprintf(m->root, sizeof(m->root), "%s/%s.root", dir, name);
	assert_int_equal(app_create(m->path, &m->w, NULL), 0);
	m->ranks = ranks;
	for (uint32_t r = 0; r < ranks; r++) {
		assert_int_equal(app_add_rank(m->w, 100 + r, "made", "node"), r);
		for (uint32_t i = 0; i < threads; i++)
			assert_true(app_add_thread(m->w, r, 100 + r) >= 0);
	}
}

/* What the op does not say is "none". */
static void put(struct making *m, uint32_t thread, struct app_op op)
{
	bool moves = op.call >= APP_READ && op.call <= APP_PWRITE;
	struct err e;

	if (op.handle && op.call != APP_OPEN)
		op.file = APP_NO_FILE;
	if (op.call != APP_RENAME)
		op.file2 = APP_NO_FILE;
	if (!moves)
		op.offset = -1;
	if (!op.took_ns)
		op.start_ns = op.took_ns = -1;
	if (app_put(m->w, thread, &op, &e))
		fail_msg("%s", e.text);
}

static void end(struct making *m)
{
	const struct app_about about = {.comment = "made by hand", .root = "/made", .kernel = ""};

	assert_int_equal(app_finish(m->w, &about, NULL), 0);
}

#define OP(call_, ...) ((struct app_op){.call = (call_), __VA_ARGS__})

static struct replayer_options options_of(const struct making *m, unsigned long passes)
{
	return (struct replayer_options){
		.trace = m->path, .root = m->root, .speed = 1, .cpu = 1, .passes = passes};
}

/* Sum of a figure over the passes of all nodes; 'kind' (may be NULL): of errors of this kind. */
static double sum(const struct nodes *s, const char *key, const char *kind)
{
	double all = 0;

	for (unsigned i = 0; i < s->n; i++) {
		char *copy = alloc_copy(s->nodes[i].output), *save = NULL;

		for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
			json_auto_t *v = json_loads(l, 0, NULL);

			assert_non_null(v);
			all += kind ? jget_real(jget(v, key), kind) : jget_real(v, key);
		}
		free(copy);
	}
	return all;
}

static double all_errors(const struct nodes *s)
{
	double all = 0;

	for (unsigned i = 0; i < s->n; i++)
		for (const char *at = s->nodes[i].output; (at = strstr(at, "\"errors\":{\"")); at++)
			all++;
	return all;
}

static void expect_fine(const struct nodes *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->nodes[i].rc)
			fail_msg("node %u: %s", i, s->nodes[i].err.text);
}

/*
 * Ops in a random order over all ranks. Each makes a folder, or stats a folder that another rank
 * makes earlier in the order, and waits for that op. If the wait is missing, the stat fails: a
 * replay without errors has respected every edge.
 */
static void draw_causal(struct making *m, unsigned seed, uint32_t ranks, uint32_t ops)
{
	struct made {
		uint32_t thread, file;
		uint64_t number;
	} *made = alloc_zero(ops, sizeof(*made));
	uint64_t done[16] = {0};
	char name[32];
	uint32_t n = 0;

	snprintf(name, sizeof(name), "causal%u", seed);
	begin(m, name, ranks, 1);
	for (uint32_t i = 0; i < ops; i++) {
		snprintf(name, sizeof(name), "folder%u", i);
		assert_int_equal(app_add_file(m->w, name, -1, 0, true), i);
	}
	srand(seed);
	for (uint32_t i = 0; i < ops; i++) {
		uint32_t thread = (uint32_t)rand() % ranks;
		const struct made *other = n ? &made[(uint32_t)rand() % n] : NULL;

		if (other && other->thread != thread && rand() % 3) {
			struct app_edge edge = {other->thread, other->number};

			put(m, thread,
				OP(APP_STAT, .file = other->file, .n_edges = 1, .edges = &edge));
			done[thread]++;
		} else {
			put(m, thread, OP(APP_MKDIR, .file = i, .mode = 0755));
			made[n++] = (struct made){thread, i, ++done[thread]};
		}
	}
	end(m);
	free(made);
}

static void replays_with_random_delays_end_and_respect_every_edge(void **state)
{
	enum { PASSES = 10 };

	(void)state;
	/* Each seed gives another graph of waits; the delays differ in each pass. */
	for (unsigned seed = 1; seed <= 20; seed++) {
		struct replayer_options o;
		struct making m;
		struct nodes *s;

		draw_causal(&m, seed, 2 + seed % 5, 30);
		o = options_of(&m, PASSES);
		s = nodes_run(1 + seed % 4, &o, 200000, seed, patient_s(60));
		expect_fine(s);
		assert_int_equal(all_errors(s), 0);
		assert_int_equal((int)sum(s, "ops", NULL), PASSES * 30);
		nodes_free(s);
		assert_int_equal(file_remove_tree(m.root, NULL), 0);
	}
}

/* Rank 1 waits for the second op of rank 0. */
static void waiting_trace(struct making *m, const char *name)
{
	struct app_edge edge = {0, 2};

	begin(m, name, 2, 1);
	assert_int_equal(app_add_file(m->w, "a", -1, 0, true), 0);
	assert_int_equal(app_add_file(m->w, "b", -1, 0, true), 1);
	put(m, 0, OP(APP_MKDIR, .file = 0, .mode = 0755));
	put(m, 0, OP(APP_RMDIR, .file = 0));
	put(m, 1, OP(APP_MKDIR, .file = 1, .mode = 0755, .n_edges = 1, .edges = &edge));
	end(m);
}

static void a_stall_names_the_rank_the_op_and_the_edge(void **state)
{
	struct nodes s = {.n = 2, .stall_s = 0.3};
	struct replayer_options o;
	struct making m;
	const char *said;
	int ends[2];

	(void)state;
	waiting_trace(&m, "stall");
	o = options_of(&m, 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	/* Node 0 reaches every barrier (folders, files, start) but reports no progress. */
	s.nodes[1] = (struct test_node){.all = &s, .fd = ends[1], .o = o};
	assert_int_equal(mkdir(m.root, 0755), 0);
	/* An answer counts only after its question. */
	assert_int_equal(send(ends[0], "hello 1 2\n0 b 3\n", 16, 0), 16);
	pthread_create(&s.nodes[1].thread, NULL, nodes_play, &s.nodes[1]);
	for (int questions = 0; questions < 9;) {
		char buf[4096];
		ssize_t n = recv(ends[0], buf, sizeof(buf), 0);

		assert_true(n > 0);
		for (ssize_t i = 0; i + 1 < n; i++)
			if (buf[i] == ' ' && buf[i + 1] == 'q') {
				questions++;
				assert_int_equal(send(ends[0], "0 a 0\n", 6, 0), 6);
			}
	}
	pthread_join(s.nodes[1].thread, NULL);
	assert_int_equal(s.nodes[1].rc, -ETIMEDOUT);
	said = s.nodes[1].err.text;
	if (!strstr(said,
		    "rank 1 waits before its op 1 (mkdir b) for op 2 of rank 0, which has "
		    "completed 0; no node was active for 0.3 s"))
		fail_msg("%s", said);
	/* The other node is notified. */
	char buf[8192];
	ssize_t n = recv(ends[0], buf, sizeof(buf) - 1, 0);

	assert_true(n > 0);
	buf[n] = '\0';
	assert_non_null(strstr(buf, "0 x rank 1 waits"));
	peers_free(s.nodes[1].peers);
	free(s.nodes[1].output);
	close(ends[0]);
	close(ends[1]);
}

static void a_failing_node_ends_the_others_with_its_error(void **state)
{
	struct replayer_options o;
	struct making m;
	struct nodes *s;

	(void)state;
	begin(&m, "large", 2, 1);
	assert_int_equal(app_add_file(m.w, "huge", 1ll << 60, 1ll << 60, false), 0);
	put(&m, 0, OP(APP_STAT, .file = 0));
	put(&m, 1, OP(APP_STAT, .file = 0));
	end(&m);
	o = options_of(&m, 1);
	s = nodes_run(2, &o, 100000, 5, patient_s(60));
	assert_int_equal(s->nodes[0].rc, -ENOSPC);
	assert_non_null(strstr(s->nodes[0].err.text, "the trace's files need"));
	assert_non_null(strstr(s->nodes[0].err.text, "has "));
	assert_int_equal(s->nodes[1].rc, -EPIPE);
	assert_string_equal(s->nodes[0].err.text, s->nodes[1].err.text);
	/* No file was written. */
	assert_int_equal(access(m.root, F_OK), -1);
	nodes_free(s);
}

static void a_disconnected_orchestrator_ends_the_replay(void **state)
{
	struct nodes s = {.n = 2, .stall_s = patient_s(60)};
	struct replayer_options o;
	struct making m;
	int ends[2];

	(void)state;
	waiting_trace(&m, "gone");
	o = options_of(&m, 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	s.nodes[1] = (struct test_node){.all = &s, .fd = ends[1], .o = o};
	assert_int_equal(send(ends[0], "hello 1 2\n", 10, 0), 10);
	close(ends[0]);
	nodes_play(&s.nodes[1]);
	assert_int_equal(s.nodes[1].rc, -EPIPE);
	assert_string_equal(s.nodes[1].err.text, "the orchestrator has disconnected");
	peers_free(s.nodes[1].peers);
	free(s.nodes[1].output);
	close(ends[1]);
}

static void paths_that_leave_the_root_are_refused(void **state)
{
	static const char *const bad[] = {
		"..", "../x", "a/../b", "a/..", "/etc/passwd", "a//b", "./a", "a/", "/"};
	static const char *const good[] = {"", "a", "a/b", "..a", "a..", "a/...", ".a"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (app_path_ok(bad[i]))
			fail_msg("'%s' leaves the root", bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!app_path_ok(good[i]))
			fail_msg("'%s' stays", good[i]);
}

static void a_link_in_the_root_leads_nowhere_else(void **state)
{
	char outside[128], link[256], file[256];
	struct replayer_options o;
	struct making m;
	struct app_handle h = {.file = 0, .flags = O_WRONLY | O_CREAT};
	struct nodes *s;

	(void)state;
	begin(&m, "link", 1, 1);
	assert_int_equal(app_add_file(m.w, "way/x", -1, 10, false), 0);
	assert_int_equal(app_add_handle(m.w, &h), 1);
	put(&m, 0, OP(APP_OPEN, .handle = 1, .flags = O_WRONLY | O_CREAT, .mode = 0644));
	put(&m, 0, OP(APP_WRITE, .handle = 1, .offset = 0, .size = 10, .result = 10));
	put(&m, 0, OP(APP_CLOSE, .handle = 1));
	end(&m);
	snprintf(outside, sizeof(outside), "%s/outside", dir);
	snprintf(link, sizeof(link), "%s/way", m.root);
	snprintf(file, sizeof(file), "%s/x", outside);
	assert_int_equal(mkdir(outside, 0755), 0);
	assert_int_equal(mkdir(m.root, 0755), 0);
	assert_int_equal(symlink(outside, link), 0);
	o = options_of(&m, 1);
	s = nodes_run(1, &o, 0, 1, patient_s(60));
	expect_fine(s);
	assert_int_equal((int)sum(s, "errors", "open EXDEV"), 1);
	assert_int_equal(access(file, F_OK), -1);
	nodes_free(s);
}

static void errors_and_short_calls_are_counted_only_where_the_application_had_none(void **state)
{
	struct app_handle h = {.file = 0, .flags = O_RDONLY};
	struct replayer_options o;
	struct making m;
	struct nodes *s;

	(void)state;
	begin(&m, "errors", 1, 1);
	assert_int_equal(app_add_file(m.w, "data", 5000, 5000, false), 0);
	assert_int_equal(app_add_file(m.w, "none", -1, -1, false), 1);
	assert_int_equal(app_add_handle(m.w, &h), 1);
	put(&m, 0, OP(APP_STAT, .file = 1));
	put(&m, 0, OP(APP_STAT, .file = 1, .result = -ENOENT));
	put(&m, 0, OP(APP_UNLINK, .file = 1));
	put(&m, 0, OP(APP_OPEN, .file = 0, .handle = 1, .flags = O_RDONLY));
	put(&m, 0, OP(APP_PREAD, .handle = 1, .offset = 0, .size = 4096, .result = 4096));
	put(&m, 0, OP(APP_PREAD, .handle = 1, .offset = 4096, .size = 4096, .result = 4096));
	put(&m, 0, OP(APP_PREAD, .handle = 1, .offset = 4096, .size = 4096, .result = 904));
	put(&m, 0, OP(APP_CLOSE, .handle = 1));
	end(&m);
	o = options_of(&m, 3);
	s = nodes_run(1, &o, 0, 1, patient_s(60));
	expect_fine(s);
	assert_int_equal((int)sum(s, "errors", "stat ENOENT"), 3);
	assert_int_equal((int)sum(s, "errors", "unlink ENOENT"), 3);
	assert_int_equal(all_errors(s), 3);
	assert_int_equal((int)sum(s, "short", NULL), 3);
	assert_int_equal((int)sum(s, "read_bytes", NULL), 3 * (4096 + 904 + 904));
	nodes_free(s);
}

/* Makes, moves and removes files: a second pass finds what the first one found. */
static void every_pass_finds_the_files_as_the_application_did(void **state)
{
	struct app_handle h = {.file = 3, .flags = O_WRONLY | O_CREAT | O_EXCL};
	struct replayer_options o;
	struct making m;
	char path[256];
	struct stat st;
	struct nodes *s;

	(void)state;
	begin(&m, "files", 2, 1);
	assert_int_equal(app_add_file(m.w, "in/was", 300000, -1, false), 0);
	assert_int_equal(app_add_file(m.w, "in/moved", -1, 300000, false), 1);
	assert_int_equal(app_add_file(m.w, "made", -1, 0, true), 2);
	assert_int_equal(app_add_file(m.w, "made/new", -1, 12, false), 3);
	assert_int_equal(app_add_file(m.w, "kept", 100, 200, false), 4);
	assert_int_equal(app_add_handle(m.w, &h), 1);
	put(&m, 0, OP(APP_MKDIR, .file = 2, .mode = 0755));
	put(&m, 0, OP(APP_OPEN, .file = 3, .handle = 1, .flags = h.flags, .mode = 0644));
	put(&m, 0, OP(APP_WRITE, .handle = 1, .offset = 0, .size = 12, .result = 12));
	put(&m, 0, OP(APP_FSYNC, .handle = 1));
	put(&m, 0, OP(APP_CLOSE, .handle = 1));
	put(&m, 1, OP(APP_RENAME, .file = 0, .file2 = 1));
	put(&m, 1, OP(APP_TRUNCATE, .file = 4, .size = 200));
	end(&m);
	o = options_of(&m, 5);
	s = nodes_run(2, &o, 100000, 3, patient_s(60));
	expect_fine(s);
	assert_int_equal(all_errors(s), 0);
	nodes_free(s);
	snprintf(path, sizeof(path), "%s/in/moved", m.root);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 300000);
	assert_true(st.st_blocks * 512 >= 300000); /* written, no hole */
	snprintf(path, sizeof(path), "%s/kept", m.root);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 200);
	/* Only the files, in their initial state. */
	o.prepare_only = true;
	s = nodes_run(1, &o, 0, 1, patient_s(60));
	expect_fine(s);
	nodes_free(s);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 100);
	snprintf(path, sizeof(path), "%s/in/moved", m.root);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/made", m.root);
	assert_int_equal(access(path, F_OK), -1);
}

/* No edge tells which thread opens first, and which ends last with a handle; and a handle may be
 * another rank's, on another node. */
static void handles_are_shared_by_threads_and_ranks(void **state)
{
	struct app_handle h = {.file = 0, .flags = O_RDWR}, was = {.file = 0, .before = true};
	struct app_edge edge = {0, 1};
	struct replayer_options o;
	struct making m;
	struct nodes *s;

	(void)state;
	begin(&m, "handles", 2, 2);
	assert_int_equal(app_add_file(m.w, "data", 9000, 9000, false), 0);
	assert_int_equal(app_add_handle(m.w, &h), 1);
	was.flags = O_RDONLY;
	assert_int_equal(app_add_handle(m.w, &was), 2);
	put(&m, 0, OP(APP_OPEN, .file = 0, .handle = 1, .flags = O_RDWR, .away_ns = 500000));
	put(&m, 0, OP(APP_CLOSE, .handle = 1));
	for (int i = 0; i < 4; i++)
		put(&m, 1, OP(APP_PREAD, .handle = 1, .offset = 0, .size = 4096, .result = 4096));
	put(&m, 2,
		OP(APP_READ, .handle = 1, .offset = 4096, .size = 4096, .result = 4096,
			.n_edges = 1, .edges = &edge));
	put(&m, 3, OP(APP_READ, .handle = 2, .offset = 0, .size = 4096, .result = 4096));
	put(&m, 3, OP(APP_READ, .handle = 2, .offset = 4096, .size = 4096, .result = 4096));
	end(&m);
	o = options_of(&m, 50);
	for (unsigned n = 1; n <= 2; n++) {
		s = nodes_run(n, &o, 100000, n, patient_s(60));
		expect_fine(s);
		assert_int_equal(all_errors(s), 0);
		assert_int_equal((int)sum(s, "read_bytes", NULL), 50 * 7 * 4096);
		nodes_free(s);
	}
}

/* The second node takes a while to make a file that the first one opens at the start. */
static void a_file_is_whole_before_another_node_opens_it(void **state)
{
	struct app_handle was = {.file = 1, .flags = O_RDONLY, .before = true};
	const int64_t size = 32 << 20;
	struct replayer_options o;
	struct making m;
	struct nodes *s;

	(void)state;
	begin(&m, "made", 2, 1);
	assert_int_equal(app_add_file(m.w, "first", 0, 0, false), 0);
	assert_int_equal(app_add_file(m.w, "second", size, size, false), 1);
	assert_int_equal(app_add_handle(m.w, &was), 1);
	put(&m, 0,
		OP(APP_PREAD, .handle = 1, .offset = (uint64_t)size - 4096, .size = 4096,
			.result = 4096));
	put(&m, 1, OP(APP_STAT, .file = 0));
	end(&m);
	o = options_of(&m, 1);
	s = nodes_run(2, &o, 0, 1, patient_s(60));
	expect_fine(s);
	assert_int_equal(all_errors(s), 0);
	assert_int_equal((int)sum(s, "read_bytes", NULL), 4096);
	nodes_free(s);
}

static double seconds_of(const struct replayer_options *o, const char *key)
{
	struct nodes *s = nodes_run(1, o, 0, 1, patient_s(60));
	double took;

	expect_fine(s);
	took = sum(s, key, NULL);
	nodes_free(s);
	return took;
}

static void time_passes_as_the_mode_has_it(void **state)
{
	const int64_t ms = 1000000;
	struct replayer_options o;
	struct making m;

	(void)state;
	begin(&m, "time", 1, 1);
	assert_int_equal(app_add_file(m.w, "a", -1, 0, true), 0);
	put(&m, 0,
		OP(APP_MKDIR, .file = 0, .mode = 0755, .compute_ns = 40 * ms, .away_ns = 60 * ms,
			.start_ns = 150 * ms, .took_ns = 10 * ms));
	put(&m, 0, OP(APP_RMDIR, .file = 0, .start_ns = 200 * ms, .took_ns = ms));
	end(&m);
	o = options_of(&m, 1);
	assert_true(seconds_of(&o, "seconds") >= 0.1);
	/* The processor time that a thread needs to begin counts as well. */
	assert_true(seconds_of(&o, "computed_s") >= 0.03);
	assert_true(seconds_of(&o, "away_s") >= 0.06);
	o.cpu = 0.25;
	assert_true(seconds_of(&o, "away_s") >= 0.09);
	o.cpu = 1;
	o.speed = 2;
	assert_true(seconds_of(&o, "computed_s") >= 0.015);
	assert_true(seconds_of(&o, "away_s") >= 0.03);
	o.speed = 1;
	o.mode = REPLAY_THINK; /* 150 ms, then 40 ms between the ops */
	assert_true(seconds_of(&o, "seconds") >= 0.19);
	o.mode = REPLAY_WALL;
	assert_true(seconds_of(&o, "seconds") >= 0.2);
	o.mode = REPLAY_AFAP;
	assert_true(seconds_of(&o, "computed_s") + seconds_of(&o, "away_s") < 1e-9);
}

static void a_trace_without_times_is_refused_where_they_are_needed(void **state)
{
	struct replayer_options o;
	struct making m;
	struct nodes *s;

	(void)state;
	waiting_trace(&m, "timeless");
	o = options_of(&m, 1);
	o.mode = REPLAY_THINK;
	s = nodes_run(1, &o, 0, 1, patient_s(60));
	assert_int_equal(s->nodes[0].rc, -EINVAL);
	assert_non_null(strstr(s->nodes[0].err.text, "the trace has no times of calls"));
	nodes_free(s);
}

/* Once its first op is done. */
static void *stop_soon(void *arg)
{
	struct test_node *t = arg;
	char path[256];

	snprintf(path, sizeof(path), "%s/a", t->o.root);
	while (access(path, F_OK))
		usleep(1000);
	peers_stop(t->peers);
	return NULL;
}

static void it_stops_on_request(void **state)
{
	struct test_node t = {.fd = -1};
	struct making m;
	pthread_t stopper;

	(void)state;
	begin(&m, "stop", 1, 1);
	assert_int_equal(app_add_file(m.w, "a", -1, 0, true), 0);
	put(&m, 0, OP(APP_MKDIR, .file = 0, .mode = 0755));
	put(&m, 0, OP(APP_RMDIR, .file = 0, .away_ns = 3600000000000));
	end(&m);
	t.o = options_of(&m, 0);
	t.o.out = open_memstream(&t.output, &t.n_output);
	assert_int_equal(peers_new(-1, 60, &t.peers, &t.err), 0);
	pthread_create(&stopper, NULL, stop_soon, &t);
	assert_int_equal(replayer_run(&t.o, t.peers, &t.err), -ECANCELED);
	pthread_join(stopper, NULL);
	fclose(t.o.out);
	assert_non_null(strstr(t.output, "\"whole\":false"));
	peers_free(t.peers);
	free(t.output);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replays_with_random_delays_end_and_respect_every_edge),
		cmocka_unit_test(a_stall_names_the_rank_the_op_and_the_edge),
		cmocka_unit_test(a_failing_node_ends_the_others_with_its_error),
		cmocka_unit_test(a_disconnected_orchestrator_ends_the_replay),
		cmocka_unit_test(paths_that_leave_the_root_are_refused),
		cmocka_unit_test(a_link_in_the_root_leads_nowhere_else),
		cmocka_unit_test(
			errors_and_short_calls_are_counted_only_where_the_application_had_none),
		cmocka_unit_test(every_pass_finds_the_files_as_the_application_did),
		cmocka_unit_test(handles_are_shared_by_threads_and_ranks),
		cmocka_unit_test(a_file_is_whole_before_another_node_opens_it),
		cmocka_unit_test(time_passes_as_the_mode_has_it),
		cmocka_unit_test(a_trace_without_times_is_refused_where_they_are_needed),
		cmocka_unit_test(it_stops_on_request),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("replayer", tests, make_dir, remove_dir);
}
