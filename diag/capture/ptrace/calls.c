/* Reads the data of a call when a thread enters it: path arguments and file offset; and decides
 * whether the call is selected. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "diag/capture/ptrace/tracer.h"

enum {
	FIRST = 256,
	PAGE = 4096, /* smallest page size */
	VECTOR_MAX = 32,
	CALL_MAX = 0x7ffff000, /* MAX_RW_COUNT: the kernel moves no more in one call */
};

/* Reads a string of the thread; NULL if it is not in memory. Never reads across the end of a page
 * at once, since the next page may be missing. */
static const char *peek_string(pid_t tid, uint64_t address, char out[PATH_MAX])
{
	size_t have = 0;

	while (have < PATH_MAX - 1) {
		size_t n = PAGE - address % PAGE, want = have ? PAGE : FIRST;
		struct iovec local, remote;

		if (n > want)
			n = want;
		if (n > PATH_MAX - 1 - have)
			n = PATH_MAX - 1 - have;
		local = (struct iovec){out + have, n};
		remote = (struct iovec){(void *)(uintptr_t)address, n};
		if (process_vm_readv(tid, &local, 1, &remote, 1, 0) != (ssize_t)n)
			return NULL;
		if (memchr(out + have, '\0', n))
			return out;
		have += n;
		address += n;
	}
	out[have] = '\0';
	return out;
}

static void read_paths(struct tracee_thread *th, const struct call_info *info)
{
	struct record_call *c = &th->call;

	c->path = c->path2 = NULL;
	if (!info || info->path < 0)
		return;
	if (!th->paths)
		th->paths = malloc(2 * PATH_MAX);
	if (!th->paths)
		return;
	if (c->args[info->path])
		c->path = peek_string(th->tid, c->args[info->path], th->paths);
	if (info->path2 >= 0 && c->args[info->path2])
		c->path2 = peek_string(th->tid, c->args[info->path2], th->paths + PATH_MAX);
}

/* The bytes that a readv or recvmsg asks for: the sum over its buffers; 0: unknown. */
static uint32_t vector_bytes(const struct tracee_thread *th, const struct call_info *info)
{
	const struct record_call *c = &th->call;
	struct iovec buffers[VECTOR_MAX], local = {buffers, 0},
					  remote = {(void *)(uintptr_t)c->args[1], 0};
	struct msghdr header;
	size_t n = c->args[2];
	uint64_t sum = 0;

	if (!strcmp(info->name, "recvmsg")) {
		local = (struct iovec){&header, sizeof(header)};
		remote.iov_len = sizeof(header);
		if (process_vm_readv(th->tid, &local, 1, &remote, 1, 0) != sizeof(header))
			return 0;
		remote.iov_base = header.msg_iov;
		n = header.msg_iovlen;
	} else if (strcmp(info->name, "readv")) {
		return 0;
	}
	if (!n || n > VECTOR_MAX)
		return 0;
	local = (struct iovec){buffers, n * sizeof(*buffers)};
	remote.iov_len = local.iov_len;
	if (process_vm_readv(th->tid, &local, 1, &remote, 1, 0) != (ssize_t)local.iov_len)
		return 0;
	for (size_t i = 0; i < n; i++)
		sum += buffers[i].iov_len < CALL_MAX ? buffers[i].iov_len : CALL_MAX;
	return sum < CALL_MAX ? (uint32_t)sum : CALL_MAX;
}

/* The bytes in the messages that a sendmmsg or recvmmsg moved; 0: unknown. */
static uint32_t message_bytes(const struct tracee_thread *th)
{
	enum { AT_ONCE = 32 };
	const struct record_call *c = &th->call;
	struct mmsghdr headers[AT_ONCE] = {0};
	uint64_t sum = 0;

	for (int64_t i = 0; i < c->result; i += AT_ONCE) {
		const size_t n = c->result - i < AT_ONCE ? (size_t)(c->result - i) : AT_ONCE,
			     size = n * sizeof(*headers);
		struct iovec local = {.iov_base = headers, .iov_len = size}, remote = local;

		remote.iov_base = (void *)(uintptr_t)(c->args[1] + (size_t)i * sizeof(*headers));
		if (process_vm_readv(th->tid, &local, 1, &remote, 1, 0) != (ssize_t)size)
			return 0;
		for (size_t j = 0; j < n; j++)
			sum += headers[j].msg_len;
	}
	return sum < UINT32_MAX ? (uint32_t)sum : 0;
}

