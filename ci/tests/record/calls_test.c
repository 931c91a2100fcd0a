/* Tests the table of system calls, by name and number, and the descriptor table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "diag/record/calls.h"
#include "diag/record/fdtable.h"

static void test_call_names(void **state)
{
	static const struct {
		const char *name;
		uint32_t nr;
		enum call_class class;
		int fd;
	} cases[] = {{"recvfrom", 45, CALL_READ, 0}, {"sendfile", 40, CALL_COPY, 1},
		{"getpid", 39, CALL_OTHER, -1}};

	(void)state;
	assert_string_equal(call_name("x86_64", 0), "read");
	assert_string_equal(call_name("x86_64", 327), "preadv2");
	assert_string_equal(call_name("aarch64", 63), "read");
	assert_string_equal(call_name("aarch64", 62), "lseek");
	assert_null(call_name("x86_64", 0x7fffffff));
	assert_null(call_name("vax", 0));
	assert_int_equal(call_number("x86_64", "openat"), 257);
	assert_int_equal(call_number("x86_64", "frobnicate"), -1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct call_info *info = call_info(call_arch("x86_64"), cases[i].nr);

		assert_string_equal(info->name, cases[i].name);
		assert_int_equal(info->class, cases[i].class);
		assert_int_equal(info->fd, cases[i].fd);
	}
}

/* The calls of Esteves et al. 2023, Table I, and newer variants: each has a path or a
 * descriptor. */
static void test_calls_on_files(void **state)
{
	static const char *const paths[] = {
		"open",
		"openat",
		"creat",
		"truncate",
		"rename",
		"renameat",
		"renameat2",
		"unlink",
		"unlinkat",
		"readlink",
		"readlinkat",
		"stat",
		"lstat",
		"newfstatat",
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
		"statx",
		"openat2",
		"link",
		"linkat",
		"symlink",
		"symlinkat",
		"access",
		"faccessat",
		"faccessat2",
		"statfs",
	};
	static const char *const fds[] = {
		"close",
		"read",
		"pread64",
		"readv",
		"write",
		"pwrite64",
		"writev",
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
		"preadv",
		"preadv2",
		"pwritev",
		"pwritev2",
		"copy_file_range",
		"sync_file_range",
		"fallocate",
	};
	const struct call_arch *x86 = call_arch("x86_64");
	const struct call_info *info;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		info = call_info(x86, (uint32_t)call_number("x86_64", paths[i]));
		if (!info || info->path < 0 || info->path >= info->n_args)
			fail_msg("%s has no path", paths[i]);
	}
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		info = call_info(x86, (uint32_t)call_number("x86_64", fds[i]));
		if (!info || info->fd < 0 || info->path >= 0)
			fail_msg("%s has no descriptor, or a path", fds[i]);
	}
	info = call_info(x86, (uint32_t)call_number("x86_64", "renameat2"));
	assert_int_equal(info->path, 1);
	assert_int_equal(info->path2, 3);
	assert_int_equal(info->n_args, 5);
	info = call_info(x86, (uint32_t)call_number("x86_64", "pwrite64"));
	assert_int_equal(info->offset, 3);
	assert_int_equal(info->n_args, 4);
	info = call_info(x86, (uint32_t)call_number("x86_64", "lseek"));
	assert_int_equal(info->offset, -1);
	assert_int_equal(call_info(x86, (uint32_t)call_number("x86_64", "fork"))->n_args, 0);
	assert_int_equal(call_info(x86, (uint32_t)call_number("x86_64", "getpid"))->path, -1);
}

static void feed(struct fdtable *t, uint32_t pid, int fd, const char *name)
{
	struct record rec = {.type = RECORD_FD};

	rec.fd = (struct record_fd){
		.pid = pid, .fd = fd, .open = name != NULL, .kind = FD_FILE, .path = name};
	assert_int_equal(fdtable_feed(t, &rec), 0);
}

static void count(void *ctx, const struct fd_state *s)
{
	(void)s;
	++*(int *)ctx;
}

static void test_fdtable(void **state)
{
	struct record exec = {
		.type = RECORD_PROCESS, .process = {.pid = 1, .tid = 1, .what = PROCESS_EXEC}};
	struct record thread = {
		.type = RECORD_PROCESS, .process = {.pid = 2, .tid = 3, .what = PROCESS_EXIT}};
	struct fdtable *t = fdtable_new();
	int n = 0;

	(void)state;
	for (int fd = 0; fd < 5000; fd++) {
		feed(t, 1, fd, "/one");
		feed(t, 2, fd, "/two");
	}
	assert_string_equal(fdtable_get(t, 1, 4999)->now.path, "/one");
	fdtable_get(t, 1, 7)->object.id = 5;
	assert_int_equal(fdtable_get(t, 1, 7)->object.id, 5);
	feed(t, 1, 7, "/other");
	assert_string_equal(fdtable_get(t, 1, 7)->now.path, "/other");
	assert_int_equal(fdtable_get(t, 1, 7)->object.id, 0);
	feed(t, 1, 8, NULL);
	assert_null(fdtable_get(t, 1, 8));
	fdtable_each(t, 1, count, &n);
	assert_int_equal(n, 4999);
	fdtable_feed(t, &exec);
	assert_null(fdtable_get(t, 1, 7));
	fdtable_feed(t, &thread); /* a thread's end does not change its group's table */
	assert_string_equal(fdtable_get(t, 2, 4999)->now.path, "/two");
	fdtable_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_names),
		cmocka_unit_test(test_calls_on_files),
		cmocka_unit_test(test_fdtable),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
