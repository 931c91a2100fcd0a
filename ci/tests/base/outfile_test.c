/* Output written in pieces: complete files or none, and the reason for a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "harness/base/outfile.h"

static char path[128];

static void expect_text(const char *want)
{
	char *text;

	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_string_equal(text, want);
	free(text);
}

static int files(void)
{
	DIR *d = opendir(dir);
	int n = -2;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int begin(void **state)
{
	int rc = make_dir(state);

	snprintf(path, sizeof(path), "%s/out", dir);
	return rc;
}

static void a_file_is_there_once_it_is_whole(void **state)
{
	struct outfile s;
	struct err e = {""};

	(void)state;
	assert_int_equal(outfile_open(&s, path, &e), 0);
	fputs("one", s.f);
	fflush(s.f);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(outfile_close(&s, 0, &e), 0);
	expect_text("one");
	assert_int_equal(files(), 1);
	assert_int_equal(outfile_close(&s, 0, &e), 0);
}

static void a_failed_write_keeps_the_old_file(void **state)
{
	struct outfile s;
	struct err e = {""};

	(void)state;
	assert_int_equal(file_write_atomic(path, 0644, "old", 3, &e), 0);
	assert_int_equal(outfile_open(&s, path, &e), 0);
	fputs("new", s.f);
	err_set(&e, -EINVAL, "the writer's own");
	assert_int_equal(outfile_close(&s, -EINVAL, &e), -EINVAL);
	assert_string_equal(e.text, "the writer's own");
	expect_text("old");
	assert_int_equal(files(), 1);
}

static void a_device_stays_one(void **state)
{
	struct outfile s;
	struct err e = {""};
	struct stat st;

	(void)state;
	/* Through a link: the kind of the path must be determined after resolving it. */
	assert_int_equal(symlink("/dev/full", path), 0);
	assert_int_equal(outfile_open(&s, path, &e), 0);
	fputs("much", s.f);
	assert_int_equal(outfile_close(&s, 0, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "/out': No space left on device"));
	assert_int_equal(e.class, ERR_HARNESS);
	assert_int_equal(files(), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

/* stdio has dropped unwritten data, and its errno. */
static void the_reason_is_found_by_a_second_write(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	struct err e = {""};

	(void)state;
	fputs("much", f);
	fflush(f);
	errno = 0;
	assert_int_equal(outfile_flush(f, &e), -ENOSPC);
	assert_string_equal(e.text, "cannot write to standard output: No space left on device");
	fclose(f);
}

static void folders_and_silent_fifos_are_refused(void **state)
{
	struct outfile s;
	struct err e = {""};

	(void)state;
	assert_int_equal(outfile_open(&s, dir, &e), -EISDIR);
	assert_int_equal(e.class, ERR_USAGE);
	assert_int_equal(mkfifo(path, 0600), 0);
	e = (struct err){""};
	assert_int_equal(outfile_open(&s, path, &e), -ENXIO);
	assert_non_null(strstr(e.text, "it is a FIFO without a reader"));
	snprintf(path, sizeof(path), "%s/none/out", dir);
	e = (struct err){""};
	assert_int_equal(outfile_open(&s, path, &e), -ENOENT);
	assert_int_equal(e.class, ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_file_is_there_once_it_is_whole, begin, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_failed_write_keeps_the_old_file, begin, remove_dir),
		cmocka_unit_test_setup_teardown(a_device_stays_one, begin, remove_dir),
		cmocka_unit_test_setup_teardown(
			the_reason_is_found_by_a_second_write, begin, remove_dir),
		cmocka_unit_test_setup_teardown(
			folders_and_silent_fifos_are_refused, begin, remove_dir),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
