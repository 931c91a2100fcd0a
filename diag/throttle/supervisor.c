/* Holds an application's calls on files and delays those of one thread. */
#include "diag/throttle/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "diag/capture/trapped.h"
#include "diag/throttle/supervisor_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/clock.h"

struct supervisor *supervisor_new(const char *root, double patience_s)
{
	struct supervisor *s = alloc_zero(1, sizeof(*s));
	struct seccomp_notif_sizes sizes = {0};

	syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
	s->notif_size = sizes.seccomp_notif > sizeof(*s->notif) ? sizes.seccomp_notif
								: sizeof(*s->notif);
	s->resp_size = sizes.seccomp_notif_resp > sizeof(*s->resp) ? sizes.seccomp_notif_resp
								   : sizeof(*s->resp);
	s->notif = alloc_zero(1, s->notif_size);
	s->resp = alloc_zero(1, s->resp_size);
	s->root = alloc_copy(root);
	s->patience_ns = (int64_t)(patience_s * 1e9);
	s->socket = s->listener = -1;
	return s;
}

static void supervisor_close_all(struct supervisor *s)
{
	if (s->socket >= 0)
		close(s->socket);
	if (s->listener >= 0)
		close(s->listener);
	s->socket = s->listener = -1;
}

void supervisor_free(struct supervisor *s)
{
	if (!s)
		return;
	supervisor_close_all(s);
	family_clear(&s->family);
	for (size_t i = 0; i < s->n_known; i++)
		free(s->known[i].name);
	free(s->known);
	free(s->delays);
	free(s->notif);
	free(s->resp);
	free(s->root);
	free(s);
}

int supervisor_begin(
	struct supervisor *s, const char *name, unsigned long period, int *socket, struct err *e)
{
	int pair[2];

	watch_new_run(s);
	s->name = name;
	s->period = period;
	s->ahead_ns = clock_real_ahead_ns();
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return err_errno(e, -errno, "cannot make a socket for the supervisor");
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	s->socket = pair[0];
	*socket = pair[1];
	return 0;
}

int supervisor_poll(struct supervisor *s, struct pollfd on[2])
{
	on[0] = (struct pollfd){.fd = s->socket, .events = POLLIN};
	on[1] = (struct pollfd){.fd = s->listener, .events = POLLIN};
	if (s->listener < 0)
		return 1000;
	return s->delayed ? DELAYED_EVERY_NS / 1000000
		: s->name ? 1000
			  : LEARNING_EVERY_NS / 1000000;
}

static void take_listener(struct supervisor *s)
{
	char byte;
	struct iovec data = {&byte, 1};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(s->socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&s->listener, CMSG_DATA(c), sizeof(int));
	if (n >= 0) {
		close(s->socket);
		s->socket = -1;
	}
}

static void let_go(struct supervisor *s, uint64_t id)
{
	memset(s->resp, 0, s->resp_size);
	s->resp->id = id;
	s->resp->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	/* ENOENT: the thread was killed while its call waited. */
	(void)ioctl(s->listener, SECCOMP_IOCTL_NOTIF_SEND, s->resp);
}

static int supervisor_kind_of(int nr)
{
	for (int i = 0; i < TRAPPED_CALLS; i++)
		if (trapped_calls[i].nr == nr)
			return trapped_calls[i].kind;
	return 0;
}

static bool makes_thread(pid_t tid, const struct seccomp_data *d, int kind)
{
	uint64_t flags = 0;
	struct iovec here = {&flags, sizeof(flags)};
	struct iovec there = {(void *)(uintptr_t)d->args[0], sizeof(flags)};

	if (kind == TRAPPED_CLONE3)
		(void)!process_vm_readv(tid, &here, 1, &there, 1, 0);
	else if (d->nr == SYS_clone)
		flags = d->args[0];
	return flags & CLONE_THREAD;
}

static void begin_delay(struct supervisor *s, uint64_t id, int64_t now_ns)
{
	s->delays = alloc_room(s->delays, s->n_delays, sizeof(*s->delays));
	s->delays[s->n_delays++] = (struct throttle_delay){.trap_ns = now_ns + s->ahead_ns};
	s->delayed = true;
	s->id = id;
	s->since_ns = now_ns;
	s->read_ns = s->quiet_ns = 0;
}

static void end_delay(struct supervisor *s, bool decided)
{
	struct throttle_delay *d = &s->delays[s->n_delays - 1];

	d->decided = decided;
	d->quiet_ns = (decided ? s->quiet_ns : s->since_ns) + s->ahead_ns;
	d->release_ns = clock_ns(CLOCK_MONOTONIC) + s->ahead_ns;
	s->undecided += !decided;
	if (!decided)
		memcpy(s->undecided_why, s->why, sizeof(s->undecided_why));
	s->in_a_row = decided ? 0 : s->in_a_row + 1;
	s->gave_up |= s->in_a_row >= GIVE_UP;
	s->delayed = false;
	s->span_open = true;
	let_go(s, s->id);
}

