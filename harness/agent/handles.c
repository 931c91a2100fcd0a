#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/agent/agent.h"

struct handle *handle_new(struct agent *a, enum handle_kind kind)
{
	static const char letters[] = {
		[HANDLE_PROCESS] = 'p',
		[HANDLE_RUN] = 'r',
		[HANDLE_TRACE] = 't',
		[HANDLE_PACKETS] = 'd',
		[HANDLE_COMMAND] = 'c',
		[HANDLE_LIMIT] = 'l',
		[HANDLE_STOP] = 's',
		[HANDLE_SERVICE] = 'v',
		[HANDLE_READONLY] = 'f',
	};
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	snprintf(h->name, sizeof(h->name), "%c%u", letters[kind], ++a->next_number);
	h->kind = kind;
	h->read_fd = h->write_fd = -1;
	h->next = a->handles;
	a->handles = h;
	return h;
}

struct handle *handle_find(struct agent *a, const char *name)
{
	struct handle *h = a->handles;

	while (h && strcmp(h->name, name))
		h = h->next;
	return h;
}

int handle_get(struct agent *a, const char *name, int kind, struct handle **out, struct err *e)
{
	static const char *const kinds[] = {[HANDLE_PROCESS] = "process",
		[HANDLE_RUN] = "run",
		[HANDLE_TRACE] = "trace",
		[HANDLE_PACKETS] = "packet drop",
		[HANDLE_COMMAND] = "command",
		[HANDLE_LIMIT] = "limit",
		[HANDLE_STOP] = "stop",
		[HANDLE_SERVICE] = "act on a server",
		[HANDLE_READONLY] = "read-only file system"};
	struct handle *h = handle_find(a, name);

	if (!h || (kind >= 0 && (int)h->kind != kind))
		return err_set(
			e, -ENOENT, "there is no %s '%s'", kind < 0 ? "handle" : kinds[kind], name);
	if (h->request_id)
		return err_set(e, -EBUSY, "'%s' is busy with another request", name);
	*out = h;
	return 0;
}

void handle_free(struct agent *a, struct handle *h)
{
	struct handle **at = &a->handles;

	while (*at && *at != h)
		at = &(*at)->next;
	if (*at)
		*at = h->next;
	if (h->read_fd >= 0)
		close(h->read_fd);
	if (h->write_fd >= 0)
		close(h->write_fd);
	process_account_free(h->account);
	json_decref(h->inverse);
	json_decref(h->request_id);
	json_decref(h->summary);
	free(h->log);
	free(h->error_log);
	free(h->input);
	free(h->output);
	free(h);
}

int handle_record(
	struct agent *a, struct handle *h, const char *primitive, double max_s, struct err *e)
{
	return guard_record(a->guard, h->name, primitive, h->inverse, max_s, e);
}

void handle_undo(struct agent *a, struct handle *h,
	void (*undone)(struct agent *, struct handle *, const struct guard_message *))
{
	h->state = HANDLE_UNDOING;
	h->deadline = 0;
	h->undone = undone;
	guard_undo(a->guard, h->name);
}

/* What the guard did by itself leaves a handle that can be asked, but holds nothing any more. */
void handle_undone_message(struct agent *a, const struct guard_message *m)
{
	struct handle *h = handle_find(a, m->handle);

	if (!m->asked) {
		agent_event(a,
			json_pack("{s:s, s:s, s:s}", "event", "undone", "handle", m->handle, "why",
				"max_s"));
		return;
	}
	if (!h || !h->undone)
		return;
	/* Undone before by the guard itself: just as well. */
	if (m->rc == -ENOENT) {
		struct guard_message fine = *m;

		fine.rc = 0;
		fine.was_there = false;
		h->undone(a, h, &fine);
	} else {
		h->undone(a, h, m);
	}
	if (m->rc && m->rc != -ENOENT) {
		/* It is still in the journal: the handle stays, to be tried again. */
		json_decref(h->request_id);
		h->request_id = NULL;
		h->state = HANDLE_LIVE;
		return;
	}
	handle_free(a, h);
}
