/*
 * Does asynchronous I/O with known counts and bytes, by io_submit or io_uring, without a library.
 *
 *   async aio FILE ROUNDS     each round: 3 writes and 2 reads of 4 KiB in one io_submit (one
 *                             write and one read as a vector), their events in two
 *                             io_getevents; then an fdsync
 *   async hostile FILE        what must confuse no tracer
 *   async leave FILE          ends with operations under way, twice: io_destroy, and its own end
 *   async before FILE         submits two reads, waits for a byte on its standard input, takes
 *                             their events; then a third
 *   async ring FILE           submits a read three times, and takes its events from the ring in
 *                             its memory, without a call
 *   async many FILE N         N reads in one io_submit
 *   async uring FILE ROUNDS   each round: a write, a read, a vector of each, an fsync
 *
 * It waits for its standard input (a byte, or the end) before the first, and exits with 77 if the
 * kernel has no such calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ci/tests/helpers/ring.h"

enum { BLOCK = 4096, DEPTH = 64, OPS = 5, NO_SUCH_CALLS = 77 };

static char *memory; /* a block for each operation */
static aio_context_t ctx;

static int die(const char *what)
{
	perror(what);
	exit(1);
}

static void prepare(struct iocb *cb, int command, int fd, int i, struct iovec *iov)
{
	*cb = (struct iocb){.aio_lio_opcode = (uint16_t)command,
		.aio_fildes = (uint32_t)fd,
		.aio_buf = (uintptr_t)(memory + i * BLOCK),
		.aio_nbytes = BLOCK,
		.aio_offset = i * BLOCK};
	if (command != IOCB_CMD_PREADV && command != IOCB_CMD_PWRITEV)
		return;
	*iov = (struct iovec){memory + i * BLOCK, BLOCK};
	cb->aio_buf = (uintptr_t)iov;
	cb->aio_nbytes = 1;
}

static long submit(long n, struct iocb **list)
{
	return syscall(SYS_io_submit, ctx, n, list);
}

static long get(long least, long most, struct io_event *events)
{
	struct timespec wait = {.tv_sec = 10};

	return syscall(SYS_io_getevents, ctx, least, most, events, &wait);
}

static void reap(long n)
{
	struct io_event events[DEPTH];

	if (get(n, n, events) != n)
		die("io_getevents");
	for (long i = 0; i < n; i++)
		if ((int64_t)events[i].res < 0)
			die("an operation failed");
}

static void aio(int fd, int rounds)
{
	static const int commands[OPS] = {IOCB_CMD_PWRITE, IOCB_CMD_PWRITEV, IOCB_CMD_PWRITE,
		IOCB_CMD_PREAD, IOCB_CMD_PREADV};
	struct iocb cbs[OPS],
		sync = {.aio_lio_opcode = IOCB_CMD_FDSYNC, .aio_fildes = (uint32_t)fd}, *list[OPS],
		*one = &sync;
	struct iovec iov[OPS];

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < OPS; i++) {
			prepare(&cbs[i], commands[i], fd, i, &iov[i]);
			list[i] = &cbs[i];
		}
		if (submit(OPS, list) != OPS)
			die("io_submit");
		reap(2);
		reap(OPS - 2);
		if (submit(1, &one) != 1)
			die("io_submit of a sync");
		reap(1);
	}
}

static void expect(const char *what, long got, int error)
{
	if (got != -1 || errno != error)
		fprintf(stderr, "%s: %ld (%s)\n", what, got, strerror(errno)), exit(1);
}

