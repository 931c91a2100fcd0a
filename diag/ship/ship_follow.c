/* Ships logs while they grow. */
#include "diag/ship/ship.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

struct followed {
	const struct query_log *log;
	struct ship *ship; /* NULL: not begun, or done */
	struct ship_sink sink;
	bool done;
};

struct ship_follow {
	struct ship_followed of;
	struct followed *list;
	size_t n;
};

struct ship_follow *ship_follow_new(const struct ship_followed *f)
{
	struct ship_follow *s = alloc_zero(1, sizeof(*s));

	s->of = *f;
	return s;
}

static void close_one(struct ship_follow *s, struct followed *f)
{
	if (f->ship)
		s->of.close(s->of.ctx, &f->sink);
	ship_close(f->ship);
	f->ship = NULL;
}

void ship_follow_free(struct ship_follow *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		close_one(s, &s->list[i]);
	free(s->list);
	free(s);
}

static bool ship_follow_is_known(const struct ship_follow *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->list[i].log->name, name))
			return true;
	return false;
}

void ship_follow_add(struct ship_follow *s, const struct query_log *logs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (ship_follow_is_known(s, logs[i].name))
			continue;
		s->list = alloc_room(s->list, s->n, sizeof(*s->list));
		s->list[s->n++] = (struct followed){.log = &logs[i]};
	}
}

/* 0 with no f->ship: it has no records yet. */
static int ship_follow_begin(
	struct ship_follow *s, struct followed *f, int64_t ordinal, struct err *e)
{
	int rc = s->of.open(s->of.ctx, &f->sink, e);

	if (rc)
		return rc;
	rc = ship_open(f->log, ordinal, s->of.spec, &f->sink, &f->ship, e);
	if (rc)
		s->of.close(s->of.ctx, &f->sink);
	return rc == -EAGAIN ? 0 : rc;
}

static int ship_follow_one(
	struct ship_follow *s, struct followed *f, int64_t ordinal, struct err *e)
{
	struct ship_counts counts;
	bool ended;
	int rc = f->ship ? 0 : ship_follow_begin(s, f, ordinal, e);

	if (rc || !f->ship)
		return rc;
	rc = ship_more(f->ship, &ended, e);
	if (rc || !ended)
		return rc;
	rc = ship_end(f->ship, &counts, e);
	if (rc)
		return rc;
	s->of.tell(s->of.ctx, f->log->name, &counts);
	close_one(s, f);
	f->done = true;
	return 0;
}

int ship_follow_step(struct ship_follow *s, size_t *left, struct err *e)
{
	int rc = 0;

	*left = 0;
	for (size_t i = 0; i < s->n && !rc; i++) {
		struct followed *f = &s->list[i];

		if (f->done)
			continue;
		rc = ship_follow_one(s, f, (int64_t)i, e);
		*left += !f->done;
	}
	return rc;
}
