/*
 * Makes a known list of calls on files, pipes and sockets, from several threads and
 * processes, and writes down what it did:
 *
 *     truth SIDEFILE DIR          begins when a byte arrives on standard input
 *     truth SIDEFILE DIR execed N what it executes itself as; N is an inherited descriptor
 *
 * All calls that count are made through do_call, between two markers; what libc does besides
 * is outside of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ci/tests/helpers/truth.h"

static struct truth *truth;
static const char *side, *dir, *self;
static int pre, listener;
static pthread_barrier_t begin_all;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static __thread uint32_t own_pid, own_tid;

static struct truth_entry *reserve(void)
{
	struct truth_entry
		*en = &truth->entry[__atomic_fetch_add((uint32_t *)&truth->n, 1, __ATOMIC_SEQ_CST)];

	if (en >= truth->entry + TRUTH_ENTRIES)
		abort();
	en->pid = own_pid;
	en->tid = own_tid;
	return en;
}

static long raw_call(const char *want, uint16_t local, uint16_t remote, long nr, const long *a)
{
	struct truth_entry *en = reserve();
	long r;

	for (int i = 0; i < 6; i++)
		en->args[i] = (uint64_t)a[i];
	en->nr = (uint32_t)nr;
	en->local = local;
	en->remote = remote;
	snprintf(en->want, sizeof(en->want), "%s", want ? want : "");
	en->t0_ns = now();
	r = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (nr == SYS_clone && r == 0)
		return 0; /* the entry is the parent's */
	en->t1_ns = now();
	en->result = r == -1 ? -errno : r;
	en->known = true;
	return r;
}

#define do_call(want, nr, ...) raw_call(want, 0, 0, nr, (long[6]){__VA_ARGS__})
#define sock_call(local, remote, nr, ...) raw_call(NULL, local, remote, nr, (long[6]){__VA_ARGS__})
#define L(p) ((long)(intptr_t)(p))

static void begin(void)
{
	own_pid = (uint32_t)getpid();
	own_tid = (uint32_t)syscall(SYS_gettid);
	syscall(SYS_close, TRUTH_BEGIN);
}

static void end(void)
{
	syscall(SYS_close, TRUTH_END);
}

static const char *in_dir(const char *name, char *buf)
{
	sprintf(buf, "%s/%s", dir, name);
	return buf;
}

