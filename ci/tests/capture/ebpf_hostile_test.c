/* Tests the in-kernel tracer on programs that are hard to trace. */
#include "ci/tests/capture/tracing.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { LOAD_CALLS = 100000, THREADS = 1000, FORKS = 200, REUSES = 1500, ROUNDS = 12, WARM = 6 };

/* Totals of a log. */
struct tally {
	uint64_t calls, lost, end_lost, on_fds, known, starts, exits, execs, of[512];
	uint64_t hash; /* of the calls of one thread, in order */
};

static void use_load(void)
{
	for (int i = 0; i < LOAD_CALLS; i++)
		syscall(SYS_getppid);
}

static void *load_thread(void *arg)
{
	(void)arg;
	use_load();
	return NULL;
}

static void both_cores(void)
{
	pthread_t t;

	pthread_create(&t, NULL, load_thread, NULL);
	use_load();
	pthread_join(t, NULL);
}

static void *short_thread(void *arg)
{
	(void)arg;
	syscall(SYS_getppid);
	return NULL;
}

static void many_threads(void)
{
	pthread_t t;

	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&t, NULL, short_thread, NULL))
			_exit(1);
		pthread_join(t, NULL);
	}
}

static void many_forks(void)
{
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (i % 4 == 0)
				execl("/bin/true", "true", NULL);
			if (i % 4 == 1)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* Descriptors that mean another file at every use, in two threads at once, one of them open before
 * the tracer attached. */
static void *reuse_thread(void *arg)
{
	char path[96], buf[16] = "";
	int pair[2], fd;

	snprintf(path, sizeof(path), "%s/reuse-%d", dir, (int)syscall(SYS_gettid));
	for (int i = 0; i < REUSES; i++) {
		fd = open(i % 2 ? path : "/dev/null", O_RDWR | O_CREAT, 0600);
		if (write(fd, buf, 16) != 16)
			_exit(1);
		if (i % 8 == 0) {
			if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
				dup2(pair[0], fd) != fd || write(fd, buf, 1) != 1 ||
				read(pair[1], buf, 1) != 1)
				_exit(1);
			close(pair[0]);
			close(pair[1]);
		}
		close(fd);
		if (pwrite(*(int *)arg, buf, 16, 0) != 16)
			_exit(1);
	}
	unlink(path);
	return NULL;
}

static int open_before;

static void reuse(void)
{
	pthread_t t;

	pthread_create(&t, NULL, reuse_thread, &open_before);
	reuse_thread(&open_before);
	pthread_join(t, NULL);
}

/* The same calls, every time. */
static void known_calls(void)
{
	char buf[64] = "";
	struct stat st;
	int fd, p[2];

	for (int i = 0; i < 300; i++) {
		fd = open("/dev/zero", O_RDONLY);
		if (read(fd, buf, 1 + (size_t)i % 60) < 0 || fstat(fd, &st) < 0 || pipe(p) < 0 ||
			write(p[1], buf, 8) != 8 || read(p[0], buf, 8) != 8)
			_exit(1);
		close(fd);
		close(p[0]);
		close(p[1]);
		syscall(SYS_getppid);
		if (lseek(-1, i, SEEK_SET) == 0)
			_exit(1);
	}
}

/* A process that runs 'what' when signalled. */
static pid_t waiting(void (*what)(void), int *go)
{
	int p[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(p[1]);
		if (read(p[0], &c, 1) == 1)
			what();
		_exit(0);
	}
	close(p[0]);
	*go = p[1];
	return pid;
}

static pid_t trace_with(pid_t pid, const char *const options[])
{
	const char *all[12] = {NULL};
	char number[16];
	int n = 0;

	snprintf(number, sizeof(number), "%d", pid);
	while (*options)
		all[n++] = *options++;
	all[n++] = "-p";
	all[n++] = number;
	return trace(all, NULL);
}

static void let_run(pid_t pid, int go)
{
	assert_int_equal(write(go, "x", 1), 1);
	close(go);
	assert_int_equal(wait_exit(pid), 0);
}

/* Does it have a path, or is it a socket with known ends? */
static bool is_known(const struct fd_state *s)
{
	return s &&
		(s->now.kind == FD_SOCKET ? s->now.local.ss_family != AF_UNSPEC
					  : s->now.path && *s->now.path);
}

static struct tally read_log(const char *path)
{
	const struct call_arch *arch = call_arch(ARCH);
	struct fdtable *fds = fdtable_new();
	struct tally t = {.hash = 5381};
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	int rc;

	if (log_reader_new(path, &r, &e))
		fail_msg("%s", e.text);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		const struct record_call *c = &rec->call;
		const struct call_info *info;

