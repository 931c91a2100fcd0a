/* Merges the logs of all nodes by time and drives the binding of requests. */
#include "diag/flow/flow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "diag/flow/flow_impl.h"
#include "diag/record/describe.h"

enum {
	LOOK_NS = 100000000, /* clocks and ages are examined so often, in merged time */
	LOOK_RECORDS = 4096, /* the sink's look */
};

void flow_new(const struct flow_spec *spec, const struct flow_sink *sink, struct flow **out)
{
	struct flow *f = alloc_zero(1, sizeof(*f));

	f->spec = *spec;
	f->sink = *sink;
	if (!f->spec.limit)
		f->spec.limit = FLOW_LIMIT;
	if (f->spec.drift_ppm <= 0)
		f->spec.drift_ppm = 500;
	if (f->spec.seconds <= 0)
		f->spec.seconds = 3600;
	f->fuse_size = 64;
	while (f->fuse_size < f->spec.limit)
		f->fuse_size *= 2;
	f->by_serial = alloc_zero(f->fuse_size, sizeof(struct fuse *));
	*out = f;
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	f->sink = (struct flow_sink){0};
	wire_free(f);
	threads_free(f);
	requests_free(f);
	threads_free(f); /* what requests have given back */
	fuses_free(f);
	for (size_t i = 0; i < f->n_logs; i++) {
		stream_free(f->logs[i].stream);
		free(f->logs[i].cut);
	}
	free(f->logs);
	flow_nodes_clear(f);
	free(f);
}

void flow_nodes_clear(struct flow *f)
{
	for (size_t i = 0; i < f->n_nodes; i++)
		free(f->nodes[i].name);
	free(f->nodes);
	for (size_t i = 0; f->pairs && i < f->n_nodes * f->n_nodes; i++)
		free(f->pairs[i].track);
	free(f->pairs);
	free(f->bins);
	table_reader_free(f->reader);
	f->nodes = NULL;
	f->n_nodes = 0;
	f->pairs = NULL;
	f->bins = NULL;
	f->n_seconds = 0;
	f->reader = NULL;
}

static uint32_t node_of(struct flow *f, const char *name)
{
	for (uint32_t i = 0; i < f->n_nodes; i++)
		if (!strcmp(f->nodes[i].name, name))
			return i;
	f->nodes = alloc_room(f->nodes, f->n_nodes, sizeof(*f->nodes));
	f->nodes[f->n_nodes] = (struct flow_node){.name = alloc_copy(name)};
	return (uint32_t)f->n_nodes++;
}

static int nothing(void *ctx, struct stream_item *item, struct err *e)
{
	(void)ctx;
	(void)item;
	(void)e;
	return 0;
}

int flow_add(struct flow *f, const char *node, struct stream *s, struct err *e)
{
	/* The stream keeps names for those who ask, and this one is fed no call. */
	const struct stream_consumer asks = {
		.feed = nothing, .classes = 1u << CALL_CLASS_COUNT, .names = true};
	const struct stream_spec *spec = stream_spec(s);
	struct log *l;
	int rc;

	if (!stream_arch(s)) {
		rc = err_set(e, -EINVAL, "%s: the log's architecture '%s' is not known", node,
			stream_head(s)->arch);
		stream_free(s);
		return rc;
	}
	stream_add(s, &asks, NULL);
	f->logs = alloc_room(f->logs, f->n_logs, sizeof(*f->logs));
	l = &f->logs[f->n_logs++];
	*l = (struct log){.stream = s, .node = node_of(f, node), .owner = spec->owner};
	l->storage = spec->owner == OWNER_SERVER &&
		(spec->servers[spec->index].storage || spec->servers[spec->index].storage_device);
	f->nodes[l->node].open_logs++;
	f->nodes[l->node].hint_ns = spec->clock_offset_ns;
	snprintf(
		f->nodes[l->node].arch, sizeof(f->nodes[l->node].arch), "%s", stream_head(s)->arch);
	return 0;
}

