/*
 * Transfers one file to or from a node through 'culprit-agent file' (harness/agent/PROTOCOL.md)
 * on a separate channel: a line of JSON with the size, the bytes, a line with their CRC-32. It
 * moves in parts, so that the agent's heartbeat continues in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/nodes/node_impl.h"

struct transfer {
	struct op *op;
	struct node_command there;
	int fd;
	char *tmp;      /* fetch: temporary name of op->local */
	bool headed;    /* the answer's first line has arrived */
	uint64_t left;  /* bytes of the file not yet moved */
	uint32_t crc;   /* of the bytes moved so far */
	double moved_s; /* clock_mono_s when the last byte moved */
	bool sent_all;  /* including the last line */
	char *out;      /* data to send: a line, or 'buf' */
	size_t out_len;
	char line[2048]; /* line being received */
	size_t line_len;
	char head[4200]; /* line being sent */
	char buf[NODE_SLICE];
};

static int local_error(struct err *e, const char *what, const char *path)
{
	return err_errno(e, -errno, "cannot %s '%s'", what, path);
}

static int transfer_start(struct node *n, struct transfer *t)
{
	struct op *op = t->op;
	bool fetch = op->kind == OP_FETCH;
	struct stat st = {0};
	json_t *ask;
	size_t size;

	t->tmp = alloc_format("%s.part-%d-%s", op->local, (int)getpid(), n->name);
	t->fd = fetch ? open(t->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
		      : open(op->local, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0 || (!fetch && fstat(t->fd, &st) < 0))
		return local_error(&op->err, fetch ? "make" : "open", fetch ? t->tmp : op->local);
	ask = fetch ? json_pack("{s:s}", "get", op->remote)
		    : json_pack("{s:s, s:i, s:I}", "put", op->remote, "mode",
			      (int)(st.st_mode & 0777), "size", (json_int_t)st.st_size);
	size = json_dumpb(ask, t->head, sizeof(t->head) - 1, JSON_COMPACT);
	json_decref(ask);
	if (!size || size >= sizeof(t->head))
		return err_set(
			&op->err, -ENAMETOOLONG, "the path '%.100s...' is too long", op->remote);
	t->head[size] = '\n';
	t->out = t->head;
	t->out_len = size + 1;
	t->left = (uint64_t)st.st_size;
	t->sent_all = fetch;
	t->moved_s = clock_mono_s();
	return node_command_open(n, &t->there, n->file_command, &op->err);
}

/* Points 't->out' to the next data to send, if any is left. Returns 1 or -errno. */
static int transfer_fill(struct transfer *t)
{
	struct op *op = t->op;
	ssize_t got;

	if (t->out_len || t->sent_all)
		return 1;
	if (!t->left) {
		t->out = t->head;
		t->out_len = (size_t)sprintf(t->head, "{\"crc32\":%u}\n", t->crc);
		t->sent_all = true;
		return 1;
	}
	got = read(t->fd, t->buf, t->left < sizeof(t->buf) ? t->left : sizeof(t->buf));
	if (got < 0)
		return local_error(&op->err, "read", op->local);
	if (got == 0)
		return err_set(&op->err, -EIO, "'%s' shrank while it was sent", op->local);
	t->crc = (uint32_t)crc32(t->crc, (void *)t->buf, (uInt)got);
	t->left -= (uint64_t)got;
	t->out = t->buf;
	t->out_len = (size_t)got;
	return 1;
}

static int fetch_end(struct transfer *t, json_t *msg)
{
	struct op *op = t->op;
	int rc;

	if (json_integer_value(json_object_get(msg, "crc32")) != t->crc)
		return err_set(&op->err, -EIO, "'%s' was corrupted in transit", op->remote);
	rc = close(t->fd);
	t->fd = -1;
	if (rc < 0)
		return local_error(&op->err, "write", t->tmp);
	if (rename(t->tmp, op->local) < 0)
		return local_error(&op->err, "make", op->local);
	free(t->tmp);
	t->tmp = NULL;
	return 0;
}

/* A file size reported by a node is not trustworthy. */
static int take_size(struct transfer *t, json_int_t size)
{
	struct op *op = t->op;
	struct statvfs fs;
	uint64_t room;

	t->headed = true;
	if (op->kind != OP_FETCH)
		return 0;
	if (size < 0)
		return err_set(&op->err, -EPROTO, "the agent says that '%s' has %lld bytes",
			op->remote, (long long)size);
	room = fstatvfs(t->fd, &fs) < 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
	if ((uint64_t)size > room)
		return err_set(&op->err, -ENOSPC,
			"'%s' has %lld bytes, but this machine has room for %llu", op->remote,
			(long long)size, (unsigned long long)room);
	t->left = (uint64_t)size;
	return 1;
}

/* 1: more data follows, 0: complete. Skips text that a login shell prints first: it is not JSON. */
static int take_message(struct transfer *t)
{
	json_t *msg = json_loadb(t->line, t->line_len, 0, NULL),
	       *size = json_object_get(msg, "size");
	const char *text = json_string_value(json_object_get(msg, "error"));
	json_int_t code = json_integer_value(json_object_get(msg, "code"));
	int rc = 1;

	if (text) {
		rc = err_set(&t->op->err, code < 0 && code > -4096 ? (int)code : -EIO, "%s", text);
	} else if (t->headed) {
		rc = fetch_end(t, msg);
	} else if (json_is_integer(size)) {
		rc = take_size(t, json_integer_value(size));
	} else {
		text_tail_add(&t->there.printed, t->line, t->line_len);
		text_tail_add(&t->there.printed, "\n", 1);
	}
	json_decref(msg);
	t->line_len = 0;
	return rc;
}

/* Returns like take_message. */
static int transfer_take(struct transfer *t, const char *data, size_t len)
{
	int rc = 1;

	while (len && rc == 1) {
		size_t part = len;

		if (t->headed && t->left) {
			if (part > t->left)
				part = t->left;
			rc = fd_write_all(t->fd, data, part);
			if (rc < 0)
				return err_errno(&t->op->err, rc, "cannot write '%s'", t->tmp);
			t->crc = (uint32_t)crc32(t->crc, (const void *)data, (uInt)part);
			t->left -= part;
			rc = 1;
		} else if (*data == '\n') {
			part = 1;
			rc = take_message(t);
		} else {
			const char *end = memchr(data, '\n', len);

			part = end ? (size_t)(end - data) : len;
			if (t->line_len + part > sizeof(t->line))
				t->line_len = 0; /* our messages are shorter */
			if (part > sizeof(t->line))
				return err_set(
					&t->op->err, -EPROTO, "the agent sent a line too long");
			memcpy(t->line + t->line_len, data, part);
			t->line_len += part;
		}
		data += part;
		len -= part;
	}
	return rc;
}

static void transfer_end(struct node *n, int rc)
{
	struct transfer *t = n->transfer;

	n->transfer = NULL;
	node_command_close(&t->there);
	if (t->fd >= 0)
		close(t->fd);
	if (t->tmp && t->op->kind == OP_FETCH)
		unlink(t->tmp);
	free(t->tmp);
	op_finish(n, t->op, rc);
	free(t);
}

void transfer_begin(struct node *n, struct op *op)
{
	struct transfer *t = alloc_zero(1, sizeof(*t));
	int rc;

	t->op = op;
	t->fd = -1;
	n->transfer = t;
	rc = transfer_start(n, t);
	if (rc < 0)
		transfer_end(n, rc);
}

/* Returns like take_message; sets '*moved' if any data moved. */
static int transfer_advance(struct transfer *t, bool *moved)
{
	double limit_s = t->there.node->set->opt.timeout_s;
	char data[NODE_SLICE + 1];
	/* Read first: that frees the space needed for writing. */
	int got = node_command_read(&t->there, data, NODE_SLICE), sent = 0, rc = 1;

	if (got < 0)
		return node_command_error(&t->there, &t->op->err, "the transfer ended");
	data[got] = '\0';
	if (got > 0)
		rc = transfer_take(t, data, (size_t)got);
	if (rc == 1 && (rc = transfer_fill(t)) == 1)
		sent = node_command_write(&t->there, t->out, t->out_len);
	if (sent > 0) {
		t->out += sent;
		t->out_len -= (size_t)sent;
	}
	*moved = sent > 0 || got > 0;
	if (*moved)
		t->moved_s = clock_mono_s();
	else if (clock_mono_s() - t->moved_s > limit_s)
		return err_set(&t->op->err, -ETIMEDOUT, "the transfer of '%s' stalled for %g s",
			t->op->remote, limit_s);
	return rc;
}

bool transfer_step(struct node *n)
{
	struct transfer *t = n->transfer;
	bool abandoned, moved = true;
	int rc;

	pthread_mutex_lock(&n->set->lock);
	abandoned = t->op->abandoned;
	pthread_mutex_unlock(&n->set->lock);
	rc = abandoned ? -ECANCELED : transfer_advance(t, &moved);
	if (rc == 1)
		return moved;
	/* If the node is lost, transfer_abort sets the reason. */
	if (rc < 0 && !abandoned && (atomic_load(&n->stalled) || !ssh_is_connected(n->session)))
		return false;
	transfer_end(n, rc);
	return true;
}

void transfer_abort(struct node *n, int rc, const struct err *why)
{
	if (!n->transfer)
		return;
	n->transfer->op->err = *why;
	transfer_end(n, rc);
}
