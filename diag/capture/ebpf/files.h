/* Reads the meaning of descriptors from the kernel's tables, right after a call has changed one. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_FILES_H
#define CULPRIT_DIAG_CAPTURE_EBPF_FILES_H

#include "diag/capture/ebpf/maps.h"

enum { NAME = 255, SIZEOF_MMSGHDR = 64 };

static __always_inline struct file *file_at(struct files_struct *files, u32 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(files, fdt);
	struct file **table, *file = NULL;

	if (!fdt || fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	table = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	return file;
}

/* The same for a task known to the verifier, whose loads cost a tenth of a helper's. */
static __always_inline struct file *open_file(struct task_struct *task, u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *fdt = files ? files->fdt : NULL;
	struct file *file = NULL;

	if (!fdt || fd >= fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	return file;
}

static __always_inline u64 *described_at(u32 pid, u32 fd)
{
	u32 place = (pid * 40503 + fd) & (DESCRIBED - 1);

	return bpf_map_lookup_elem(&described, &place);
}

/* Identifies an open file of a process's descriptor: never 0. Includes the name, since a file may
 * have several. */
static __always_inline u64 identity(struct file *file, u32 pid, u32 fd)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	u64 x = (u64)pid << 32 | fd;

	x = (x ^ (u64)BPF_CORE_READ(file, f_path.dentry)) * 0x9e3779b97f4a7c15;
	x = (x ^ x >> 32 ^ BPF_CORE_READ(inode, i_ino)) * 0xbf58476d1ce4e5b9;
	return x | 1;
}

static __always_inline u32 short_identity(u64 identity)
{
	return identity ? identity >> 32 | 1 : 0;
}

static __always_inline void forget_fd(u32 pid, u32 fd)
{
	u64 *told = described_at(pid, fd);

	if (told)
		*told = 0;
}

struct walk {
	struct dentry *dentry, *root;
	struct vfsmount *mnt, *root_mnt;
	u32 at, flags, slot;
};

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

/* One step up from w->dentry: over a mount, or to the parent, whose name is added to the event. */
static long walk_step(u32 i, void *ctx)
{
	struct walk *w = ctx;
	struct scratch *s;
	struct dentry *dentry = w->dentry, *parent;
	struct vfsmount *mnt = w->mnt;
	const unsigned char *name;
	u32 slot = w->slot, at = w->at, size;

	if (dentry == w->root && mnt == w->root_mnt)
		return 1;
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *m = mount_of(mnt), *up = BPF_CORE_READ(m, mnt_parent);

		if (up == m)
			return 1;
		w->dentry = BPF_CORE_READ(m, mnt_mountpoint);
		w->mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	s = bpf_map_lookup_elem(&scratches, &slot);
	if (!s)
		return 1;
	size = BPF_CORE_READ(dentry, d_name.len);
	name = BPF_CORE_READ(dentry, d_name.name);
	if (size > NAME)
		size = NAME;
	at &= 2 * PARTS_MAX - 1;
	if (at + size > PARTS_MAX) {
		w->flags |= FD_CUT;
		return 1;
	}
	bpf_probe_read_kernel(s->bytes + sizeof(struct ev_fd) + at, size, name);
	at += size;
	s->bytes[sizeof(struct ev_fd) + (at & (2 * PARTS_MAX - 1))] = 0;
	w->at = at + 1;
	if (parent == dentry) {
		w->flags |= FD_PSEUDO;
		return 1;
	}
	w->dentry = parent;
	return 0;
}

static __always_inline void put_path(
	struct task_struct *task, struct file *file, struct scratch *s, u32 slot)
{
	struct walk w = {.slot = slot};
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);

	w.dentry = dentry;
	w.mnt = BPF_CORE_READ(file, f_path.mnt);
	if (fs) {
		w.root = BPF_CORE_READ(fs, root.dentry);
		w.root_mnt = BPF_CORE_READ(fs, root.mnt);
	}
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry)
		w.flags = FD_GONE;
	bpf_loop(PARTS_DEPTH, walk_step, &w, 0);
	s->fd.h.flags = w.flags;
	s->fd.size = w.at;
}