/* ---- records ---- */

/* A call that moved bytes, or may have, on a socket, on /dev/fuse or on a file. */
static void feed_transfer(struct flow *f, struct log *l, struct stream_item *item, struct thread *t)
{
	const struct record_call *c = &item->record->call;
	const struct fd_state *fd = item_fd(item);
	bool send = item->call->class == CALL_WRITE;
	struct endpoint *ep;

	if (item->call->class == CALL_COPY && !(fd && fd->now.kind == FD_SOCKET)) {
		const struct fd_state *to = stream_fd(
			l->stream, c->pid, (int32_t)c->args[item->call->fd2]);

		if (to && to->now.kind == FD_SOCKET) {
			thread_disk(f, l, item, t);
			fd = to;
			send = true;
		}
	}
	if (!fd || (c->positioned && fd->now.kind != FD_SOCKET)) {
		f->counts.reasons[FLOW_NO_DESCRIPTOR] += c->positioned;
		return;
	}
	if (fd->now.kind == FD_DEVICE && fd->now.path && !strcmp(fd->now.path, "/dev/fuse")) {
		fuse_daemon(f, l, c, t, !send);
		return;
	}
	if (fd->now.kind != FD_SOCKET) {
		thread_disk(f, l, item, t);
		return;
	}
	ep = endpoint_of(f, l, fd);
	if (!ep->connection || c->result <= 0 || call_peeks(item->call, c))
		return;
	*(send ? &f->counts.sends : &f->counts.receives) += 1;
	*(send ? &f->counts.sent_bytes : &f->counts.received_bytes) += (uint64_t)c->result;
	if (!send)
		thread_moves_on(f, t);
	if (c->positioned)
		wire_moved(f, l, c, ep, send, t);
	else
		f->counts.reasons[FLOW_NO_POSITION]++;
}

static void feed_call(struct flow *f, struct log *l, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	struct thread *t = thread_of(f, l->node, c->tid);

	if (!item->async) {
		t->calls++;
		if (t->fuses)
			fuse_call(f, l, item, t);
	}
	if (!item->call || c->unfinished)
		return;
	switch (item->call->class) {
	case CALL_READ:
	case CALL_WRITE:
	case CALL_COPY: feed_transfer(f, l, item, t); break;
	case CALL_POLL: thread_moves_on(f, t); break;
	default: thread_disk(f, l, item, t); break;
	}
}

static void closed(void *ctx, const struct fd_state *fd)
{
	endpoint_closed(ctx, fd);
}

static void flow_feed(struct flow *f, struct log *l)
{
	const struct record *rec = l->item->record;

	if (!(++f->counts.records % LOOK_RECORDS) && f->sink.look && !f->rc)
		f->rc = f->sink.look(f->sink.ctx, f->error);
	switch (rec->type) {
	case RECORD_CALL: feed_call(f, l, l->item); break;
	case RECORD_FUSE: fuse_record(f, l, &rec->fuse); break;
	case RECORD_LOST: thread_records_lost(f, l->node); break;
	case RECORD_FD: item_each_ending(l->item, closed, f); break;
	case RECORD_PROCESS:
		if (rec->process.what == PROCESS_NAME)
			break;
		item_each_ending(l->item, closed, f);
		if (rec->process.what == PROCESS_EXIT)
			thread_gone(f, l->node, rec->process.tid);
		break;
	default: break;
	}
}

/* ---- merging ---- */

static void next_item(struct flow *f, struct log *l)
{
	struct err e;
	int rc = stream_next(l->stream, &l->item, &e);

	if (rc == 1) {
		l->key_ns = record_end_ns(l->item->record) - f->nodes[l->node].hint_ns;
		return;
	}
	l->item = NULL;
	if (rc < 0) {
		l->cut = alloc_copy(e.text);
		f->counts.logs_cut++;
	}
	if (!--f->nodes[l->node].open_logs)
		wire_node_ended(f, l->node);
}

