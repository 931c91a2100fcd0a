/* The orchestrator's reader of an agent's output: bytes, in pieces of any size, become a hello,
 * answers and events. For any input, each answer must reach its own call, and a line that is not a
 * message must give an error. Input: a byte with the size of the pieces and whether the hello has
 * been read, then the agent's output. */
#include <sys/eventfd.h>

#include "harness/nodes/thread.c" /* its static functions are fuzzed */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct op *wait_for(struct node *n, int64_t id)
{
	struct op *op = calloc(1, sizeof(*op));

	op->kind = OP_CALL;
	op->state = OP_RUNNING;
	op->id = id;
	op->next = n->ops;
	return n->ops = op;
}

/* Called exactly once; an error has a message and a valid code. */
static void look_at(const struct op *op)
{
	if (op->state == OP_RUNNING)
		return;
	if (op->state != OP_DONE || (op->rc == 0) != (op->result != NULL) || op->rc > 0 ||
		(op->rc && !*op->err.text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nodeset set = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = eventfd(0, EFD_NONBLOCK)};
	struct node n = {.set = &set, .name = "s1"};
	struct op *ops[3];
	size_t piece = size ? (data[0] & 63) + 1u : 1;
	struct err e = {""};
	int rc = 0;

	set.events_end = &set.events;
	for (int i = 0; i < 3; i++)
		ops[i] = wait_for(&n, i + 1);
	if (size && data[0] & 64)
		n.hello = json_pack("{s:s, s:s}", "event", "hello", "dir", "/x");
	for (size_t at = 1; at < size && !rc; at += piece)
		rc = take_input(
			&n, (const char *)data + at, size - at < piece ? size - at : piece, &e);
	if (rc > 0 || (rc && !*e.text) || n.in_len > n.in_room ||
		n.agent.printed.len > NODE_TAIL_MAX)
		abort();
	text_tail_line(&n.agent.printed, e.text, sizeof(e.text));
	for (int i = 0; i < 3; i++) {
		look_at(ops[i]);
		op_free(ops[i]);
	}
	while (set.events) {
		struct node_event *next = set.events->next;

		json_decref(set.events->json);
		free(set.events);
		set.events = next;
	}
	json_decref(n.hello);
	free(n.in);
	close(set.done);
	return 0;
}
