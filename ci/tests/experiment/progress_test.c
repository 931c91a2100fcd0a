/* What a person sees of a run: on a terminal lines that are painted anew, with what each node does;
 * elsewhere plain lines; and status.json for whoever asks from another shell. Time is made up. */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "ci/tests/scratch.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/run/progress.h"

static double the_time_s = 1000;

static double made_up_mono(void)
{
	return the_time_s;
}

#define clock_mono_s made_up_mono
#include "harness/run/progress.c"
#undef clock_mono_s

enum { WIDTH = 60 };

/* What of a run is shown: two cells, of which the first is confirmed while the nodes are at
 * different things. */
static void show(bool quiet)
{
	struct progress *p = NULL;
	struct err e = {""};

	if (progress_new(dir, 2, 10, quiet, &p, &e))
		fail_msg("%s", e.text);
	progress_attempt(p, 1, 1, "ddw x disk-hog on s2");
	for (int i = 1; i <= 12; i++) {
		char name[8];

		snprintf(name, sizeof(name), "s%d", i);
		progress_node(p, name, "%s",
			i == 2 ? "under disk-hog, traced by ebpf" : "serving, traced by ebpf");
	}
	progress_node(p, "c1", "running ddw");
	progress_node(p, "c1",
		"running %s, traced by %s, in words that are longer than any terminal is wide",
		"ddw", "ebpf");
	progress_now(p, 7, "fault on s2");
	progress_cell_done(p, true, 10);
	progress_say(p, "[1/2] cell 1: confirmed");
	progress_free(p);
}

static json_t *status(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/status.json", dir);
	return json_load_file(path, 0, NULL);
}

/* Calls show with stderr on 'fd'. */
static void show_on(int fd, bool quiet)
{
	int saved = dup(2);

	fflush(stderr);
	dup2(fd, 2);
	show(quiet);
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
}

/* All that was written to a terminal that nobody has open any more: the kernel passes it on when it
 * comes to it, and then ends with an error. */
static void read_all(int master, char *text, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size - 1 && (n = read(master, text + got, size - 1 - got)) > 0)
		got += (size_t)n;
	close(master);
	assert_true(got > 0);
	text[got] = 0;
}

static void a_terminal_shows_what_each_node_does(void **state)
{
	struct winsize ws = {.ws_col = WIDTH, .ws_row = 24};
	char text[32768], *line, *save = NULL;
	int master, slave;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &ws), 0);
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	show_on(slave, false);
	close(slave);
	read_all(master, text, sizeof(text));
	assert_non_null(strstr(text, "  fault on s2, 7 s left"));
	assert_non_null(
		strstr(text, "    serving, traced by ebpf: s1 s3 s4 s5 s6 s7 s8 s9 s10 s1"));
	assert_non_null(strstr(text, "    under disk-hog, traced by ebpf: s2\r"));
	assert_non_null(strstr(text, "    running ddw, traced by ebpf, in words that are longer "));
	assert_null(strstr(text, "running ddw:"));
	/* Painted lines can be erased only if none wraps. */
	for (line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
		if (*line != '\033')
			assert_true(strlen(line) < WIDTH);
}

/* Before the first cell no ETA can count down: what moves is how long a step has lasted. */
static void preparing_shows_how_long_it_has_lasted(void **state)
{
	struct winsize ws = {.ws_col = 80, .ws_row = 24};
	char text[8192];
	int master, slave, saved = dup(2);
	struct progress *p = NULL;
	struct err e = {""};
	json_t *s;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &ws), 0);
	setenv("TERM", "xterm", 1);
	dup2(slave, 2);
	assert_int_equal(progress_new(dir, 2, 10, false, &p, &e), 0);
	progress_now(p, 0, "preparing ddw");
	the_time_s += 1.1;
	progress_refresh(p);
	s = status();
	assert_true(json_number_value(json_object_get(s, "phase_for_s")) > 1.09);
	json_decref(s);
	progress_attempt(p, 1, 1, "ddw x none");
	progress_now(p, 7, "baseline");
	progress_free(p);
	dup2(saved, 2);
	close(saved);
	close(slave);
	read_all(master, text, sizeof(text));
	assert_non_null(strstr(text, "0/2 cells  then about 0:00:20"));
	assert_non_null(strstr(text, "  preparing ddw\r"));
	assert_non_null(strstr(text, "  preparing ddw, for "));
	assert_non_null(strstr(text, "0/2 cells  ETA 0:00:17"));
	assert_non_null(strstr(text, "  baseline, 7 s left"));
}

static void elsewhere_there_are_plain_lines(void **state)
{
	char path[96], *text;
	struct err e;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/said", dir);
	for (int quiet = 0; quiet < 2; quiet++) {
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		assert_true(fd >= 0);
		show_on(fd, quiet);
		close(fd);
		assert_int_equal(file_read(path, &text, NULL, &e), 0);
		assert_string_equal(text, quiet ? "" : "[1/2] cell 1: confirmed\n");
		free(text);
	}
}

static void status_json_has_the_current_state(void **state)
{
	struct progress *p = NULL;
	struct err e = {""};
	json_t *s, *nodes;

	(void)state;
	assert_int_equal(progress_new(dir, 2, 10, true, &p, &e), 0);
	progress_node(p, "s1", "serving");
	progress_node(p, "s2", "lost");
	progress_now(p, 0, "preparing ddw");
	s = status();
	assert_true(json_is_true(json_object_get(s, "running")));
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "preparing ddw");
	nodes = json_object_get(s, "nodes");
	assert_int_equal(json_array_size(nodes), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(nodes, 1), "name")), "s2");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(nodes, 1), "doing")), "lost");
	json_decref(s);

	/* A node's change is written at once, within a phase as well. */
	progress_node(p, "s2", "serving");
	progress_refresh(p);
	s = status();
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(s, "nodes"), 1), "doing")),
		"serving");
	json_decref(s);
	progress_free(p);
	s = status();
	assert_false(json_is_true(json_object_get(s, "running")));
	assert_int_equal(json_array_size(json_object_get(s, "nodes")), 0);
	json_decref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_shows_what_each_node_does),
		cmocka_unit_test(preparing_shows_how_long_it_has_lasted),
		cmocka_unit_test(elsewhere_there_are_plain_lines),
		cmocka_unit_test(status_json_has_the_current_state),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
