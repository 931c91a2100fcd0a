/* What moved last between a client daemon and each server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/semantic/impl.h"

#define QUIET_S 0.2

struct link {
	enum link_state state;
	double since_s;     /* of what moved last, or of the first end */
	const char *call, *error;
	uint32_t pid;       /* the socket that data moved on last */
	int32_t fd;
};

int links_new(struct semantic *s)
{
	s->links = calloc(s->n_servers, sizeof(*s->links));
	for (size_t i = 0; s->links && i < s->n_servers; i++)
		s->links[i] = (struct link){.state = LINK_ANSWERED, .since_s = -1e9, .fd = -1};
	return s->links ? 0 : -ENOMEM;
}

/* The stretch until 'now_s' is over: kept if it is long, or if the connection was down in it. */
static int keep(struct semantic *s, size_t server, double now_s, bool open)
{
	const struct link *l = &s->links[server];
	struct event ev = {.kind = EVENT_LINK_QUIET, .server = (int32_t)server, .client = s->client,
			   .first_s = l->since_s < 0 ? 0 : l->since_s, .last_s = now_s, .count = 1, .call = l->call,
			   .error = l->error, .state = l->state, .open = open};

	if (now_s - ev.first_s < QUIET_S && l->state != LINK_ENDED)
		return 0;
	return semantic_put(s, &ev);
}

static int moved(struct semantic *s, size_t server, const struct record_call *c, const struct call_info *info,
		 enum link_state state)
{
	double now_s = semantic_time(s, c->start_ns + c->service_ns);
	struct link *l = &s->links[server];
	int rc = keep(s, server, now_s, false);

	*l = (struct link){.state = state, .since_s = now_s, .call = info->name, .pid = c->pid, .fd = (int32_t)c->args[info->fd]};
	return rc;
}

/* The connection is down, or was not made: what happens next to it changes nothing until data moves. */
static int ended(struct semantic *s, size_t server, double now_s, const char *call, const char *error)
{
	struct event ev = {.kind = EVENT_LINK_END, .server = (int32_t)server, .client = s->client, .first_s = now_s,
			   .last_s = now_s, .count = 1, .call = call, .error = error};
	struct link *l = &s->links[server];
	int rc = burst_add(s, &ev);

	if (rc || l->state == LINK_ENDED)
		return rc;
	rc = keep(s, server, now_s, false);
	l->state = LINK_ENDED;
	l->since_s = now_s;
	l->call = call;
	l->error = error;
	return rc;
}

int link_call(struct semantic *s, size_t server, const struct record_call *c, const struct call_info *info)
{
	double now_s = semantic_time(s, c->start_ns + c->service_ns);
	bool data = info->class == CALL_READ || info->class == CALL_WRITE;

	if (c->unfinished)
		return 0;
	if (data && c->result > 0)
		return moved(s, server, c, info, info->class == CALL_READ ? LINK_ANSWERED : LINK_WAITING);
	if (data && c->result == 0 && info->class == CALL_READ)
		return ended(s, server, now_s, info->name, "EOF");
	if (data && c->result < 0 && c->result != -EAGAIN && c->result != -EINTR && c->result > -512)
		return ended(s, server, now_s, info->name, error_name(c->result));
	if (!strcmp(info->name, "connect") && c->result < 0 && c->result != -EINPROGRESS && c->result != -EINTR &&
	    c->result != -EAGAIN && c->result > -512)
		return ended(s, server, now_s, info->name, error_name(c->result));
	return 0;
}

int link_closed(struct semantic *s, size_t server, uint32_t pid, int32_t fd, double at_s)
{
	const struct link *l = &s->links[server];

	/* A spare socket that never carried anything says nothing, unless all that is tried comes to nothing. */
	if (l->state != LINK_ENDED && l->fd >= 0 && (l->pid != pid || l->fd != fd))
		return 0;
	return ended(s, server, at_s, "close", NULL);
}

int link_finish(struct semantic *s)
{
	int rc = 0;

	for (size_t i = 0; i < s->n_servers && !rc; i++)
		rc = keep(s, i, s->last_s, true);
	return rc;
}
