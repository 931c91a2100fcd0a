/* Follows calls that change data: which failed calls a server repeated with success, and which
 * calls of an application succeeded. */
#include "diag/derive/events_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

#define REDONE_S 10.0
/* failed calls kept for each log until they are repeated, newest first */
enum { FAILED_MAX = 1024 };

struct failed_data {
	char *path; /* of the file; NULL: unused */
	const char *call;
	int64_t offset, end; /* end < 0: unknown */
	double at_s;
	size_t event;
	uint64_t bytes;
};

struct data_calls {
	struct failed_data list[FAILED_MAX];
	size_t next, live;
};

enum data_way data_way(const struct call_info *info)
{
	if (info->class == CALL_WRITE)
		return DATA_RANGE;
	if (!strcmp(info->name, "fallocate"))
		return DATA_RANGE;
	if (!strcmp(info->name, "ftruncate"))
		return DATA_LENGTH;
	if (info->class == CALL_SYNC && info->fd >= 0)
		return DATA_SYNC;
	return info->class == CALL_CLOSE ? DATA_CLOSE : DATA_NONE;
}

/* The range of the file that a call covers. False: the log does not say. The lengths of a vectored
 * write are not recorded, so its end is -1. */
static bool range_of(
	const struct record_call *c, const struct call_info *info, int64_t *offset, int64_t *end)
{
	if (data_way(info) == DATA_LENGTH) {
		*offset = *end = (int64_t)c->args[1];
		return true;
	}
	if (!strcmp(info->name, "fallocate")) {
		*offset = (int64_t)c->args[2];
		*end = *offset + (int64_t)c->args[3];
		return true;
	}
	*offset = c->offset >= 0    ? c->offset
		: info->offset >= 0 ? (int64_t)c->args[info->offset]
				    : -1;
	*end = -1;
	if (!strcmp(info->name, "write") || !strcmp(info->name, "pwrite64"))
		*end = *offset + (int64_t)c->args[2];
	return *offset >= 0;
}

uint64_t data_asked(const struct record_call *c, const struct call_info *info)
{
	return !strcmp(info->name, "write") || !strcmp(info->name, "pwrite64") ? c->args[2] : 0;
}

static void event_data_forget(struct data_calls *d, struct failed_data *f)
{
	free(f->path);
	f->path = NULL;
	d->live--;
}

void data_free(struct data_calls *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < FAILED_MAX; i++)
		free(d->list[i].path);
	free(d);
}

void data_failed(struct events *s, struct stream_item *item, size_t event)
{
	const struct record_call *c = &item->record->call;
	const struct fd_state *fd = item_fd(item);
	struct failed_data *f;
	int64_t offset, end;

	if (event == SIZE_MAX || !fd || !fd->now.path || data_way(item->call) > DATA_LENGTH ||
		!range_of(c, item->call, &offset, &end))
		return;
	if (!s->data)
		s->data = alloc_zero(1, sizeof(*s->data));
	f = &s->data->list[s->data->next++ % FAILED_MAX];
	if (f->path)
		event_data_forget(s->data, f);
	*f = (struct failed_data){.path = alloc_copy(fd->now.path),
		.call = item->call->name,
		.offset = offset,
		.end = end,
		.at_s = s->end_s,
		.event = event,
		.bytes = data_asked(c, item->call)};
	s->data->live++;
}

/* Does a successful call on 'offset' to 'end' repeat the failed one? So do pieces that follow one
 * another in the file. */
static bool made_good(struct failed_data *f, enum data_way way, int64_t offset, int64_t end)
{
	const bool length = !strcmp(f->call, "ftruncate");

	if (length != (way == DATA_LENGTH))
		return false;
	if (length)
		return f->end == end;
	if (f->end < 0)
		return f->offset == offset;
	if (offset > f->offset || end <= f->offset)
		return false;
	f->offset = end;
	return f->offset >= f->end;
}

static bool is_storage(struct stream_item *item)
{
	enum object_kind kind = item_object(item).kind;

	return kind == OBJECT_STORAGE_FILE || kind == OBJECT_STORAGE;
}

void data_succeeded(struct events *s, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	enum data_way way = data_way(item->call);
	const struct fd_state *fd;
	int64_t offset, end;

	if (!s->data || !s->data->live || way > DATA_LENGTH || !is_storage(item))
		return;
	fd = item_fd(item);
	if (!fd || !fd->now.path || !range_of(c, item->call, &offset, &end))
		return;
	if (item->call->class == CALL_WRITE)
		end = offset + c->result; /* may be less than was asked for */
	for (size_t i = 0; i < FAILED_MAX; i++) {
		struct failed_data *f = &s->data->list[i];
		struct event *ev;

		if (!f->path || s->end_s < f->at_s)
			continue;
		if (s->end_s - f->at_s > REDONE_S) {
			event_data_forget(s->data, f);
			continue;
		}
		if (strcmp(f->path, fd->now.path) != 0 || !made_good(f, way, offset, end))
			continue;
		ev = &s->list[f->event];
		ev->redone++;
		ev->bytes -= f->bytes;
		event_data_forget(s->data, f);
	}
}
