/* The length that a reading call asks for. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_ASKED_H
#define CULPRIT_DIAG_CAPTURE_EBPF_ASKED_H

#include "diag/capture/ebpf/maps.h"

enum {
	VECTOR_MAX = 32,
	CALL_MAX = 0x7ffff000 /* MAX_RW_COUNT: the kernel moves no more in one call */
};

struct vector {
	u64 base, size; /* of the buffers: address and number */
	u64 sum;
};

/* A buffer is an address and a length of 64 bits each. */
static long vector_step(u32 i, void *ctx)
{
	struct vector *v = ctx;
	u64 size = 0;

	if (bpf_probe_read_user(&size, sizeof(size), (void *)(v->base + i * 16 + 8)) < 0) {
		v->sum = 0;
		return 1;
	}
	/* No bound here: the verifier would follow it through every iteration. */
	v->sum += size;
	return 0;
}

/* Bytes in a vector of buffers, or in a message header's; 0: more than VECTOR_MAX buffers, or not
 * in memory. Not static, so that the verifier examines it once, not with each state of its
 * callers. */
__noinline u32 vector_bytes(u64 address, u64 size, u32 asked)
{
	struct vector v = {.base = address, .size = size};

	/* 64-bit struct msghdr: the vector's address is at byte 16, followed by its length. */
	if (asked == ASKED_HEADER && bpf_probe_read_user(&v, 16, (void *)(address + 16)) < 0)
		return 0;
	if (v.size > VECTOR_MAX)
		return 0;
	bpf_loop(v.size, vector_step, &v, 0);
	return v.sum < CALL_MAX ? v.sum : CALL_MAX;
}

/* 64-bit struct mmsghdr: the length of its message is at byte 56 of 64. */
static long message_step(u32 i, void *ctx)
{
	struct vector *v = ctx;
	u32 size = 0;

	if (bpf_probe_read_user(&size, sizeof(size), (void *)(v->base + i * 64 + 56)) < 0) {
		v->sum = 0;
		return 1;
	}
	v->sum += size;
	return 0;
}

/* Bytes in the 'n' messages that a sendmmsg or recvmmsg moved; 0: unknown. */
__noinline u32 message_bytes(u64 address, s64 n)
{
	struct vector v = {.base = address};

	if (n > 0)
		bpf_loop(n, message_step, &v, 0);
	return v.sum <= 0xffffffff ? v.sum : 0;
}

/* Bytes that a readv or recvmsg asks for, or that a sendmmsg or recvmmsg moved, which returned
 * 'result'; 0: another call, or unknown. */
static __always_inline u32 asked_of_vector(struct traced_thread *t, s64 result)
{
	u32 nr = t->nr, asked = nr < RULES ? rules[nr].asked : ASKED_NONE;

	if (asked == ASKED_MESSAGES)
		return message_bytes(t->args[1], result);
	if (asked != ASKED_VECTOR && asked != ASKED_HEADER)
		return 0;
	return vector_bytes(t->args[1], t->args[2], asked);
}

/* Bytes that a call of class READ asks for; 0: unknown. */
static __always_inline u32 asked_bytes(
	struct traced_thread *t, const volatile struct call_rule *rule)
{
	u32 asked = rule->asked;

	if (asked == ASKED_LENGTH)
		return t->args[2] < CALL_MAX ? t->args[2] : CALL_MAX;
	return asked == ASKED_VECTOR || asked == ASKED_HEADER
		? vector_bytes(t->args[1], t->args[2], asked)
		: 0;
}

/* Bytes moved by a call that returned 'result'; like call_moved() of diag/record/describe.h, but 0
 * instead of unknown. For a failed call: 'result'. */
static __always_inline s64 moved_bytes(
	struct traced_thread *t, const volatile struct call_rule *rule, s64 result)
{
	u32 flags = rule->flags < 0 ? 0 : t->args[rule->flags & 3], asked;

	if (result <= 0)
		return result;
	if (flags & PEEK)
		return 0;
	if (rule->asked == ASKED_MESSAGES)
		return flags & TRUNC ? 0 : message_bytes(t->args[1], result);
	if (!(flags & TRUNC))
		return result;
	asked = asked_bytes(t, rule);
	return asked < result ? asked : result;
}

#endif
