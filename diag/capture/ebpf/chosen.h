/* Filters by kind of call and by the address at the other end of a socket. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_CHOSEN_H
#define CULPRIT_DIAG_CAPTURE_EBPF_CHOSEN_H

#include "diag/capture/ebpf/files.h"

/* The kind of a call without a path, by its descriptor. */
static __always_inline u32 kind_on(struct file *file, const volatile struct call_rule *rule)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	u16 mode = BPF_CORE_READ(inode, i_mode) & IFMT;

	if (mode == IFSOCK)
		return KIND_NETWORK;
	if (mode == IFCHR)
		return BPF_CORE_READ(inode, i_rdev) == DEV_FUSE ? KIND_FUSE : KIND_OTHER;
	if (mode == IFDIR)
		return KIND_METADATA;
	if (mode != IFBLK && (mode != IFREG || BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODES))
		return KIND_OTHER;
	return rule->class == CLASS_READ || rule->class == CLASS_WRITE ||
			rule->class == CLASS_COPY || rule->class == CLASS_SYNC
		? KIND_DISK
		: KIND_METADATA;
}

/* False: a TCP or UDP socket connected to an address that the filter does not have. */
static __always_inline bool peer_is_chosen(struct file *file, struct filter *f)
{
	struct socket *socket;
	u64 remote[2] = {};
	struct sock *sk;
	u16 family;

	if ((BPF_CORE_READ(file, f_inode, i_mode) & IFMT) != IFSOCK)
		return true;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || !BPF_CORE_READ(sk, __sk_common.skc_dport))
		return true;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == INET)
		remote[1] = (u64)BPF_CORE_READ(sk, __sk_common.skc_daddr) << 32 | 0xffff0000;
	else if (family == INET6)
		BPF_CORE_READ_INTO(&remote, sk, __sk_common.skc_v6_daddr);
	else
		return true;
	for (u32 i = 0; i < FILTER_CLIENTS && i < f->n_clients; i++)
		if (f->clients[i][0] == remote[0] && f->clients[i][1] == remote[1])
			return true;
	return false;
}

static __noinline bool call_is_chosen(
	struct task_struct *task, struct traced_thread *t, const volatile struct call_rule *rule)
{
	struct file *file = NULL, *other = NULL;
	struct filter *f = filter_now();
	u32 kinds = rule->kind;

	if (!f->calls && !f->n_clients)
		return true;
	if (rule->fd >= 0)
		file = file_at(task->files, t->args[rule->fd & 3]);
	if (rule->class == CLASS_COPY && rule->fd2 >= 0)
		other = file_at(task->files, t->args[rule->fd2 & 3]);
	if (file && !rule->kind)
		kinds |= kind_on(file, rule);
	if (other)
		kinds |= kind_on(other, rule);
	if (f->calls && !((kinds ? kinds : KIND_OTHER) & f->calls))
		return false;
	return !f->n_clients ||
		((!file || peer_is_chosen(file, f)) && (!other || peer_is_chosen(other, f)));
}

#endif
