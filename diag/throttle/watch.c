/* Decides whether a thread is blocked, by its time in calls and on the processor. */
#include "diag/throttle/watch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Does this call return after a time that the program set, regardless of other processes? A poll
 * with descriptors and a time-out waits for the descriptors, so it is not such a call. */
static bool sleeps_by_time(const struct watch_reading *r)
{
	switch (r->call) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep: return true;
#ifdef SYS_poll
	case SYS_poll: return !r->args[1] && (int)r->args[2] >= 0;
	case SYS_select: return !r->args[0] && r->args[4];
#endif
	case SYS_ppoll: return !r->args[1] && r->args[2];
	case SYS_pselect6: return !r->args[0] && r->args[4];
	case SYS_futex:
		return r->args[3] &&
			((r->args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT ||
				(r->args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET);
	default: return false;
	}
}

static bool looks(const struct watch_reading *now, const struct watch_reading *op,
	const struct watch_limits *l)
{
	return l &&
		(now->cpu_ns - op->cpu_ns > 2 * l->cpu_ns + WATCH_LEAST_CPU_NS ||
			now->sleeps - op->sleeps > 2 * l->sleeps + WATCH_LEAST_SLEEPS);
}

static enum watch_verdict busy(const char **why, const char *text)
{
	*why = text;
	return WATCH_BUSY;
}

enum watch_verdict watch_judge(const struct watch_reading *now, const struct watch_reading *op,
	int64_t same_ns, const struct watch_limits *l, const char **why)
{
	if (now->state == 'Z' || now->state == 'X')
		return WATCH_GONE;
	if (now->state == 'T' || now->state == 't')
		return busy(why, "is stopped");
	if (now->state == 'D')
		return busy(why, "waits in the kernel");
	if (now->state == 'S' && now->on_file)
		return busy(why, "is in a call on a file");
	if (looks(now, op, l))
		return WATCH_LOOKS;
	if (now->state != 'S')
		return busy(why, "computes");
	if (now->call == WATCH_NO_CALL)
		return busy(why, "waits for a page");
	if (sleeps_by_time(now) && (!l || same_ns <= 2 * l->wall_ns + WATCH_LEAST_WALL_NS))
		return busy(why, "sleeps for a set time");
	return WATCH_STILL;
}

bool watch_settled(
	enum watch_verdict v, const struct watch_reading *now, const struct watch_reading *mark)
{
	if (v != WATCH_LOOKS)
		return v != WATCH_BUSY;
	return (now->state == 'S' && now->runs == mark->runs) ||
		now->cpu_ns - mark->cpu_ns >= WATCH_LOOK_CPU_NS ||
		now->sleeps - mark->sleeps >= WATCH_LOOK_SLEEPS;
}

/* Reads a short file whole. */
static bool read_text(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

bool watch_read(pid_t pid, pid_t tid, bool call, struct watch_reading *out)
{
	char text[4096];
	const char *state;
	char *at;

	*out = (struct watch_reading){.call = WATCH_NO_CALL};
	if (!read_text(pid, tid, "status", text, sizeof(text)))
		return false;
	state = strstr(text, "\nState:\t");
	out->state = state ? state[8] : 'X';
	out->sleeps = field(text, "\nvoluntary_ctxt_switches:\t");
	if (!read_text(pid, tid, "schedstat", text, sizeof(text)))
		return false;
	out->cpu_ns = strtoull(text, &at, 10);
	strtoull(at, &at, 10);
	out->runs = strtoull(at, NULL, 10);
	if (!call || out->state != 'S')
		return true;
	/* /proc/PID/syscall reads "running" if the thread was woken after 'status' was read. */
	if (!read_text(pid, tid, "syscall", text, sizeof(text)) || !strncmp(text, "running", 7)) {
		out->state = 'R';
		return true;
	}
	out->call = strtol(text, &at, 10);
	for (int i = 0; i < 6 && out->call != WATCH_NO_CALL; i++)
		out->args[i] = strtoull(at, &at, 16);
	return true;
}
