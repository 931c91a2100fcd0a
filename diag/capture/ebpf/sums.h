/* Sums over calls, kept in the kernel until their second has ended. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_SUMS_H
#define CULPRIT_DIAG_CAPTURE_EBPF_SUMS_H

#include "diag/capture/ebpf/asked.h"
#include "diag/capture/ebpf/below.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024); /* set before load, as the following */
	__type(key, struct sum_key);
	__type(value, struct sum);
} second_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct message_key);
	__type(value, struct message_state);
} messages SEC(".maps");

/* The last wait for descriptors of each thread that has read a message. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} pollers SEC(".maps");

/* As in trace_request; set before load. */
const volatile u64 bulk_above;
const volatile u32 bulk_header;

static const struct sum no_sum;
static const struct message_state no_message;

static __always_inline void socket_key(struct file *file, struct sum_key *k)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	struct sock_common *c = &sk->__sk_common;
	u16 family, port, remote;

	k->fd_class = FD_OTHERS;
	if (!sk)
		return;
	family = BPF_CORE_READ(c, skc_family);
	if (family == UNIX) {
		struct unix_address *own = BPF_CORE_READ((struct unix_sock *)sk, addr);
		struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);

		if (peer && own)
			k->fd_class = FD_SERVER;
		else if (peer && BPF_CORE_READ((struct unix_sock *)peer, addr))
			k->fd_class = FD_CLIENT;
		return;
	}
	remote = BPF_CORE_READ(c, skc_dport);
	if ((family != INET && family != INET6) || !remote ||
		BPF_CORE_READ(c, skc_state) == TCP_LISTENING)
		return;
	port = BPF_CORE_READ(c, skc_num);
	k->family = family;
	if (listening[port]) {
		k->fd_class = FD_SERVER;
		k->local_port = __builtin_bswap16(port);
	} else {
		k->fd_class = FD_CLIENT;
		k->remote_port = remote;
	}
	if (family == INET) {
		BPF_CORE_READ_INTO((u32 *)k->local, c, skc_rcv_saddr);
		BPF_CORE_READ_INTO((u32 *)k->remote, c, skc_daddr);
	} else {
		BPF_CORE_READ_INTO(&k->local, c, skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&k->remote, c, skc_v6_daddr);
	}
}

/* Of a regular file or a block device. False: neither. */
static __always_inline bool disk_key(struct file *file, struct sum_key *k)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	u16 mode = BPF_CORE_READ(inode, i_mode) & IFMT;

	if (mode == IFREG) {
		if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODES)
			return false;
		k->fd_class = FD_DISK;
		k->dev = BPF_CORE_READ(inode, i_sb, s_dev);
		if (has_prefixes())
			k->selected = is_below(file);
		return true;
	}
	if (mode != IFBLK)
		return false;
	k->fd_class = FD_DISK;
	k->dev = BPF_CORE_READ(inode, i_rdev);
	if (has_prefixes())
		k->selected = is_prefix_device(inode);
	return true;
}

/* The key under which a beginning call counts. */
static __always_inline void key_of(
	struct task_struct *task, struct traced_thread *t, const volatile struct call_rule *rule)
{
	struct sum_key *k = &t->key;
	struct file *file;
	struct inode *inode;
	u16 mode;

	__builtin_memset(k, 0, sizeof(*k));
	k->pid = t->pid;
	k->class = rule->class;
	k->selected = 1;
	if (rule->fd < 0 || (s32)t->args[rule->fd & 3] < 0) /* also AT_FDCWD */
		return;
	k->fd_class = FD_OTHERS;
	file = open_file(task, t->args[rule->fd & 3]);
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & IFMT;
	if (mode == IFSOCK) {
		socket_key(file, k);
	} else {
		disk_key(file, k);
	}
}

static __always_inline u32 bucket_of(u64 ns)
{
	u32 i = 0;

	if (ns >> 32) {
		i += 32;
		ns >>= 32;
	}
	if (ns >> 16) {
		i += 16;
		ns >>= 16;
	}
	if (ns >> 8) {
		i += 8;
		ns >>= 8;
	}
	if (ns >> 4) {
		i += 4;
		ns >>= 4;
	}
	if (ns >> 2) {
		i += 2;
		ns >>= 2;
	}
	i += ns >> 1 & 1;
	return i < SUM_HISTOGRAM ? i : SUM_HISTOGRAM - 1;
}

/* Adds to the second in which the call ended; completes the key with it. */
static __noinline void sum_add(struct sum_key *k, u64 end_ns, u64 took_ns, s64 result)
{
	struct account *a;
	struct sum *s;
	u32 bucket;

	k->second = (end_ns + clock_ns) / 1000000000;
	s = bpf_map_lookup_elem(&second_sums, k);
	if (!s) {
		bpf_map_update_elem(&second_sums, k, &no_sum, 1 /* BPF_NOEXIST */);
		s = bpf_map_lookup_elem(&second_sums, k);
	}
	if (!s) {
		a = account();
		if (a)
			count_lost(a);
		return;
	}
	s->count++;
	s->total_ns += took_ns;
	if (result < 0) {
		s->failed++;
		s->failed_ns += took_ns;
		s->errors += result != -AGAIN;
		return;
	}
	if (k->class == CLASS_READ || k->class == CLASS_WRITE || k->class == CLASS_COPY)
		s->bytes += result;
	if (took_ns > s->max_ns)
		s->max_ns = took_ns;
	bucket = bucket_of(took_ns);
	if (bucket < SUM_HISTOGRAM)
		s->histogram[bucket]++;
}

static __always_inline void message_count(struct message_state *m)
{
	if (m->bytes <= bulk_header)
		return;
	m->key.messages = bulk_above && m->bytes > bulk_above ? COUNTED_BULK : COUNTED_MESSAGES;
	sum_add(&m->key, m->end_ns, m->end_ns - m->start_ns, m->bytes);
}

