/* Keeps vector clocks of completed operations and derives the edges that they imply. */
#include "diag/causal/clock.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

struct known {
	uint32_t refs, n;
	uint32_t ops[];
};

static struct known *known_ref(struct known *k)
{
	if (k)
		k->refs++;
	return k;
}

static void known_drop(struct known *k)
{
	if (k && !--k->refs)
		free(k);
}

static bool knows(const struct known *k, uint32_t thread, uint32_t ops)
{
	return k && thread < k->n && k->ops[thread] >= ops;
}

static struct known *known_new(uint32_t n)
{
	struct known *k = alloc_zero(1, sizeof(*k) + n * sizeof(k->ops[0]));

	k->refs = 1;
	k->n = n;
	return k;
}

static void known_join(struct known *into, const struct known *from)
{
	uint32_t n = from ? from->n : 0;

	for (uint32_t i = 0; i < n; i++)
		into->ops[i] = into->ops[i] > from->ops[i] ? into->ops[i] : from->ops[i];
}

static struct frontier *frontier_new(uint32_t room)
{
	struct frontier *f = alloc_resize(NULL, 1, sizeof(*f) + (size_t)room * sizeof(f->entry[0]));

	*f = (struct frontier){.refs = 1};
	return f;
}

struct frontier *frontier_ref(struct frontier *f)
{
	if (f)
		f->refs++;
	return f;
}

void frontier_drop(struct frontier *f)
{
	if (!f || --f->refs)
		return;
	for (uint32_t i = 0; i < f->n; i++)
		known_drop(f->entry[i].known);
	known_drop(f->closure);
	free(f);
}

static void clock_put(struct frontier *f, const struct frontier_entry *x)
{
	f->entry[f->n] = *x;
	known_ref(f->entry[f->n++].known);
}

/* Joins what the entries' operations waited for and, if 'own', the entries themselves. */
static struct known *closure_of(const struct frontier *f, bool own)
{
	struct known *k;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct frontier_entry *x = &f->entry[i];

		n = x->known && x->known->n > n ? x->known->n : n;
		n = own && x->thread + 1 > n ? x->thread + 1 : n;
	}
	k = known_new(n);
	for (uint32_t i = 0; i < f->n; i++) {
		known_join(k, f->entry[i].known);
		if (own && k->ops[f->entry[i].thread] < f->entry[i].ops)
			k->ops[f->entry[i].thread] = f->entry[i].ops;
	}
	return k;
}

/* Removes the entries that others imply. Takes ownership of 'f'. */
static struct frontier *minimal(struct frontier *f)
{
	struct frontier *out;
	struct known *implied;

	if (!f || f->minimal)
		return f;
	if (f->n < 2) {
		f->minimal = true;
		return f;
	}
	implied = closure_of(f, false);
	out = frontier_new(f->n);
	for (uint32_t i = 0; i < f->n; i++)
		if (!knows(implied, f->entry[i].thread, f->entry[i].ops))
			clock_put(out, &f->entry[i]);
	out->minimal = true;
	known_drop(implied);
	frontier_drop(f);
	return out;
}

static struct known *closure(struct frontier *f)
{
	if (!f->closure)
		f->closure = closure_of(f, true);
	return f->closure;
}

static bool is_news(const struct clock *c, const struct frontier_entry *x)
{
	return x->thread != c->thread && !knows(c->known, x->thread, x->ops);
}

static struct frontier *news_of(const struct clock *c, struct frontier *f)
{
	struct frontier *out;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += is_news(c, &f->entry[i]);
	if (n == f->n)
		return frontier_ref(f);
	if (!n)
		return NULL;
	out = frontier_new(n);
	for (uint32_t i = 0; i < f->n; i++)
		if (is_news(c, &f->entry[i]))
			clock_put(out, &f->entry[i]);
	out->minimal = f->minimal;
	return out;
}

/* Merges two frontiers; of each thread, the newer entry wins. */
static struct frontier *causal_clock_join(const struct frontier *a, const struct frontier *b)
{
	struct frontier *out = frontier_new(a->n + b->n);
	uint32_t i = 0, k = 0;

	while (i < a->n || k < b->n) {
		const struct frontier_entry *x = i < a->n ? &a->entry[i] : NULL;
		const struct frontier_entry *y = k < b->n ? &b->entry[k] : NULL;

		if (x && y && x->thread == y->thread) {
			clock_put(out, x->ops >= y->ops ? x : y);
			i++;
			k++;
		} else if (!y || (x && x->thread < y->thread)) {
			clock_put(out, x);
			i++;
		} else {
			clock_put(out, y);
			k++;
		}
	}
	return out;
}

static void changed(struct clock *c)
{
	frontier_drop(c->message);
	c->message = NULL;
}

struct frontier *clock_send(struct clock *c)
{
	struct frontier *own;

	if (c->message)
		return frontier_ref(c->message);
	c->frontier = minimal(c->frontier);
	if (c->thread == CLOCK_NO_THREAD || !c->done)
		return frontier_ref(c->message = frontier_ref(c->frontier));
	own = frontier_new(1);
	clock_put(own, &(struct frontier_entry){c->thread, c->done, c->known});
	own->minimal = true;
	if (!c->frontier) {
		c->message = own;
	} else {
		c->message = minimal(causal_clock_join(own, c->frontier));
		frontier_drop(own);
	}
	return frontier_ref(c->message);
}

void clock_receive(struct clock *c, struct frontier *f)
{
	struct frontier *news, *both;

	if (!f || f == c->frontier)
		return;
	news = news_of(c, f);
	if (!news)
		return;
	changed(c);
	if (!c->frontier) {
		c->frontier = news;
		return;
	}
	both = causal_clock_join(c->frontier, news);
	frontier_drop(c->frontier);
	frontier_drop(news);
	c->frontier = both;
}

const struct frontier *clock_waits(struct clock *c)
{
	return c->frontier = minimal(c->frontier);
}

void clock_complete(struct clock *c)
{
	struct known *before = c->known, *all;

	c->done++;
	changed(c);
	if (!c->frontier)
		return;
	c->frontier = minimal(c->frontier);
	all = closure(c->frontier);
	if (!before) {
		c->known = known_ref(all);
	} else {
		c->known = known_new(all->n > before->n ? all->n : before->n);
		known_join(c->known, before);
		known_join(c->known, all);
		known_drop(before);
	}
	frontier_drop(c->frontier);
	c->frontier = NULL;
}

bool clock_knows(const struct clock *c, uint32_t thread, uint32_t ops)
{
	return knows(c->known, thread, ops);
}

void clock_clear(struct clock *c)
{
	changed(c);
	frontier_drop(c->frontier);
	known_drop(c->known);
	*c = (struct clock){.thread = CLOCK_NO_THREAD};
}
