/*
 * Tests the records of calls on files in every tracer: the 42 calls of Esteves et al. 2023 and
 * newer variants, each with its path or its descriptor's file; offsets; file tags. The traced
 * program is this one, started again with --calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/built.h"
#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "harness/base/file.h"

#if defined(__x86_64__)
#define ARCH "x86_64"
#else
#define ARCH "aarch64"
#endif

/* Calls that name a file. Each is made with DIR/NAME (and DIR/NAME.2), which usually does not
 * exist. */
static const char *const by_path[] = {
	"open",
	"openat",
	"openat2",
	"creat",
	"stat",
	"lstat",
	"newfstatat",
	"statx",
	"statfs",
	"truncate",
	"rename",
	"renameat",
	"renameat2",
	"unlink",
	"unlinkat",
	"readlink",
	"readlinkat",
	"getxattr",
	"lgetxattr",
	"setxattr",
	"lsetxattr",
	"listxattr",
	"llistxattr",
	"removexattr",
	"lremovexattr",
	"mknod",
	"mknodat",
	"mkdir",
	"mkdirat",
	"rmdir",
	"access",
	"faccessat",
	"faccessat2",
	"link",
	"linkat",
	"symlink",
	"symlinkat",
	"chmod",
	"fchmodat",
	"chown",
	"lchown",
	"fchownat",
};
/* Calls that take a descriptor: of DIR/file, with all other arguments 0. */
static const char *const by_fd[] = {
	"read",
	"pread64",
	"readv",
	"preadv",
	"preadv2",
	"write",
	"pwrite64",
	"writev",
	"pwritev",
	"pwritev2",
	"fsync",
	"fdatasync",
	"readahead",
	"lseek",
	"ftruncate",
	"fstat",
	"fstatfs",
	"fgetxattr",
	"fsetxattr",
	"flistxattr",
	"fremovexattr",
	"copy_file_range",
	"sync_file_range",
	"fallocate",
	"fadvise64",
	"getdents64",
	"flock",
	"close",
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char dir[] = "/tmp/culprit-file-calls-XXXXXX", self[4000], agent[4096], log_path[64];

/* Some of DIR/NAME's strings end at a page boundary, so that no tracer may rely on reading a fixed
 * length. */
static void make_calls(const char *folder)
{
	char path[4096], second[4096], data[26] = "";
	off_t from = 3000;
	int fd, ends[2];

	for (size_t i = 0; i < COUNT(by_path); i++) {
		int nr = call_number(ARCH, by_path[i]);
		const struct call_info *info = nr < 0 ? NULL
						      : call_info(call_arch(ARCH), (uint32_t)nr);
		long args[6] = {0};

		if (!info)
			continue; /* of another architecture */
		snprintf(path, sizeof(path), "%s/%s", folder, by_path[i]);
		snprintf(second, sizeof(second), "%s/%s.2", folder, by_path[i]);
		args[info->path] = (long)path;
		if (info->path2 >= 0)
			args[info->path2] = (long)second;
		syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
	}
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	for (size_t i = 0; i < COUNT(by_fd); i++) {
		int nr = call_number(ARCH, by_fd[i]);

		if (nr >= 0)
			syscall(nr, fd, 0, 0, 0, 0, 0);
	}
	/* Offsets: 26 bytes written at 0; read again in two pieces, also through a duplicate; at an
	 * explicit offset; beyond the end; sent from a pointer's offset and from the file's;
	 * appended. */
	fd = open(path, O_RDWR);
	if (write(fd, data, 26) == 26 && lseek(fd, 0, SEEK_SET) == 0 && read(fd, data, 10) == 10 &&
		read(dup(fd), data, 26) == 16 && pwrite(fd, data, 5, 4000) == 5 &&
		pread(fd, data, 3, 7) == 3 && lseek(fd, 100, SEEK_SET) == 100 && pipe(ends) == 0 &&
		sendfile(ends[1], fd, &from, 9) == 9 && sendfile(ends[1], fd, NULL, 8) == 8 &&
		read(ends[0], data, 17) == 17)
		close(fd);
	fd = open(path, O_WRONLY | O_APPEND);
	if (write(fd, data, 4) == 4)
		close(fd);
}

static int setup(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (n < 0 || !mkdtemp(dir) || !built("agent/culprit-agent", agent))
		return -1;
	self[n] = '\0';
	snprintf(log_path, sizeof(log_path), "%s.log", dir);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(log_path);
	return file_remove_tree(dir, NULL);
}

static int run(char **argv, bool quiet)
{
	int status, null;
	pid_t pid = fork();

	if (pid == 0) {
		null = open("/dev/null", O_WRONLY);
		if (quiet)
			dup2(null, 2);
		execv(argv[0], argv);
		_exit(126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Skips the tracer if the kernel refuses it (2); any other failure is a defect. */
static bool has_tracer(const char *name)
{
	char *argv[] = {agent, (char *)"trace", (char *)"--tracer", (char *)name, (char *)"--out",
		log_path, (char *)"--", (char *)"/bin/true", NULL};
	int code;

	unlink(log_path);
	code = run(argv, true);
	assert_true(code == 0 || code == 2);
	return code == 0;
}

static struct log_reader *trace(const char *tracer)
{
	char *argv[] = {agent, (char *)"trace", (char *)"--tracer", (char *)tracer, (char *)"--out",
		log_path, (char *)"--", self, (char *)"--calls", dir, NULL};
	struct log_reader *r;
	struct err e;

	if (!has_tracer(tracer))
		skip();
	unlink(log_path);
	assert_int_equal(run(argv, false), 0);
	if (log_reader_new(log_path, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

static void expect_path(const char *got, const char *name, const char *suffix)
{
	char want[4096];

	snprintf(want, sizeof(want), "%s/%s%s", dir, name, suffix);
	if (!got || strcmp(got, want))
		fail_msg("%s: path '%s' and not '%s'", name, got ? got : "(none)", want);
}

/* Marks the call's name in a list; false if it is not listed. */
static bool seen(const char *const *list, size_t n, bool *marks, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], name)) {
			marks[i] = true;
			return true;
		}
	return false;
}

static bool in_folder(const char *path)
{
	return path && !strncmp(path, dir, strlen(dir));
}

static void each_call_has_its_file(const char *tracer)
{
	bool path_seen[COUNT(by_path)] = {0}, fd_seen[COUNT(by_fd)] = {0};
	struct log_reader *r = trace(tracer);
	struct fdtable *fds = fdtable_new();
	const struct record *rec;
	struct err e;
	int rc;

	while ((rc = log_next(r, &rec, &e)) == 1) {
		const struct call_info *info;
		const struct fd_state *s;

		fdtable_feed(fds, rec);
		if (rec->type != RECORD_CALL)
			continue;
		info = call_info(call_arch(ARCH), rec->call.nr);
		s = info && info->fd >= 0
			? fdtable_get(fds, rec->call.pid, (int32_t)rec->call.args[info->fd])
			: NULL;
		if (info && in_folder(rec->call.path) &&
			seen(by_path, COUNT(by_path), path_seen, info->name)) {
			if (strcmp(rec->call.path + strlen(dir), "/file"))
				expect_path(rec->call.path, info->name, "");
			if (info->path2 >= 0)
				expect_path(rec->call.path2, info->name, ".2");
		} else if (s && in_folder(s->now.path) &&
			seen(by_fd, COUNT(by_fd), fd_seen, info->name)) {
			expect_path(s->now.path, "file", "");
		}
	}
	if (rc)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < COUNT(by_path); i++)
		if (!path_seen[i] && call_number(ARCH, by_path[i]) >= 0)
			fail_msg("%s was not recorded with its path", by_path[i]);
	for (size_t i = 0; i < COUNT(by_fd); i++)
		if (!fd_seen[i] && call_number(ARCH, by_fd[i]) >= 0)
			fail_msg("%s was not recorded with its descriptor's file", by_fd[i]);
	fdtable_free(fds);
	log_reader_free(r);
}

/* The calls of the second half of make_calls that had an effect, in order. */
static void offsets_are_told(const char *tracer)
{
	static const struct {
		const char *name;
		int64_t result, offset;
	} want[] = {
		{"write", 26, 0},
		{"lseek", 0, 0},
		{"read", 10, 0},
		{"read", 16, 10},
		{"pwrite64", 5, 4000},
		{"pread64", 3, 7},
		{"lseek", 100, 100},
		{"sendfile", 9, 3000},
		{"sendfile", 8, 100},
		{"read", 17, -1}, /* of a pipe */
		{"write", 4, 4005},
	};
	struct log_reader *r = trace(tracer);
	struct fdtable *fds = fdtable_new();
	const struct record *rec;
	size_t at = 0;
	int opens = 0;
	struct err e;

	while (log_next(r, &rec, &e) == 1) {
		const struct record_call *c = &rec->call;
		const char *name = rec->type == RECORD_CALL ? call_name(ARCH, c->nr) : NULL;

		fdtable_feed(fds, rec);
		if (rec->type == RECORD_FD && rec->fd.open && in_folder(rec->fd.path) &&
			strstr(rec->fd.path, "/file"))
			opens++;
		if (opens < 2 || at == COUNT(want) || !name || strcmp(name, want[at].name) ||
			c->result != want[at].result)
			continue;
		assert_int_equal(c->offset, want[at].offset);
		at++;
	}
	assert_int_equal(at, COUNT(want));
	fdtable_free(fds);
	log_reader_free(r);
}

static void tags_say_which_file(const char *tracer)
{
	struct log_reader *r = trace(tracer);
	const struct record *rec;
	struct file_tag first = {0};
	char path[4096];
	struct stat st;
	int opens = 0;
	struct err e;

	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(stat(path, &st), 0);
	while (log_next(r, &rec, &e) == 1) {
		const struct file_tag *tag = &rec->fd.tag;

		if (rec->type != RECORD_FD || !rec->fd.open || strcmp(rec->fd.path, path))
			continue;
		assert_int_equal(tag->device, st.st_dev);
		assert_int_equal(tag->inode, st.st_ino);
		if (!opens++)
			first = *tag;
		assert_int_equal(tag->first_ns, first.first_ns); /* the same file, met before */
		assert_true(tag->first_ns >= log_reader_head(r)->start_ns);
		assert_true(tag->first_ns <= rec->fd.start_ns);
	}
	assert_int_equal(opens, 4); /* three times opened, once duplicated */
	log_reader_free(r);
}

static void ptrace_each_call_has_its_file(void **state)
{
	(void)state;
	each_call_has_its_file("ptrace");
}

static void ptrace_offsets_of_every_call(void **state)
{
	(void)state;
	offsets_are_told("ptrace");
}

static void ptrace_tags_identify_files(void **state)
{
	(void)state;
	tags_say_which_file("ptrace");
}

static void ebpf_each_call_has_its_file(void **state)
{
	(void)state;
	each_call_has_its_file("ebpf");
}

static void ebpf_offsets_of_every_call(void **state)
{
	(void)state;
	offsets_are_told("ebpf");
}

static void ebpf_tags_identify_files(void **state)
{
	(void)state;
	tags_say_which_file("ebpf");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptrace_each_call_has_its_file),
		cmocka_unit_test(ptrace_offsets_of_every_call),
		cmocka_unit_test(ptrace_tags_identify_files),
		cmocka_unit_test(ebpf_each_call_has_its_file),
		cmocka_unit_test(ebpf_offsets_of_every_call),
		cmocka_unit_test(ebpf_tags_identify_files),
	};

	if (argc == 3 && !strcmp(argv[1], "--calls")) {
		make_calls(argv[2]);
		return 0;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
