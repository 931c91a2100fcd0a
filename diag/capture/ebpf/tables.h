/* Walks the descriptors of a process: their meaning (events), or whether they listen (sums). */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_TABLES_H
#define CULPRIT_DIAG_CAPTURE_EBPF_TABLES_H

#include "diag/capture/ebpf/files.h"
#include "diag/capture/ebpf/sums.h"

enum { MAX_FDS = 1 << 20 };

/* All descriptors of a task. */
struct table {
	struct task_struct *task;
	unsigned long word;
	u64 at_ns;
	u32 pid, slot, base;
};

static long table_bit(u32 i, void *ctx)
{
	struct table *t = ctx;

	if (!(t->word >> (i & 63) & 1))
		return 0;
	if (sums)
		note_listener(t->task, t->base + i);
	else
		put_fd(t->task, t->pid, t->base + i, t->at_ns, t->slot);
	return 0;
}

static long table_word(u32 i, void *ctx)
{
	struct table *t = ctx;
	struct task_struct *task = t->task;
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);

	unsigned long *open_fds;

	if (i * 64 >= BPF_CORE_READ(fdt, max_fds))
		return 1;
	open_fds = BPF_CORE_READ(fdt, open_fds);
	bpf_probe_read_kernel(&t->word, sizeof(t->word), open_fds + i);
	t->base = i * 64;
	if (t->word)
		bpf_loop(64, table_bit, t, 0);
	return 0;
}

static __noinline void put_table(struct task_struct *task, u32 pid, u64 at_ns, u32 slot)
{
	struct table t = {.task = task, .at_ns = at_ns, .pid = pid, .slot = slot};

	if (BPF_CORE_READ(task, files))
		bpf_loop(MAX_FDS / 64, table_word, &t, 0);
}

#endif
