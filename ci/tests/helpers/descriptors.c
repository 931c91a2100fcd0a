/*
 * Lets one number of a descriptor mean several files, by ways that are no call of the thread that
 * uses it. Each write tells its file: what is named wN gets writes of N bytes alone.
 *
 *   descriptors WHAT FOLDER
 *
 * Exits with 77 if the kernel has no such way.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/helpers/ring.h"

enum { STACK = 1 << 16, AT = 40 /* a number that nobody has */ };

static const char *folder;
static char bytes[4096], stack[STACK];

static int die(const char *what)
{
	perror(what);
	exit(1);
}

static const char *name(int n)
{
	static _Thread_local char path[4096];

	snprintf(path, sizeof(path), "%s/w%d", folder, n);
	return path;
}

/* The file wN as the descriptor 'fd'. */
static void open_at(int n, int fd)
{
	int own = open(name(n), O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (own < 0 || dup2(own, fd) < 0 || close(own))
		die(name(n));
}

static void put(int n, int fd)
{
	if (write(fd, bytes, (size_t)n) != n)
		die("write");
}

static void cloned(int (*fn)(void *), int flags)
{
	int status;
	pid_t pid = clone(fn, stack + STACK, flags | SIGCHLD, NULL);

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("clone");
}

/* ---- tables that are shared, or no longer ---- */

static int replace(void *arg)
{
	(void)arg;
	open_at(12, AT);
	put(12, AT);
	return 0;
}

static int leave_the_table(void *arg)
{
	(void)arg;
	if (unshare(CLONE_FILES))
		return 1;
	open_at(13, AT);
	put(13, AT);
	return 0;
}

static int close_in_a_copy(void *arg)
{
	(void)arg;
	if (syscall(SYS_close_range, AT, AT, CLOSE_RANGE_UNSHARE))
		return errno == ENOSYS ? 0 : 1;
	open_at(14, AT);
	put(14, AT);
	return 0;
}

static void shared(void)
{
	open_at(11, AT);
	put(11, AT);
	cloned(replace, CLONE_FILES);
	put(12, AT);
	cloned(leave_the_table, CLONE_FILES);
	put(12, AT);
	cloned(close_in_a_copy, CLONE_FILES);
	put(12, AT);
	cloned(replace, 0);
	put(12, AT);
}

static pthread_barrier_t turn;

static void *with_its_own_table(void *arg)
{
	(void)arg;
	if (unshare(CLONE_FILES))
		die("unshare");
	open_at(22, AT);
	for (int i = 0; i < 5; i++) {
		put(22, AT);
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

static void private_table(void)
{
	pthread_t thread;

	open_at(21, AT);
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&thread, NULL, with_its_own_table, NULL);
	for (int i = 0; i < 5; i++) {
		pthread_barrier_wait(&turn);
		put(21, AT);
		pthread_barrier_wait(&turn);
	}
	pthread_join(thread, NULL);
}

/* ---- descriptors that are passed ---- */

static void send_descriptor(int to, int fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} u = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {"x", 1};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u)};

	memcpy(CMSG_DATA(&u.h), &fd, sizeof(fd));
	if (sendmsg(to, &m, 0) != 1)
		die("sendmsg");
}

static int receive_descriptor(int from)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} u;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u)};
	int fd;

	if (recvmsg(from, &m, 0) != 1)
		die("recvmsg");
	memcpy(&fd, CMSG_DATA(&u.h), sizeof(fd));
	return fd;
}

static void passed(void)
{
	int pair[2], pidfd, got;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		die("socketpair");
	if (fork() == 0) {
		open_at(31, AT);
		send_descriptor(pair[1], AT);
		_exit(0);
	}
	wait(NULL);
	put(31, receive_descriptor(pair[0]));
	open_at(32, AT);
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	got = (int)syscall(SYS_pidfd_getfd, pidfd, AT, 0);
	put(32, got < 0 ? AT : got);
}

/* ---- io_uring ---- */

static int32_t done(struct io_uring_sqe sqe)
{
	int32_t res = ring_do(&sqe);

	if (res < 0) {
		errno = -res;
		die("an operation failed");
	}
	return res;
}

static int opened(int n)
{
	return done((struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
		.fd = AT_FDCWD,
		.addr = (uintptr_t)name(n),
		.open_flags = O_CREAT | O_RDWR | O_TRUNC,
		.len = 0600});
}

static void ring_write(int n, int fd, int flags)
{
	done((struct io_uring_sqe){.opcode = IORING_OP_WRITE,
		.flags = (uint8_t)flags,
		.fd = fd,
		.addr = (uintptr_t)bytes,
		.len = (uint32_t)n});
}