static void *files(void *arg)
{
	char buf[4096] = "0123456789", a[256], none[256];
	struct iovec iov[2] = {{buf, 5}, {buf + 100, 7}};
	struct epoll_event ev = {.events = EPOLLIN};
	int fd, other, third, p[2], ep;

	(void)arg;
	in_dir("a", a);
	in_dir("none", none);
	pthread_barrier_wait(&begin_all);
	begin();
	fd = (int)do_call(NULL, SYS_openat, AT_FDCWD, L(a), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	do_call("/a", SYS_write, fd, L(buf), 10);
	do_call("/a", SYS_pwrite64, fd, L(buf), 4096, 10);
	do_call("/a", SYS_writev, fd, L(iov), 2);
	do_call("/a", SYS_pwritev, fd, L(iov), 2, 5);
	do_call("/a", SYS_pwritev2, fd, L(iov), 2, 50, 0, 0);
	do_call("/a", SYS_lseek, fd, 0, SEEK_SET);
	do_call("/a", SYS_read, fd, L(buf), 100);
	do_call("/a", SYS_readv, fd, L(iov), 2);
	do_call("/a", SYS_preadv, fd, L(iov), 2, 3);
	do_call("/a", SYS_preadv2, fd, L(iov), 2, 3, 0, 0);
	do_call("/a", SYS_pread64, fd, L(buf), 4096, 100000);
	do_call("/a", SYS_fsync, fd);
	do_call("/a", SYS_fdatasync, fd);
	do_call("/pre", SYS_pread64, pre, L(buf), 100, 0);
	other = (int)do_call("/a", SYS_dup, fd);
	do_call("/a", SYS_read, other, L(buf), 1);
	third = (int)do_call("/a", SYS_fcntl, fd, F_DUPFD_CLOEXEC, 300);
	do_call("/a", SYS_read, third, L(buf), 1);
	do_call("/pre", SYS_dup3, pre, third, O_CLOEXEC);
	do_call("/pre", SYS_pread64, third, L(buf), 1, 0);
	do_call("/a", SYS_close, fd);
	do_call("-", SYS_read, fd, L(buf), 1);
	do_call(NULL, SYS_openat, AT_FDCWD, L(none), O_RDONLY);
	do_call("/a", SYS_read, other, -1, 10);
	do_call(NULL, SYS_pipe2, L(p), O_CLOEXEC);
	do_call("pipe", SYS_write, p[1], L(buf), 10);
	do_call("pipe", SYS_read, p[0], L(buf), 10);
	do_call("pipe", SYS_splice, p[0], 0, other, 0, 10, SPLICE_F_NONBLOCK);
	fd = (int)do_call(NULL, SYS_openat, AT_FDCWD, L(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	do_call(dir, SYS_getdents64, fd, L(buf), sizeof(buf));
	fd = (int)do_call(NULL, SYS_memfd_create, L("mem"), MFD_CLOEXEC);
	do_call("mem (deleted)", SYS_write, fd, L(buf), 10);
	fd = (int)do_call(NULL, SYS_eventfd2, 1, 0);
	do_call("[eventfd]", SYS_read, fd, L(buf), 8);
	ep = (int)do_call(NULL, SYS_epoll_create1, EPOLL_CLOEXEC);
	do_call("[eventpoll]", SYS_epoll_ctl, ep, EPOLL_CTL_ADD, p[0], L(&ev));
	do_call("[eventpoll]", SYS_epoll_pwait, ep, L(&ev), 1, 0);
	do_call(NULL, SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC);
	do_call(NULL, SYS_close_range, third, ~0U, 0);
	do_call("-", SYS_read, third, L(buf), 1);
	do_call("pipe", SYS_read, p[0], L(buf), 0);
	end();
	return NULL;
}

static void *client(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(truth->port)}, me = {0};
	struct iovec iov = {(void *)"hello world", 11};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	socklen_t n = sizeof(me);
	char buf[64];
	int fd;

	(void)arg;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	pthread_barrier_wait(&begin_all);
	begin();
	fd = (int)do_call(NULL, SYS_socket, AF_INET, SOCK_STREAM, 0);
	sock_call(0, truth->port, SYS_connect, fd, L(&to), sizeof(to));
	sock_call(0, truth->port, SYS_getsockname, fd, L(&me), L(&n));
	for (int i = 0; i < 100; i++) {
		sock_call(ntohs(me.sin_port), truth->port, SYS_sendto, fd, L(buf), 32, MSG_NOSIGNAL,
			0, 0);
		sock_call(ntohs(me.sin_port), truth->port, SYS_sendmsg, fd, L(&msg), MSG_NOSIGNAL);
		sock_call(ntohs(me.sin_port), truth->port, SYS_recvfrom, fd, L(buf), 1, MSG_WAITALL,
			0, 0);
	}
	do_call(NULL, SYS_close, fd);
	end();
	return NULL;
}

static void *server(void *arg)
{
	char buf[64];
	struct iovec iov[2] = {{buf, 3}, {buf + 3, 8}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	int fd;

	(void)arg;
	pthread_barrier_wait(&begin_all);
	begin();
	fd = (int)sock_call(truth->port, 0, SYS_accept4, listener, 0, 0, SOCK_CLOEXEC);
	for (int i = 0; i < 100; i++) {
		sock_call(truth->port, 0, SYS_recvfrom, fd, L(buf), 32, MSG_WAITALL, 0, 0);
		if (i % 2)
			sock_call(truth->port, 0, SYS_recvmsg, fd, L(&msg), MSG_WAITALL);
		else
			sock_call(truth->port, 0, SYS_recvfrom, fd, L(buf), 11, MSG_WAITALL, 0, 0);
		sock_call(truth->port, 0, SYS_writev, fd, L((&(struct iovec){buf, 1})), 1);
	}
	sock_call(truth->port, 0, SYS_read, fd, L(buf), 1);
	do_call(NULL, SYS_close, fd);
	end();
	return NULL;
}

/* A descriptor that travels through a socket. */
static void *passing(void *arg)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c = {{0}};
	struct iovec iov = {(void *)"x", 1};
	char got[4];
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.room,
		.msg_controllen = sizeof(c.room)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
	int pair[2], fd;

	(void)arg;
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &pre, sizeof(int));
	pthread_barrier_wait(&begin_all);
	begin();
	do_call(NULL, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, L(pair));
	do_call("socket", SYS_sendmsg, pair[0], L(&msg), 0);
	iov.iov_base = got;
	do_call("socket", SYS_recvmsg, pair[1], L(&msg), MSG_CMSG_CLOEXEC);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	do_call("/pre", SYS_pread64, fd, L(got), 4, 0);
	end();
	return NULL;
}

static void on_signal(int signo)
{
	struct truth_entry *en = reserve();

	(void)signo;
	en->nr = SYS_rt_sigreturn;
}

static void signals(void)
{
	begin();
	for (int i = 0; i < 20; i++) {
		do_call(NULL, SYS_getppid);
		do_call(NULL, SYS_tgkill, own_pid, own_tid, SIGUSR1);
	}
	end();
}

static void *exec_self(void *arg)
{
	char number[16];

	(void)arg;
	sprintf(number, "%d", pre);
	execl(self, self, side, dir, "execed", number, NULL);
	_exit(9);
}

static void processes(void)
{
	char buf[16];
	long pid;
	pthread_t t;
	int status;

	begin();
	do_call(NULL, SYS_fcntl, pre, F_SETFD, 0);
	for (int i = 0; i < 2; i++) {
		pid = do_call(NULL, SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			begin();
			do_call("/pre", SYS_pread64, pre, L(buf), 5, 0);
			do_call(NULL, SYS_close, listener);
			do_call("-", SYS_read, listener, L(buf), 1);
			end();
			if (i == 0)
				exec_self(NULL);
			pthread_create(&t, NULL, exec_self, NULL);
			pause();
		}
		do_call(NULL, SYS_wait4, pid, L(&status), 0, 0);
	}
	do_call("/pre", SYS_pread64, pre, L(buf), 5, 0);
	end();
	if (vfork() == 0)
		_exit(0);
	wait(NULL);
}

static int execed(int fd)
{
	char buf[8];

	begin();
	do_call("/pre", SYS_pread64, fd, L(buf), 8, 0);
	do_call("-", SYS_read, 200, L(buf), 8); /* was closed on exec */
	end();
	return 0;
}

int main(int argc, char **argv)
{
	static void *(*const run[])(void *) = {files, client, server, passing};
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t n = sizeof(at);
	pthread_t threads[4];
	char path[256];
	int fd;

	if (argc < 3)
		return 2;
	self = "/proc/self/exe";
	side = argv[1];
	dir = argv[2];
	fd = open(side, O_RDWR | O_CLOEXEC);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 2;
	close(fd);
	if (argc == 5)
		return execed(atoi(argv[4]));
	signal(SIGUSR1, on_signal);
	pre = open(in_dir("pre", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (write(pre, path, 200) != 200 || dup3(pre, 200, O_CLOEXEC) < 0)
		return 2;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 5) < 0 ||
		getsockname(listener, (struct sockaddr *)&at, &n) < 0)
		return 2;
	truth->port = ntohs(at.sin_port);
	pthread_barrier_init(&begin_all, NULL, 5);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run[i], NULL);
	if (read(0, path, 1) != 1)
		return 2;
	pthread_barrier_wait(&begin_all);
	signals();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	processes();
	return 0;
}