/* The delayed thread was killed. */
static void forget_delay(struct supervisor *s)
{
	s->delayed = false;
	s->n_delays--;
}

/* True: the call is delayed, not released. */
static bool operation(struct supervisor *s, struct family_member *m, uint64_t id, int64_t now_ns)
{
	watch_operation(s, m, now_ns);
	watch_disturbed(s);
	if (!s->name || s->gave_up || m->tid != s->tid || s->delayed)
		return false;
	if (s->count++ % s->period)
		return false;
	begin_delay(s, id, now_ns);
	return true;
}

static void note_thread(struct supervisor *s, const struct family_member *m, int64_t now_ns)
{
	if (s->name && !s->tid && !strcmp(m->name, s->name))
		s->tid = m->tid;
	if (s->span_open && m->tid == s->tid) {
		s->delays[s->n_delays - 1].next_ns = now_ns + s->ahead_ns;
		s->span_open = false;
	}
}

static bool handle(struct supervisor *s, const struct seccomp_notif *n)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct family_member *m = family_find(&s->family, (pid_t)n->pid);
	int kind = supervisor_kind_of(n->data.nr);
	bool below = false;

	if (!m)
		return false;
	note_thread(s, m, now_ns);
	m->trapped = n->data.nr;
	m->trapped_on_file = false;
	if (kind == TRAPPED_FORK || kind == TRAPPED_CLONE3) {
		family_forks(&s->family, m, makes_thread(m->tid, &n->data, kind));
		return false;
	}
	if (kind == TRAPPED_EXIT) {
		watch_exit(s, m, now_ns);
		family_ends(&s->family, m);
		return false;
	}
	m->trapped_on_file = call_on_file(s->root, m->tid, &n->data, kind, &below);
	return below && operation(s, m, n->id, now_ns);
}

/* Handles the calls that have stopped, at most 1,000 a time, so that other work gets its turn. */
static void supervisor_serve(struct supervisor *s)
{
	struct pollfd on = {.fd = s->listener, .events = POLLIN};

	for (int i = 0; i < 1000 && poll(&on, 1, 0) == 1; i++) {
		if (!(on.revents & POLLIN)) { /* the last process has ended */
			close(s->listener);
			s->listener = -1;
			return;
		}
		memset(s->notif, 0, s->notif_size);
		if (ioctl(s->listener, SECCOMP_IOCTL_NOTIF_RECV, s->notif))
			return;
		if (!handle(s, s->notif))
			let_go(s, s->notif->id);
	}
}

static int64_t patience_ns(const struct supervisor *s)
{
	return s->patience_ns + 4 * (s->longest_ns + s->most_quiet_ns);
}

static void supervisor_look(struct supervisor *s)
{
	struct pollfd on = {.fd = s->listener, .events = POLLIN};
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	bool blocked;

	if (s->delayed && ioctl(s->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &s->id)) {
		forget_delay(s);
		return;
	}
	if (!s->delayed && s->name)
		return;
	if (now_ns - s->read_ns < (s->delayed ? DELAYED_EVERY_NS : LEARNING_EVERY_NS))
		return;
	blocked = watch_all(s, now_ns);
	/* A thread whose call has just stopped here looks like one that waits for another
	 * thread. */
	if (blocked && poll(&on, 1, 0))
		watch_disturbed(s);
	else if (blocked && watch_quiet(s, now_ns) && s->delayed)
		end_delay(s, true);
	if (s->delayed && now_ns - s->since_ns > patience_ns(s))
		end_delay(s, false);
}

void supervisor_step(struct supervisor *s)
{
	if (s->listener < 0 && s->socket >= 0)
		take_listener(s);
	if (s->listener >= 0)
		supervisor_serve(s);
	if (s->listener >= 0)
		supervisor_look(s);
}

void supervisor_stop(struct supervisor *s)
{
	s->gave_up = true;
	if (s->delayed)
		end_delay(s, false);
}

void supervisor_end(struct supervisor *s)
{
	supervisor_close_all(s);
	if (s->delayed)
		forget_delay(s);
	if (!s->name)
		watch_learned(s);
	s->name = NULL;
}

const char *supervisor_name(const struct supervisor *s, uint32_t tid)
{
	const struct family_member *m = NULL;

	for (uint32_t i = 0; i < s->family.n_members; i++)
		if (s->family.members[i].tid == (pid_t)tid)
			m = &s->family.members[i];
	return m && *m->name != '?' ? m->name : NULL;
}

const struct throttle_delay *supervisor_delays(const struct supervisor *s, size_t *n)
{
	*n = s->n_delays;
	return s->delays;
}

size_t supervisor_undecided(const struct supervisor *s, const char **why)
{
	*why = s->undecided_why;
	return s->undecided;
}

bool supervisor_gave_up(const struct supervisor *s)
{
	return s->gave_up;
}
