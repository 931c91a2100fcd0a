/* A ring of io_uring, without a library; for the helpers that use one. */
#ifndef CULPRIT_CI_TESTS_HELPERS_RING_H
#define CULPRIT_CI_TESTS_HELPERS_RING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RING_DEPTH = 64, NO_RING = 77 };

static struct ring {
	int fd;
	unsigned flags; /* IORING_SETUP_* */
	uint32_t *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

/* Ends the helper with NO_RING where the kernel has no such calls. */
static inline void ring_open(unsigned flags)
{
	struct io_uring_params p = {.flags = flags, .sq_thread_idle = 100};
	char *sq, *cq;

	ring.flags = flags;
	ring.fd = (int)syscall(SYS_io_uring_setup, RING_DEPTH, &p);
	if (ring.fd < 0)
		exit(NO_RING);
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
	ring.sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		MAP_SHARED, ring.fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring.sqes == MAP_FAILED)
		exit(NO_RING);
	ring.sq_tail = (uint32_t *)(sq + p.sq_off.tail);
	ring.sq_mask = (uint32_t *)(sq + p.sq_off.ring_mask);
	ring.sq_array = (uint32_t *)(sq + p.sq_off.array);
	ring.cq_head = (uint32_t *)(cq + p.cq_off.head);
	ring.cq_tail = (uint32_t *)(cq + p.cq_off.tail);
	ring.cq_mask = (uint32_t *)(cq + p.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static inline void ring_put(const struct io_uring_sqe *sqe)
{
	uint32_t tail = *ring.sq_tail, at = tail & *ring.sq_mask;

	ring.sqes[at] = *sqe;
	ring.sq_array[at] = at;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* Submits the one request that was put, and waits for one to end: its result. */
static inline int32_t ring_end(void)
{
	bool polled = ring.flags & IORING_SETUP_SQPOLL;
	uint32_t head = *ring.cq_head;
	int32_t res;

	if (syscall(SYS_io_uring_enter, ring.fd, polled ? 0 : 1, 1,
		    IORING_ENTER_GETEVENTS | (polled ? IORING_ENTER_SQ_WAKEUP : 0), NULL, 0) < 0)
		return -errno;
	if (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head)
		return -ENODATA;
	res = ring.cqes[head & *ring.cq_mask].res;
	__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
	return res;
}

static inline int32_t ring_do(const struct io_uring_sqe *sqe)
{
	ring_put(sqe);
	return ring_end();
}

#endif