/* In all: 4 writes that are done, one that fails. */
static void hostile(int fd, const char *path)
{
	struct io_event *events = mmap(
		NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iocb good[3], bad, *list[4] = {&good[0], &good[1], &bad, &good[2]};
	struct timespec none = {0};
	int pipes[2], read_only = open(path, O_RDONLY);
	long got = 0, n;

	for (int i = 0; i < 3; i++)
		prepare(&good[i], IOCB_CMD_PWRITE, fd, i, NULL);
	prepare(&bad, 99, fd, 3, NULL);
	/* Bad pointers, and lists longer than they are. */
	expect("no list", submit(1, NULL), EFAULT);
	expect("a list that is nowhere", submit(1L << 40, (struct iocb **)8), EFAULT);
	expect("less than nothing", submit(-1, list), EINVAL);
	expect("an iocb that is nowhere", submit(1, (struct iocb *[]){(struct iocb *)8}), EFAULT);
	expect("no context", syscall(SYS_io_submit, (aio_context_t)0x1234000, 1L, list), EINVAL);
	/* Two are taken, the third is not, the fourth is never examined. */
	if (submit(4, list) != 2)
		die("two of four");
	/* The page that the events lie on ends after the first. */
	if (munmap((char *)events + BLOCK, BLOCK) < 0)
		die("munmap");
	while (got < 2) { /* polling */
		n = syscall(SYS_io_getevents, ctx, 0L, 1L,
			(struct io_event *)((char *)events + BLOCK) - 1, &none);
		if (n < 0)
			die("io_getevents");
		got += n;
	}
	/* Of a file that is only read; on a pipe, which is no disk; cancelled. */
	prepare(&bad, IOCB_CMD_PWRITE, read_only, 0, NULL);
	expect("a file that is open for reading", submit(1, (struct iocb *[]){&bad}), EBADF);
	if (pipe(pipes) < 0)
		die("pipe");
	prepare(&bad, IOCB_CMD_PWRITE, pipes[1], 0, NULL);
	bad.aio_offset = 0;
	if (submit(1, (struct iocb *[]){&bad}) == 1)
		get(1, 1, events);
	if (submit(1, &list[3]) != 1)
		die("one");
	syscall(SYS_io_cancel, ctx, &good[2], events);
	if (get(1, 1, events) != 1)
		die("the one that was not cancelled");
	/* A write that the file system takes and fails. */
	prepare(&bad, IOCB_CMD_PWRITE, fd, 0, NULL);
	bad.aio_buf = 8;
	if (submit(1, (struct iocb *[]){&bad}) == 1 && get(1, 1, events) == 1 &&
		(int64_t)events[0].res >= 0)
		die("a write from nowhere");
	if (submit(1, list) != 1)
		die("one more");
	expect("events to nowhere", syscall(SYS_io_getevents, ctx, 1L, 1L << 40, 8L, NULL), EFAULT);
	if (get(1, 1, events) != 1)
		die("the event that went nowhere");
	if (syscall(SYS_io_destroy, ctx) < 0)
		die("io_destroy");
	expect("twice", syscall(SYS_io_destroy, ctx), EINVAL);
}

static void leave(int fd)
{
	struct iocb cbs[2], *list[2] = {&cbs[0], &cbs[1]};

	prepare(&cbs[0], IOCB_CMD_PWRITE, fd, 0, NULL);
	prepare(&cbs[1], IOCB_CMD_PREAD, fd, 1, NULL);
	if (submit(2, list) != 2 || syscall(SYS_io_destroy, ctx) < 0)
		die("leave");
	ctx = 0;
	if (syscall(SYS_io_setup, DEPTH, &ctx) < 0 || submit(2, list) != 2)
		die("leave again");
}

static void before(int fd)
{
	struct iocb cbs[2], *list[2] = {&cbs[0], &cbs[1]};
	char c;

	prepare(&cbs[0], IOCB_CMD_PREAD, fd, 0, NULL);
	prepare(&cbs[1], IOCB_CMD_PREAD, fd, 1, NULL);
	if (submit(2, list) != 2 || write(1, "s", 1) != 1 || read(0, &c, 1) != 1)
		die("before");
	reap(2);
	if (submit(1, list) != 1)
		die("after");
	reap(1);
}

/* fs/aio.c: what ctx points to. */
struct aio_ring {
	unsigned id, nr, head, tail;
};

static void ring_in_memory(int fd)
{
	volatile struct aio_ring *r = (volatile struct aio_ring *)ctx;
	struct iocb cb, *list[1] = {&cb};

	prepare(&cb, IOCB_CMD_PREAD, fd, 0, NULL);
	for (int i = 0; i < 3; i++) {
		if (submit(1, list) != 1)
			die("io_submit");
		while (r->head == r->tail)
			usleep(100);
		r->head = r->tail;
	}
}

static void many(int fd, int n)
{
	struct iocb *cbs = calloc((size_t)n, sizeof(*cbs)),
		    **list = calloc((size_t)n, sizeof(struct iocb *));
	struct io_event *events = calloc((size_t)n, sizeof(*events));
	long taken;

	ctx = 0;
	if (!cbs || !list || !events || syscall(SYS_io_setup, n, &ctx) < 0)
		die("io_setup");
	for (int i = 0; i < n; i++) {
		prepare(&cbs[i], IOCB_CMD_PREAD, fd, 0, NULL);
		list[i] = &cbs[i];
	}
	taken = submit(n, list);
	if (taken != n || get(n, n, events) != n)
		die("many");
}

static void uring(int fd, int rounds)
{
	static const uint8_t ops[] = {IORING_OP_WRITE, IORING_OP_READ, IORING_OP_WRITEV,
		IORING_OP_READV, IORING_OP_FSYNC, IORING_OP_NOP};
	struct iovec iov = {memory, BLOCK};

	int32_t res;

	ring_open(0);
	for (int i = 0; i < rounds; i++)
		for (size_t k = 0; k < sizeof(ops); k++) {
			struct io_uring_sqe sqe = {.opcode = ops[k], .fd = fd};

			if (k < 2)
				sqe.addr = (uintptr_t)memory, sqe.len = BLOCK;
			else if (k < 4)
				sqe.addr = (uintptr_t)&iov, sqe.len = 1;
			res = ring_do(&sqe);
			if (res < 0) {
				errno = -res;
				die("an operation failed");
			}
		}
}

int main(int argc, char **argv)
{
	int fd, rounds = argc > 3 ? atoi(argv[3]) : 1;
	char c;

	if (argc < 3)
		return 2;
	if (read(0, &c, 1) < 0)
		die("stdin");
	memory = aligned_alloc(BLOCK, OPS * BLOCK);
	fd = open(argv[2], O_RDWR | O_DIRECT);
	if (fd < 0 && errno == EINVAL)
		fd = open(argv[2], O_RDWR); /* tmpfs of old kernels */
	if (!memory || fd < 0)
		die(argv[2]);
	memset(memory, 'x', OPS * BLOCK);
	if (!strcmp(argv[1], "uring")) {
		uring(fd, rounds);
		return 0;
	}
	if (syscall(SYS_io_setup, DEPTH, &ctx) < 0)
		return errno == ENOSYS ? NO_SUCH_CALLS : die("io_setup");
	if (!strcmp(argv[1], "aio"))
		aio(fd, rounds);
	else if (!strcmp(argv[1], "before"))
		before(fd);
	else if (!strcmp(argv[1], "ring"))
		ring_in_memory(fd);
	else if (!strcmp(argv[1], "many"))
		many(fd, rounds);
	else if (!strcmp(argv[1], "hostile"))
		hostile(fd, argv[2]);
	else
		leave(fd);
	return 0;
}
