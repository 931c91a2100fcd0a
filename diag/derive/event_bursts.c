/* The table of events, and the grouping of failures into bursts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/events_impl.h"

#define BURST_GAP_S 1.0

struct burst {
	const char *call, *error, *signal;
	enum event_kind kind;
	enum event_place place;
	int32_t server;
	size_t event; /* index; SIZE_MAX: left out, since it lies outside */
};

double events_time(const struct events *s, int64_t ns)
{
	return (double)(ns - s->offset_ns - s->start_ns) / 1e9;
}

int events_put(struct events *s, const struct event *ev)
{
	if (ev->last_s < 0 || ev->first_s >= s->seconds)
		return 0;
	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 256;
		struct event *more = realloc(s->events, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->events = more;
		s->room = room;
	}
	s->events[s->n++] = *ev;
	return 0;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct burst *find(struct events *s, const struct event *ev)
{
	for (size_t i = 0; i < s->n_bursts; i++) {
		struct burst *b = &s->bursts[i];

		if (b->kind == ev->kind && b->place == ev->place && b->server == ev->server &&
			same(b->call, ev->call) && same(b->error, ev->error) &&
			same(b->signal, ev->signal))
			return b;
	}
	return NULL;
}

int burst_add(struct events *s, const struct event *ev)
{
	struct burst *b = find(s, ev);
	size_t was = s->n;
	struct event *old;
	int rc;

	if (!b) {
		struct burst *more = realloc(s->bursts, (s->n_bursts + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->bursts = more;
		b = &more[s->n_bursts++];
		*b = (struct burst){
			ev->call, ev->error, ev->signal, ev->kind, ev->place, ev->server, SIZE_MAX};
	}
	old = b->event == SIZE_MAX ? NULL : &s->events[b->event];
	if (old && ev->last_s < s->seconds && ev->first_s - old->last_s <= BURST_GAP_S) {
		old->count += ev->count;
		if (ev->last_s > old->last_s)
			old->last_s = ev->last_s;
		if (ev->longest_s > old->longest_s)
			old->longest_s = ev->longest_s;
		return 0;
	}
	rc = events_put(s, ev);
	b->event = s->n > was ? was : SIZE_MAX;
	return rc;
}
