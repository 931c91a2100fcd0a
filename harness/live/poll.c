/* Polls a Prometheus server. */
#include "harness/live/poll.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/alloc.h"

enum { OVERLAP_STEPS = 1, LAG_STEPS = 1, SEEN_STEPS = 64 };

void poll_clear(struct poll *p)
{
	free(p->seen);
	p->seen = NULL;
	p->room = 0;
}

static int poll_take_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct poll *p = ctx;

	return p->sink.series(p->sink.ctx, key, id, e);
}

static int take_metric(void *ctx, const char *declaration, struct err *e)
{
	struct poll *p = ctx;

	return p->sink.metric ? p->sink.metric(p->sink.ctx, declaration, e) : 0;
}

/* Is this step of the series new? Marks it as taken. */
static bool is_new(struct poll *p, uint32_t id, int64_t step)
{
	struct poll_seen *s;

	if (id >= p->room) {
		size_t room = 2 * (size_t)id + 64;

		p->seen = alloc_resize(p->seen, room, sizeof(*p->seen));
		while (p->room < room)
			p->seen[p->room++] = (struct poll_seen){0};
	}
	s = &p->seen[id];
	if (step > s->last || !s->bits) {
		int64_t by = s->bits ? step - s->last : SEEN_STEPS;

		s->bits = (by < SEEN_STEPS ? s->bits << by : 0) | 1;
		s->last = step;
		return true;
	}
	if (s->last - step >= SEEN_STEPS || s->bits >> (s->last - step) & 1)
		return false;
	s->bits |= (uint64_t)1 << (s->last - step);
	return true;
}

static int poll_take_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct poll *p = ctx;

	if (!is_new(p, id, (int64_t)llround(time_s / p->step_s))) {
		p->repeated++;
		return 0;
	}
	return p->sink.sample(p->sink.ctx, id, time_s, value, e);
}

int poll_once(struct poll *p, double now_s, struct err *e)
{
	const struct import_sink sink = {p, poll_take_series, poll_take_sample, take_metric};
	double to_s = (floor(now_s / p->step_s) - LAG_STEPS) * p->step_s, done_s = NAN, from_s;
	int rc;

	/* After a long outage, go back no further than in the first query. */
	from_s = to_s - floor(p->history_s / p->step_s) * p->step_s;
	if (p->begun)
		from_s = fmax(from_s, p->done_s - OVERLAP_STEPS * p->step_s);
	if (p->begun && to_s <= p->done_s)
		return 0;
	rc = p->query(p->ctx, from_s, to_s, &sink, &done_s, e);
	if (rc)
		to_s = done_s;
	if (isfinite(to_s)) {
		p->begun = true;
		p->done_s = to_s;
	}
	return rc;
}
