/* Repeats the calls of the trace and manages their handles. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/replayer/stage.h"

#define READDIR_MOST (1u << 20)

/* Some flags have different values on arm64. */
static int native_flags(const struct stage *s, uint32_t flags)
{
	static const struct {
		uint32_t x86, arm;
		int native;
	} odd[] = {{00040000, 00200000, O_DIRECT}, {00200000, 00040000, O_DIRECTORY},
		{00400000, 00100000, O_NOFOLLOW}, {00100000, 00400000, 0}};
	bool arm = strstr(app_about(s->trace)->kernel, "aarch64");
	int native = (int)flags;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		native &= ~(int)odd[i].x86;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		if (flags & (arm ? odd[i].arm : odd[i].x86))
			native |= odd[i].native;
	return native;
}

static unsigned node_of_thread(const struct stage *s, uint32_t thread)
{
	return replayer_node(app_thread(s->trace, thread)->rank, s->ranks, s->nodes);
}

/* The most that one call moves, whatever it asks for: Linux cuts the rest. */
static size_t size_of(const struct app_op *op)
{
	return op->size < 0x7ffff000 ? op->size : 0x7ffff000;
}

/* ---- contents of the trace ---- */

static void scan_own(struct stage *s, uint32_t thread, uint64_t number, const struct app_op *op)
{
	bool moves = op->call == APP_READ || op->call == APP_WRITE || op->call == APP_PREAD ||
		op->call == APP_PWRITE;

	if (moves && size_of(op) > s->most_bytes)
		s->most_bytes = size_of(op);
	if ((op->call == APP_WRITE || op->call == APP_PWRITE) && size_of(op) > s->most_written)
		s->most_written = size_of(op);
	if (op->call == APP_READDIR && s->most_bytes < READDIR_MOST)
		s->most_bytes = READDIR_MOST;
	if (!op->handle)
		return;
	s->slots[op->handle].uses++;
	if (op->call == APP_OPEN) {
		s->slots[op->handle].opener = thread;
		s->slots[op->handle].opener_ops = number;
	}
}

/* Threads of this node that the op waits for must notify its node. */
static int scan_other(struct stage *s, unsigned node, const struct app_op *op, struct err *e)
{
	for (uint32_t i = 0; i < op->n_edges; i++) {
		const struct app_edge *edge = &op->edges[i];
		int rc = node_of_thread(s, edge->thread) == s->me
			? peers_tell(s->peers, edge->thread, edge->ops, node, e)
			: 0;

		if (rc)
			return rc;
	}
	return 0;
}

static int scan_thread(struct stage *s, uint32_t thread, struct err *e)
{
	unsigned node = node_of_thread(s, thread);
	struct app_cursor *c;
	struct app_op op;
	uint64_t number = 0;
	int rc = app_cursor_new(s->trace, thread, &c);

	if (rc)
		return err_errno(e, rc, "cannot read the trace");
	while ((rc = app_next(c, &op, e)) > 0) {
		number++;
		if ((s->o->mode == REPLAY_THINK || s->o->mode == REPLAY_WALL) &&
			(op.start_ns < 0 || op.took_ns < 0))
			rc = err_set(e, -EINVAL,
				"the trace has no times of calls: use the mode "
				"causal or afap");
		else if (node == s->me)
			scan_own(s, thread, number, &op);
		else if (s->o->mode == REPLAY_CAUSAL)
			rc = scan_other(s, node, &op, e);
		if (rc < 0)
			break;
	}
	app_cursor_free(c);
	return rc;
}

int calls_scan(struct stage *s, struct err *e)
{
	int rc = 0;

	s->n_slots = app_n_handles(s->trace) + 1;
	s->slots = calloc(s->n_slots, sizeof(*s->slots));
	if (!s->slots)
		return err_errno(e, -ENOMEM, "cannot hold the trace's handles");
	for (size_t i = 0; i < s->n_slots; i++) {
		s->slots[i].fd = -1;
		s->slots[i].opener = UINT32_MAX;
	}
	for (uint32_t i = 0; i < app_n_threads(s->trace) && !rc; i++)
		rc = scan_thread(s, i, e);
	return rc;
}

/* ---- handles ---- */

static void slot_open(struct slot *slot, int fd)
{
	atomic_store(&slot->fd, fd);
	atomic_store(&slot->state, fd < 0 ? SLOT_FAILED : SLOT_OPEN);
}

/* Opens handles that no thread of this node opens: open before the trace, or by a rank
 * elsewhere. */
