/* Tracks which object each descriptor of each process refers to. */
#include "diag/record/fdtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/map.h"

/* Entries by (pid, fd). fd PROCESS_HEAD is the anchor of its process's ring, so that a whole table
 * can be dropped without a search. */
enum { PROCESS_HEAD = INT32_MIN };

struct entry {
	struct fd_state state;
	struct entry *prev, *next;
};

struct fdtable {
	struct map entries;
};

static uint64_t fdtable_key_of(uint32_t pid, int32_t fd)
{
	return (uint64_t)pid << 32 | (uint32_t)fd;
}

static struct entry *entry_at(const struct map_slot *s)
{
	return (struct entry *)(uintptr_t)s->value;
}

struct fdtable *fdtable_new(void)
{
	return calloc(1, sizeof(struct fdtable));
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
	for (size_t i = 0; i < map_room(&t->entries); i++)
		if (t->entries.slot[i].value)
			entry_free(entry_at(&t->entries.slot[i]));
	map_clear(&t->entries);
	free(t);
}

static struct entry *fdtable_find(const struct fdtable *t, uint32_t pid, int32_t fd)
{
	return (struct entry *)(uintptr_t)map_get(&t->entries, fdtable_key_of(pid, fd));
}

static struct entry *fdtable_add(struct fdtable *t, uint32_t pid, int32_t fd)
{
	struct entry *en = calloc(1, sizeof(*en));

	if (!en || !map_add(&t->entries, fdtable_key_of(pid, fd), (uintptr_t)en)) {
		free(en);
		return NULL;
	}
	en->state.now.pid = pid;
	en->state.now.fd = fd;
	en->prev = en->next = en;
	return en;
}

static void fdtable_drop(struct fdtable *t, struct entry *en)
{
	map_remove(&t->entries, fdtable_key_of(en->state.now.pid, en->state.now.fd), (uintptr_t)en);
	en->prev->next = en->next;
	en->next->prev = en->prev;
	entry_free(en);
}

static void drop_process(struct fdtable *t, uint32_t pid)
{
	struct entry *head = fdtable_find(t, pid, PROCESS_HEAD);

	if (!head)
		return;
	while (head->next != head)
		fdtable_drop(t, head->next);
	fdtable_drop(t, head);
}

static int feed_open(struct fdtable *t, const struct record_fd *f)
{
	struct entry *en = fdtable_find(t, f->pid, f->fd), *head;
	char *path = strdup(f->path ? f->path : "");

	if (!path)
		return -ENOMEM;
	if (!en) {
		head = fdtable_find(t, f->pid, PROCESS_HEAD);
		if (!head)
			head = fdtable_add(t, f->pid, PROCESS_HEAD);
		if (head)
			en = fdtable_add(t, f->pid, f->fd);
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
	en = fdtable_find(t, rec->fd.pid, rec->fd.fd);
	if (en)
		fdtable_drop(t, en);
	return 0;
}

struct fd_state *fdtable_get(const struct fdtable *t, uint32_t pid, int32_t fd)
{
	struct entry *en = fd == PROCESS_HEAD ? NULL : fdtable_find(t, pid, fd);

	return en ? &en->state : NULL;
}

void fdtable_each(const struct fdtable *t, uint32_t pid,
	void (*fn)(void *ctx, const struct fd_state *s), void *ctx)
{
	struct entry *head = fdtable_find(t, pid, PROCESS_HEAD);

	if (head)
		for (struct entry *en = head->next; en != head; en = en->next)
			fn(ctx, &en->state);
}

void fdtable_all(
	const struct fdtable *t, void (*fn)(void *ctx, const struct fd_state *s), void *ctx)
{
	for (size_t i = 0; i < map_room(&t->entries); i++) {
		const struct entry *en = entry_at(&t->entries.slot[i]);

		if (en && en->state.now.fd != PROCESS_HEAD)
			fn(ctx, &en->state);
	}
}
