/* Tracks what each descriptor of each process refers to. */
#include "diag/record/fdtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One chained hash of entries by (pid, fd); fd PROCESS_HEAD is the anchor of its
 * process's ring, so that a whole table can be dropped without a search. */
enum { PROCESS_HEAD = INT32_MIN, FIRST_BUCKETS = 1024 };

struct entry {
	struct fd_state state;
	struct entry *chain;
	struct entry *prev, *next;
};

struct fdtable {
	struct entry **bucket;
	size_t mask, count;
};

static size_t hash(uint32_t pid, int32_t fd)
{
	uint64_t k = (uint64_t)pid << 32 | (uint32_t)fd;

	k *= 0x9e3779b97f4a7c15u;
	return (size_t)(k >> 20);
}

struct fdtable *fdtable_new(void)
{
	struct fdtable *t = calloc(1, sizeof(*t));

	if (!t || !(t->bucket = calloc(FIRST_BUCKETS, sizeof(struct entry *)))) {
		free(t);
		return NULL;
	}
	t->mask = FIRST_BUCKETS - 1;
	return t;
}

static void entry_free(struct entry *en)
{
	free((char *)en->state.now.path);
	free(en);
}

void fdtable_free(struct fdtable *t)
{
	if (!t)
		return;
	for (size_t i = 0; i <= t->mask; i++)
		for (struct entry *en = t->bucket[i], *next; en; en = next) {
			next = en->chain;
			entry_free(en);
		}
	free(t->bucket);
	free(t);
}

static struct entry *find(const struct fdtable *t, uint32_t pid, int32_t fd)
{
	struct entry *en = t->bucket[hash(pid, fd) & t->mask];

	while (en && (en->state.now.fd != fd || en->state.now.pid != pid))
		en = en->chain;
	return en;
}

static void grow(struct fdtable *t)
{
	size_t mask = t->mask * 2 + 1;
	struct entry **bucket = calloc(mask + 1, sizeof(struct entry *));

	if (!bucket)
		return; /* longer chains, nothing worse */
	for (size_t i = 0; i <= t->mask; i++)
		for (struct entry *en = t->bucket[i], *next; en; en = next) {
			size_t at = hash(en->state.now.pid, en->state.now.fd) & mask;

			next = en->chain;
			en->chain = bucket[at];
			bucket[at] = en;
		}
	free(t->bucket);
	t->bucket = bucket;
	t->mask = mask;
}

static struct entry *add(struct fdtable *t, uint32_t pid, int32_t fd)
{
	struct entry *en = calloc(1, sizeof(*en)), **at;

	if (!en)
		return NULL;
	if (t->count++ > t->mask)
		grow(t);
	en->state.now.pid = pid;
	en->state.now.fd = fd;
	en->prev = en->next = en;
	at = &t->bucket[hash(pid, fd) & t->mask];
	en->chain = *at;
	*at = en;
	return en;
}

static void drop(struct fdtable *t, struct entry *en)
{
	struct entry **at = &t->bucket[hash(en->state.now.pid, en->state.now.fd) & t->mask];

	while (*at != en)
		at = &(*at)->chain;
	*at = en->chain;
	en->prev->next = en->next;
	en->next->prev = en->prev;
	t->count--;
	entry_free(en);
}

static void drop_process(struct fdtable *t, uint32_t pid)
{
	struct entry *head = find(t, pid, PROCESS_HEAD);

	if (!head)
		return;
	while (head->next != head)
		drop(t, head->next);
	drop(t, head);
}

static int feed_open(struct fdtable *t, const struct record_fd *f)
{
	struct entry *en = find(t, f->pid, f->fd), *head;
	char *path = strdup(f->path ? f->path : "");

	if (!path)
		return -ENOMEM;
	if (!en) {
		head = find(t, f->pid, PROCESS_HEAD);
		if (!head)
			head = add(t, f->pid, PROCESS_HEAD);
		if (head)
			en = add(t, f->pid, f->fd);
		if (!en) {
			free(path);
			return -ENOMEM;
		}
		en->prev = head;
		en->next = head->next;
		head->next->prev = en;
		head->next = en;
	}
	free((char *)en->state.now.path);
	en->state.now = *f;
	en->state.now.path = path;
	en->state.object = (struct object){0};
	en->state.mark = 0;
	return 0;
}

int fdtable_feed(struct fdtable *t, const struct record *rec)
{
	struct entry *en;

	if (rec->type == RECORD_PROCESS && rec->process.pid == rec->process.tid &&
		rec->process.what != PROCESS_NAME)
		drop_process(t, rec->process.pid);
	if (rec->type != RECORD_FD || rec->fd.fd == PROCESS_HEAD)
		return 0;
	if (rec->fd.open)
		return feed_open(t, &rec->fd);
	en = find(t, rec->fd.pid, rec->fd.fd);
	if (en)
		drop(t, en);
	return 0;
}

struct fd_state *fdtable_get(const struct fdtable *t, uint32_t pid, int32_t fd)
{
	struct entry *en = fd == PROCESS_HEAD ? NULL : find(t, pid, fd);

	return en ? &en->state : NULL;
}

void fdtable_each(const struct fdtable *t, uint32_t pid,
	void (*fn)(void *ctx, const struct fd_state *s), void *ctx)
{
	struct entry *head = find(t, pid, PROCESS_HEAD);

	if (head)
		for (struct entry *en = head->next; en != head; en = en->next)
			fn(ctx, &en->state);
}

void fdtable_all(
	const struct fdtable *t, void (*fn)(void *ctx, const struct fd_state *s), void *ctx)
{
	for (size_t i = 0; i <= t->mask; i++)
		for (struct entry *en = t->bucket[i]; en; en = en->chain)
			if (en->state.now.fd != PROCESS_HEAD)
				fn(ctx, &en->state);
}
