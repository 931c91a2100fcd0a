/*
 * Connections and their lives.
 *
 * A descriptor's addresses say which connection it is, whichever log it is in. The same addresses
 * may serve several connections, one after the other: lives. An end that meets a connection for the
 * first time takes the life that it continues, else the first life that has no such end yet and
 * whose positions are near, else it begins one.
 */
#include "diag/flow/flow_impl.h"

#include <netinet/in.h>
#include <stdlib.h>

enum {
	WINDOW = 1 << 28, /* positions of one life are no further apart */
	LIVES = 4096,     /* that one end has closed and the other has not */
};

/* ---- connections ---- */

static bool read_address(const struct sockaddr_storage *a, struct end_address *out)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;

	*out = (struct end_address){0};
	if (a->ss_family == AF_INET) {
		out->host[10] = out->host[11] = 0xff; /* as IPv6 maps it */
		memcpy(out->host + 12, &in->sin_addr, 4);
		out->port = in->sin_port;
	} else if (a->ss_family == AF_INET6) {
		memcpy(out->host, &in6->sin6_addr, 16);
		out->port = in6->sin6_port;
	}
	return out->port != 0;
}

static bool is_loopback(const struct end_address *a)
{
	static const uint8_t mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
	static const uint8_t one[16] = {[15] = 1};

	return !memcmp(a->host, mapped, 13) || !memcmp(a->host, one, 16);
}

static uint64_t hash_of(const struct end_address ends[2], uint32_t node)
{
	return hash_seeded(ends, 2 * sizeof(*ends), node);
}

static struct connection *connection_of(
	struct flow *f, const struct end_address ends[2], uint32_t node)
{
	const uint64_t key = hash_of(ends, node);
	struct connection *c;
	size_t at = 0;

	while ((c = (struct connection *)(uintptr_t)map_next(&f->connections, key, &at)))
		if (c->node == node && !memcmp(c->ends, ends, sizeof(c->ends)))
			return c;
	c = alloc_zero(1, sizeof(*c));
	memcpy(c->ends, ends, sizeof(c->ends));
	c->node = node;
	map_keep(&f->connections, key, (uintptr_t)c);
	return c;
}

struct connection *connection_at(const struct flow *f, size_t slot)
{
	return (struct connection *)(uintptr_t)f->connections.slot[slot].value;
}

static void connection_release(struct flow *f, struct connection *c)
{
	if (c->refs || c->lives)
		return;
	map_remove(&f->connections, hash_of(c->ends, c->node), (uintptr_t)c);
	free(c);
}

/* ---- lives ---- */

static void unlist(struct flow *f, struct flow_life *l)
{
	if (!l->waits)
		return;
	*(l->older ? &l->older->newer : &f->oldest_life) = l->newer;
	*(l->newer ? &l->newer->older : &f->newest_life) = l->older;
	f->n_waiting_lives--;
	l->waits = false;
}

static void life_free(struct flow *f, struct flow_life *l)
{
	struct flow_life **at = &l->connection->lives;

	requests_of_life_end(f, l);
	unlist(f, l);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++) {
			struct side *s = &l->half[i].side[k];

			f->held -= s->segments.n;
			if (s->ahead)
				f->nodes[s->node].ahead--;
			free(s->segments.ring);
		}
		free(l->half[i].messages);
	}
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	connection_release(f, l->connection);
	free(l);
}

static struct flow_life *life_new(struct flow *f, struct connection *c)
{
	struct flow_life *l = alloc_zero(1, sizeof(*l)), **at = &c->lives;

	while (*at)
		at = &(*at)->next;
	*at = l;
	l->connection = c;
	l->number = ++f->lives;
	f->counts.connections++;
	for (int i = 0; i < 2; i++) {
		l->half[i].life = l;
		l->half[i].side[0].node = l->half[i].side[1].node = FLOW_NO_NODE;
	}
	return l;
}

static uint32_t distance(uint32_t a, uint32_t b)
{
	int32_t d = (int32_t)(a - b);

	return d == INT32_MIN ? INT32_MAX : (uint32_t)abs(d);
}

/* How far bytes are from those that the other end has moved: 0: they are its first ones; 1: among
 * them; else bytes between. WINDOW / 2: the other end has moved none on this half. */
static uint32_t distance_to(
	const struct flow_life *l, int half, int which, uint32_t begin, uint32_t position)
{
	const struct segments *s = &l->half[half].side[!which].segments;
	uint32_t from = (uint32_t)s->base, to = (uint32_t)s->frontier;

	if (!s->seen)
		return l->half[half].based ? distance(position, (uint32_t)l->half[half].latest)
					   : WINDOW / 2;
	if (begin == from)
		return 0;
	if (begin - from < to - from)
		return 1;
	return distance(begin, from) < distance(begin, to) ? 1 + distance(begin, from)
							   : 1 + distance(begin, to);
}

/* The life that a call of this end, from 'begin' to 'position', belongs to. */
static struct flow_life *find_life(
	struct connection *c, int end, int half, int which, uint32_t begin, uint32_t position)
{
	struct flow_life *best = NULL;
	uint32_t least = WINDOW, d;

