/* Descendants of a process, found in /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/patience.h"
#include "harness/base/proc.h"

/* A family: the test's child 'first', whose child 'second' leads its own session and has the
 * child 'third', and 'gone', a zombie of 'first'. Each waits for the end of a pipe. */
struct family {
	pid_t first, second, third, gone;
	int end;
};

static void wait_for_end(int fd)
{
	char byte;

	_exit(read(fd, &byte, 1) != 0);
}

static _Noreturn void be_second(int report, int end)
{
	pid_t pid;

	setsid();
	pid = fork();
	if (!pid)
		wait_for_end(end);
	if (write(report, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	wait_for_end(end);
	_exit(1);
}

static _Noreturn void be_first(int report, int end)
{
	pid_t pid[2];
	siginfo_t ended;

	pid[0] = fork();
	if (!pid[0])
		be_second(report, end);
	pid[1] = fork();
	if (!pid[1])
		_exit(0);
	if (waitid(P_PID, (id_t)pid[1], &ended, WEXITED | WNOWAIT) < 0 ||
		write(report, pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	wait_for_end(end);
	_exit(1);
}

static void start(struct family *f)
{
	int report[2], end[2];
	pid_t got[3];
	size_t at = 0;

	assert_true(!pipe(report) && !pipe(end));
	f->first = fork();
	if (!f->first) {
		close(end[1]);
		be_first(report[1], end[0]);
	}
	close(end[0]);
	f->end = end[1];
	while (at < sizeof(got)) {
		ssize_t n = read(report[0], (char *)got + at, sizeof(got) - at);

		assert_true(n > 0);
		at += (size_t)n;
	}
	close(report[0]);
	close(report[1]);
	/* Two writes, of one number and of two, in either order. */
	for (int i = 0; i < 3; i++) {
		uint64_t ticks;

		if (proc_start_time(got[i], &ticks) == -ESRCH)
			f->gone = got[i];
	}
	f->second = got[2] == f->gone ? got[1] : got[0];
	f->third = got[2] == f->gone ? got[0] : got[2];
}

static void stop(struct family *f)
{
	close(f->end);
	assert_int_equal(waitpid(f->first, NULL, 0), f->first);
}

static int place_of(const struct proc_id *list, int n, pid_t pid)
{
	for (int i = 0; i < n; i++)
		if (list[i].pid == pid)
			return i;
	return -1;
}

static void finds_all_in_order(void **unused)
{
	struct proc_id *list;
	struct family f;
	uint64_t ticks;
	int n;

	(void)unused;
	start(&f);
	n = proc_descendants(&f.first, 1, &list);
	assert_int_equal(n, 2); /* a zombie does not count */
	assert_int_equal(list[0].pid, f.second);
	assert_int_equal(list[1].pid, f.third);
	assert_int_equal(proc_start_time(f.third, &ticks), 0);
	assert_int_equal(list[1].start_ticks, ticks);
	free(list);
	n = proc_descendants(&f.third, 1, &list);
	assert_int_equal(n, 0);
	free(list);
	stop(&f);
}

static void finds_each_once(void **unused)
{
	struct proc_id *list;
	struct family f;
	int n;

	(void)unused;
	start(&f);
	n = proc_descendants((const pid_t[]){f.second, f.first}, 2, &list);
	assert_int_equal(n, 2);
	assert_true(place_of(list, n, f.second) >= 0 && place_of(list, n, f.third) >= 0);
	free(list);
	stop(&f);
}

static void an_orphan_is_not_a_descendant(void **unused)
{
	struct proc_id *list;
	struct family f;
	int n;

	(void)unused;
	start(&f);
	kill(f.second, SIGKILL);
	while (kill(f.second, 0) == 0 && proc_start_time(f.second, &(uint64_t){0}) == 0)
		usleep(1000);
	n = proc_descendants(&f.first, 1, &list);
	assert_int_equal(n, 0);
	free(list);
	stop(&f);
}

/* A process that asks about an ancestor: the process itself, the processes in between and their
 * descendants are excluded, but not the ancestor's other children. */
static void leaves_out_the_caller(void **unused)
{
	const pid_t test = getpid();
	struct family f;
	pid_t between;
	int status;

	(void)unused;
	start(&f);
	between = fork();
	if (!between) {
		pid_t asking = fork();

		if (!asking) {
			struct proc_id *list;
			int n = proc_descendants(&test, 1, &list);

			_exit(n != 3 || place_of(list, n, f.first) < 0 ||
				place_of(list, n, f.second) < 0 || place_of(list, n, f.third) < 0);
		}
		_exit(waitpid(asking, &status, 0) != asking || status);
	}
	assert_int_equal(waitpid(between, &status, 0), between);
	assert_int_equal(status, 0);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_all_in_order),
		cmocka_unit_test(finds_each_once),
		cmocka_unit_test(an_orphan_is_not_a_descendant),
		cmocka_unit_test(leaves_out_the_caller),
	};

	patient_alarm(60);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
