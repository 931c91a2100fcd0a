/* 'culprit lab disk', a server's disk: a FUSE file system with the file "disk", and "control", by
 * which faults slow the disk (disk_model.h). */
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/lab/disk_memory.h"
#include "harness/lab/disk_model.h"
#include "harness/lab/lab_impl.h"

#define REQUEST_MAX (128u << 10)
#define FOREVER 1e9

enum { DISK = 2, CONTROL = 3 }; /* the files' inodes */

/* An accepted request, answered at its due time. */
struct pending {
	struct pending *next;
	fuse_req_t req;
	enum { DO_READ, DO_WRITTEN, DO_FLUSHED } what;
	uint64_t position;
	size_t size;
	bool fails;
	uint64_t head; /* where the request before it ends */
	struct disk_turn turn;
};

struct disk {
	struct disk_model model, speed; /* 'speed' takes effect when formatting has ended */
	struct disk_counters counters;
	int memory; /* disk_memory.h */
	struct fuse_session *session;
	uint64_t size;
	struct pending *head, **tail;
	char *buffer;
	int timer;
};

static struct stat disk_describe(const struct disk *d, fuse_ino_t ino)
{
	return (struct stat){.st_ino = ino,
		.st_nlink = 1,
		.st_blksize = 4096,
		.st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600,
		.st_size = ino == DISK ? (off_t)d->size : 0};
}

static void op_init(void *ctx, struct fuse_conn_info *conn)
{
	(void)ctx;
	conn->max_write = REQUEST_MAX;
	conn->max_background = LAB_DISK_QUEUE;
	conn->congestion_threshold = LAB_DISK_QUEUE;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct disk *d = fuse_req_userdata(req);
	struct fuse_entry_param entry = {.attr_timeout = FOREVER, .entry_timeout = FOREVER};

	entry.ino = !strcmp(name, "disk") ? DISK : !strcmp(name, "control") ? CONTROL : 0;
	entry.attr = disk_describe(d, entry.ino);
	if (parent == FUSE_ROOT_ID && entry.ino)
		fuse_reply_entry(req, &entry);
	else
		fuse_reply_err(req, ENOENT);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = disk_describe(fuse_req_userdata(req), ino);

	(void)fi;
	fuse_reply_attr(req, &st, FOREVER);
}

/* A shell empties a file before it writes to it. */
static void op_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set, struct fuse_file_info *fi)
{
	(void)attr;
	(void)set;
	if (ino == CONTROL)
		op_getattr(req, ino, fi);
	else
		fuse_reply_err(req, EPERM);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fi->direct_io = 1;
	if (ino == DISK || ino == CONTROL)
		fuse_reply_open(req, fi);
	else
		fuse_reply_err(req, EISDIR);
}

static void disk_count(struct disk_counters *c, const struct pending *p)
{
	if (p->what == DO_FLUSHED)
		return;
	c->requests++;
	c->delayed += p->turn.added_ns > 0;
	c->held += p->turn.held;
	c->failed += p->fails;
	c->added_ns += p->turn.added_ns;
}

static void disk_answer(struct disk *d, struct pending *p)
{
	int rc = p->fails            ? -EIO
		: p->what == DO_READ ? disk_memory_read(d->memory, d->buffer, p->size, p->position)
				     : 0;

	disk_count(&d->counters, p);
	if (rc || p->what == DO_FLUSHED)
		fuse_reply_err(p->req, -rc);
	else if (p->what == DO_READ)
		fuse_reply_buf(p->req, d->buffer, p->size);
	else
		fuse_reply_write(p->req, p->size);
	free(p);
}