/* The log to read next, and the key up to which it stays the one. NULL: all are at their ends. */
static struct log *next_log(struct flow *f, bool all, int64_t *until)
{
	struct log *best = NULL;

	*until = INT64_MAX;
	for (size_t i = 0; i < f->n_logs; i++) {
		struct log *l = &f->logs[i];

		if (!l->item || (!all && f->nodes[l->node].ahead))
			continue;
		if (!best || l->key_ns < best->key_ns) {
			if (best)
				*until = best->key_ns;
			best = l;
		} else if (l->key_ns < *until) {
			*until = l->key_ns;
		}
	}
	return best;
}

/* Keys, and merged time with them, follow what is now known of the clocks. */
static void flow_look(struct flow *f)
{
	int64_t least = INT64_MAX;

	clocks_update(f);
	for (size_t i = 0; i < f->n_logs; i++) {
		struct log *l = &f->logs[i];

		if (!l->item)
			continue;
		l->key_ns = record_end_ns(l->item->record) - f->nodes[l->node].hint_ns;
		if (l->key_ns < least)
			least = l->key_ns;
	}
	if (least != INT64_MAX)
		f->now_ns = least;
	f->looked_ns = f->now_ns;
	if (f->spec.protocol)
		requests_expire(f);
	fuses_expire(f);
}

static void flow_merge(struct flow *f)
{
	struct log *l;
	int64_t until;
	uint64_t turns;

	while (!f->rc) {
		l = next_log(f, false, &until);
		if (!l && (l = next_log(f, true, &until))) {
			wire_force(f);
			until = l->key_ns;
		}
		if (!l)
			return;
		turns = f->turns;
		do {
			if (l->key_ns > f->now_ns)
				f->now_ns = l->key_ns;
			flow_feed(f, l);
			next_item(f, l);
		} while (l->item && l->key_ns <= until && f->turns == turns && !f->rc &&
			f->now_ns - f->looked_ns < LOOK_NS);
		if (f->now_ns - f->looked_ns >= LOOK_NS)
			flow_look(f);
	}
}

int flow_run(struct flow *f, struct err *e)
{
	if (f->reader)
		return table_run(f, e);
	if (!f->n_logs)
		return err_set(e, -EINVAL, "there are no logs to follow flows in");
	f->error = e;
	f->pairs = alloc_zero(f->n_nodes * f->n_nodes, sizeof(*f->pairs));
	for (size_t i = 0; i < f->n_logs; i++)
		next_item(f, &f->logs[i]);
	f->now_ns = f->looked_ns = INT64_MIN / 2;
	for (size_t i = 0; i < f->n_logs; i++)
		if (f->logs[i].item && (f->now_ns < 0 || f->logs[i].key_ns < f->now_ns))
			f->now_ns = f->looked_ns = f->logs[i].key_ns;
	if (!f->spec.start_ns)
		f->spec.start_ns = f->now_ns + f->nodes[0].hint_ns;
	flow_merge(f);
	wire_finish(f);
	threads_finish(f);
	requests_finish(f);
	threads_free(f);
	fuses_finish(f);
	if (!f->spec.protocol)
		f->counts.reasons[FLOW_NO_DESCRIPTION]++;
	return f->rc;
}

/* ---- questions ---- */

const char *flow_cut(const struct flow *f, size_t i)
{
	for (size_t k = 0; k < f->n_logs; k++)
		if (f->logs[k].cut && !i--)
			return f->logs[k].cut;
	return NULL;
}

size_t flow_nodes(const struct flow *f)
{
	return f->n_nodes;
}

const char *flow_node_name(const struct flow *f, uint32_t node)
{
	return node < f->n_nodes ? f->nodes[node].name : NULL;
}

