/* Derives messages between threads: bytes and units of channels. */
#include <linux/futex.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include "diag/causal/decode.h"
#include "diag/record/describe.h"
#include "harness/base/hash.h"

/* Kinds of channels, hashed into their keys. */
enum { OF_TCP = 1, OF_UNIX, OF_PIPE, OF_BORN, OF_GONE, OF_PROCESS, OF_FUTEX };

static uint32_t channel_of(struct decode *d, uint64_t of, const void *what, size_t size)
{
	uint64_t key = hash_seeded(what, size, hash_mix(0, of));
	uint64_t i = map_get(&d->keys, key);

	if (i)
		return (uint32_t)i - 1;
	d->channels = alloc_room(d->channels, d->n_channels, sizeof(*d->channels));
	d->channels[d->n_channels++] = (struct decode_channel){0};
	map_put(&d->keys, key, d->n_channels);
	return d->n_channels - 1;
}

/* A channel identified by numbers that are valid on one node. */
static uint32_t numbered(struct decode *d, uint64_t of, uint64_t a, uint64_t b)
{
	uint64_t what[3] = {a, b, d->log->node};

	return channel_of(d, of, what, sizeof(what));
}

static int send_units(
	struct decode *d, uint32_t channel, uint32_t thread, uint64_t n, struct err *e)
{
	struct decode_channel *c = &d->channels[channel];
	struct causal_event ev = {.kind = EVENT_SEND, .thread = thread};

	ev.channel = channel;
	ev.from = c->sent;
	ev.to = c->sent += n;
	return decode_emit(d, &ev, e);
}

static int receive_to(
	struct decode *d, uint32_t channel, uint32_t thread, uint64_t to, struct err *e)
{
	struct decode_channel *c = &d->channels[channel];
	struct causal_event ev = {.kind = EVENT_RECEIVE, .thread = thread};

	if (to <= c->received)
		return 0;
	ev.channel = channel;
	ev.from = c->received;
	ev.to = c->received = to;
	return decode_emit(d, &ev, e);
}

static int receive_units(
	struct decode *d, uint32_t channel, uint32_t thread, uint64_t n, struct err *e)
{
	return receive_to(d, channel, thread, d->channels[channel].received + n, e);
}

int decode_born(struct decode *d, uint32_t thread, struct err *e)
{
	return receive_units(d, numbered(d, OF_BORN, d->threads[thread].tid, 0), thread, 1, e);
}

int decode_gone(struct decode *d, uint32_t thread, struct err *e)
{
	uint32_t pid = d->processes[d->threads[thread].process]->pid;
	int rc = send_units(d, numbered(d, OF_GONE, d->threads[thread].tid, 0), thread, 1, e);

	return rc ? rc : send_units(d, numbered(d, OF_PROCESS, pid, 0), thread, 1, e);
}

static uint64_t socket_number(const char *path)
{
	return strncmp(path, "socket:[", 8) ? 0 : strtoull(path + 8, NULL, 10);
}

static uint64_t socket_key(const struct decode *d, uint64_t socket)
{
	uint64_t what[2] = {d->log->node, socket};

	return hash_seeded(what, sizeof(what), 0);
}

void decode_note_peer(struct decode *d, const struct record_fd *f)
{
	uint64_t own = socket_number(f->path);

	if (!own || !f->peer)
		return;
	map_put(&d->peers, socket_key(d, own), f->peer);
	map_put(&d->peers, socket_key(d, f->peer), own);
}

/* The channel that the descriptor writes to or reads from. False: unknown. */
static bool stream_channel(
	struct decode *d, const struct record_fd *f, bool sends, uint32_t *channel)
{
	uint64_t socket;

	if (f->kind == FD_PIPE) {
		*channel = numbered(d, OF_PIPE, hash_seeded(f->path, strlen(f->path), 0), 0);
		return true;
	}
	if (f->kind != FD_SOCKET || f->local.ss_family != AF_UNIX)
		return false;
	socket = socket_number(f->path);
	if (!sends)
		socket = map_get(&d->peers, socket_key(d, socket));
	if (socket)
		*channel = numbered(d, OF_UNIX, socket, 0);
	return socket;
}

