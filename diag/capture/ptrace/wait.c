/*
 * Waits for the next stop, on the right core.
 *
 * A stop costs two context switches. If tracer and tracee are on different cores, it also costs two
 * wake-ups of an idle core, which in a virtual machine are more expensive than everything else. The
 * scheduler places a woken thread on an idle core rather than behind its waker, so both drift to
 * different cores; but a core that runs only SCHED_IDLE threads counts as idle (Linux 5.4,
 * sched_idle_cpu). So while a single thread makes all stops, the tracer runs on that thread's core
 * under SCHED_IDLE, and each wakes the other there. The tracee is not changed.
 *
 * A SCHED_IDLE tracer starves if other threads want the core, and so does its tracee. It measures
 * its own delay, and returns to normal scheduling for a time that doubles. ci/bench/trace.sh
 * measures the total cost.
 */
#include "diag/capture/ptrace/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/clock.h"

#define SAME_STOPS 128  /* consecutive stops of one thread before the tracer moves to it */
#define LOOK_NS 5000000 /* between two measurements of the tracer's delay */
#define STARVED_PCT 20  /* of the time: too much delay */
#define FIRST_PAUSE_NS 200000000LL
#define LONGEST_PAUSE_NS 30000000000LL

static struct {
	bool known, allowed, moved;
	cpu_set_t own;  /* processors allowed at the start */
	pid_t same;     /* the thread whose stops are seen */
	unsigned stops; /* consecutive ones */
	int64_t looked_ns, delay_ns, resume_ns, pause_ns;
	int schedstat;
} place;

/* Nanoseconds that this thread was ready to run but did not (second field of schedstat), or -1. */
static int64_t run_delay_ns(void)
{
	char text[96];
	long long on_cpu, delay;
	ssize_t n = pread(place.schedstat, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return sscanf(text, "%lld %lld", &on_cpu, &delay) == 2 ? delay : -1;
}

/* A thread can leave SCHED_IDLE only within RLIMIT_NICE (sched(7)), by default only as root. */
static void wait_learn(void)
{
	place.known = true;
	place.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	place.allowed = geteuid() == 0 && place.schedstat >= 0 && run_delay_ns() >= 0 &&
		sched_getscheduler(0) == SCHED_OTHER &&
		!sched_getaffinity(0, sizeof(place.own), &place.own);
	place.pause_ns = FIRST_PAUSE_NS;
}

static int core_of(pid_t tid)
{
	char path[64], text[1024], *p;
	ssize_t n;
	int fd, core = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	p = strrchr(text, ')');
	for (int field = 2; p && field < 39; field++)
		p = strchr(p + 1, ' ');
	return p && sscanf(p, "%d", &core) == 1 ? core : -1;
}

static void move_back(void)
{
	const struct sched_param none = {0};

	sched_setscheduler(0, SCHED_OTHER, &none);
	sched_setaffinity(0, sizeof(place.own), &place.own);
	place.moved = false;
	place.stops = 0;
}

static void move_to(pid_t tid)
{
	const struct sched_param none = {0};
	int core = core_of(tid);
	cpu_set_t set;

	place.stops = 0;
	if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &place.own))
		return;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return;
	place.moved = true;
	place.looked_ns = clock_ns(CLOCK_MONOTONIC);
	place.delay_ns = run_delay_ns();
	if (sched_setscheduler(0, SCHED_IDLE, &none) < 0)
		move_back();
}

/* Returns to normal scheduling if other threads want this core. */
static void wait_look(int64_t now_ns)
{
	int64_t delay_ns = run_delay_ns(), took_ns = now_ns - place.looked_ns;

	if (took_ns < LOOK_NS)
		return;
	if (delay_ns < 0 || (delay_ns - place.delay_ns) * 100 > took_ns * STARVED_PCT) {
		move_back();
		place.resume_ns = now_ns + place.pause_ns;
		place.pause_ns = place.pause_ns * 2 > LONGEST_PAUSE_NS ? LONGEST_PAUSE_NS
								       : place.pause_ns * 2;
	} else if (took_ns < 10 * LOOK_NS) {
		place.pause_ns = FIRST_PAUSE_NS;
	}
	place.looked_ns = now_ns;
	place.delay_ns = delay_ns;
}

static void choose_core(pid_t last)
{
	if (!place.known)
		wait_learn();
	if (!place.allowed)
		return;
	if (last != place.same) {
		place.same = last;
		place.stops = 0;
		if (place.moved)
			move_back();
		return;
	}
	if (++place.stops % SAME_STOPS)
		return;
	if (place.moved)
		wait_look(clock_ns(CLOCK_MONOTONIC));
	else if (clock_ns(CLOCK_MONOTONIC) > place.resume_ns)
		move_to(last);
}

pid_t wait_event(pid_t last, int *status)
{
	if (last > 0)
		choose_core(last);
	return waitpid(-1, status, __WALL);
}
