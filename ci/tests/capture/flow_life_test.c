/*
 * Tests the records around calls in a log of flows: names of threads, set by any thread, and
 * requests to a FUSE mount, from the application's thread to the answering daemon. The traced
 * program is this one, started again with --names or --mount.
 */
#include "ci/tests/capture/tracing.h"

#include <bpf/libbpf.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

static char self[4096], mount_point[128];

/* ---- threads with names ---- */

static _Atomic bool may_end;

static void *wait_long(void *ctx)
{
	*(_Atomic pid_t *)ctx = gettid();
	while (!may_end)
		sched_yield();
	return NULL;
}

static void set_name(pid_t tid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)tid);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, name, strlen(name)) < 0)
		_exit(1);
	close(fd);
}

static void *name_itself(void *ctx)
{
	prctl(PR_SET_NAME, "itself");
	return ctx;
}

static int take_names(void)
{
	_Atomic pid_t tid = 0;
	pthread_t thread, other;

	pthread_create(&thread, NULL, wait_long, (void *)&tid);
	while (!tid)
		sched_yield();
	set_name(tid, "by-another");
	set_name(getpid(), "main \n");
	pthread_create(&other, NULL, name_itself, NULL);
	pthread_join(other, NULL);
	may_end = true;
	pthread_join(thread, NULL);
	execl("/bin/true", "true", NULL);
	return 1;
}

static void check_names(bool sums)
{
	unsigned another = 0, itself = 0, leader = 0, total = 0, execs = 0;
	const struct record *rec;
	struct log_reader *r;
	struct err e;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		const struct record_process *p = &rec->process;

		if (rec->type != RECORD_PROCESS)
			continue;
		execs += p->what == PROCESS_EXEC;
		if (p->what != PROCESS_NAME)
			continue;
		total++;
		another += p->tid != p->pid && !strcmp(p->name, "by-another");
		itself += p->tid != p->pid && !strcmp(p->name, "itself");
		leader += p->tid == p->pid && !strcmp(p->name, "main \n");
	}
	log_reader_free(r);
	/* A new program's name comes with its EXEC, not as a NAME. */
	assert_true(execs > 0);
	assert_int_equal(another, !sums);
	assert_int_equal(itself, !sums);
	assert_int_equal(leader, !sums);
	assert_int_equal(total, sums ? 0 : 3);
}

static void test_names_are_followed(void **state)
{
	static const char *const modes[] = {"events", "flow", "sums"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const char *what[] = {"--mode", modes[i], "--", self, "--names", NULL};

		unlink(log_path);
		assert_int_equal(wait_exit(trace(what, NULL)), 0);
		check_names(i == 2);
	}
}

/* ---- a file system of one file ---- */

enum { NODE = 77, SIZE = 1000 };

static void answer(int fd, uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + size), .error = error, .unique = unique};
	struct iovec v[] = {{&out, sizeof(out)}, {(void *)data, size}};

	if (writev(fd, v, 2) < 0)
		_exit(1);
}

