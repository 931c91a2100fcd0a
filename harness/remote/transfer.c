/*
 * Files over SFTP, a slice at a time, so that the agent's heartbeat goes on between
 * two slices of a long transfer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/remote/node_impl.h"

struct transfer {
	struct op *op;
	sftp_file file;
	int fd;
	char *tmp; /* what is written to: here for a fetch, there for a put */
	bool tmp_made;
	uint64_t size, done;
	char buf[NODE_SLICE];
};

static int local_error(struct err *e, const char *what, const char *path)
{
	return err_errno(e, -errno, "cannot %s '%s'", what, path);
}

static int start_fetch(struct node *n, struct transfer *t)
{
	struct op *op = t->op;
	sftp_attributes a;

	t->file = sftp_open(n->sftp, op->remote, O_RDONLY, 0);
	if (!t->file)
		return sftp_error(n, &op->err, "cannot open", op->remote);
	a = sftp_fstat(t->file);
	if (!a)
		return sftp_error(n, &op->err, "cannot stat", op->remote);
	t->size = a->size;
	sftp_attributes_free(a);
	if (asprintf(&t->tmp, "%s.part-%d-%s", op->local, (int)getpid(), n->name) < 0)
		return err_errno(&op->err, -ENOMEM, "cannot fetch '%s'", op->remote);
	t->fd = open(t->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (t->fd < 0)
		return local_error(&op->err, "make", t->tmp);
	t->tmp_made = true;
	return 0;
}

static int start_put(struct node *n, struct transfer *t)
{
	struct op *op = t->op;
	struct stat st;

	t->fd = open(op->local, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0 || fstat(t->fd, &st) < 0)
		return local_error(&op->err, "open", op->local);
	t->size = (uint64_t)st.st_size;
	if (asprintf(&t->tmp, "%s.part-%d", op->remote, (int)getpid()) < 0)
		return err_errno(&op->err, -ENOMEM, "cannot put '%s'", op->remote);
	t->file = sftp_open(n->sftp, t->tmp, O_WRONLY | O_CREAT | O_TRUNC, st.st_mode & 0777);
	if (!t->file)
		return sftp_error(n, &op->err, "cannot make", t->tmp);
	t->tmp_made = true;
	return 0;
}

/* 1: there is more, 0: all is there. */
static int fetch_slice(struct node *n, struct transfer *t)
{
	struct op *op = t->op;
	ssize_t got;
	int rc;

	if (t->done == t->size) {
		if (close(t->fd) < 0) {
			t->fd = -1;
			return local_error(&op->err, "write", t->tmp);
		}
		t->fd = -1;
		if (rename(t->tmp, op->local) < 0)
			return local_error(&op->err, "make", op->local);
		t->tmp_made = false;
		return 0;
	}
	got = sftp_read(
		t->file, t->buf, t->size - t->done < NODE_SLICE ? t->size - t->done : NODE_SLICE);
	if (got < 0)
		return sftp_error(n, &op->err, "cannot read", op->remote);
	if (got == 0)
		return err_set(&op->err, -EIO, "'%s' shrank while it was fetched", op->remote);
	rc = fd_write_all(t->fd, t->buf, (size_t)got);
	if (rc < 0)
		return err_errno(&op->err, rc, "cannot write '%s'", t->tmp);
	t->done += (uint64_t)got;
	return 1;
}

static int put_slice(struct node *n, struct transfer *t)
{
	struct op *op = t->op;
	ssize_t got;
	int rc;

	got = read(t->fd, t->buf, NODE_SLICE);
	if (got < 0)
		return local_error(&op->err, "read", op->local);
	if (got > 0) {
		if (sftp_write(t->file, t->buf, (size_t)got) != got)
			return sftp_error(n, &op->err, "cannot write", t->tmp);
		return 1;
	}
	rc = sftp_close(t->file);
	t->file = NULL;
	if (rc != SSH_OK)
		return sftp_error(n, &op->err, "cannot write", t->tmp);
	if (sftp_rename(n->sftp, t->tmp, op->remote) < 0) {
		/* Servers without OpenSSH's rename refuse to replace a file. */
		sftp_unlink(n->sftp, op->remote);
		if (sftp_rename(n->sftp, t->tmp, op->remote) < 0)
			return sftp_error(n, &op->err, "cannot make", op->remote);
	}
	t->tmp_made = false;
	return 0;
}

static void transfer_end(struct node *n, int rc)
{
	struct transfer *t = n->transfer;

	n->transfer = NULL;
	if (t->file)
		sftp_close(t->file);
	if (t->fd >= 0)
		close(t->fd);
	if (t->tmp_made && t->op->kind == OP_FETCH)
		unlink(t->tmp);
	else if (t->tmp_made)
		sftp_unlink(n->sftp, t->tmp);
	free(t->tmp);
	op_finish(n, t->op, rc);
	free(t);
}

void transfer_begin(struct node *n, struct op *op)
{
	struct transfer *t = calloc(1, sizeof(*t));
	int rc;

	if (!t) {
		op_finish(n, op, err_errno(&op->err, -ENOMEM, "cannot begin a transfer"));
		return;
	}
	t->op = op;
	t->fd = -1;
	n->transfer = t;
	rc = session_sftp(n, &op->err);
	if (!rc)
		rc = op->kind == OP_FETCH ? start_fetch(n, t) : start_put(n, t);
	if (rc < 0)
		transfer_end(n, rc);
}

void transfer_step(struct node *n)
{
	struct transfer *t = n->transfer;
	bool abandoned;
	int rc;

	pthread_mutex_lock(&n->set->lock);
	abandoned = t->op->abandoned;
	pthread_mutex_unlock(&n->set->lock);
	if (abandoned)
		rc = -ECANCELED;
	else
		rc = t->op->kind == OP_FETCH ? fetch_slice(n, t) : put_slice(n, t);
	/* Then the node is lost, and transfer_abort comes with the reason. */
	if (rc < 0 && (atomic_load(&n->stalled) || !ssh_is_connected(n->session)))
		return;
	if (rc <= 0)
		transfer_end(n, rc);
}

void transfer_abort(struct node *n, int rc, const struct err *why)
{
	if (!n->transfer)
		return;
	n->transfer->op->err = *why;
	transfer_end(n, rc);
}