static __always_inline u32 put_unix(struct unix_address *a, struct scratch *s, u32 at)
{
	u32 size = a ? BPF_CORE_READ(a, len) : 0;

	if (!size || size > 110)
		return 0;
	bpf_probe_read_kernel(s->bytes + sizeof(struct ev_fd) + (at & 127), size & 127,
		(void *)a + bpf_core_field_offset(struct unix_address, name));
	return size;
}

static __always_inline void put_socket(struct file *file, struct scratch *s)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	struct sock_common *c = &sk->__sk_common;
	struct ev_fd *f = &s->fd;

	f->sock_type = BPF_CORE_READ(socket, type);
	if (!sk)
		return;
	f->family = BPF_CORE_READ(c, skc_family);
	if (f->family == INET || f->family == INET6) {
		f->local_port = __builtin_bswap16(BPF_CORE_READ(c, skc_num));
		f->remote_port = BPF_CORE_READ(c, skc_dport);
	}
	if (f->family == INET) {
		u32 local = BPF_CORE_READ(c, skc_rcv_saddr), remote = BPF_CORE_READ(c, skc_daddr);

		if (!local)
			local = BPF_CORE_READ((struct inet_sock *)sk, inet_saddr);
		__builtin_memcpy(f->local, &local, 4);
		__builtin_memcpy(f->remote, &remote, 4);
	} else if (f->family == INET6) {
		BPF_CORE_READ_INTO(&f->local, c, skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&f->remote, c, skc_v6_daddr);
	} else if (f->family == UNIX) {
		struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);

		f->unix_size[0] = put_unix(BPF_CORE_READ((struct unix_sock *)sk, addr), s, 0);
		if (causal && peer)
			f->peer = BPF_CORE_READ(peer, sk_socket, file, f_inode, i_ino);
		if (peer)
			f->unix_size[1] = put_unix(
				BPF_CORE_READ((struct unix_sock *)peer, addr), s, f->unix_size[0]);
		f->size = (f->unix_size[0] + f->unix_size[1]) & 255;
	}
}

static __noinline void put_closed(u32 pid, u32 fd, u64 at_ns, u32 how)
{
	u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);

	if (!s)
		return;
	__builtin_memset(&s->fd, 0, sizeof(s->fd));
	head(&s->fd.h, EV_FD, at_ns, pid, pid);
	s->fd.h.flags = how | FD_CLOSED;
	s->fd.fd = fd;
	if (put(&s->fd.h, sizeof(s->fd), 0))
		forget_fd(pid, fd);
}

/* Reports to the agent that 'fd' of the process is 'file'; paths begin at the root of 'task'.
 * 'how': which scratch, FD_CHECKED, FD_EXPECTED. */
static __always_inline void put_file(
	struct task_struct *task, struct file *file, u32 pid, u32 fd, u64 at_ns, u32 how)
{
	u32 slot = how & 1;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &slot);
	struct super_block *sb;
	struct inode *inode;
	struct ev_fd *f;
	u64 size, *told, id;

	if (!s)
		return;
	f = &s->fd;
	__builtin_memset(f, 0, sizeof(*f));
	head(&f->h, EV_FD, at_ns, pid, pid);
	inode = BPF_CORE_READ(file, f_inode);
	sb = BPF_CORE_READ(inode, i_sb);
	f->fd = fd;
	f->mode = BPF_CORE_READ(inode, i_mode);
	f->ino = BPF_CORE_READ(inode, i_ino);
	f->generation = BPF_CORE_READ(inode, i_generation);
	f->dev = BPF_CORE_READ(sb, s_dev);
	if ((f->mode & IFMT) == IFBLK) {
		f->ino = f->generation = 0;
		f->dev = BPF_CORE_READ(inode, i_rdev);
	}
	f->magic = BPF_CORE_READ(sb, s_magic);
	if (f->magic == SOCKFS && (f->mode & IFMT) == IFSOCK)
		put_socket(file, s);
	else
		put_path(task, file, s, slot);
	size = f->size;
	if (size > PARTS_MAX + NAME)
		size = PARTS_MAX;
	f->h.flags |= how & (FD_CHECKED | FD_EXPECTED);
	told = described_at(pid, fd);
	id = identity(file, pid, fd);
	f->file = short_identity(id);
	if (put(&f->h, sizeof(*f) + size, 0) && told)
		*told = id;
	else if (told)
		*told = 0;
}

