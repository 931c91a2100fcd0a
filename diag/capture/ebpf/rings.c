/* Merges the per-CPU ring buffers into one stream, ordered by event completion. */
#include "diag/capture/ebpf/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* libbpf's own reader goes from ring to ring without any order between them; the layout is the
 * kernel's interface. */
struct ring {
	int fd;
	uint64_t *consumer;       /* a page that we write */
	const uint64_t *producer; /* a page of the kernel, followed by the data, mapped twice */
	const uint8_t *data;
	uint64_t at, end; /* unread part, as of the last look */
	uint64_t next_ns; /* end of the event at 'at'; UINT64_MAX: no event */
};

struct rings {
	int n, epoll;
	uint32_t bytes;
	size_t page;
	struct ring *last; /* ring of the event in the caller's hands */
	uint64_t last_size;
	struct ring ring[];
};

/* The consumer position is in a cache line that the programs read, so it is written rarely. */
enum { RELEASE_BYTES = 1 << 16 };

static int ring_open(struct rings *r, struct ring *ring, int outer_fd, uint32_t cpu)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	void *p;

	ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, r->bytes, NULL);
	if (ring->fd < 0)
		return -errno;
	p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	ring->consumer = p;
	p = mmap(NULL, r->page + 2ul * r->bytes, PROT_READ, MAP_SHARED, ring->fd, (off_t)r->page);
	if (p == MAP_FAILED)
		return -errno;
	ring->producer = p;
	ring->data = (const uint8_t *)p + r->page;
	if (bpf_map_update_elem(outer_fd, &cpu, &ring->fd, 0) < 0 ||
		epoll_ctl(r->epoll, EPOLL_CTL_ADD, ring->fd, &ev) < 0)
		return -errno;
	return 0;
}

int rings_new(int outer_fd, int cpus, uint32_t bytes, struct rings **out, struct err *e)
{
	struct rings *r = calloc(1, sizeof(*r) + (size_t)cpus * sizeof(r->ring[0]));
	int rc = 0;

	if (!r)
		return err_set(e, -ENOMEM, "out of memory");
	r->n = cpus;
	r->bytes = bytes;
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	for (int i = 0; i < cpus; i++) {
		r->ring[i].fd = -1;
		r->ring[i].next_ns = UINT64_MAX;
	}
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0)
		rc = -errno;
	for (int i = 0; i < cpus && rc == 0; i++)
		rc = ring_open(r, &r->ring[i], outer_fd, (uint32_t)i);
	if (rc < 0) {
		rings_free(r);
		return err_errno(e, rc, "cannot make buffers of %u bytes in the kernel", bytes);
	}
	*out = r;
	return 0;
}

void rings_free(struct rings *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n; i++) {
		struct ring *ring = &r->ring[i];

		if (ring->consumer)
			munmap(ring->consumer, r->page);
		if (ring->producer)
			munmap((void *)ring->producer, r->page + 2ul * r->bytes);
		if (ring->fd >= 0)
			close(ring->fd);
	}
	if (r->epoll >= 0)
		close(r->epoll);
	free(r);
}

static const uint32_t *header(const struct rings *r, const struct ring *ring)
{
	return (const uint32_t *)(ring->data + (ring->at & (r->bytes - 1)));
}

static uint64_t rounded(uint32_t size)
{
	return (size + BPF_RINGBUF_HDR_SZ + 7ull) & ~7ull;
}

/* Looks for the ring's next event. */
static void rings_look(const struct rings *r, struct ring *ring)
{
	ring->next_ns = UINT64_MAX;
	for (;;) {
		uint32_t size;

		if (ring->at == ring->end) {
			ring->end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
			if (ring->at == ring->end)
				return;
		}
		size = __atomic_load_n(header(r, ring), __ATOMIC_ACQUIRE);
		if (size & BPF_RINGBUF_BUSY_BIT)
			return;
		if (!(size & BPF_RINGBUF_DISCARD_BIT)) {
			ring->next_ns = ((const struct ev *)(header(r, ring) + 2))->at_ns;
			return;
		}
		ring->at += rounded(size & ~BPF_RINGBUF_DISCARD_BIT);
	}
}

const struct ev *rings_next(struct rings *r, uint64_t until_ns, uint32_t *size)
{
	struct ring *first = NULL;

	if (r->last) {
		r->last->at += r->last_size;
		if (r->last->at - *r->last->consumer >= RELEASE_BYTES)
			__atomic_store_n(r->last->consumer, r->last->at, __ATOMIC_RELEASE);
		rings_look(r, r->last);
		r->last = NULL;
	}
	for (int i = 0; i < r->n; i++) {
		struct ring *ring = &r->ring[i];

		if (ring->next_ns == UINT64_MAX)
			rings_look(r, ring);
		if (ring->next_ns != UINT64_MAX && ring->next_ns <= until_ns &&
			(!first || ring->next_ns < first->next_ns))
			first = ring;
	}
	if (!first)
		return NULL;
	*size = *header(r, first);
	r->last = first;
	r->last_size = rounded(*size);
	return (const struct ev *)(header(r, first) + 2);
}

void rings_release(struct rings *r)
{
	for (int i = 0; i < r->n; i++)
		__atomic_store_n(r->ring[i].consumer, r->ring[i].at, __ATOMIC_RELEASE);
}

void rings_wait(struct rings *r, int timeout_ms)
{
	struct epoll_event ev[8];

	epoll_wait(r->epoll, ev, 8, timeout_ms);
}

bool rings_filled(const struct rings *r, uint64_t bytes)
{
	for (int i = 0; i < r->n; i++)
		if (__atomic_load_n(r->ring[i].producer, __ATOMIC_ACQUIRE) - r->ring[i].at > bytes)
			return true;
	return false;
}
