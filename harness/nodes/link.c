/*
 * Passes lines from a program on one node to one on another: an event of the first node's agent
 * becomes a request to the second's. Both use the existing SSH channels, so nothing listens on a
 * node. The threads of the two nodes do this, whatever the caller waits for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/nodes/node_impl.h"

struct link_end {
	struct node *node;
	char handle[64];
};

/* Queues a line for one end. Call with the lock held. */
static void nodes_link_tell(const struct link_end *to, const char *line)
{
	struct op *op, **at = &to->node->ops;
	json_t *msg;
	char *text;

	if (to->node->state != NODE_UP)
		return;
	msg = json_pack("{s:I, s:s, s:s, s:s}", "id", (json_int_t)++to->node->last_id, "op",
		"process.tell", "handle", to->handle, "line", line);
	text = json_dumps(msg, JSON_COMPACT);
	json_decref(msg);
	if (!text)
		return; /* invalid UTF-8 cannot come from an agent */
	op = alloc_zero(1, sizeof(*op));
	op->node = to->node;
	op->kind = OP_TELL;
	op->line = alloc_format("%s\n", text);
	free(text);
	while (*at)
		at = &(*at)->next;
	*at = op;
	to->node->told++;
	event_post(to->node->wake);
}

void link_clear(struct nodeset *set)
{
	free(set->link);
	set->link = NULL;
	set->n_link = 0;
}

void nodeset_link(struct nodeset *set, const struct node_end *ends, size_t n)
{
	pthread_mutex_lock(&set->lock);
	link_clear(set);
	set->link = alloc_zero(n, sizeof(*set->link));
	set->n_link = n;
	for (size_t i = 0; i < n; i++) {
		set->link[i].node = ends[i].node;
		snprintf(set->link[i].handle, sizeof(set->link[i].handle), "%s", ends[i].handle);
	}
	for (size_t i = 0; i < n; i++) {
		char hello[64];

		snprintf(hello, sizeof(hello), "hello %zu %zu", i, n);
		nodes_link_tell(&set->link[i], hello);
	}
	pthread_mutex_unlock(&set->lock);
}

/* Sends "FROM WORDS" to the ends in "TO,TO WORDS". Call with the lock held. A correct program
 * names each end once and waits for answers; any other would fill this machine's memory. */
static int link_pass_on(struct nodeset *set, size_t from, const char *line, struct err *e)
{
	const char *words = line + strcspn(line, " ");
	char *text = alloc_format("%zu%s", from, words);
	size_t n = 0;
	int rc = 0;

	for (const char *at = line; at < words && !rc; at += strcspn(at, ", ") + 1) {
		char *end;
		unsigned long to = strtoul(at, &end, 10);

		if (end == at || to >= set->n_link)
			continue;
		if (n++ == set->n_link)
			rc = err_set(e, -EPROTO,
				"a program names one of %zu others twice in a line", set->n_link);
		else if (set->link[to].node->told == NODE_TOLD_MAX)
			rc = err_set(e, -EPROTO, "%s does not read its lines: %d are pending",
				set->link[to].node->name, NODE_TOLD_MAX);
		else
			nodes_link_tell(&set->link[to], text);
	}
	free(text);
	return rc;
}

int link_take(struct node *n, const json_t *event, struct err *e)
{
	const char *what = jget_text(event, "event"), *handle = jget_text(event, "handle"),
		   *line = jget_text(event, "line");
	struct nodeset *set = n->set;
	int rc = 0;

	if (!what || strcmp(what, "line"))
		return 0;
	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; handle && line && i < set->n_link && !rc; i++)
		if (set->link[i].node == n && !strcmp(set->link[i].handle, handle))
			rc = link_pass_on(set, i, line, e);
	pthread_mutex_unlock(&set->lock);
	return rc ? rc : 1;
}
