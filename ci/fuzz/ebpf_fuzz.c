/* Events of the in-kernel tracer to records: for any content of the rings, nothing is read beyond
 * an event's end. Input: a byte of size (in words of 8), then so much of an event, and so on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diag/capture/ebpf/ebpf.h"

static void take(void *ctx, struct record *rec)
{
	size_t *n = ctx;

	if (rec->type == RECORD_FD && rec->fd.open)
		*n += strlen(rec->fd.path);
	if (rec->type == RECORD_CALL && rec->call.path)
		*n += strlen(rec->call.path) + (rec->call.path2 ? strlen(rec->call.path2) : 0);
	for (int i = 0; rec->type == RECORD_CALL && i < rec->call.head_size; i++)
		*n += rec->call.head[i];
	if (rec->type == RECORD_PROCESS)
		*n += strlen(rec->process.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct call_rule rules[RULES];
	static struct ebpf_events *x; /* dear to make: for many inputs */
	static unsigned inputs;
	static size_t total;

	for (int i = 0; i < RULES; i++)
		rules[i].action = (uint8_t)(i % (ACT_RING + 1));
	if (inputs++ % 20000 == 0) {
		ebpf_events_free(x);
		x = ebpf_events_new(rules, take, &total);
	}
	while (x && size) {
		size_t n = (size_t)data[0] * 8 < size - 1 ? (size_t)data[0] * 8 : size - 1;
		struct ev *ev = malloc(n + 1); /* for the sanitizer to see reads beyond it */

		if (!ev)
			break;
		memcpy(ev, data + 1, n);
		/* Small numbers, so that inputs use the same ones again. */
		if (n >= sizeof(*ev)) {
			ev->pid &= 7;
			ev->tid &= 15;
			ev->type &= 15;
		}
		events_feed(x, ev, (uint32_t)n);
		free(ev);
		data += n + 1;
		size -= n + 1;
	}
	if (x)
		events_end(x);
	return 0;
}