static void answer_due(struct disk *d)
{
	struct itimerspec when = {0};
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	while (d->head && d->head->turn.done_ns <= now) {
		struct pending *p = d->head;

		d->head = p->next;
		if (!d->head)
			d->tail = &d->head;
		disk_answer(d, p);
	}
	if (d->head) {
		when.it_value.tv_sec = d->head->turn.done_ns / 1000000000;
		when.it_value.tv_nsec = d->head->turn.done_ns % 1000000000;
	}
	timerfd_settime(d->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void disk_plan(struct disk *d, struct pending *p, int64_t now)
{
	p->head = d->model.end;
	if (p->what == DO_FLUSHED)
		p->turn = (struct disk_turn){.done_ns = disk_model_idle(&d->model, now)};
	else
		p->turn = disk_model_request(&d->model, now, p->position, p->size);
}

static void accept_request(fuse_req_t req, int what, uint64_t position, size_t size)
{
	struct disk *d = fuse_req_userdata(req);
	struct pending *p = alloc_zero(1, sizeof(*p));

	*p = (struct pending){.req = req,
		.what = what,
		.position = position,
		.size = size,
		.fails = what == DO_READ && disk_model_fails(&d->model)};
	disk_plan(d, p, clock_ns(CLOCK_MONOTONIC));
	*d->tail = p;
	d->tail = &p->next;
	if (d->head == p)
		answer_due(d);
}

/* The requests that wait are served under the new fault; the one in service begins anew. */
static void disk_change(struct disk *d, const struct disk_fault *f)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (disk_fault_same(f, &d->model.fault))
		return;
	d->model.fault = *f;
	if (d->head) {
		d->model.busy_until_ns = now;
		d->model.end = d->head->head;
	}
	for (struct pending *p = d->head; p; p = p->next) {
		p->fails = p->fails && f->errors_pct > 0;
		disk_plan(d, p, now);
	}
	answer_due(d);
}

/* With those that a stall holds now. */
static void control_read(fuse_req_t req, size_t size, off_t off)
{
	struct disk *d = fuse_req_userdata(req);
	struct disk_counters c = d->counters;
	auto_free char *text = NULL;
	size_t n;

	if (disk_model_stalls(&d->model, clock_ns(CLOCK_MONOTONIC)))
		for (const struct pending *p = d->head; p; p = p->next)
			c.held += p->turn.held;
	text = disk_control_text(&d->model.fault, &c);
	if (!text) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n = strlen(text);
	if ((uint64_t)off > n)
		off = (off_t)n;
	n -= (size_t)off;
	fuse_reply_buf(req, text + off, n < size ? n : size);
}

static void control_write(fuse_req_t req, const char *text, size_t size, off_t off)
{
	struct disk *d = fuse_req_userdata(req);
	struct disk_fault f;

	if (off || disk_fault_parse(text, size, clock_ns(CLOCK_MONOTONIC), &f, NULL)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	disk_change(d, &f);
	fuse_reply_write(req, size);
}

/* '*size' is cut at the end of the disk. */
static int place(const struct disk *d, fuse_ino_t ino, off_t off, size_t *size)
{
	if (ino != DISK || off < 0)
		return -EINVAL;
	if ((uint64_t)off >= d->size)
		*size = 0;
	else if (*size > d->size - (uint64_t)off)
		*size = d->size - (uint64_t)off;
	return 0;
}

static void op_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct disk *d = fuse_req_userdata(req);
	int rc;

	(void)fi;
	if (ino == CONTROL) {
		control_read(req, size, off);
		return;
	}
	rc = place(d, ino, off, &size);
	if (rc || size > REQUEST_MAX)
		fuse_reply_err(req, EINVAL);
	else if (!size)
		fuse_reply_buf(req, NULL, 0);
	else
		accept_request(req, DO_READ, (uint64_t)off, size);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	struct disk *d = fuse_req_userdata(req);
	size_t fits = size;
	int rc;

	(void)fi;
	if (ino == CONTROL) {
		control_write(req, data, size, off);
		return;
	}
	rc = place(d, ino, off, &fits);
	if (!rc && fits != size)
		rc = -ENOSPC;
	if (!rc)
		rc = disk_memory_write(d->memory, data, size, (uint64_t)off);
	if (rc)
		fuse_reply_err(req, -rc);
	else
		accept_request(req, DO_WRITTEN, (uint64_t)off, size);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)datasync;
	(void)fi;
	if (ino == DISK)
		accept_request(req, DO_FLUSHED, 0, 0);
	else
		fuse_reply_err(req, 0);
}

/* Discard and "write zeroes" of the block layer: they take no disk time. */
static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
	struct fuse_file_info *fi)
{
	struct disk *d = fuse_req_userdata(req);
	size_t size = (size_t)length;
	int rc = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) ? place(d, ino, off, &size)
								      : -EOPNOTSUPP;

	(void)fi;
	if (!rc && size)
		rc = disk_memory_zero(d->memory, size, (uint64_t)off);
	fuse_reply_err(req, -rc);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
	.fallocate = op_fallocate,
};

/* The lab is going down: answers everything queued, and all that follows, without delay. */
static void hurry(struct disk *d)
{
	d->model.rate = d->speed.rate = 0;
	for (struct pending *p = d->head; p; p = p->next) {
		p->turn.done_ns = 0;
		p->fails = false;
	}
	answer_due(d);
}

/* Until the lab goes down. */
static void disk_serve(struct disk *d)
{
	struct fuse_buf buf = {0};
	struct signalfd_siginfo info;
	uint64_t times;
	sigset_t set;
	struct pollfd fds[] = {
		{.fd = fuse_session_fd(d->session), .events = POLLIN},
		{.fd = d->timer, .events = POLLIN},
		{.events = POLLIN},
		{.fd = LAB_CONTROL_FD, .events = POLLIN},
	};

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[2].fd = signalfd(-1, &set, SFD_CLOEXEC);
	fcntl(fds[0].fd, F_SETFL, O_NONBLOCK);
	child_ready();
	while (!fuse_session_exited(d->session)) {
		if (poll(fds, 4, -1) < 0 && errno != EINTR)
			child_die("cannot wait for requests: %s", strerror(errno));
		if (fds[1].revents && read(d->timer, &times, sizeof(times)) > 0)
			answer_due(d);
		if (fds[2].revents && read(fds[2].fd, &info, sizeof(info)) > 0)
			hurry(d);
		if (fds[3].revents) {
			child_wait();
			child_commit();
			fds[3].fd = -1;
			d->model = d->speed; /* with no fault: no agent has been here */
		}
		if (fds[0].revents) {
			int n = fuse_session_receive_buf(d->session, &buf);

			if (n > 0)
				fuse_session_process_buf(d->session, &buf);
			else if (n != -EINTR && n != -EAGAIN)
				break;
		}
	}
}

int disk_main(const struct lab_options *o, const char *name)
{
	struct disk d = {
		.speed = {.rate = o->disk_rate, .seek_ns = (int64_t)(o->disk_seek_s * 1e9)},
		.size = (uint64_t)o->storage_bytes + (uint64_t)o->spare_bytes,
		.tail = &d.head,
		.buffer = alloc_zero(1, REQUEST_MAX),
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
	struct lab_path point = lab_path(o->dir, "disk/%s", name);
	char *args_v[] = {"culprit-disk", "-ofsname=culprit-disk", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, args_v);

	d.memory = disk_memory_new(name, d.size, &child_err);
	child_must(d.memory);
	d.session = fuse_session_new(&args, &ops, sizeof(ops), &d);
	if (d.timer < 0 || !d.session || fuse_session_mount(d.session, point.s))
		child_die("cannot mount a FUSE file system on '%s'", point.s);
	disk_serve(&d);
	fuse_session_unmount(d.session);
	fuse_session_destroy(d.session);
	return 0;
}
