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

#include "ci/tests/scratch.h"
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
	rc = doctor_show_errnos(folder, folder, &e);
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

/* The runs are made up: main is the program that is started for them. It notes its words; the run
 * of the scenario $FAILS ends with 3, before anything counts, and others are the recorded one. */
static int made_up_run(char **argv)
{
	const char *scenario = strrchr(argv[2], '/') + 1, *fails = getenv("FAILS");
	char *recorded, command[1024];
	struct err e;
	FILE *log = fopen(getenv("RUNS"), "ae");

	fprintf(log, "%s %s\n", scenario, argv[4]);
	fclose(log);
	if (home_path("results/runs/errors-20261121", &recorded, &e))
		return 4;
	snprintf(command, sizeof(command), "cp -r '%s' '%s'", recorded, argv[4]);
	free(recorded);
	if (system(command))
		return 4;
	return fails && !strcmp(fails, scenario) ? 3 : 0;
}

/* What it does when the run of the scenario 'fails' fails; the runs that it began, in order. */
static char *learned(const char *fails, int want)
{
	char path[128], *runs = NULL;
	struct err e;
	int saved = dup(1), null = open("/dev/null", O_WRONLY), code;

	snprintf(path, sizeof(path), "%s/runs", dir);
	unlink(path);
	setenv("RUNS", path, 1);
	setenv("TMPDIR", dir, 1);
	if (fails)
		setenv("FAILS", fails, 1);
	else
		unsetenv("FAILS");
	fflush(stdout);
	dup2(null, 1);
	code = doctor_learn_errnos(NULL);
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	close(null);
	assert_int_equal(code, want);
	assert_int_equal(file_read(path, &runs, NULL, &e), 0);
	unlink(path);
	return runs;
}

/* Nothing but what the test itself made. */
static void nothing_is_left(void)
{
	char command[256];

	snprintf(command, sizeof(command), "test -z \"$(ls -A '%s')\"", dir);
	assert_int_equal(system(command), 0);
}

static void the_control_is_first_and_its_failure_ends_it(void **state)
{
	char *runs = learned("control.lua", 3);

	(void)state;
	has(runs, "control.lua ");
	assert_null(strstr(runs, "scenario.lua"));
	nothing_is_left();
	free(runs);

	runs = learned(NULL, 0);
	assert_int_equal(strncmp(runs, "control.lua ", 12), 0);
	has(runs, "\nscenario.lua ");
	nothing_is_left();
	free(runs);

	/* What was confirmed before the run with faults gave up is shown. */
	runs = learned("scenario.lua", 0);
	nothing_is_left();
	free(runs);
}

int main(int argc, char **argv)
{
	if (argc > 4 && !strcmp(argv[1], "run"))
		return made_up_run(argv);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorded_run_shows_what_applications_saw),
		cmocka_unit_test(the_control_is_first_and_its_failure_ends_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
