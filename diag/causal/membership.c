/* Decides which processes belong to the application and which to its launcher. */
#include "diag/causal/membership.h"

#include <string.h>

void membership_begin(struct membership *b, const struct decode *d)
{
	*b = (struct membership){.d = d};
}

int membership_event(void *belong, const struct causal_event *ev, struct err *e)
{
	struct membership *b = belong;
	struct membership_pair p = {.process = b->d->threads[ev->thread].process};
	uint64_t key;

	(void)e;
	/* The launcher is connected with everything that it starts, so it says nothing about
	 * membership. */
	if (ev->kind == EVENT_OP || b->d->processes[p.process]->launcher)
		return 0;
	p.channel = ev->channel;
	p.receives = ev->kind == EVENT_RECEIVE;
	key = (uint64_t)p.channel << 32 | p.process << 1 | p.receives;
	if (map_get(&b->seen, key))
		return 0;
	map_put(&b->seen, key, 1);
	b->pairs = alloc_room(b->pairs, b->n_pairs, sizeof(*b->pairs));
	b->pairs[b->n_pairs++] = p;
	return 0;
}

/* Union-find: returns the representative of i's set. */
static uint32_t set_of(uint32_t *up, uint32_t i)
{
	while (up[i] != i)
		i = up[i] = up[up[i]];
	return i;
}

static void unite(uint32_t *up, uint32_t a, uint32_t b)
{
	up[set_of(up, a)] = set_of(up, b);
}

/* Joins processes that belong together. Numbers: processes first, then channels. */
static uint32_t *sets(const struct membership *b, const bool *sent, const bool *received)
{
	const struct decode *d = b->d;
	uint32_t n = b->n + d->n_channels, *up = alloc_zero(n + 1, sizeof(*up)), first = n;

	for (uint32_t i = 0; i < n; i++)
		up[i] = i;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct decode_process *p = d->processes[i];

		if (!d->processes[p->parent]->launcher)
			unite(up, i, p->parent);
		if (d->logs[p->log].of->launcher)
			continue;
		if (first < n)
			unite(up, i, first);
		first = i;
	}
	/* Two processes that only send to a third, untraced one need not be connected. */
	for (size_t i = 0; i < b->n_pairs; i++)
		if (sent[b->pairs[i].channel] && received[b->pairs[i].channel])
			unite(up, b->pairs[i].process, b->n + b->pairs[i].channel);
	up[n] = first;
	return up;
}

/* Does the chain of starters lead from this session back to the command? */
static bool leads_back(const struct membership *b, uint32_t session)
{
	uint32_t at = session;

	for (uint32_t steps = 0; steps < b->n && b->from[at]; steps++) {
		at = b->d->processes[b->from[at] - 1]->session;
		if (!at)
			return true;
		at--;
	}
	return false;
}

static void set_from(struct membership *b, const uint32_t *sender)
{
	const struct decode *d = b->d;

	for (size_t i = 0; i < b->n_pairs; i++) {
		const struct membership_pair *p = &b->pairs[i];
		uint32_t session = d->processes[p->process]->session, other = sender[p->channel];

		if (p->receives && session && other && !b->from[session - 1] &&
			d->channels[p->channel].first &&
			d->processes[other - 1]->session != session)
			b->from[session - 1] = other;
	}
	for (uint32_t i = 0; i < b->n; i++)
		if (!leads_back(b, i))
			b->from[i] = 0;
}

static void look_outside(struct membership *b)
{
	const struct decode *d = b->d;

	/* c->sent includes what launchers sent. */
	for (size_t i = 0; i < b->n_pairs && !b->outside[0]; i++) {
		const struct membership_pair *p = &b->pairs[i];
		const struct decode_channel *c = &d->channels[p->channel];
		uint32_t own = d->processes[p->process]->log;

		if (!p->receives || b->dropped[p->process] || c->sent || !c->from ||
			d->logs[c->from - 1].node == d->logs[own].node)
			continue;
		b->outside[0] = d->logs[own].of;
		b->outside[1] = d->logs[c->from - 1].of;
	}
}

void membership_end(struct membership *b)
{
	const struct decode *d = b->d;
	bool *sent = alloc_zero(d->n_channels + 1, sizeof(*sent));
	bool *received = alloc_zero(d->n_channels + 1, sizeof(*received));
	uint32_t *sender = alloc_zero(d->n_channels + 1, sizeof(*sender)), *up, command;

	b->n = d->n_processes;
	b->dropped = alloc_zero(b->n + 1, sizeof(*b->dropped));
	b->from = alloc_zero(b->n + 1, sizeof(*b->from));
	for (size_t i = 0; i < b->n_pairs; i++) {
		const struct membership_pair *p = &b->pairs[i];

		*(p->receives ? &received[p->channel] : &sent[p->channel]) = true;
		if (!p->receives && !sender[p->channel])
			sender[p->channel] = p->process + 1;
	}
	up = sets(b, sent, received);
	command = up[b->n + d->n_channels];
	for (uint32_t i = 0; i < b->n; i++)
		b->dropped[i] = d->processes[i]->launcher || command >= b->n ||
			set_of(up, i) != set_of(up, command);
	set_from(b, sender);
	look_outside(b);
	free(sent);
	free(received);
	free(sender);
	free(up);
	free(b->pairs);
	map_clear(&b->seen);
	b->pairs = NULL;
}

int membership_compare(const struct decode *d, const uint32_t *from, uint32_t a, uint32_t b)
{
	const struct decode_process *p = d->processes[a], *q = d->processes[b];

	if (a == b)
		return 0;
	if (p->log != q->log)
		return p->log < q->log ? -1 : 1;
	while (d->processes[a]->depth > d->processes[b]->depth) {
		if (d->processes[a]->parent == b)
			return 1;
		a = d->processes[a]->parent;
	}
	while (d->processes[b]->depth > d->processes[a]->depth) {
		if (d->processes[b]->parent == a)
			return -1;
		b = d->processes[b]->parent;
	}
	for (p = d->processes[a], q = d->processes[b]; p->parent != q->parent && p->depth;
		p = d->processes[a], q = d->processes[b]) {
		a = p->parent;
		b = q->parent;
	}
	if (!p->depth)
		return a < b ? -1 : 1;
	if (from && d->processes[p->parent]->launcher && from[a] != from[b]) {
		if (!from[a] || !from[b])
			return from[a] ? -1 : 1;
		return membership_compare(d, from, from[a] - 1, from[b] - 1);
	}
	return p->child < q->child ? -1 : p->child > q->child;
}