void decode_address(const struct sockaddr_storage *a, uint8_t out[16])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;

	memset(out, 0, 16);
	if (a->ss_family == AF_INET) { /* as IPv4-mapped IPv6: each end may show either form */
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &in->sin_addr, 4);
	} else {
		memcpy(out, &in6->sin6_addr, 16);
	}
}

static void end_bytes(const struct sockaddr_storage *a, uint8_t out[18])
{
	decode_address(a, out);
	memcpy(out + 16,
		a->ss_family == AF_INET ? &((const struct sockaddr_in *)a)->sin_port
					: &((const struct sockaddr_in6 *)a)->sin6_port,
		2);
}

/* Is it a loopback address, which each node has? */
static bool messages_is_own(const uint8_t a[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff}, v6[16] = {[15] = 1};

	return (!memcmp(a, v4, 12) && a[12] == 127) || !memcmp(a, v6, 16);
}

/* Index + 1 of the log of the node with that address; 0: no such log. */
static uint32_t log_at(const struct decode *d, const uint8_t a[16])
{
	for (size_t i = 0; i < d->n_logs; i++)
		if (d->logs[i].addressed && !memcmp(d->logs[i].address, a, 16))
			return (uint32_t)i + 1;
	return 0;
}

/* A TCP message, identified by stream position. */
static int tcp(struct decode *d, const struct record_fd *f, const struct record_call *c, bool sends,
	uint32_t thread, struct err *e)
{
	struct causal_event ev = {.kind = sends ? EVENT_SEND : EVENT_RECEIVE, .thread = thread};
	struct decode_channel *ch;
	uint8_t ends[40] = {0};
	uint64_t *newest;

	end_bytes(sends ? &f->local : &f->remote, ends);
	end_bytes(sends ? &f->remote : &f->local, ends + 18);
	if (messages_is_own(ends))
		memcpy(ends + 36, &d->log->node, 4);
	ev.channel = channel_of(d, OF_TCP, ends, sizeof(ends));
	ch = &d->channels[ev.channel];
	newest = &ch->newest[sends];
	if (!ch->first) {
		ch->first = (1ull << 40) + c->position;
		ch->from = log_at(d, ends);
	}
	/* Unwrap each end separately: which end is read first depends on clocks. */
	if (!*newest)
		*newest = ch->first;
	*newest += (uint64_t)(int64_t)(int32_t)(c->position - (uint32_t)*newest);
	ev.to = *newest;
	ev.from = ev.to - (uint64_t)c->result;
	if (sends && ch->sent < ev.to)
		ch->sent = ev.to;
	if (!sends && ch->received < ev.to)
		ch->received = ev.to;
	return decode_emit(d, &ev, e);
}

static int moved(struct decode *d, const struct fd_state *s, const struct record_call *c,
	bool sends, uint32_t thread, struct err *e)
{
	uint32_t channel;
	uint64_t n = (uint64_t)c->result;

	if (!s)
		return 0;
	if (c->positioned && s->now.kind == FD_SOCKET &&
		(s->now.local.ss_family == AF_INET || s->now.local.ss_family == AF_INET6)) {
		d->messages += sends;
		return tcp(d, &s->now, c, sends, thread, e);
	}
	if (!stream_channel(d, &s->now, sends, &channel))
		return 0;
	d->messages += sends;
	return sends ? send_units(d, channel, thread, n, e)
		     : receive_units(d, channel, thread, n, e);
}

static bool is_call(const struct stream_item *item, const char *name)
{
	return !strcmp(item->call->name, name);
}

static int bytes_moved(struct decode *d, struct stream_item *item, uint32_t thread, struct err *e)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	const struct fd_state *from = stream_fd(d->log->stream, c->pid, (int32_t)c->args[info->fd]);
	int rc = 0;

	if (info->messages || call_peeks(info, c))
		return 0;
	if (info->class == CALL_WRITE)
		return moved(d, from, c, true, thread, e);
	if (info->class == CALL_READ)
		return moved(d, from, c, false, thread, e);
	if (!is_call(item, "tee"))
		rc = moved(d, from, c, false, thread, e);
	return rc ? rc
		  : moved(d, stream_fd(d->log->stream, c->pid, (int32_t)c->args[info->fd2]), c,
			    true, thread, e);
}