/* The offset of an open file, as a thread of its process sees it; -1: none. */
static int64_t position_of(pid_t tid, int fd, bool *append)
{
	char path[64], text[512], *at;
	unsigned flags = 0;
	long long pos = -1;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)tid, fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (info >= 0)
		close(info);
	text[n > 0 ? n : 0] = '\0';
	if ((at = strstr(text, "flags:")))
		sscanf(at, "flags: %o", &flags);
	*append = flags & O_APPEND;
	return sscanf(text, "pos: %lld", &pos) == 1 ? pos : -1;
}

/* Only files and block devices have an offset. */
static bool has_position(const struct tracer *t, const struct record_call *c, int fd)
{
	const struct fd_state *s = fdtable_get(t->fds, c->pid, fd);

	return s &&
		(s->now.kind == FD_FILE ||
			(s->now.kind == FD_DEVICE && s->now.tag.device && !s->now.tag.inode));
}

/* The argument that points to the offset of a copying call; -1: none. */
static int offset_pointer(const struct call_info *info)
{
	const char *at = info->args;

	for (int i = 0; at; i++) {
		if (!strncmp(at, "p off", 5))
			return i;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return -1;
}

/* The offset at which a call begins to read or write; -1: none. */
static int64_t offset_of(
	const struct tracer *t, struct tracee_thread *th, const struct call_info *info)
{
	const struct record_call *c = &th->call;
	int fd, pointer;

	if (!info || info->fd < 0 ||
		(info->class != CALL_READ && info->class != CALL_WRITE && info->class != CALL_COPY))
		return -1;
	/* -1 of preadv2 and pwritev2 means the file's own offset. */
	if (info->offset >= 0 && (int64_t)c->args[info->offset] != -1)
		return (int64_t)c->args[info->offset];
	fd = (int)c->args[info->fd];
	if (!has_position(t, c, fd))
		return -1;
	pointer = info->class == CALL_COPY ? offset_pointer(info) : -1;
	if (pointer >= 0 && c->args[pointer]) {
		int64_t value;
		struct iovec local = {&value, sizeof(value)},
			     remote = {(void *)(uintptr_t)c->args[pointer], sizeof(value)};

		return process_vm_readv(th->tid, &local, 1, &remote, 1, 0) == sizeof(value) ? value
											    : -1;
	}
	return position_of(th->tid, fd, &th->append);
}

void call_enter(const struct tracer *t, struct tracee_thread *th, const struct call_info *info)
{
	struct record_call *c = &th->call;

	th->append = false;
	c->offset = call_wanted(&t->filter, c) ? offset_of(t, th, info) : -1;
	th->append = th->append && info->class == CALL_WRITE;
	c->asked = info && info->class == CALL_READ && c->offset < 0 ? vector_bytes(th, info) : 0;
	read_paths(th, info);
}

void call_exit(struct tracee_thread *th, const struct call_info *info)
{
	struct record_call *c = &th->call;
	bool append;
	int64_t end;

	if (info && info->messages)
		c->asked = message_bytes(th);
	if (c->nr == SYS_lseek && c->result >= 0) {
		c->offset = c->result;
	} else if (th->append && c->result > 0) {
		/* O_APPEND: the kernel went to the end first. */
		end = position_of(th->tid, (int)c->args[info->fd], &append);
		c->offset = end < 0 ? -1 : end - c->result;
	}
}

/* Calls that are not selected are followed nevertheless, since they may change descriptors. */
bool call_wanted(const struct trace_filter *f, const struct record_call *c)
{
	bool call = !f->n_calls, thread = !f->n_tids;
	uint32_t nr = c->nr & ~RECORD_ASYNC_NR;

	for (size_t i = 0; i < f->n_calls && !call; i++)
		call = f->calls[i] == nr;
	for (size_t i = 0; i < f->n_tids && !thread; i++)
		thread = (uint32_t)f->tids[i] == c->tid;
	return call && thread;
}