static void serve_one(int fd, const struct fuse_in_header *in, const void *body)
{
	struct fuse_attr attr = {.ino = in->nodeid, .size = SIZE, .nlink = 1};
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = 65536};
	struct fuse_entry_out entry = {.nodeid = NODE};
	struct fuse_attr_out attrs = {0};
	struct fuse_open_out open_out = {.open_flags = FOPEN_DIRECT_IO};
	char data[SIZE] = "";

	attr.mode = in->nodeid == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
	attrs.attr = entry.attr = attr;
	entry.attr.ino = NODE;
	entry.attr.mode = S_IFREG | 0644;
	switch (in->opcode) {
	case FUSE_INIT: answer(fd, in->unique, 0, &init, sizeof(init)); break;
	case FUSE_LOOKUP:
		if (strcmp(body, "file"))
			answer(fd, in->unique, -ENOENT, NULL, 0);
		else
			answer(fd, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR: answer(fd, in->unique, 0, &attrs, sizeof(attrs)); break;
	case FUSE_OPEN: answer(fd, in->unique, 0, &open_out, sizeof(open_out)); break;
	case FUSE_READ: {
		const struct fuse_read_in *r = body;

		answer(fd, in->unique, 0, data, r->size < SIZE ? r->size : SIZE);
		break;
	}
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	case FUSE_RELEASE: answer(fd, in->unique, 0, NULL, 0); break;
	default: answer(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(int fd)
{
	static char buffer[FUSE_MIN_READ_BUFFER + 65536];

	for (;;) {
		ssize_t n = read(fd, buffer, sizeof(buffer));

		if (n < 0 && (errno == ENOENT || errno == EINTR || errno == EAGAIN))
			continue;
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			_exit(0); /* unmounted */
		serve_one(fd, (void *)buffer, buffer + sizeof(struct fuse_in_header));
	}
}

/* Reads the file ten times, and looks for a missing one. */
static int use_mount(const char *at)
{
	char options[128], path[256], data[SIZE];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	pid_t daemon;
	bool good;

	if (fd < 0 || unshare(CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 2;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("flow-test", at, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return 2;
	daemon = fork();
	if (daemon == 0)
		serve(fd);
	close(fd);
	snprintf(path, sizeof(path), "%s/file", at);
	fd = open(path, O_RDONLY);
	good = fd >= 0;
	for (int i = 0; i < 10 && good; i++)
		good = pread(fd, data, 100, i * 10) == 100;
	close(fd);
	snprintf(path, sizeof(path), "%s/none", at);
	good = good && access(path, F_OK) < 0 && errno == ENOENT;
	umount2(at, MNT_DETACH);
	kill(daemon, SIGKILL);
	waitpid(daemon, NULL, 0);
	return good ? 0 : 1;
}

struct requests {
	uint64_t unique[16];
	unsigned reads, taken, answered, ended, refused;
	uint32_t application, daemon, device;
};

static bool is_one(const struct requests *q, uint64_t unique)
{
	for (unsigned i = 0; i < q->reads; i++)
		if (q->unique[i] == unique)
			return true;
	return false;
}

static void look_at_fuse(struct requests *q, const struct record_fuse *f)
{
	q->refused += f->ended && f->opcode == FUSE_LOOKUP && f->error == -ENOENT;
	if (f->opcode != FUSE_READ)
		return;
	assert_int_equal(f->nodeid, NODE);
	if (f->ended) {
		assert_true(is_one(q, f->unique));
		assert_int_equal(f->error, 0);
		assert_int_not_equal(f->tid, q->application);
		q->daemon = f->pid;
		assert_int_equal(f->device, q->device);
		q->ended++;
		return;
	}
	assert_false(is_one(q, f->unique));
	q->unique[q->reads++ % 16] = f->unique;
	q->application = f->tid;
	q->device = f->device;
}

/* The daemon's reads and writes begin with a header, with 'unique' at byte 8 in both directions. */
static void look_at_head(struct requests *q, const struct record_call *c)
{
	uint64_t unique;

	if (c->head_size < 16)
		return;
	assert_false(c->positioned);
	memcpy(&unique, c->head + 8, 8);
	if (!is_one(q, unique))
		return;
	q->taken += c->nr == SYS_read && c->head_size == RECORD_HEAD;
	q->answered += c->nr == SYS_writev && c->head_size == RECORD_HEAD;
}

static void test_requests_are_followed(void **state)
{
	const char *what[] = {
		"--mode", "flow", "--heads", "--", self, "--mount", mount_point, NULL};
	struct requests q = {0};
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	int code;

	(void)state;
	if (libbpf_find_vmlinux_btf_id("fuse_request_send", BPF_TRACE_RAW_TP) <= 0)
		skip(); /* the tracepoint exists since Linux 6.10 */
	snprintf(mount_point, sizeof(mount_point), "%s/mount", dir);
	assert_int_equal(mkdir(mount_point, 0700), 0);
	code = wait_exit(trace(what, NULL));
	if (code == 2)
		skip(); /* no mounts possible here */
	assert_int_equal(code, 0);
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		if (rec->type == RECORD_FUSE)
			look_at_fuse(&q, &rec->fuse);
		if (rec->type == RECORD_CALL)
			look_at_head(&q, &rec->call);
	}
	log_reader_free(r);
	assert_int_equal(q.reads, 10);
	assert_int_equal(q.taken, 10);
	assert_int_equal(q.answered, 10);
	assert_int_equal(q.ended, 10);
	assert_true(q.refused > 0);
	assert_true(q.daemon && q.daemon != q.application);
}

int main(int argc, char **argv)
{
	struct err why;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_names_are_followed, fresh),
		cmocka_unit_test_setup(test_requests_are_followed, fresh),
	};

	if (argc == 2 && !strcmp(argv[1], "--names"))
		return take_names();
	if (argc == 3 && !strcmp(argv[1], "--mount")) {
		patient_alarm(600);
		return use_mount(argv[2]);
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