	for (struct flow_life *l = c->lives; l; l = l->next)
		if (l->attached[end] && l->refs[end])
			return l;
	for (struct flow_life *l = c->lives; l; l = l->next) {
		const struct segments *s = &l->half[half].side[which].segments;

		if (l->attached[end] && s->seen && (uint32_t)s->frontier == begin)
			return l; /* a process that inherited it continues */
	}
	for (struct flow_life *l = c->lives; l; l = l->next) {
		if (l->attached[end])
			continue;
		d = distance_to(l, half, which, begin, position);
		if (d < least) {
			least = d;
			best = l;
		}
	}
	return best;
}

void life_attach(
	struct flow *f, struct endpoint *ep, int half, int which, const struct record_call *c)
{
	struct flow_life *l = find_life(ep->connection, ep->end, half, which,
		c->position - (uint32_t)c->result, c->position);

	if (!l)
		l = life_new(f, ep->connection);
	unlist(f, l); /* it is open again */
	ep->life = l;
	l->refs[ep->end]++;
	l->attached[ep->end] = true;
	l->closed[ep->end] = false;
	l->half[ep->end].side[SENT].node = ep->node;
	l->half[!ep->end].side[RECEIVED].node = ep->node;
}

static bool is_drained(const struct flow_life *l)
{
	for (int i = 0; i < 2; i++)
		if (l->half[i].side[0].segments.n || l->half[i].side[1].segments.n || l->half[i].n)
			return false;
	return true;
}

/* ---- descriptors ---- */

struct endpoint *endpoint_of(struct flow *f, const struct log *l, const struct fd_state *fd)
{
	uint32_t mark = stream_mark(fd);
	struct end_address local, remote, ends[2];
	struct endpoint *ep;

	if (mark)
		return &f->endpoints[mark];
	if (f->free_endpoint) {
		mark = f->free_endpoint;
		f->free_endpoint = f->endpoints[mark].node;
	} else {
		if (f->n_endpoints + 1 >= f->endpoint_room) {
			f->endpoint_room = f->endpoint_room ? f->endpoint_room * 2 : 64;
			f->endpoints = alloc_resize(
				f->endpoints, f->endpoint_room, sizeof(*f->endpoints));
		}
		mark = ++f->n_endpoints;
	}
	ep = &f->endpoints[mark];
	*ep = (struct endpoint){.node = l->node};
	stream_set_mark(fd, mark);
	if (fd->now.kind != FD_SOCKET || !read_address(&fd->now.local, &local) ||
		!read_address(&fd->now.remote, &remote))
		return ep;
	ep->end = memcmp(&local, &remote, sizeof(local)) > 0;
	ends[ep->end] = local;
	ends[!ep->end] = remote;
	ep->connection = connection_of(f, ends, is_loopback(&local) ? l->node : FLOW_NO_NODE);
	ep->connection->refs++;
	return ep;
}

static void end_progress(struct flow *f, struct flow_life *l)
{
	wire_progress(f, &l->half[0]);
	wire_progress(f, &l->half[1]);
}

/* One end has closed it: the other may do so later, or has no log at all. */
static void wait_for_other(struct flow *f, struct flow_life *l)
{
	struct flow_life *oldest = f->oldest_life;

	if (!l->waits) {
		l->waits = true;
		l->older = f->newest_life;
		l->newer = NULL;
		*(l->older ? &l->older->newer : &f->oldest_life) = l;
		f->newest_life = l;
		f->n_waiting_lives++;
	}
	if (f->n_waiting_lives <= LIVES || oldest->refs[0] || oldest->refs[1])
		return;
	for (int i = 0; i < 2; i++)
		oldest->half[i].side[0].absent = oldest->half[i].side[1].absent = true;
	end_progress(f, oldest);
	life_free(f, oldest);
}

void endpoint_closed(struct flow *f, const struct fd_state *fd)
{
	uint32_t mark = stream_mark(fd);
	struct endpoint *ep = mark ? &f->endpoints[mark] : NULL;
	struct connection *c;
	struct flow_life *l;
	int end;

	if (!ep || ep->free)
		return;
	l = ep->life;
	c = ep->connection;
	end = ep->end;
	*ep = (struct endpoint){.free = true, .node = f->free_endpoint};
	f->free_endpoint = mark;
	stream_set_mark(fd, 0);
	if (!c)
		return;
	c->refs--;
	if (l && !--l->refs[end]) {
		l->closed[end] = true;
		end_progress(f, l);
		if (l->closed[0] && l->closed[1] && is_drained(l))
			life_free(f, l);
		else
			wait_for_other(f, l);
	} else {
		connection_release(f, c);
	}
}

void wire_free(struct flow *f)
{
	for (size_t i = 0; i < map_room(&f->connections); i++) {
		struct connection *c = connection_at(f, i);

		if (!c)
			continue;
		c->refs++; /* it is not freed with its last life */
		while (c->lives)
			life_free(f, c->lives);
		free(c);
	}
	map_clear(&f->connections);
	free(f->endpoints);
}
