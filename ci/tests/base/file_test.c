/* Files are replaced atomically; other kinds of files are written to and keep their kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "ci/tests/scratch.h"

static char *in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static int put(const char *path, const char *text, struct err *e)
{
	return file_write_atomic(path, 0640, text, strlen(text), e);
}

static void expect_text(const char *path, const char *want)
{
	char *text;

	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_string_equal(text, want);
	free(text);
}

static mode_t type_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & S_IFMT;
}

static unsigned files_in(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void a_file_is_replaced(void **state)
{
	char *path = in_dir("plain");
	struct stat st;

	(void)state;
	assert_int_equal(put(path, "old", NULL), 0);
	assert_int_equal(put(path, "new", NULL), 0);
	expect_text(path, "new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_link_stays_and_its_target_is_replaced(void **state)
{
	char *sub = in_dir("sub");

	(void)state;
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(put(in_dir("sub/target"), "old", NULL), 0);
	assert_int_equal(symlink("target", in_dir("sub/relative")), 0);
	assert_int_equal(symlink(in_dir("sub/relative"), in_dir("link")), 0);
	assert_int_equal(put(in_dir("link"), "new", NULL), 0);
	expect_text(in_dir("sub/target"), "new");
	assert_int_equal(type_of(in_dir("link")), S_IFLNK);
	assert_int_equal(type_of(in_dir("sub/relative")), S_IFLNK);
	/* A dangling link makes the file; a link to itself is refused. */
	assert_int_equal(symlink("sub/fresh", in_dir("dangling")), 0);
	assert_int_equal(put(in_dir("dangling"), "made", NULL), 0);
	expect_text(in_dir("sub/fresh"), "made");
	assert_int_equal(type_of(in_dir("dangling")), S_IFLNK);
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	assert_int_equal(put(in_dir("loop"), "x", NULL), -ELOOP);
	assert_int_equal(type_of(in_dir("loop")), S_IFLNK);
}

static void a_fifo_is_written_to(void **state)
{
	char *path = in_dir("fifo"), got[8] = "";
	int fd;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(put(path, "nobody reads", NULL), -ENXIO);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(put(path, "through", NULL), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 7);
	assert_string_equal(got, "through");
	assert_int_equal(type_of(path), S_IFIFO);
	close(fd);
}

/* A private device node: /dev/null itself would be replaced if this failed. */
static void a_device_is_written_to(void **state)
{
	char *path = in_dir("null");
	struct err e;
	struct stat st;

	(void)state;
	if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0 || access(path, W_OK) < 0)
		skip();
	assert_int_equal(put(path, "gone", NULL), 0);
	assert_int_equal(type_of(path), S_IFCHR);
	assert_int_equal(symlink("null", in_dir("to-null")), 0);
	assert_int_equal(put(in_dir("to-null"), "gone", NULL), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_rdev, makedev(1, 3));
	assert_int_equal(type_of(in_dir("to-null")), S_IFLNK);
	path = in_dir("full");
	assert_int_equal(mknod(path, S_IFCHR | 0600, makedev(1, 7)), 0);
	assert_int_equal(put(path, "x", &e), -ENOSPC);
	assert_non_null(strstr(e.text, "No space left"));
	assert_int_equal(type_of(path), S_IFCHR);
}

