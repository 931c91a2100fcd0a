#include "diag/derive/message.h"

#include <errno.h>
#include <stdlib.h>

static size_t home(const struct pollers *p, uint32_t tid)
{
	return (tid * 2654435769u >> 7) & (p->size - 1);
}

static struct poller *find(const struct pollers *p, uint32_t tid)
{
	if (!p->size)
		return NULL;
	for (size_t i = home(p, tid);; i = (i + 1) & (p->size - 1))
		if (p->slots[i].tid == tid || !p->slots[i].tid)
			return &p->slots[i];
}

static int grow(struct pollers *p)
{
	struct pollers bigger = {.size = p->size ? p->size * 2 : 64, .used = p->used};

	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < p->size; i++)
		if (p->slots[i].tid)
			*find(&bigger, p->slots[i].tid) = p->slots[i];
	free(p->slots);
	*p = bigger;
	return 0;
}

int pollers_set(struct pollers *p, uint32_t tid, uint64_t number)
{
	struct poller *s = find(p, tid);

	if (!s || (!s->tid && p->used * 2 >= p->size)) {
		if (grow(p))
			return -ENOMEM;
		s = find(p, tid);
	}
	if (!s->tid)
		p->used++;
	*s = (struct poller){tid, number};
	return 0;
}

uint64_t pollers_get(const struct pollers *p, uint32_t tid)
{
	const struct poller *s = find(p, tid);

	return s && s->tid ? s->last : 0;
}

void pollers_remove(struct pollers *p, uint32_t tid)
{
	struct poller *gone = find(p, tid);
	size_t i;

	if (!gone || !gone->tid)
		return;
	gone->tid = 0;
	p->used--;
	/* Linear probing: those behind the gap may have been pushed past their home by it. */
	for (i = ((size_t)(gone - p->slots) + 1) & (p->size - 1); p->slots[i].tid;
		i = (i + 1) & (p->size - 1)) {
		struct poller moved = p->slots[i];

		p->slots[i].tid = 0;
		*find(p, moved.tid) = moved;
	}
}

void pollers_clear(struct pollers *p)
{
	free(p->slots);
	*p = (struct pollers){0};
}

bool message_is_whole(const struct message *m, const struct pollers *p, uint32_t tid)
{
	if (!m->bytes || m->wanted_more)
		return false;
	return m->answered || (tid && tid != m->tid) || pollers_get(p, m->tid) > m->last;
}
