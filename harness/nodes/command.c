/*
 * Runs a command on the node on its own channel: output, exit code, error text.
 *
 * Only node_command_open and ssh_channel_write may block, and the watchdog limits both. All other
 * functions take the data that has arrived and return. libssh's SFTP client and ssh_channel_read
 * are not used: in libssh 0.10 sftp_init spins forever on a channel that ended with unread
 * standard error.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/nodes/node_impl.h"

/* A call may receive packets for another channel; libssh buffers their data. So the thread must
 * check again before it sleeps. */
static int on_data(ssh_session s, ssh_channel c, void *data, uint32_t len, int is_err, void *arg)
{
	(void)s, (void)c, (void)data, (void)len, (void)is_err;
	((struct node_command *)arg)->node->fresh = true;
	return 0;
}

static int on_window(ssh_session s, ssh_channel c, uint32_t bytes, void *arg)
{
	(void)s, (void)c, (void)bytes;
	((struct node_command *)arg)->node->fresh = true;
	return 0;
}

static void on_end(ssh_session s, ssh_channel c, void *arg)
{
	(void)s, (void)c;
	((struct node_command *)arg)->node->fresh = true;
}

static void on_exit_status(ssh_session s, ssh_channel c, int status, void *arg)
{
	((struct node_command *)arg)->status = status;
	on_end(s, c, arg);
}

static void on_exit_signal(ssh_session s, ssh_channel c, const char *name, int core,
	const char *text, const char *lang, void *arg)
{
	struct node_command *x = arg;

	(void)core, (void)text, (void)lang;
	snprintf(x->signal, sizeof(x->signal), "%s", name);
	on_end(s, c, arg);
}

int node_command_open(struct node *n, struct node_command *x, const char *command, struct err *e)
{
	*x = (struct node_command){.node = n, .status = -1};
	x->callbacks = (struct ssh_channel_callbacks_struct){.userdata = x,
		.channel_data_function = on_data,
		.channel_write_wontblock_function = on_window,
		.channel_eof_function = on_end,
		.channel_close_function = on_end,
		.channel_exit_status_function = on_exit_status,
		.channel_exit_signal_function = on_exit_signal};
	ssh_callbacks_init(&x->callbacks);
	x->ssh = ssh_channel_new(n->session);
	if (!x->ssh || ssh_channel_open_session(x->ssh) != SSH_OK)
		return session_error(n, e, "no SSH channel for a command");
	ssh_set_channel_callbacks(x->ssh, &x->callbacks);
	if (ssh_channel_request_exec(x->ssh, command) != SSH_OK)
		return session_error(n, e, "the host refuses to run a command");
	return 0;
}

void node_command_close(struct node_command *x)
{
	if (x->ssh) {
		/* libssh keeps a channel until the other side has also closed it. */
		ssh_remove_channel_callbacks(x->ssh, &x->callbacks);
		ssh_channel_free(x->ssh);
	}
	x->ssh = NULL;
}

void text_tail_add(struct text_tail *t, const char *data, size_t len)
{
	size_t drop;

	if (len > NODE_TAIL_MAX) {
		data += len - NODE_TAIL_MAX;
		len = NODE_TAIL_MAX;
	}
	drop = t->len + len > NODE_TAIL_MAX ? t->len + len - NODE_TAIL_MAX : 0;
	memmove(t->text, t->text + drop, t->len - drop);
	t->len -= drop;
	memcpy(t->text + t->len, data, len);
	t->len += len;
	t->text[t->len] = '\0';
}

void text_tail_line(const struct text_tail *t, char *buf, size_t size)
{
	size_t end = t->len, start;

	while (end && strchr("\r\n\t ", t->text[end - 1]))
		end--;
	for (start = end; start && t->text[start - 1] != '\n';)
		start--;
	snprintf(buf, size, "%.*s", (int)(end - start), t->text + start);
	for (; *buf; buf++)
		if ((unsigned char)*buf < ' ' || *buf == 127)
			*buf = '?';
}

static void take_stderr(struct node_command *x)
{
	char buf[4096];
	int got = 1;

	/* Limited, because a command may print faster than this reads. */
	for (int i = 0; i < 64 && got > 0; i++) {
		got = ssh_channel_read_nonblocking(x->ssh, buf, sizeof(buf), 1);
		if (got > 0)
			text_tail_add(&x->printed, buf, (size_t)got);
	}
}