/* Files that would block forever and non-files are refused; what the shell passes is opened. */
static void only_files_are_opened_for_reading(void **state)
{
	char *path = in_dir("nobody-writes"), through[64], got[8] = "";
	struct err e;
	int ends[2], fd;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_open_readable(path, "the log ", &e), -EINVAL);
	assert_non_null(strstr(e.text, "it is a FIFO, not a file"));
	assert_int_equal(file_open_readable(dir, "", &e), -EISDIR);
	assert_int_equal(file_open_readable(in_dir("none"), "the log ", &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot open the log '"));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(through, sizeof(through), "/proc/self/fd/%d", ends[0]);
	fd = file_open_readable(through, "", &e);
	assert_true(fd >= 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(read(fd, got, sizeof(got)), 1);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void sockets_and_folders_are_refused(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct err e;

	(void)state;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(put(a.sun_path, "x", NULL), -ENXIO);
	assert_int_equal(file_open_readable(a.sun_path, "", &e), -EINVAL);
	assert_non_null(strstr(e.text, "it is a socket, not a file"));
	assert_int_equal(type_of(a.sun_path), S_IFSOCK);
	assert_int_equal(put(dir, "x", NULL), -EISDIR);
	close(fd);
}

/* Below /proc a link's text is not a path: a file behind standard output is appended to, not
 * replaced under the shell that opened it. */
static void standard_output_is_appended_to(void **state)
{
	char *path = in_dir("redirected"), through[64];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(fd, "first ", 6), 6);
	snprintf(through, sizeof(through), "/proc/self/fd/%d", fd);
	assert_int_equal(put(through, "second", NULL), 0);
	expect_text(path, "first second");
	close(fd);
}

/* A limit on file sizes simulates a full disk. */
static void no_partial_file_is_left(void **state)
{
	struct rlimit was, small;
	char big[4096];
	struct file_text t;
	char *sub = in_dir("tight");

	(void)state;
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(put(in_dir("tight/old"), "old", NULL), 0);
	memset(big, 'x', sizeof(big));
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small = (struct rlimit){1000, was.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(file_write_atomic(in_dir("tight/old"), 0600, big, 4096, NULL), -EFBIG);
	assert_int_equal(file_write_atomic(in_dir("tight/new"), 0600, big, 4096, NULL), -EFBIG);
	assert_int_equal(file_text_open(&t, NULL), 0);
	fwrite(big, 1, sizeof(big), t.f);
	assert_int_equal(file_text_save(&t, in_dir("tight/text"), 0600, NULL), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &was);
	expect_text(in_dir("tight/old"), "old");
	assert_int_equal(files_in(in_dir("tight")), 1);
}

static uid_t owner(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in_dir(name), &st), 0);
	return st.st_uid;
}

static void only_files_made_under_sudo_go_to_the_user(void **state)
{
	enum { USER = 4242 };

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(file_mkdirs(in_dir("home/run/cells"), 0700, NULL), 0);
	assert_int_equal(put(in_dir("home/run/cells/trace"), "x", NULL), 0);
	assert_int_equal(put(in_dir("secret"), "root's", NULL), 0);
	assert_int_equal(put(in_dir("home/run/of-another"), "x", NULL), 0);
	assert_int_equal(chown(in_dir("home/run/of-another"), 77, 77), 0);
	assert_int_equal(symlink(in_dir("secret"), in_dir("home/run/link")), 0);
	assert_int_equal(link(in_dir("secret"), in_dir("home/run/hard")), 0);

	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	file_give_to_sudo_user(in_dir("home/run"));
	assert_int_equal(owner("home/run"), 0);
	setenv("SUDO_UID", "4242", 1);
	setenv("SUDO_GID", "4242", 1);
	file_give_to_sudo_user(in_dir("home/run"));
	assert_int_equal(owner("home/run"), 0); /* the folder that it is in is root's */
	assert_int_equal(chown(in_dir("home"), USER, USER), 0);
	file_give_to_sudo_user(in_dir("home/run"));
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");

	assert_int_equal(owner("home/run"), USER);
	assert_int_equal(owner("home/run/cells"), USER);
	assert_int_equal(owner("home/run/cells/trace"), USER);
	assert_int_equal(owner("home/run/of-another"), 77);
	assert_int_equal(owner("home/run/link"), 0);
	assert_int_equal(owner("home/run/hard"), 0);
	assert_int_equal(owner("secret"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced),
		cmocka_unit_test(a_link_stays_and_its_target_is_replaced),
		cmocka_unit_test(a_fifo_is_written_to),
		cmocka_unit_test(a_device_is_written_to),
		cmocka_unit_test(only_files_are_opened_for_reading),
		cmocka_unit_test(sockets_and_folders_are_refused),
		cmocka_unit_test(standard_output_is_appended_to),
		cmocka_unit_test(no_partial_file_is_left),
		cmocka_unit_test(only_files_made_under_sudo_go_to_the_user),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