const char *flow_thread_name(const struct flow *f, uint32_t node, uint32_t pid, uint32_t tid)
{
	const char *name = "";

	for (size_t i = 0; i < f->n_logs && !*name; i++)
		if (f->logs[i].node == node)
			name = stream_name(f->logs[i].stream, pid, tid);
	return name;
}

const char *flow_call_name(const struct flow *f, uint32_t node, uint32_t nr)
{
	return node < f->n_nodes ? call_name(f->nodes[node].arch, nr) : NULL;
}

const struct flow_counts *flow_counts(const struct flow *f)
{
	return &f->counts;
}

const char *flow_how_name(enum flow_how how)
{
	static const char *const names[] = {"unbound", "exact", "by thread", "by content"};

	return how <= FLOW_CONTENT ? names[how] : "?";
}

const char *flow_reason_name(enum flow_reason reason)
{
	static const char *const names[FLOW_REASONS] = {
		[FLOW_NO_POSITION] = "call on a TCP socket without a stream position",
		[FLOW_NO_DESCRIPTOR] = "call on a connection whose addresses are not known",
		[FLOW_NO_HEADS] = "message whose header is not among the recorded bytes",
		[FLOW_NO_DESCRIPTION] = "file system without a description of its messages",
		[FLOW_PEER_UNSEEN] = "the other end is in no log",
		[FLOW_BEFORE_ATTACH] = "from before the other end's log",
		[FLOW_GAP] = "calls missing in the other end's log",
		[FLOW_AFTER_END] = "from after the other end's log",
		[FLOW_OUT_OF_STEP] = "bytes between messages that are known",
		[FLOW_BAD_HEADER] = "bytes that are no message header",
		[FLOW_ID_REUSED] = "call without an answer whose id came again",
		[FLOW_NO_CALL] = "answer without a call",
		[FLOW_NO_ANSWER] = "call without an answer",
		[FLOW_NOT_ANSWERING] = "disk call of a thread that answered no request after it",
		[FLOW_BEFORE_REQUEST] = "disk call from before the request of its thread",
		[FLOW_SEVERAL_FIT] = "several fit by content",
		[FLOW_NO_FUSE] = "client's request without a FUSE request",
		[FLOW_NO_APPLICATION] = "FUSE request outside of a recorded call",
		[FLOW_OVER_LIMIT] = "fell out of a full queue",
	};

	return reason < FLOW_REASONS ? names[reason] : "?";
}

static void print_share(FILE *out, const char *what, uint64_t part, uint64_t all)
{
	fprintf(out, "%-44s %12" PRIu64 " of %12" PRIu64, what, part, all);
	if (all)
		fprintf(out, "  %6.2f %%", 100.0 * (double)part / (double)all);
	fputc('\n', out);
}

void flow_print_counts(const struct flow *f, FILE *out)
{
	const struct flow_counts *c = &f->counts;

	print_share(out, "receives bound to sends", c->receives_bound, c->receives);
	print_share(out, "requests with all four legs", c->requests_whole, c->requests);
	print_share(out, "disk calls bound to a request", c->disk_thread + c->disk_content,
		c->disk_calls);
	print_share(out, "  by thread", c->disk_thread, c->disk_calls);
	print_share(out, "  by content", c->disk_content, c->disk_calls);
	print_share(out, "metadata calls bound, by thread", c->meta_thread, c->meta_calls);
	print_share(out, "clients' requests bound to FUSE requests",
		c->fuse_thread + c->fuse_content, c->client_requests);
	print_share(out, "  by thread", c->fuse_thread, c->client_requests);
	print_share(out, "  by content", c->fuse_content, c->client_requests);
	print_share(out, "FUSE requests in an application's call", c->fuse_in_call, c->fuse);
	for (int i = 0; i < FLOW_REASONS; i++)
		if (c->reasons[i])
			fprintf(out, "not bound: %-56s %12" PRIu64 "\n",
				flow_reason_name((enum flow_reason)i), c->reasons[i]);
}