		if (rec->type == RECORD_CALL) {
			info = call_info(arch, c->nr);
			t.calls++;
			t.of[c->nr & 511]++;
			t.hash = ((t.hash * 33 ^ c->nr) * 33 ^ (uint64_t)c->result) * 33 ^
				c->args[0];
			if (info && info->fd >= 0 &&
				(info->class == CALL_READ || info->class == CALL_WRITE) &&
				c->result >= 0) {
				t.on_fds++;
				t.known += is_known(
					fdtable_get(fds, c->pid, (int32_t)c->args[info->fd]));
			}
		} else if (rec->type == RECORD_PROCESS) {
			t.starts += rec->process.what == PROCESS_START;
			t.exits += rec->process.what == PROCESS_EXIT;
			t.execs += rec->process.what == PROCESS_EXEC;
		} else if (rec->type == RECORD_LOST) {
			t.lost += rec->lost.count;
		} else if (rec->type == RECORD_END) {
			t.end_lost = rec->end.lost;
		}
		fdtable_feed(fds, rec);
	}
	if (rc < 0)
		fail_msg("%s", e.text);
	log_reader_free(r);
	fdtable_free(fds);
	return t;
}

static void test_recorded_and_lost_calls_add_up(void **state)
{
	int go;
	pid_t pid = waiting(both_cores, &go), tracer;
	struct tally t;

	(void)state;
	tracer = trace_with(
		pid, (const char *const[]){"--memory", "64KiB", "--call", "getppid", NULL});
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_true(t.lost > 0);
	assert_int_equal(t.lost, t.end_lost);
	assert_int_equal(t.calls + t.lost, 2 * LOAD_CALLS);
	assert_int_equal(t.calls, t.of[SYS_getppid]);
}

static void test_a_thousand_threads(void **state)
{
	int go;
	pid_t pid = waiting(many_threads, &go),
	      tracer = trace_with(pid, (const char *const[]){NULL});
	struct tally t;

	(void)state;
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_int_equal(t.lost, 0);
	assert_int_equal(t.starts, THREADS + 1);
	assert_int_equal(t.exits, THREADS + 1);
	assert_int_equal(t.of[SYS_getppid], THREADS);
}

static void test_forks_and_execs(void **state)
{
	int go;
	pid_t pid = waiting(many_forks, &go), tracer = trace_with(pid, (const char *const[]){NULL});
	struct tally t;

	(void)state;
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_int_equal(t.lost, 0);
	assert_int_equal(t.starts, FORKS + 1);
	assert_int_equal(t.exits, FORKS + 1);
	assert_int_equal(t.execs, FORKS / 4);
	assert_int_equal(t.known, t.on_fds);
}

static void test_numbers_reused_at_once(void **state)
{
	pid_t pid, tracer;
	struct tally t;
	char path[96];
	int go;

	(void)state;
	snprintf(path, sizeof(path), "%s/before", dir);
	open_before = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	pid = waiting(reuse, &go);
	close(open_before);
	tracer = trace_with(pid, (const char *const[]){NULL});
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_int_equal(t.lost, 0);
	assert_true(t.on_fds >= 4 * REUSES);
	if (t.known * 1000 < t.on_fds * 995)
		fail_msg("known for %llu of %llu calls", (unsigned long long)t.known,
			(unsigned long long)t.on_fds);
}

static void test_ptrace_and_ebpf_see_the_same(void **state)
{
	char other[80];
	int go;
	pid_t pid = waiting(known_calls, &go), first, second;
	struct tally a, b;

	(void)state;
	first = trace_with(pid, (const char *const[]){NULL});
	snprintf(other, sizeof(other), "%s.ptrace", log_path);
	assert_int_equal(rename(log_path, other), 0);
	tracer_name = "ptrace";
	second = trace_with(pid, (const char *const[]){NULL});
	tracer_name = "ebpf";
	let_run(pid, go);
	assert_int_equal(wait_exit(first), 0);
	assert_int_equal(wait_exit(second), 0);
	a = read_log(other);
	b = read_log(log_path);
	unlink(other);
	/* Attaching by ptrace restarts the read that the thread was inside of, which both then
	 * see. */
	assert_int_equal(a.calls, b.calls);
	assert_true(a.calls > 3000);
	assert_true(a.hash == b.hash);
	assert_int_equal(a.known, a.on_fds);
}

static void test_two_at_once(void **state)
{
	char other[80];
	int go;
	pid_t pid = waiting(known_calls, &go), first, second;
	struct tally a, b;

	(void)state;
	first = trace_with(pid, (const char *const[]){NULL});
	snprintf(other, sizeof(other), "%s.other", log_path);
	assert_int_equal(rename(log_path, other), 0);
	second = trace_with(pid, (const char *const[]){NULL});
	let_run(pid, go);
	assert_int_equal(wait_exit(first), 0);
	assert_int_equal(wait_exit(second), 0);
	a = read_log(other);
	b = read_log(log_path);
	unlink(other);
	assert_int_equal(a.lost + b.lost, 0);
	assert_true(a.calls > 3000);
	assert_true(a.calls == b.calls && a.hash == b.hash);
}

