/* The filter by path: is a file one of its paths, or below one? */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_BELOW_H
#define CULPRIT_DIAG_CAPTURE_EBPF_BELOW_H

#include "diag/capture/ebpf/files.h"

struct file_key {
	u64 ino;
	u32 dev, generation;
};

struct verdict {
	u32 renames, filter_at;
	u32 below;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct file_key);
	__type(value, struct verdict);
} verdicts SEC(".maps");

struct climb {
	struct dentry *dentry;
	struct vfsmount *mnt;
	bool below;
};

static long climb_step(u32 i, void *ctx)
{
	struct climb *c = ctx;
	struct dentry *dentry = c->dentry, *parent;
	struct vfsmount *mnt = c->mnt;
	u64 ino = BPF_CORE_READ(dentry, d_inode, i_ino);
	u32 dev = BPF_CORE_READ(dentry, d_inode, i_sb, s_dev);

	struct filter *f = filter_now();

	for (u32 k = 0; k < PREFIXES && k < f->n_prefixes; k++)
		if (f->prefixes[k].ino == ino && f->prefixes[k].dev == dev) {
			c->below = true;
			return 1;
		}
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *m = mount_of(mnt), *up = BPF_CORE_READ(m, mnt_parent);

		if (up == m)
			return 1;
		c->dentry = BPF_CORE_READ(m, mnt_mountpoint);
		c->mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry)
		return 1;
	c->dentry = parent;
	return 0;
}

/* Is it one of the filter's block devices, opened by any name? */
static __always_inline bool is_prefix_device(struct inode *inode)
{
	u32 dev = BPF_CORE_READ(inode, i_rdev);
	struct filter *f = filter_now();

	for (u32 k = 0; k < PREFIXES && k < f->n_prefixes; k++)
		if (!f->prefixes[k].ino && f->prefixes[k].dev == dev)
			return true;
	return false;
}

/* Is the file one of the filter's paths, or below one? The result is cached for each file. */
static __noinline bool is_below(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct file_key key = {
		.ino = BPF_CORE_READ(inode, i_ino),
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};
	struct verdict *known = bpf_map_lookup_elem(&verdicts, &key), verdict;
	struct climb c = {};

	if ((BPF_CORE_READ(inode, i_mode) & IFMT) == IFBLK && is_prefix_device(inode))
		return true;
	if (known && known->renames == renames && known->filter_at == filter_at)
		return known->below;
	c.dentry = BPF_CORE_READ(file, f_path.dentry);
	c.mnt = BPF_CORE_READ(file, f_path.mnt);
	verdict.renames = renames;
	verdict.filter_at = filter_at;
	bpf_loop(PARTS_DEPTH, climb_step, &c, 0);
	verdict.below = c.below;
	bpf_map_update_elem(&verdicts, &key, &verdict, 0);
	return c.below;
}

struct compare {
	u32 size, at, k, same; /* at: which filter; k: which prefix */
};

/* Compares eight bytes of the text in the scratch with a prefix. */
static long compare_step(u32 i, void *ctx)
{
	struct compare *c = ctx;
	u32 at = i * 8 & (PREFIX_MAX - 8), left = c->size - i * 8, zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	u64 a, b;

	if (!s || i * 8 >= c->size)
		return 1;
	a = *(u64 *)(s->bytes + at);
	b = *(u64 *)&filters[c->at & 1].prefix_text[c->k & (PREFIXES - 1)][at];
	if (left < 8)
		a = (a ^ b) << (64 - 8 * left);
	else
		a ^= b;
	c->same = !a;
	return a != 0;
}

static long prefix_step(u32 k, void *ctx)
{
	struct compare *c = ctx;
	u32 zero = 0, size = filters[c->at & 1].prefixes[k & (PREFIXES - 1)].size;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	char after;

	if (!s)
		return 1;
	c->k = k;
	c->size = size;
	c->same = 1;
	bpf_loop(PREFIX_MAX / 8, compare_step, c, 0);
	after = s->bytes[size & (PREFIX_MAX - 1)];
	if (after && after != '/')
		c->same = 0;
	return c->same & 1;
}

/* Is the absolute path in the scratch, as written, one of the filter's or below one? */
static __always_inline bool text_is_below(void)
{
	struct compare c = {.at = filter_at};
	u32 n = filters[c.at & 1].n_prefixes;

	bpf_loop(n < PREFIXES ? n : PREFIXES, prefix_step, &c, 0);
	return c.same;
}

/*
 * Does a path argument name such a file? An absolute one is taken as written; a relative one is
 * below if the folder that it is relative to is. So a link from outside, or a relative path from
 * above the filter's, is not recognised here; the file that such a call opens is.
 */
static __noinline bool names_below(
	struct task_struct *task, struct traced_thread *t, s32 path, s32 dir)
{
	u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	struct climb c = {};
	char *text;
	long n;

	if (!s || path < 0)
		return false;
	text = (char *)s->bytes;
	n = bpf_probe_read_user_str(text, PREFIX_MAX + 1, (void *)t->args[path & 3]);
	if (n <= 0)
		return false;
	if (text[0] == '/')
		return text_is_below();
	if (dir >= 0 && (s32)t->args[dir & 3] >= 0) {
		struct file *file = file_at(task->files, t->args[dir & 3]);

		return file && is_below(file);
	}
	c.dentry = BPF_CORE_READ(task, fs, pwd.dentry);
	c.mnt = BPF_CORE_READ(task, fs, pwd.mnt);
	bpf_loop(PARTS_DEPTH, climb_step, &c, 0);
	return c.below;
}

/* Is a call selected by the filter of paths? */
static __always_inline bool call_is_below(
	struct task_struct *task, struct traced_thread *t, const volatile struct call_rule *rule)
{
	struct file *file;

	if (rule->path >= 0) {
		t->maybe = rule->action == ACT_RESULT;
		return names_below(task, t, rule->path, rule->dir) ||
			names_below(task, t, rule->path2, rule->dir2);
	}
	if (rule->fd < 0)
		return false;
	file = file_at(task->files, t->args[rule->fd & 3]);
	return file && is_below(file);
}

#endif
