/* Measures the time of a thread on a processor by sched_switch, because the scheduler's own sums
 * have the resolution of a tick. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_PROCESSOR_H
#define CULPRIT_DIAG_CAPTURE_EBPF_PROCESSOR_H

#include "diag/capture/ebpf/maps.h"

/* Of the current thread. For a thread that comes under trace while it runs, the time begins now. */
static __always_inline u64 processor_ns(struct traced_thread *t, u64 now_ns)
{
	u64 on_ns = t->on_ns;

	if (!on_ns)
		t->on_ns = on_ns = now_ns;
	return t->cpu_ns + (now_ns > on_ns ? now_ns - on_ns : 0);
}

static __always_inline void processor_left(struct traced_thread *t, u64 now_ns)
{
	u64 on_ns = t->on_ns;

	if (on_ns && now_ns > on_ns)
		t->cpu_ns += now_ns - on_ns;
	t->on_ns = 0;
}

#endif