static void ring_close(int fd)
{
	done((struct io_uring_sqe){.opcode = IORING_OP_CLOSE, .fd = fd});
}

/* A request whose end nobody is told of; the one after it is. */
static void without_an_end(struct io_uring_sqe sqe)
{
	sqe.flags = IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK;
	ring_put(&sqe);
	sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
	ring_put(&sqe);
	if (syscall(SYS_io_uring_enter, ring.fd, 2, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 2)
		die("io_uring_enter");
	__atomic_store_n(ring.cq_head, *ring.cq_tail, __ATOMIC_RELEASE);
}

static void by_ring(unsigned flags)
{
	int fd, same;

	ring_open(flags);
	fd = opened(41);
	put(41, fd);
	ring_write(41, fd, 0);
	ring_close(fd);
	same = opened(42);
	if (same != fd)
		die("another number");
	put(42, fd);
	ring_write(42, fd, 0);
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1))
		die("register");
	ring_write(42, 0, IOSQE_FIXED_FILE);
	open_at(43, fd);
	ring_write(42, 0, IOSQE_FIXED_FILE | IOSQE_ASYNC);
	put(43, fd);
	if (flags)
		return;
	without_an_end((struct io_uring_sqe){.opcode = IORING_OP_CLOSE, .fd = fd});
	without_an_end((struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
		.fd = AT_FDCWD,
		.addr = (uintptr_t)name(44),
		.open_flags = O_CREAT | O_RDWR,
		.len = 0600});
	put(44, fd);
}

static void *polled_alone(void *leader)
{
	pthread_join(*(pthread_t *)leader, NULL);
	by_ring(IORING_SETUP_SQPOLL);
	exit(0);
}

/* By a process whose first thread has ended. */
static void without_a_leader(void)
{
	static pthread_t self, thread;

	self = pthread_self();
	pthread_create(&thread, NULL, polled_alone, &self);
	pthread_exit(NULL);
}

/* ---- calls that last longer than what their descriptor means ---- */

static void *wait_in_read(void *arg)
{
	char byte;

	(void)arg;
	for (int i = 0; i < 2; i++) {
		if (read(AT, &byte, 1) != 1)
			die("read");
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

static bool is_waiting(pid_t tid)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die(path);
	close(fd);
	return atoi(text) == SYS_read && strncmp(text, "running", 7) != 0;
}

static _Atomic pid_t waiter;

static void *say_who_and_wait(void *arg)
{
	waiter = (pid_t)syscall(SYS_gettid);
	return wait_in_read(arg);
}

/* A thread reads a pipe, once while its number is given to a file, once while it is closed. */
static void replaced(void)
{
	pthread_t thread;
	int ends[2];

	if (pipe(ends) || dup2(ends[0], AT) < 0)
		die("pipe");
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&thread, NULL, say_who_and_wait, NULL);
	for (int i = 0; i < 2; i++) {
		while (!waiter || !is_waiting(waiter))
			sched_yield();
		if (i)
			close(AT);
		else
			open_at(61, AT);
		if (!i)
			put(61, AT);
		if (write(ends[1], "x", 1) != 1)
			die("write");
		pthread_barrier_wait(&turn);
		if (!i)
			put(61, AT);
		if (dup2(ends[0], AT) < 0)
			die("dup2");
		pthread_barrier_wait(&turn);
	}
	pthread_join(thread, NULL);
}

/* ---- files that are mapped ---- */

static void map(int fd, int flags)
{
	char *at = mmap(NULL, sizeof(bytes), PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap");
	at[0] = 'x';
}

/* Two mappings that write to a file, and others. */
static void mapped(void)
{
	int memory = memfd_create("memory", 0);

	open_at(51, AT);
	if (ftruncate(AT, sizeof(bytes)) || ftruncate(memory, sizeof(bytes)))
		die("ftruncate");
	map(AT, MAP_SHARED);
	map(AT, MAP_SHARED);
	map(AT, MAP_PRIVATE);
	map(memory, MAP_SHARED);
	map(-1, MAP_SHARED | MAP_ANONYMOUS);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	folder = argv[2];
	if (!strcmp(argv[1], "shared"))
		shared();
	else if (!strcmp(argv[1], "private"))
		private_table();
	else if (!strcmp(argv[1], "passed"))
		passed();
	else if (!strcmp(argv[1], "ring"))
		by_ring(0);
	else if (!strcmp(argv[1], "polled"))
		by_ring(IORING_SETUP_SQPOLL);
	else if (!strcmp(argv[1], "leaderless"))
		without_a_leader();
	else if (!strcmp(argv[1], "replaced"))
		replaced();
	else if (!strcmp(argv[1], "mapped"))
		mapped();
	else
		return 2;
	return 0;
}
