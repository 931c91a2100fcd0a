/* Finds the meaning of descriptors in /proc and from the sockets themselves when a call has changed
 * one (fdlog of Kasick et al. 2009, section 4). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "diag/capture/ptrace/tracer.h"
#include "harness/base/clock.h"
#include "harness/base/vec.h"

#if defined(__x86_64__)
static const char arch[] = "x86_64";
#else
static const char arch[] = "aarch64";
#endif

enum action {
	ACT_NONE,
	ACT_RESULT,     /* the result is a new descriptor */
	ACT_PAIR,       /* argument 0 points to two new descriptors */
	ACT_SOCKETPAIR, /* argument 3 */
	ACT_CLOSE,
	ACT_CLOSE_RANGE,
	ACT_FCNTL,
	ACT_BIND,
	ACT_CONNECT,
	ACT_RECVMSG, /* may receive descriptors */
	ACT_RECVMMSG,
};

int fds_actions(struct tracer *t)
{
	static const struct {
		const char *name;
		enum action action;
	} special[] = {
		{"pipe", ACT_PAIR},
		{"pipe2", ACT_PAIR},
		{"socketpair", ACT_SOCKETPAIR},
		{"close", ACT_CLOSE},
		{"close_range", ACT_CLOSE_RANGE},
		{"fcntl", ACT_FCNTL},
		{"bind", ACT_BIND},
		{"listen", ACT_BIND},
		{"connect", ACT_CONNECT},
		{"recvmsg", ACT_RECVMSG},
		{"recvmmsg", ACT_RECVMMSG},
	};

	t->calls = call_arch(arch);
	t->action = calloc(MAX_ACTION, 1);
	if (!t->action)
		return -ENOMEM;
	for (uint32_t nr = 0; nr < MAX_ACTION; nr++)
		if (call_info(t->calls, nr) && call_info(t->calls, nr)->class == CALL_OPEN)
			t->action[nr] = ACT_RESULT;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		int nr = call_number(arch, special[i].name);

		if (nr >= 0)
			t->action[nr] = (uint8_t)special[i].action;
	}
	return 0;
}

/* Fills kind, path, tag and addresses of 'fd' as thread 'tid' sees it, which may have a separate
 * table; false if there is no such descriptor. */
static bool fds_describe(struct tracer *t, struct tracee_process *p, pid_t tid, int fd,
	int64_t now_ns, struct record_fd *f, char target[PATH_MAX])
{
	char link[48];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, fd);
	n = readlink(link, target, PATH_MAX - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	*f = (struct record_fd){.start_ns = now_ns,
		.pid = (uint32_t)p->pid,
		.fd = fd,
		.open = true,
		.path = target};
	if (!strncmp(target, "socket:", 7)) {
		f->kind = FD_SOCKET;
		socket_addresses(p, fd, f);
	} else if (!strncmp(target, "pipe:", 5)) {
		f->kind = FD_PIPE;
	} else if (target[0] == '/') {
		tags_describe(t->tags, link, now_ns, f);
	}
	return true;
}

/* False: 'fd' is not open. */
static bool fd_open(struct tracer *t, struct tracee_process *p, pid_t tid, int fd,
	const struct sockaddr_storage *peer)
{
	struct record rec = {.type = RECORD_FD};
	char target[PATH_MAX];

	if (!fds_describe(t, p, tid, fd, clock_real_ns(), &rec.fd, target))
		return false;
	if (peer && rec.fd.kind == FD_SOCKET && rec.fd.remote.ss_family == AF_UNSPEC)
		rec.fd.remote = *peer;
	tracer_emit(t, &rec);
	return true;
}

static void fd_closed(struct tracer *t, struct tracee_process *p, int fd)
{
	struct record rec = {.type = RECORD_FD};

	rec.fd = (struct record_fd){.start_ns = clock_real_ns(), .pid = (uint32_t)p->pid, .fd = fd};
	tracer_emit(t, &rec);
}

/* A close frees the number at once, so another thread's open may have got it, and been recorded,
 * before the close itself returns: a descriptor that is newer than the call stays. */
static bool known_before(const struct tracer *t, struct tracee_process *p, int fd, int64_t start_ns)
{
	const struct fd_state *s = fdtable_get(t->fds, (uint32_t)p->pid, fd);

	return s && s->now.start_ns <= start_ns;
}

struct list {
	int *fd;
	size_t n;
	int first, last;
	int64_t before_ns;
};

