/* Tests a command under supervision, without a tracer: names, delays, blocked threads. Needs
 * root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those first */
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "diag/throttle/supervisor.h"
#include "harness/base/home.h"

static char agent[4200], helper[4200], root[128];
static struct supervisor *s;
static void (*at_each_step)(void);

/* Runs the helper of known causality in the folder 'root'. Returns its exit code. */
static int run(const char *thread, unsigned long period, const char *const *args)
{
	const char *command[32] = {agent, "throttled", "--fd", "", "--"};
	char number[16];
	int socket, status, n = 5;
	pid_t pid;

	assert_int_equal(supervisor_begin(s, thread, period, &socket, NULL), 0);
	snprintf(number, sizeof(number), "%d", socket);
	command[3] = number;
	while (*args)
		command[n++] = *args++;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (!chdir(root))
			execv(agent, (char *const *)command);
		_exit(126);
	}
	close(socket);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct pollfd on[2];

		supervisor_poll(s, on);
		poll(on, 2, 1);
		supervisor_step(s);
		if (at_each_step)
			at_each_step();
	}
	supervisor_end(s);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* 'kind': the kinds of messages; "futex 5": with 5 ms of work before each. */
static int run_kind(const char *kind, const char *thread, unsigned long period)
{
	const char *work = strchr(kind, ' ');
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(kind, " "), kind);
	kind = name;
	return run(thread, period,
		(const char *const[]){helper, "-k", kind, "-w", work ? work + 1 : "0", "-t",
			"../times", "../true", "5", "3", "80", NULL});
}

static size_t decided(size_t *undecided)
{
	size_t n, right = 0;
	const struct throttle_delay *d = supervisor_delays(s, &n);
	const char *why;

	*undecided = supervisor_undecided(s, &why);
	for (size_t i = 0; i < n; i++) {
		assert_true(d[i].trap_ns <= d[i].quiet_ns || !d[i].decided);
		assert_true(d[i].quiet_ns < d[i].release_ns);
		assert_true(!d[i].next_ns || d[i].next_ns > d[i].release_ns);
		assert_true(i + 1 == n || d[i].next_ns);
		right += d[i].decided;
	}
	if (*undecided)
		print_message("# %zu undecided: %s\n", *undecided, why);
	return right;
}

/* The last run of the helper as a trace: a rank for each of its processes. */
static struct app_trace *trace_of_run(const char *name)
{
	struct app_about about = {
		.method = APP_BY_MESSAGES, .comment = "", .root = "", .kernel = ""};
	struct app_op op = {
		.call = APP_STAT, .file = APP_NO_FILE, .file2 = APP_NO_FILE, .offset = -1};
	struct app_writer *w;
	struct app_trace *t;
	char path[160];
	unsigned thread;
	long long end_ns;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	assert_int_equal(app_create(path, &w, NULL), 0);
	for (uint32_t i = 0; i < 3; i++) {
		app_add_rank(w, i, "", "");
		app_add_thread(w, i, i);
	}
	snprintf(path, sizeof(path), "%s/times", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fscanf(f, "%u %lld", &thread, &end_ns) == 2) {
		if (!about.start_ns)
			about.start_ns = end_ns - 3600000000000;
		op.took_ns = 1000;
		op.start_ns = end_ns - op.took_ns - about.start_ns;
		assert_int_equal(app_put(w, thread, &op, NULL), 0);
	}
	fclose(f);
	assert_int_equal(app_finish(w, &about, NULL), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(app_open(path, &t, NULL), 0);
	return t;
}

static int is_planted(uint32_t p, uint64_t n, const struct app_edge *edge)
{
	char path[160], *text, want[80];
	int is;

	snprintf(path, sizeof(path), "%s/true", dir);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	snprintf(want, sizeof(want), "%u:%llu %u:%llu\n", p, (unsigned long long)n, edge->thread,
		(unsigned long long)edge->ops);
	is = !strncmp(text, want, strlen(want)) || strstr(text, want);
	free(text);
	return is;
}

static unsigned planted(void)
{
	char path[160], *text;
	unsigned n = 0;

	snprintf(path, sizeof(path), "%s/true", dir);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	free(text);
	return n;
}

static unsigned right(const struct app_trace *t)
{
	unsigned n_right = 0;
	struct app_op op;

	for (uint32_t i = 0; i < app_n_threads(t); i++) {
		struct app_cursor *c;

		assert_int_equal(app_cursor_new(t, i, &c), 0);
		for (uint64_t n = 1; app_next(c, &op, NULL) > 0; n++)
			for (uint32_t k = 0; k < op.n_edges; k++)
				n_right += is_planted(i, n, &op.edges[k]);
		app_cursor_free(c);
	}
	return n_right;
}

/* By each means of waiting, with and without work: finds exactly the waits of the program. */
static void waits_are_the_planted_ones(void **state)
{
	static const char *const kinds[] = {
		"pipe", "unix,tcp", "futex", "spin", "nap", "futex 7", "spin 7"};
	const struct throttle_spec spec = {.method = APP_BY_THROTTLING};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct throttle_edges *x = throttle_edges_new();
		const struct throttle_delay *d;
		struct throttle_counts counts;
		struct app_trace *first, *t;
		size_t n, used;
		char path[160];

		s = supervisor_new(root, 600);
		assert_int_equal(run_kind(kinds[i], NULL, 1), 0);
		first = trace_of_run("first");
		for (uint32_t p = 0; p < 3; p++) {
			char name[8];

			snprintf(name, sizeof(name), "0.%u", p + 1);
			assert_int_equal(run_kind(kinds[i], name, 1), 0);
			d = supervisor_delays(s, &n);
			t = trace_of_run("run");
			assert_int_equal(throttle_edges_add(x, t, p, d, n, &used, NULL), 0);
			assert_int_equal(used, app_thread(t, p)->ops);
			app_free(t);
		}
		snprintf(path, sizeof(path), "%s/out", dir);
		unlink(path);
		assert_int_equal(throttle_write(first, x, path, &spec, &counts, NULL), 0);
		assert_int_equal(app_open(path, &t, NULL), 0);
		assert_true(planted() >= 5);
		assert_int_equal(right(t), planted());
		assert_int_equal(counts.edges, planted());
		app_free(t);
		app_free(first);
		throttle_edges_free(x);
		supervisor_free(s);
	}
}