static int futex(struct decode *d, const struct record_call *c, uint32_t thread, struct err *e)
{
	int op = (int)c->args[1] & FUTEX_CMD_MASK;
	uint32_t channel = numbered(d, OF_FUTEX, c->pid, c->args[0]), gone;

	if (op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET)
		return c->result > 0 ? send_units(d, channel, thread, (uint64_t)c->result, e) : 0;
	if ((op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET) || c->result)
		return 0;
	/* pthread_join waits until the kernel clears the thread's ID. */
	gone = numbered(d, OF_GONE, (uint32_t)c->args[2], 0);
	if (d->channels[gone].sent > d->channels[gone].received)
		return receive_to(d, gone, thread, d->channels[gone].sent, e);
	return receive_units(d, channel, thread, 1, e);
}

int decode_messages(struct decode *d, struct stream_item *item, uint32_t thread, struct err *e)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	uint32_t channel;

	if (is_call(item, "futex"))
		return futex(d, c, thread, e);
	if (c->result <= 0)
		return 0;
	if (is_call(item, "clone") || is_call(item, "clone3") || is_call(item, "fork") ||
		is_call(item, "vfork"))
		return send_units(d, numbered(d, OF_BORN, (uint64_t)c->result, 0), thread, 1, e);
	if (is_call(item, "wait4")) {
		channel = numbered(d, OF_PROCESS, (uint64_t)c->result, 0);
		return receive_to(d, channel, thread, d->channels[channel].sent, e);
	}
	if (info->class == CALL_READ || info->class == CALL_WRITE || info->class == CALL_COPY)
		return info->fd >= 0 ? bytes_moved(d, item, thread, e) : 0;
	return 0;
}

static void add_mapping(struct decode *d, uint32_t process, const char *path)
{
	for (uint32_t i = 0; i < d->n_mappings; i++)
		if (d->mappings[i].process == process && !strcmp(d->mappings[i].path, path))
			return;
	d->mappings = alloc_room(d->mappings, d->n_mappings, sizeof(*d->mappings));
	d->mappings[d->n_mappings++] = (struct decode_mapping){
		.path = alloc_copy(path), .process = process};
}

void decode_note_mapping(struct decode *d, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	uint32_t process = decode_process_index(d, c->pid);
	const struct fd_state *s;

	if (c->result < 0 && c->result > -4096)
		return;
	if ((c->args[3] & MAP_TYPE) == MAP_PRIVATE || !(c->args[2] & PROT_WRITE))
		return;
	if (c->args[3] & MAP_ANONYMOUS) {
		d->processes[process]->memory = process + 1;
		return;
	}
	s = stream_fd(d->log->stream, c->pid, (int32_t)c->args[4]);
	if (!s || s->now.kind == FD_DEVICE)
		return;
	add_mapping(d, process, s->now.path);
}

void decode_note_segment(struct decode *d, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	uint32_t process = decode_process_index(d, c->pid);
	char name[48];

	if ((c->result < 0 && c->result > -4096) || c->args[2] & SHM_RDONLY)
		return;
	snprintf(name, sizeof(name), "segment %lld", (long long)c->args[0]);
	add_mapping(d, process, name);
}

static bool on_one_node(const struct decode *d, uint32_t a, uint32_t b)
{
	return d->logs[d->processes[a]->log].node == d->logs[d->processes[b]->log].node;
}

bool decode_shares(const struct decode *d, bool *shares)
{
	bool any = false;

	for (uint32_t i = 0; i < d->n_processes; i++)
		for (uint32_t k = i + 1; k < d->n_processes && d->processes[i]->ops; k++)
			if (d->processes[k]->ops && d->processes[i]->memory &&
				d->processes[i]->memory == d->processes[k]->memory)
				any = shares[i] = shares[k] = true;
	for (uint32_t i = 0; i < d->n_mappings; i++)
		for (uint32_t k = i + 1;
			k < d->n_mappings && d->processes[d->mappings[i].process]->ops; k++)
			if (d->mappings[k].process != d->mappings[i].process &&
				d->processes[d->mappings[k].process]->ops &&
				on_one_node(d, d->mappings[i].process, d->mappings[k].process) &&
				!strcmp(d->mappings[i].path, d->mappings[k].path))
				any = shares[d->mappings[i].process] = shares
					[d->mappings[k].process] = true;
	return any;
}