static void list_add(void *ctx, const struct fd_state *s)
{
	struct list *l = ctx;
	int *fd;

	if (s->now.fd < l->first || s->now.fd > l->last || s->now.start_ns > l->before_ns)
		return;
	fd = vec_room(l->fd, l->n, sizeof(*fd));
	if (!fd)
		return;
	l->fd = fd;
	l->fd[l->n++] = s->now.fd;
}

static void close_range_call(
	struct tracer *t, struct tracee_process *p, const struct record_call *c)
{
	struct list l = {.before_ns = c->start_ns};

	if (c->result < 0 || c->args[0] > INT32_MAX)
		return;
	l.first = (int)c->args[0];
	l.last = (uint32_t)c->args[1] > INT32_MAX ? INT32_MAX : (int)c->args[1];
	fdtable_each(t->fds, (uint32_t)p->pid, list_add, &l);
	for (size_t i = 0; i < l.n; i++) {
		char link[48], ignored[4];

		/* CLOSE_RANGE_CLOEXEC only marks descriptors. */
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)c->tid, l.fd[i]);
		if (readlink(link, ignored, sizeof(ignored)) < 0)
			fd_closed(t, p, l.fd[i]);
	}
	free(l.fd);
}

void fds_scan(struct tracer *t, struct tracee_process *p, int64_t since_ns)
{
	struct list l = {.first = 0, .last = INT32_MAX, .before_ns = since_ns};
	char path[32], target[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", p->pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((d = readdir(dir))) {
		struct record rec = {.type = RECORD_FD};
		const struct fd_state *s;
		int fd;

		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		fd = atoi(d->d_name);
		if (!fds_describe(t, p, p->pid, fd, since_ns, &rec.fd, target))
			continue;
		s = fdtable_get(t->fds, (uint32_t)p->pid, fd);
		if (s && !strcmp(s->now.path, target))
			continue;
		tracer_emit(t, &rec);
	}
	closedir(dir);
	fdtable_each(t->fds, (uint32_t)p->pid, list_add, &l);
	for (size_t i = 0; i < l.n; i++) {
		snprintf(target, sizeof(target), "/proc/%d/fd/%d", p->pid, l.fd[i]);
		if (readlink(target, path, sizeof(path)) < 0)
			fd_closed(t, p, l.fd[i]);
	}
	free(l.fd);
}

/* Does 'fd' of thread 'tid' match the log's table entry 's' (NULL: none)? Asks no file system,
 * since that may be the one being traced. */
static bool is_same(const struct fd_state *s, pid_t tid, int fd)
{
	char link[48], target[PATH_MAX];
	struct statx st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, fd);
	if (s && s->now.tag.device && s->now.tag.inode)
		return statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 &&
			st.stx_ino == s->now.tag.inode &&
			makedev(st.stx_dev_major, st.stx_dev_minor) == s->now.tag.device;
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return !s;
	target[n] = '\0';
	return s && !strcmp(target, s->now.path);
}

void fds_check(struct tracer *t, struct tracee_thread *th, int fd)
{
	const uint32_t pid = (uint32_t)th->process->pid;
	const struct fd_state *s = fd < 0 ? NULL : fdtable_get(t->fds, pid, fd);

	if (fd < 0 || is_same(s, th->tid, fd))
		return;
	t->unseen[UNSEEN_CHANGES]++;
	if (!fd_open(t, th->process, th->tid, fd, NULL))
		fd_closed(t, th->process, fd);
}

void fds_keep(struct tracer *t, struct tracee_thread *th, int fd)
{
	const struct fd_state *s = fd < 0 ? NULL
					  : fdtable_get(t->fds, (uint32_t)th->process->pid, fd);

	free((char *)th->about.path);
	th->about = s ? s->now : (struct record_fd){0};
	if (s)
		th->about.path = strdup(s->now.path);
}

void fds_emit(struct tracer *t, struct tracee_thread *th, struct record *rec)
{
	struct record before = {.type = RECORD_FD, .fd = th->about}, after = {.type = RECORD_FD};
	const uint32_t pid = th->about.pid;
	const int32_t fd = th->about.fd;
	const struct fd_state *s = th->about.path ? fdtable_get(t->fds, pid, fd) : NULL;
	char *path;

	if (!th->about.path || (s && s->now.start_ns == th->about.start_ns)) {
		tracer_emit(t, rec);
		return;
	}
	path = strdup(s ? s->now.path : "");
	if (!path)
		return;
	after.fd = s ? s->now : (struct record_fd){.pid = pid, .fd = fd};
	after.fd.path = path;
	before.fd.start_ns = after.fd.start_ns = rec->call.start_ns + rec->call.service_ns;
	tracer_emit(t, &before);
	tracer_emit(t, rec);
	tracer_emit(t, &after);
	free(path);
	t->unseen[UNSEEN_CHANGES]++;
}

