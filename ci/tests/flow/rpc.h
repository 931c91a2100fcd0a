/* The messages of made-up servers. */
#ifndef CULPRIT_CI_TESTS_FLOW_RPC_H
#define CULPRIT_CI_TESTS_FLOW_RPC_H

#include "diag/flow/protocol.h"

/* ONC RPC with a record mark. */
static inline struct flow_protocol cluster_protocol(void)
{
	struct flow_field u32 = {.size = 4, .big = true, .mask = UINT32_MAX}, mark = u32;
	struct flow_protocol p = {.header = 12, .longest = 1 << 20, .n_lengths = 1};

	mark.mask = 0x7fffffff;
	mark.addend = 4;
	p.length[0] = mark;
	p.last = u32;
	p.last.mask = 0x80000000u;
	p.id = u32;
	p.id.offset = 4;
	p.call.field = u32;
	p.call.field.offset = 8;
	p.call.n = 1;
	p.answer = p.call;
	p.answer.values[0] = 1;
	p.check[1].field = u32;
	p.check[1].field.offset = 12;
	p.check[1].values[0] = 2;
	p.check[1].n = 1;
	p.program = p.procedure = u32;
	p.program.offset = 16;
	p.procedure.offset = 24;
	return p;
}

#endif