/* Threads that wait in the kernel, poll, or sleep between polls: each is treated as blocked, and
 * continues in the end. */
static void others_are_blocked_at_each_delay(void **state)
{
	static const char *const kinds[] = {"pipe", "unix,tcp", "futex", "spin", "nap"};
	size_t undecided, n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		s = supervisor_new(root, 600);
		assert_int_equal(run_kind(kinds[i], NULL, 1), 0);
		supervisor_delays(s, &n);
		assert_int_equal(n, 0);
		assert_int_equal(run_kind(kinds[i], "0.2", 1), 0);
		n = decided(&undecided);
		assert_true(n >= 5);
		assert_int_equal(undecided, 0);
		/* every other operation: half of them */
		assert_int_equal(run_kind(kinds[i], "0.2", 2), 0);
		assert_int_equal(decided(&undecided), (n + 1) / 2);
		supervisor_free(s);
	}
}

static void the_commands_exit_code_is_returned(void **state)
{
	(void)state;
	s = supervisor_new(root, 600);
	assert_int_equal(run(NULL, 1, (const char *const[]){"sh", "-c", "exit 7", NULL}), 7);
	assert_int_equal(run(NULL, 1, (const char *const[]){"/no/such/program", NULL}), 127);
	supervisor_free(s);
}

/* A child whose call waits is killed. Its parent, stopped so that it does not count as blocked,
 * continues. */
static void kill_the_delayed(void)
{
	char path[160], *text, *state;
	int child, parent;
	size_t n;

	supervisor_delays(s, &n);
	snprintf(path, sizeof(path), "%s/pids", dir);
	if (!n || file_read(path, &text, NULL, NULL))
		return;
	n = (size_t)sscanf(text, "%d %d", &child, &parent);
	free(text);
	snprintf(path, sizeof(path), "/proc/%d/stat", n == 2 ? parent : 0);
	if (n != 2 || file_read(path, &text, NULL, NULL))
		return;
	state = strrchr(text, ')');
	if (state && state[2] == 'T') {
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(kill(parent, SIGCONT), 0);
		at_each_step = NULL;
	}
	free(text);
}

static void delays_of_killed_threads_end(void **state)
{
	static const char script[] = "(exec 3>one; exit 5) & echo $! $$ >../pids; kill -STOP $$; "
				     "wait $!; [ $? = 137 ] && exit 44";
	size_t n;

	(void)state;
	s = supervisor_new(root, 600);
	assert_int_equal(run(NULL, 1, (const char *const[]){"sh", "-c", "(:); exit 0", NULL}), 0);
	at_each_step = kill_the_delayed;
	assert_int_equal(run("0.1", 1, (const char *const[]){"sh", "-c", script, NULL}), 44);
	assert_null(at_each_step);
	supervisor_delays(s, &n);
	assert_int_equal(n, 0);
	supervisor_free(s);
}

/* A stopped thread may or may not be waiting, so delays stay undecided and end after a few. */
static void threads_that_stay_busy_are_reported(void **state)
{
	static const char
		script[] = "sh -c 'kill -STOP $$' & stopped=$!; "
			   "until read -r p n state rest </proc/$stopped/stat && [ $state = T ]; "
			   "do :; done; (for i in 1 2 3 4 5 6; do : >f$i; done); "
			   "kill -KILL $stopped; exit 0";
	size_t n, undecided;
	const char *why;

	(void)state;
	s = supervisor_new(root, 0.05);
	assert_int_equal(run(NULL, 1, (const char *const[]){"sh", "-c", script, NULL}), 0);
	assert_int_equal(run("0.2", 1, (const char *const[]){"sh", "-c", script, NULL}), 0);
	supervisor_delays(s, &n);
	undecided = supervisor_undecided(s, &why);
	assert_int_equal(n, 3);
	assert_int_equal(undecided, 3);
	assert_true(supervisor_gave_up(s));
	assert_non_null(strstr(why, "is stopped"));
	supervisor_free(s);
}

static int prepare(void **state)
{
	char *folder = NULL;
	int rc = make_dir(state);

	if (geteuid()) {
		puts("1..0 # SKIP needs root");
		exit(0);
	}
	snprintf(root, sizeof(root), "%s/root", dir);
	if (rc || file_mkdirs(root, 0700, NULL) || home_agent_dir(&folder, NULL))
		return -1;
	snprintf(agent, sizeof(agent), "%s/culprit-agent", folder);
	snprintf(helper, sizeof(helper), "%s/../helpers/causality", folder);
	free(folder);
	return access(helper, X_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_the_planted_ones),
		cmocka_unit_test(others_are_blocked_at_each_delay),
		cmocka_unit_test(the_commands_exit_code_is_returned),
		cmocka_unit_test(delays_of_killed_threads_end),
		cmocka_unit_test(threads_that_stay_busy_are_reported),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, remove_dir);
}