static bool peek(struct tracee_process *p, uint64_t address, void *out, size_t size)
{
	struct iovec local = {out, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void pair(struct tracer *t, struct tracee_process *p, const struct record_call *c, int arg)
{
	const pid_t tid = (pid_t)c->tid;
	int fd[2];

	if (c->result < 0 || !peek(p, c->args[arg], fd, sizeof(fd)))
		return;
	fd_open(t, p, tid, fd[0], NULL);
	fd_open(t, p, tid, fd[1], NULL);
}

static void connect_call(struct tracer *t, struct tracee_process *p, const struct record_call *c)
{
	struct sockaddr_storage peer = {0};
	uint32_t n = (uint32_t)c->args[2];

	if (c->result < 0 && c->result != -EINPROGRESS)
		return;
	/* Until the handshake has ended, the socket does not show its peer. */
	if (n > sizeof(peer) || !peek(p, c->args[1], &peer, n))
		peer.ss_family = AF_UNSPEC;
	fd_open(t, p, (pid_t)c->tid, (int)c->args[0], &peer);
}

static void received(struct tracer *t, struct tracee_process *p, pid_t tid, const struct msghdr *m)
{
	size_t n = m->msg_controllen;
	struct cmsghdr *cmsg;
	uint8_t *control;

	if (n < sizeof(*cmsg) || n > 1 << 20)
		return;
	control = malloc(n);
	if (!control)
		return;
	if (peek(p, (uintptr_t)m->msg_control, control, n)) {
		struct msghdr own = {.msg_control = control, .msg_controllen = n};

		for (cmsg = CMSG_FIRSTHDR(&own); cmsg; cmsg = CMSG_NXTHDR(&own, cmsg)) {
			if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS ||
				cmsg->cmsg_len > n)
				continue;
			for (size_t at = CMSG_LEN(0); at + sizeof(int) <= cmsg->cmsg_len;
				at += sizeof(int)) {
				int fd;

				memcpy(&fd, (uint8_t *)cmsg + at, sizeof(fd));
				fd_open(t, p, tid, fd, NULL);
			}
		}
	}
	free(control);
}

static void recvmsg_call(struct tracer *t, struct tracee_process *p, const struct record_call *c)
{
	struct msghdr m;

	if (c->result >= 0 && peek(p, c->args[1], &m, sizeof(m)))
		received(t, p, (pid_t)c->tid, &m);
}

static void recvmmsg_call(struct tracer *t, struct tracee_process *p, const struct record_call *c)
{
	struct mmsghdr m;

	for (int64_t i = 0; i < c->result; i++)
		if (peek(p, c->args[1] + (uint64_t)i * sizeof(m), &m, sizeof(m)))
			received(t, p, (pid_t)c->tid, &m.msg_hdr);
}

void fds_call(struct tracer *t, struct tracee_process *p, const struct record_call *c)
{
	int fd = (int)c->args[0], cmd = (int)c->args[1];
	const pid_t tid = (pid_t)c->tid;

	switch ((enum action)t->action[c->nr]) {
	case ACT_NONE: break;
	case ACT_RESULT:
		if (c->result >= 0)
			fd_open(t, p, tid, (int)c->result, NULL);
		break;
	case ACT_PAIR: pair(t, p, c, 0); break;
	case ACT_SOCKETPAIR: pair(t, p, c, 3); break;
	case ACT_CLOSE:
		/* Any other failure (EIO, EINTR ...) comes after the number has been freed, except
		 * a refusal by seccomp. */
		if (c->result != -EBADF && known_before(t, p, fd, c->start_ns) &&
			(c->result == 0 || !is_same(fdtable_get(t->fds, c->pid, fd), tid, fd)))
			fd_closed(t, p, fd);
		break;
	case ACT_CLOSE_RANGE: close_range_call(t, p, c); break;
	case ACT_FCNTL:
		if (c->result >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
			fd_open(t, p, tid, (int)c->result, NULL);
		break;
	case ACT_BIND:
		if (c->result == 0)
			fd_open(t, p, tid, fd, NULL);
		break;
	case ACT_CONNECT: connect_call(t, p, c); break;
	case ACT_RECVMSG: recvmsg_call(t, p, c); break;
	case ACT_RECVMMSG: recvmmsg_call(t, p, c); break;
	}
}
