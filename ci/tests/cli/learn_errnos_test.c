/* culprit doctor --learn-errnos: what it reads from a recorded run of the lab's GlusterFS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/cli/doctor.h"

/* What it prints of a run; the caller frees. */
static char *shown(const char *run, int want)
{
	char path[] = "/tmp/learn_errnos_test-XXXXXX", *folder = NULL, *text = NULL;
	int fd = mkstemp(path), saved = dup(1), rc;
	struct err e = {""};

	assert_true(fd >= 0);
	assert_int_equal(home_path(run, &folder, &e), 0);
	fflush(stdout);
	dup2(fd, 1);
	rc = doctor_show_errnos(folder, &e);
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	close(fd);
	if (rc != want)
		fail_msg("%d, not %d: %s", rc, want, e.text);
	assert_int_equal(file_read(path, &text, NULL, &e), 0);
	unlink(path);
	free(folder);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

/* The part of the text on the first cell of a fault. */
static char *section(const char *text, const char *begin)
{
	const char *from = strstr(text, begin), *to;

	assert_non_null(from);
	to = strstr(from, "\n\n");
	return strndup(from, to ? (size_t)(to - from) : strlen(from));
}

static void a_recorded_run_shows_what_applications_saw(void **state)
{
	char *text = shown("results/runs/errors-20261121", 0), *part;

	(void)state;
	part = section(text, "\nkill of ");
	has(part, "ENOTCONN");
	has(part, "after the onset");
	free(part);
	part = section(text, "\nhang of ");
	has(part, "applications no failure");
	has(part, "the longest call took 1"); /* as long as the fault: it waited for it */
	has(part, "the fault lasted 1");
	free(part);
	part = section(text, "\nerr-fsize of ");
	has(part, "EFBIG");
	has(part, "server       pwrite64 EFBIG");
	free(part);
	/* It agrees with the file: unchanged errnos have no entry. */
	has(text, "lost_errnos = { \"ENOTCONN\"");
	assert_null(strstr(text, "EFBIG = {"));
	assert_null(strstr(text, "EROFS = {"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorded_run_shows_what_applications_saw),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