/* The message has ended. Counts it if it is whole, that is, if the next event is a read by 'tid'
 * (0: no read) of 'asked' bytes. */
static __always_inline bool message_end(
	struct traced_thread *t, struct message_state *m, u32 tid, u32 asked)
{
	u64 polled_ns = t->polled_ns, *other;
	u32 reader = m->tid;

	if (!m->bytes || m->wanted_more || m->need)
		return false;
	if (!m->answered && !(tid && tid != reader)) {
		if (reader != t->tid) {
			other = bpf_map_lookup_elem(&pollers, &reader);
			polled_ns = other ? *other : 0;
		}
		if (polled_ns <= m->end_ns)
			return false;
	}
	if (tid ? asked && asked == m->left : m->left && !m->answered)
		return false;
	message_count(m);
	return true;
}

static __always_inline void message_clear(struct message_state *m)
{
	m->bytes = 0;
	m->wanted_more = m->answered = m->exact = 0;
	m->left = m->need = 0;
}

/* The descriptor changes its meaning, or is closed. */
static __noinline void message_drop(struct traced_thread *t, u32 pid, s32 fd)
{
	struct message_key key = {.pid = pid, .fd = fd};
	struct message_state *m = bpf_map_lookup_elem(&messages, &key);

	if (!m)
		return;
	message_end(t, m, 0, 0);
	bpf_map_delete_elem(&messages, &key);
}

/* A read that asks for the rest of a length that is not a buffer's shows how many bytes are still
 * wanted. */
static __always_inline void message_note_need(struct message_state *m, u32 asked)
{
	if (m->exact && asked && asked == m->left)
		m->need = asked;
}

/* A read found no data: does its reader begin anew, so that the message is whole? */
static __always_inline bool message_begins_anew(const struct message_state *m, u32 asked)
{
	return m->bytes && !m->wanted_more && !m->need && asked && asked == m->first &&
		asked != m->left;
}

static __noinline void message_read(struct traced_thread *t, s64 result, u64 now_ns, u32 asked)
{
	u32 nr = t->nr;
	const volatile struct call_rule *rule = &rules[nr < RULES ? nr : RULES - 1];
	struct message_key key = {.pid = t->pid, .fd = t->args[rule->fd & 3]};
	struct message_state *m = bpf_map_lookup_elem(&messages, &key);
	struct account *a;

	if (!m) {
		bpf_map_update_elem(&messages, &key, &no_message, 1 /* BPF_NOEXIST */);
		m = bpf_map_lookup_elem(&messages, &key);
	}
	if (!m) {
		a = account();
		if (a)
			count_lost(a);
		return;
	}
	if (message_end(t, m, t->tid, asked))
		message_clear(m);
	if (result > 0 || result == -AGAIN)
		message_note_need(m, asked);
	if (result > 0) {
		if (!m->bytes) {
			m->start_ns = t->start_ns;
			m->first = asked;
		}
		if (!asked || asked != m->left)
			m->exact = m->bytes && asked != m->first;
		m->need -= result < m->need ? result : m->need;
		m->left = asked > result ? asked - result : 0;
		m->bytes += result;
		m->end_ns = now_ns;
		m->tid = t->tid;
		m->wanted_more = m->answered = 0;
		m->key = t->key;
	} else if (result == -AGAIN && message_begins_anew(m, asked)) {
		message_count(m);
		message_clear(m);
	} else if (result == -AGAIN) {
		m->wanted_more = 1;
	} else if (result != -INTERRUPTED) {
		message_clear(m); /* end of stream, or a broken connection, inside a message */
	}
}

static __noinline void message_answer(struct traced_thread *t, s32 fd)
{
	struct message_key key = {.pid = t->pid, .fd = fd};
	struct message_state *m = bpf_map_lookup_elem(&messages, &key);

	if (m && m->tid == t->tid)
		m->answered = 1;
}

static __always_inline bool is_peer(const struct sum_key *k)
{
	return k->family && (k->fd_class == FD_SERVER || k->fd_class == FD_CLIENT);
}

static __always_inline void sum_call(
	struct traced_thread *t, const volatile struct call_rule *rule, s64 result, u64 now_ns)
{
	u32 tid = t->tid;

	sum_add(&t->key, now_ns, now_ns - t->start_ns, moved_bytes(t, rule, result));
	if (rule->class == CLASS_POLL) {
		t->polled_ns = now_ns;
		bpf_map_update_elem(&pollers, &tid, &now_ns, 0);
	} else if (is_peer(&t->key) && rule->class == CLASS_WRITE) {
		message_answer(t, t->args[rule->fd & 3]);
	} else if (is_peer(&t->key) && rule->class == CLASS_READ) {
		if (rule->flags < 0 || !(t->args[rule->flags & 3] & PEEK))
			message_read(t, result, now_ns, asked_bytes(t, rule));
	}
}

/* A socket that listens already, or does so now. */
static __noinline void note_listener(struct task_struct *task, u32 fd)
{
	struct files_struct *files = BPF_CORE_READ(task, files);
	struct file *file = files ? file_at(files, fd) : NULL;
	struct socket *socket;
	struct sock *sk;
	struct sock_common *c;
	u16 family;

	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & IFMT) != IFSOCK)
		return;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (!sk)
		return;
	c = &sk->__sk_common;
	family = BPF_CORE_READ(c, skc_family);
	if ((family == INET || family == INET6) && BPF_CORE_READ(c, skc_state) == TCP_LISTENING) {
		u16 port = BPF_CORE_READ(c, skc_num);

		listening[port] = 1;
	}
}

#endif
