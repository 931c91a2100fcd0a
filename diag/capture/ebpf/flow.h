/*
 * Additional data of a call in a log of flows: the position in its connection's byte stream, and
 * the first bytes that it moved.
 *
 * The socket is looked up when the call begins, as the call itself does: its descriptor may mean
 * another one when the call ends. If another thread has closed the socket by then, its memory may
 * be reused: reads by address are safe, and give no position or one that fits no stream.
 */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_FLOW_H
#define CULPRIT_DIAG_CAPTURE_EBPF_FLOW_H

#include "diag/capture/ebpf/files.h"

enum flow_end { END_NONE, END_SEND, END_RECEIVE, END_FUSE };

enum { HEAD_BUFFERS = 8 /* buffers of a vector that a head is gathered from */ };

/* Notes the object that a call moves bytes on: its first descriptor's inode. */
static __always_inline void flow_note(struct traced_thread *t,
	const volatile struct call_rule *rule, struct file *file, struct inode *inode, u16 mode)
{
	if (mode == IFSOCK) {
		t->socket = (u64)BPF_CORE_READ(file, private_data);
		t->end = rule->class == CLASS_WRITE ? END_SEND : END_RECEIVE;
	} else if (heads && mode == IFCHR && BPF_CORE_READ(inode, i_rdev) == DEV_FUSE) {
		t->end = END_FUSE;
	}
}

/* sendfile and splice: the second descriptor, to which the bytes go. */
static __always_inline void flow_note_target(
	struct task_struct *task, struct traced_thread *t, const volatile struct call_rule *rule)
{
	struct file *file = file_at(task->files, t->args[rule->fd2 & 3]);

	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & IFMT) != IFSOCK)
		return;
	t->socket = (u64)BPF_CORE_READ(file, private_data);
	t->end = END_SEND;
}

/* A TCP socket whose bytes are those of its calls: not one with TLS in the kernel or similar. */
static __always_inline struct tcp_sock *flow_tcp(u64 address)
{
	struct socket *socket = (struct socket *)address;
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family;

	if (!sk || BPF_CORE_READ(socket, type) != TYPE_STREAM ||
		BPF_CORE_READ(sk, sk_protocol) != PROTOCOL_TCP)
		return NULL;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if ((family != INET && family != INET6) ||
		BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_ulp_ops))
		return NULL;
	return (struct tcp_sock *)sk;
}

/* Sequence number after the last byte sent or received. The end of the stream (FIN) has its own
 * number, which counts with the last byte if it has arrived by then. */
static __always_inline u32 flow_position(struct tcp_sock *tcp, u8 end)
{
	u32 position;

	if (end == END_SEND)
		return BPF_CORE_READ(tcp, write_seq);
	position = BPF_CORE_READ(tcp, copied_seq);
	if ((BPF_CORE_READ((struct sock *)tcp, __sk_common.skc_flags) & FLAG_DONE) &&
		position == BPF_CORE_READ(tcp, rcv_nxt))
		position--;
	return position;
}

/* Flags of a receiving call; 0 for a call without flags. */
static __always_inline u32 flow_flags(
	struct traced_thread *t, const volatile struct call_rule *rule)
{
	return t->end == END_RECEIVE && rule->flags >= 0 ? t->args[rule->flags & 3] : 0;
}

struct gather {
	u64 base;
	u32 at, want;
	u8 bytes[2 * FLOW_HEAD];
};

static __always_inline long gather_from(struct gather *g, u64 address, u64 size)
{
	u32 n = g->want - g->at, at = g->at;

	if (n > size)
		n = size;
	if (n > FLOW_HEAD || at >= FLOW_HEAD)
		return 1;
	if (bpf_probe_read_user(g->bytes + (at & (FLOW_HEAD - 1)), n, (void *)address) < 0)
		return 1;
	g->at = at + n;
	return g->at >= g->want;
}

static long gather_step(u32 i, void *ctx)
{
	struct gather *g = ctx;
	u64 buffer[2]; /* address, length */

	if (bpf_probe_read_user(buffer, sizeof(buffer), (void *)(g->base + i * 16)) < 0)
		return 1;
	return gather_from(g, buffer[0], buffer[1]);
}

/* Copies the first bytes that a call has moved, at most FLOW_HEAD. */
static __noinline void flow_head(struct traced_thread *t, u32 kind, s64 moved, struct gather *g)
{
	u64 vector[2] = {t->args[1], t->args[2]};

	g->at = 0;
	g->want = moved < FLOW_HEAD ? moved : FLOW_HEAD;
	if (kind == ASKED_LENGTH) {
		gather_from(g, vector[0], g->want);
		return;
	}
	/* 64-bit struct msghdr: the vector's address is at byte 16, followed by its length. */
	if (kind == ASKED_HEADER &&
		bpf_probe_read_user(vector, sizeof(vector), (void *)(t->args[1] + 16)) < 0)
		return;
	g->base = vector[0];
	if (kind != ASKED_NONE)
		bpf_loop(vector[1] < HEAD_BUFFERS ? vector[1] : HEAD_BUFFERS, gather_step, g, 0);
}

struct flow_told {
	u32 position;
	bool positioned;
	struct gather g; /* 'at' bytes of it */
};

/* Collects the data of a call that has moved 'result' bytes on its 'end'. False: none. */
static __always_inline bool flow_of(struct traced_thread *t, s64 result, struct flow_told *f)
{
	u32 nr = t->nr, flags;
	const volatile struct call_rule *rule = &rules[nr < RULES ? nr : RULES - 1];

	f->positioned = false;
	f->g.at = 0;
	flags = flow_flags(t, rule);
	if (t->end != END_FUSE) {
		struct tcp_sock *tcp;

		if (flags & (PEEK | OOB | ERRQUEUE))
			return false;
		tcp = flow_tcp(t->socket);
		if (!tcp)
			return false;
		f->positioned = true;
		f->position = flow_position(tcp, t->end);
	}
	if (heads && !(flags & TRUNC))
		flow_head(t, rule->buffer, result, &f->g);
	return f->positioned || f->g.at;
}

#endif