/* Reports the meaning of 'fd' to the agent, unless it is closed. */
static __noinline void put_fd(struct task_struct *task, u32 pid, u32 fd, u64 at_ns, u32 how)
{
	struct files_struct *files = BPF_CORE_READ(task, files);
	struct file *file = files ? file_at(files, fd) : NULL;

	if (file)
		put_file(task, file, pid, fd, at_ns, how);
}

/* Global, so that it is verified once. */
__noinline int describe_again(u32 pid, u32 fd, u32 how)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now_ns = bpf_ktime_get_ns();

	if (file_at(task->files, fd))
		put_fd(task, pid, fd, now_ns, how & ~1);
	else
		put_closed(pid, fd, now_ns, how);
	return 0;
}

/* The current thread uses this descriptor: does it still have the reported meaning? Returns the
 * identity of its file; 0: none. */
static __always_inline u64 check_fd(struct task_struct *task, u32 pid, u32 fd, u32 how)
{
	struct file *file;
	u64 *told, id;

	if ((s32)fd < 0) /* AT_FDCWD */
		return 0;
	told = described_at(pid, fd);
	file = open_file(task, fd);
	id = file ? identity(file, pid, fd) : 0;
	if (told && *told != id)
		describe_again(pid, fd, how);
	return id;
}

/* A request of io_uring that ends uses 'file', which its process knows as 'fd'. */
static __noinline void check_file(struct task_struct *task, struct file *file, u32 pid, u32 fd)
{
	u64 *told = described_at(pid, fd);

	if (told && *told != identity(file, pid, fd))
		put_file(task, file, pid, fd, bpf_ktime_get_ns(), FD_CHECKED | FD_EXPECTED);
}

/* Descriptors received through a socket. */
struct user_msghdr {
	void *name;
	u64 namelen;
	void *iov;
	u64 iovlen;
	void *control;
	u64 controllen;
	u64 flags;
};

struct user_cmsghdr {
	u64 len;
	s32 level, type;
};

struct rights {
	struct task_struct *task;
	u64 at, end, at_ns, next;
	u32 pid;
};

static long rights_fd(u32 i, void *ctx)
{
	struct rights *r = ctx;
	s32 fd;

	if (bpf_probe_read_user(
		    &fd, sizeof(fd), (void *)(r->at + sizeof(struct user_cmsghdr) + 4ull * i)) == 0)
		put_fd(r->task, r->pid, fd, r->at_ns, 0);
	return 0;
}

static long rights_header(u32 i, void *ctx)
{
	struct rights *r = ctx;
	struct user_cmsghdr c;

	if (r->at + sizeof(c) > r->end || bpf_probe_read_user(&c, sizeof(c), (void *)r->at) < 0 ||
		c.len < sizeof(c) || r->at + c.len > r->end)
		return 1;
	if (c.level == 1 && c.type == 1) /* SOL_SOCKET, SCM_RIGHTS */
		bpf_loop((u32)((c.len - sizeof(c)) / 4) & 255, rights_fd, r, 0);
	r->at += (c.len + 7) & ~7ull;
	return 0;
}

static long rights_message(u32 i, void *ctx)
{
	struct rights *r = ctx;
	struct user_msghdr m;

	if (bpf_probe_read_user(&m, sizeof(m), (void *)(r->next + i * SIZEOF_MMSGHDR)) < 0)
		return 1;
	r->at = (u64)m.control;
	r->end = r->at + m.controllen;
	if (m.controllen >= sizeof(struct user_cmsghdr))
		bpf_loop(32, rights_header, r, 0);
	return 0;
}

/* For an array of 'n' struct mmsghdr, which begin with a msghdr. */
static __noinline void put_rights(struct task_struct *task, u32 pid, u64 at_ns, u64 messages, u32 n)
{
	struct rights r = {.task = task, .pid = pid, .at_ns = at_ns, .next = messages};

	bpf_loop(n & 1023, rights_message, &r, 0);
}

#endif