int node_command_read(struct node_command *x, char *buf, size_t size)
{
	ssh_session session = x->node->session;
	double now_s = clock_mono_s();
	int got;

	take_stderr(x);
	got = ssh_channel_read_nonblocking(x->ssh, buf, (uint32_t)size, 0);
	if (got > 0)
		return got;
	if (got == 0 && !ssh_channel_is_eof(x->ssh) && !ssh_channel_is_closed(x->ssh) &&
		ssh_is_connected(session))
		return 0;
	/* The exit code arrives a little after the end of the output. */
	if (!x->ended_s)
		x->ended_s = now_s;
	ssh_set_blocking(session, 0);
	ssh_channel_get_exit_status(x->ssh);
	ssh_set_blocking(session, 1);
	if (x->status < 0 && !x->signal[0] && ssh_is_connected(session) &&
		!ssh_channel_is_closed(x->ssh) && now_s - x->ended_s < COMMAND_LINGER_S)
		return 0;
	take_stderr(x);
	return -EPIPE;
}

int node_command_write(struct node_command *x, const void *data, size_t len)
{
	size_t room = ssh_channel_window_size(x->ssh);
	int sent;

	if (ssh_get_poll_flags(x->node->session) & SSH_WRITE_PENDING)
		return 0;
	if (len > room)
		len = room;
	if (len > NODE_SLICE)
		len = NODE_SLICE;
	sent = len ? ssh_channel_write(x->ssh, data, (uint32_t)len) : 0;
	return sent < 0 ? -EPIPE : sent;
}

int node_command_error(struct node_command *x, struct err *e, const char *what)
{
	struct node *n = x->node;
	char last[300];

	text_tail_line(&x->printed, last, sizeof(last));
	if (atomic_load(&n->stalled))
		return err_set(e, -ETIMEDOUT, "no answer for %g s", n->set->opt.timeout_s);
	if (!ssh_is_connected(n->session))
		return err_set(e, -ECONNRESET, "connection lost: %s", ssh_get_error(n->session));
	if (x->signal[0])
		return err_set(e, -ECONNRESET, "%s: killed by SIG%s", what, x->signal);
	if (last[0])
		return err_set(e, -ECONNRESET, "%s: %s", what, last);
	if (x->status >= 0)
		return err_set(e, -ECONNRESET, "%s with exit code %d", what, x->status);
	return err_set(e, -ECONNRESET, "%s", what);
}

int node_command_run(struct node *n, const char *what, const char *command, double limit_s,
	const struct iovec *in, size_t n_in, struct text_tail *out, struct err *e)
{
	double until_s = clock_mono_s() + limit_s;
	size_t i = 0, at = 0;
	bool sending = true;
	char buf[4096], last[300];
	struct node_command x;
	int rc, got, sent;

	node_watch(n, limit_s);
	rc = node_command_open(n, &x, command, e);
	while (!rc) {
		n->fresh = false;
		node_watch(n, limit_s);
		/* Read first: that frees the space needed for writing. */
		got = node_command_read(&x, buf, sizeof(buf));
		if (got > 0)
			text_tail_add(out, buf, (size_t)got);
		if (got < 0)
			break;
		while (sending && i < n_in) {
			sent = node_command_write(
				&x, (char *)in[i].iov_base + at, in[i].iov_len - at);
			sending = sent >= 0; /* its last output explains the error */
			if (sent <= 0 && at < in[i].iov_len)
				break;
			at += (size_t)sent;
			if (at == in[i].iov_len)
				i++, at = 0;
			until_s = clock_mono_s() + limit_s;
		}
		if (sending && i == n_in) {
			ssh_channel_send_eof(x.ssh);
			sending = false;
		}
		/* Only data that the command accepts counts as progress: a command that prints
		 * forever is not making progress. */
		if (atomic_load(&n->set->closing)) {
			rc = err_set(e, -ECANCELED, "given up");
		} else if (clock_mono_s() > until_s) {
			text_tail_line(x.printed.len ? &x.printed : out, last, sizeof(last));
			rc = err_set(e, -ETIMEDOUT, "%s: the command did not end within %g s%s%s",
				what, limit_s, last[0] ? "; last it printed: " : "", last);
		} else if (!got) {
			node_wait(n, x.ended_s ? x.ended_s + COMMAND_LINGER_S : until_s, x.ended_s);
		}
	}
	/* A command that prints nothing on standard error may have explained the failure on
	 * standard output. */
	if (!rc && (x.status || atomic_load(&n->stalled))) {
		if (!x.printed.len)
			text_tail_add(&x.printed, out->text, out->len);
		rc = node_command_error(&x, e, what);
	}
	node_command_close(&x);
	node_watch(n, 0);
	return rc;
}