static void open_foreign(struct stage *s, uint32_t handle)
{
	const struct app_handle *h = app_handle(s->trace, handle);
	struct slot *slot = &s->slots[handle];
	int flags = native_flags(s, h->flags) & ~(O_CREAT | O_EXCL | O_TRUNC);

	pthread_mutex_lock(&s->opening);
	if (atomic_load(&slot->state) == SLOT_NONE)
		slot_open(slot, files_open(&s->files, app_file(s->trace, h->file)->path, flags, 0));
	pthread_mutex_unlock(&s->opening);
}

int calls_begin(struct stage *s, struct err *e)
{
	for (uint32_t i = 1; i < s->n_slots; i++) {
		const struct app_handle *h = app_handle(s->trace, i);
		struct slot *slot = &s->slots[i];

		atomic_store(&slot->state, SLOT_NONE);
		atomic_store(&slot->left, slot->uses);
		atomic_store(&slot->closing, false);
		if (!h->before || !slot->uses)
			continue;
		open_foreign(s, i);
		if (atomic_load(&slot->state) != SLOT_OPEN)
			return err_errno(e, -errno, "cannot open '%s/%s' as at the start",
				s->files.root, app_file(s->trace, h->file)->path);
	}
	return 0;
}

void calls_end(struct stage *s)
{
	for (size_t i = 1; s->slots && i < s->n_slots; i++) {
		int fd = atomic_exchange(&s->slots[i].fd, -1);

		if (fd >= 0)
			close(fd);
	}
}

/* The descriptor of an op's handle in '*fd', -1 if its open failed; waits for its open. */
static int get_fd(struct player *p, const struct app_op *op, int *fd, struct err *e)
{
	struct stage *s = p->stage;
	struct slot *slot = &s->slots[op->handle];
	int rc = 0;

	*fd = -1;
	if (!op->handle)
		return 0;
	if (atomic_load(&slot->state) == SLOT_NONE && slot->opener == UINT32_MAX)
		open_foreign(s, op->handle);
	else if (atomic_load(&slot->state) == SLOT_NONE && slot->opener != p->thread)
		rc = peers_wait(s->peers, slot->opener, slot->opener_ops, e);
	*fd = atomic_load(&slot->fd);
	return rc < 0 ? rc : 0;
}

/* An op with the handle has ended. The handle's close, or the last op after it, closes the
 * descriptor. */
static long put_fd(struct stage *s, const struct app_op *op, bool close_it)
{
	struct slot *slot = &s->slots[op->handle];
	long rc = 0;

	if (close_it)
		atomic_store(&slot->closing, true);
	if (atomic_fetch_sub(&slot->left, 1) == 1 && atomic_load(&slot->closing)) {
		int fd = atomic_exchange(&slot->fd, -1);

		rc = fd < 0 || close(fd) == 0 ? 0 : -errno;
	}
	return rc;
}

/* ---- calls ---- */

static const char *calls_path_of(const struct stage *s, uint32_t file)
{
	const char *path = file == APP_NO_FILE ? "" : app_file(s->trace, file)->path;

	return *path ? path : ".";
}

static long of_errno(long rc)
{
	return rc < 0 ? -errno : rc;
}

static long do_open(struct player *p, const struct app_op *op)
{
	struct stage *s = p->stage;
	int flags = native_flags(s, op->flags), fd;

	fd = files_open(&s->files, calls_path_of(s, op->file), flags, op->mode);
	if (fd < 0) {
		fd = -errno;
		if (op->handle)
			slot_open(&s->slots[op->handle], -1);
		return fd;
	}
	if (op->handle)
		slot_open(&s->slots[op->handle], fd);
	else
		close(fd); /* it failed in the capture */
	return 0;
}

/* Reads and writes at the file position. A descriptor that this node opened for another node's
 * handle has no shared position. */
static long do_stream(struct player *p, const struct app_op *op, int fd)
{
	bool own = p->stage->slots[op->handle].opener != UINT32_MAX || op->offset < 0 ||
		app_handle(p->stage->trace, op->handle)->before;
	bool reads = op->call == APP_READ;

	if (own)
		return of_errno(reads ? read(fd, p->buffer, size_of(op))
				      : write(fd, p->buffer, size_of(op)));
	return of_errno(reads ? pread(fd, p->buffer, size_of(op), op->offset)
			      : pwrite(fd, p->buffer, size_of(op), op->offset));
}

static long do_truncate(struct player *p, const struct app_op *op, int fd)
{
	struct stage *s = p->stage;
	long rc;

	if (op->handle)
		return of_errno(ftruncate(fd, (off_t)op->size));
	fd = files_open(&s->files, calls_path_of(s, op->file), O_WRONLY, 0);
	if (fd < 0)
		return -errno;
	rc = of_errno(ftruncate(fd, (off_t)op->size));
	close(fd);
	return rc;
}