static void test_filter_by_call(void **state)
{
	char calls[] = "read,lseek"; /* its reader modifies it */
	int go;
	pid_t pid = waiting(known_calls, &go), tracer;
	struct tally t;

	(void)state;
	tracer = trace_with(pid, (const char *const[]){"--call", calls, NULL});
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_int_equal(t.of[SYS_read], 600);
	assert_int_equal(t.of[SYS_lseek], 300);
	assert_int_equal(t.calls, 900);
	assert_int_equal(t.known, 600); /* by opens and pipes that are not recorded */
}

static void test_filter_by_thread(void **state)
{
	char number[16];
	int go;
	pid_t pid = waiting(many_threads, &go), tracer;
	struct tally t;

	(void)state;
	snprintf(number, sizeof(number), "%d", pid);
	tracer = trace_with(pid, (const char *const[]){"--tid", number, NULL});
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_true(t.calls > THREADS);
	assert_int_equal(t.of[SYS_getppid], 0);
}

static void test_filter_by_path(void **state)
{
	int go;
	pid_t pid = waiting(known_calls, &go), tracer;
	struct tally t;

	(void)state;
	tracer = trace_with(pid, (const char *const[]){"--path", "/dev/zero", NULL});
	let_run(pid, go);
	assert_int_equal(wait_exit(tracer), 0);
	t = read_log(log_path);
	assert_int_equal(t.of[SYS_read], 300);
	assert_int_equal(t.of[SYS_openat], 300);
	assert_int_equal(t.of[SYS_write] + t.of[SYS_getppid], 0);
	assert_int_equal(t.of[SYS_close], 300);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static long resident_kib(void)
{
	char *text;
	long kib;

	assert_int_equal(file_read("/proc/self/status", &text, NULL, NULL), 0);
	kib = strtol(strstr(text, "VmRSS:") + 6, NULL, 10);
	free(text);
	return kib;
}

/* The memory that rounds from WARM on may add, in KiB: 43 each. They add at most 50 in total. The
 * sanitizer keeps freed memory for a while. */
#ifdef __SANITIZE_ADDRESS__
#define ROUNDS_KIB 4096
#else
#define ROUNDS_KIB (43 * (ROUNDS - WARM))
#endif

/* Round after round in one process: memory must not grow. In the first rounds each mode warms
 * up. */
static void rounds(void)
{
	char *const command[] = {(char *)"/bin/true", NULL};
	struct trace_request r = {
		.tracer = "ebpf", .out = log_path, .ready_fd = -1, .command = (char **)command};
	const struct itimerval none = {{0}};
	int fds = 0;
	struct err e;
	long kib = 0;

	for (int i = 0; i < ROUNDS; i++) {
		r.mode = i % 2 ? TRACE_SUMS : i % 4 ? TRACE_FLOW : TRACE_EVENTS;
		r.heads = r.mode == TRACE_FLOW;
		r.ring_ns = r.heads ? 1000000000 : 0;
		r.ring_bytes = 1 << 20;
		if (ebpf_trace(&r, &e))
			_exit(2);
		/* Its tick would interrupt the next loading: a tracer loads before it ticks. */
		setitimer(ITIMER_REAL, &none, NULL);
		unlink(log_path);
		if (i == WARM - 1) {
			fds = open_fds();
			kib = resident_kib();
		}
	}
	_exit(open_fds() != fds ? 3 : resident_kib() > kib + ROUNDS_KIB ? 4 : 0);
}

static void test_rounds_leave_no_memory(void **state)
{
	int go;
	pid_t pid = waiting(rounds, &go);

	(void)state;
	let_run(pid, go);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_recorded_and_lost_calls_add_up, fresh),
		cmocka_unit_test_setup(test_a_thousand_threads, fresh),
		cmocka_unit_test_setup(test_forks_and_execs, fresh),
		cmocka_unit_test_setup(test_numbers_reused_at_once, fresh),
		cmocka_unit_test_setup(test_ptrace_and_ebpf_see_the_same, fresh),
		cmocka_unit_test_setup(test_two_at_once, fresh),
		cmocka_unit_test_setup(test_filter_by_call, fresh),
		cmocka_unit_test_setup(test_filter_by_thread, fresh),
		cmocka_unit_test_setup(test_filter_by_path, fresh),
		cmocka_unit_test_setup(test_rounds_leave_no_memory, fresh),
	};
	struct err why;

	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	/* each tracer loads its programs, which alone takes most of a second */
	patient_alarm(1500);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
