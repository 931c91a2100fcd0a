/* How long a thread was on a processor: from sched_switch, since what the scheduler adds up itself
 * is grained by ticks. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_PROCESSOR_H
#define CULPRIT_DIAG_CAPTURE_EBPF_PROCESSOR_H

#include "diag/capture/ebpf/maps.h"

/* Of the current thread. One that is traced while it runs begins now. */
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