static long do_stat(struct player *p, const struct app_op *op, int fd)
{
	struct stage *s = p->stage;
	struct stat st;

	return of_errno(op->handle ? fstat(fd, &st)
				   : fstatat(s->files.root_fd, calls_path_of(s, op->file), &st,
					     AT_SYMLINK_NOFOLLOW));
}

static long do_call(struct player *p, const struct app_op *op, int fd)
{
	struct stage *s = p->stage;
	int root = s->files.root_fd;
	const char *path = calls_path_of(s, op->file);
	uint64_t listed = op->size && op->size < READDIR_MOST ? op->size : READDIR_MOST;

	switch (op->call) {
	case APP_OPEN: return do_open(p, op);
	case APP_CLOSE: return put_fd(s, op, true);
	case APP_READ:
	case APP_WRITE: return do_stream(p, op, fd);
	case APP_PREAD: return of_errno(pread(fd, p->buffer, size_of(op), op->offset));
	case APP_PWRITE: return of_errno(pwrite(fd, p->buffer, size_of(op), op->offset));
	case APP_SEEK: return of_errno(lseek(fd, op->result > 0 ? op->result : 0, SEEK_SET));
	case APP_FSYNC: return of_errno(fsync(fd));
	case APP_FDATASYNC: return of_errno(fdatasync(fd));
	case APP_TRUNCATE: return do_truncate(p, op, fd);
	case APP_STAT: return do_stat(p, op, fd);
	case APP_UNLINK: return of_errno(unlinkat(root, path, 0));
	case APP_RENAME: return of_errno(renameat(root, path, root, calls_path_of(s, op->file2)));
	case APP_MKDIR: return of_errno(mkdirat(root, path, op->mode));
	case APP_RMDIR: return of_errno(unlinkat(root, path, AT_REMOVEDIR));
	case APP_READDIR: return of_errno(syscall(SYS_getdents64, fd, p->buffer, listed));
	case APP_FALLOCATE:
		return of_errno(fallocate(fd, (int)op->flags, op->offset, (off_t)op->size));
	default: return -ENOSYS;
	}
}

static void calls_count(struct totals *t, const struct app_op *op, long result, int64_t took_ns)
{
	bool reads = op->call == APP_READ || op->call == APP_PREAD;
	bool writes = op->call == APP_WRITE || op->call == APP_PWRITE;
	long code = -result;

	t->ops++;
	t->calls_ns += (uint64_t)took_ns;
	t->latency[op->call][latency_bucket((uint64_t)took_ns)]++;
	if (result < 0 && op->result >= 0)
		t->errors[op->call][code < ERROR_KINDS ? code : ERROR_KINDS - 1]++;
	if (reads && result > 0)
		t->read_bytes += (uint64_t)result;
	if (writes && result > 0)
		t->written_bytes += (uint64_t)result;
	if ((reads || writes) && result >= 0 && result < op->result)
		t->shorts++;
}

static void count_over_time(
	struct stage *s, const struct app_op *op, long result, int64_t begin, int64_t end)
{
	bool writes = op->call == APP_WRITE || op->call == APP_PWRITE;

	if (!s->series || result <= 0 || (!writes && op->call != APP_READ && op->call != APP_PREAD))
		return;
	pthread_mutex_lock(&s->counting);
	series_add(s->series, writes, begin - s->begin_ns, end - s->begin_ns, (uint64_t)result);
	pthread_mutex_unlock(&s->counting);
}

static void note_first(struct stage *s, int64_t begin)
{
	int64_t first = s->first_ns;

	while (begin < first && !atomic_compare_exchange_weak(&s->first_ns, &first, begin))
		;
}

int calls_do(struct player *p, const struct app_op *op, struct err *e)
{
	struct stage *s = p->stage;
	int64_t begin, end;
	long result;
	int fd, rc = get_fd(p, op, &fd, e);

	if (rc)
		return rc;
	begin = clock_ns(CLOCK_MONOTONIC);
	if (!p->done)
		note_first(s, begin);
	result = do_call(p, op, fd);
	end = clock_ns(CLOCK_MONOTONIC);
	if (op->handle && op->call != APP_CLOSE)
		put_fd(s, op, false);
	p->last_end_ns = end;
	p->last_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	calls_count(s->totals, op, result, end - begin);
	count_over_time(s, op, result, begin, end);
	return 0;
}
