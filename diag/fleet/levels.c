/* From samples to levels: what a value means for its metric, and which cell it belongs to. */
#include <math.h>
#include <gsl/gsl_statistics_float.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"
#include "harness/base/alloc.h"

/* A step is the median of this many distances; or of those among this many samples. */
enum { STEPS_WANTED = 4096, PENDING_MAX = 1 << 20, CHECK_EVERY = 1 << 16 };

/* The code of an amount of 0. */
enum { NO_AMOUNT = 1 };

#define STEP_LEAST 1e-6
#define STEP_MOST 1e12

/* A time that is asked for may be anywhere; no sample is that far. */
#define CELL_FAR 1e13

int64_t level_cell(const struct fleet *f, const struct metric *m, double time_s)
{
	/* Times near a multiple of the step belong to the same cell, a little before or after. */
	double at = fmin(fmax((time_s - f->zero_s) / m->panel.step_s + 0.5, -CELL_FAR), CELL_FAR);
	int64_t cell = (int64_t)at;

	return (cell - ((double)cell > at)) >> m->panel.shift;
}

double level_time(const struct fleet *f, const struct metric *m, int64_t cell)
{
	return f->zero_s + (double)(cell * (int64_t)(1ull << m->panel.shift)) * m->panel.step_s;
}

uint32_t level_row(struct metric *m, uint32_t member)
{
	uint32_t row;

	if (member >= m->members_room) {
		size_t room = member + member / 2 + 16;

		m->row_of = alloc_resize(m->row_of, room, sizeof(*m->row_of));
		memset(m->row_of + m->members_room, 0xff,
			(room - m->members_room) * sizeof(*m->row_of));
		m->members_room = room;
	}
	if (m->row_of[member] != NOBODY)
		return m->row_of[member];
	row = m->row_of[member] = panel_add_row(&m->panel);
	if (row == m->rows_room) {
		m->rows_room = m->rows_room ? m->rows_room * 2 : 16;
		m->open = alloc_resize(m->open, m->rows_room, sizeof(*m->open));
		m->member_of_row = alloc_resize(
			m->member_of_row, m->rows_room, sizeof(*m->member_of_row));
	}
	m->open[row] = (struct open_cell){0};
	m->member_of_row[row] = member;
	return row;
}

/* The quantile of what came into the buckets, as Prometheus's histogram_quantile has it: linear
 * within a bucket. Below 0: nothing came. */
static double bucket_quantile(const struct metric *m, const float *counts)
{
	uint32_t order[BUCKETS_MAX];
	size_t n = m->n_bounds;
	double want, before = 0, bound = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k && m->bounds[order[k - 1]] > m->bounds[i]; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	if (!n || counts[order[n - 1]] <= 0)
		return -1;
	want = m->model.quantile * (double)counts[order[n - 1]];
	for (size_t k = 0; k < n; k++) {
		double here = (double)counts[order[k]], end = m->bounds[order[k]];

		if (here >= want && here > before)
			return isinf(end)
				? bound
				: bound + (end - bound) * (want - before) / (here - before);
		if (isfinite(end))
			bound = end;
		before = here > before ? here : before;
	}
	return bound;
}

/* The logarithm of a level; NAN: there is none. */
static double level_log(struct metric *m, double v)
{
	if (v > 0 && m->model.zero != ZERO_VALUE)
		return panel_log2(v);
	if (v < 0) {
		m->negatives++;
		return NAN;
	}
	if (v == 0)
		m->zeros++;
	return m->model.zero == ZERO_VALUE ? panel_log2(v + m->floor) : NAN;
}

/* A cell with an amount or an exposure alone: the level if the other one came before, else NAN. */
static double match(struct metric *m, uint32_t row, const struct open_cell *o)
{
	bool exposure = o->n_exposures > 0;
	double sum = exposure ? o->exposure : o->sum, other;
	struct panel *own = &m->parts[exposure];
	uint16_t before = panel_get(&m->parts[!exposure], row, o->cell);

	if (exposure && !(sum > 0))
		return NAN;
	if (before == PANEL_MISSING) {
		while (own->n_rows <= row)
			panel_add_row(own);
		panel_put(own, row, o->cell, sum > 0 ? panel_code(panel_log2(sum)) : NO_AMOUNT);
		m->unmatched++;
		return NAN;
	}
	m->unmatched--;
	other = before == NO_AMOUNT ? 0 : panel_level(before);
	return level_log(m, exposure ? other / sum : sum / other);
}

static void close_cell(struct metric *m, uint32_t row)
{
	struct open_cell *o = &m->open[row];
	double level = NAN;

	if (!o->n)
		return;
	switch (m->model.kind) {
	case KIND_AMOUNT:
		if (!o->n_exposures || o->n == o->n_exposures)
			level = match(m, row, o);
		else if (o->exposure > 0)
			level = level_log(m, o->sum / o->exposure);
		break;
	case KIND_BUCKET: {
		bool alone = o->n < 2 && m->n_bounds > 1;
		double q = alone ? -1 : bucket_quantile(m, o->buckets);

		m->unmatched += alone;
		level = q < 0 ? NAN : level_log(m, q);
		memset(o->buckets, 0, BUCKETS_MAX * sizeof(*o->buckets));
		break;
	}
	default: level = o->sum / o->n;
	}
	if (!isnan(level))
		panel_put(&m->panel, row, o->cell, panel_code(level));
	*o = (struct open_cell){.cell = o->cell, .buckets = o->buckets};
}

/* Makes cells twice as wide, also those that samples are being added to. */
static void halve(struct metric *m)
{
	panel_halve(&m->panel);
	panel_halve(&m->parts[0]);
	panel_halve(&m->parts[1]);
	for (size_t row = 0; row < m->panel.n_rows; row++)
		m->open[row].cell >>= 1;
	m->asked_s = NAN;
}

static void check_memory(struct fleet *f)
{
	f->since_check = 0;
	while (panel_pool_bytes(f->pool) > f->options.memory_bytes && f->shift < 40) {
		f->shift++;
		for (struct metric *m = f->metrics; m < f->metrics + f->n_metrics; m++)
			if (m->settled)
				halve(m);
	}
}

/* Adds to the open cell of a row, which is another one now if the time says so. */
static void levels_add(
	struct fleet *f, struct metric *m, const struct feed *feed, double time_s, double x)
{
	struct open_cell *o = &m->open[feed->row];
	int64_t cell = level_cell(f, m, time_s);

	if (o->n && cell < o->cell && feed->role == FEED_LEVEL) {
		panel_put(&m->panel, feed->row, cell, panel_code(x));
		return;
	}
	if (cell != o->cell) {
		if (o->n)
			close_cell(m, feed->row);
		o->cell = cell;
	}
	o->n++;
	switch (feed->role) {
	case FEED_EXPOSURE:
		o->exposure += x;
		o->n_exposures++;
		break;
	case FEED_BUCKET:
		if (!o->buckets)
			o->buckets = alloc_zero(BUCKETS_MAX, sizeof(*o->buckets));
		o->buckets[feed->bucket] += (float)x;
		break;
	default: o->sum += x;
	}
	if (++f->since_check >= CHECK_EVERY)
		check_memory(f);
}

/* Of metrics that grow: what 'value' grew by since the sample before, of a counter per second.
 * False: there is no sample before, or it is larger. */
static bool growth_of(const struct metric *m, const struct raw *r, double time_s, double *value)
{
	double passed = time_s - r->last_s;

	if (m->model.kind != KIND_COUNTER && m->model.kind != KIND_BUCKET && !m->model.counter)
		return true;
	if (!r->any || !(passed > 0) || *value < r->last_value)
		return false;
	*value -= r->last_value;
	if (m->model.kind == KIND_COUNTER)
		*value /= passed;
	return true;
}

/* A sample of a settled metric. Counters become what they grew by. */
static void use(struct fleet *f, uint32_t raw, uint32_t feed, double time_s, double value)
{
	const struct feed *at = &f->feeds[feed];
	struct metric *m = &f->metrics[at->metric];
	struct raw *r = &f->raws[raw];

	m->samples++;
	if (r->any && time_s == r->last_s)
		m->repeated++;
	if (r->any && time_s < r->last_s)
		m->late++;
	if (!growth_of(m, r, time_s, &value)) {
		m->restarts += r->any && time_s > r->last_s;
		return;
	}
	if (at->role == FEED_LEVEL)
		value = level_log(m, value);
	else if (value < 0)
		m->negatives++;
	if (!isnan(value) && (at->role == FEED_LEVEL || value >= 0))
		levels_add(f, m, at, time_s, value);
}

/* After all feeds of a series have had the sample. */
static void remember(struct raw *r, double time_s, double value)
{
	if (!r->any || time_s > r->last_s) {
		r->any = true;
		r->last_s = time_s;
		r->last_value = value;
	}
}

/* Makes the first value of each series stand before all others again. */
static void rewind_pending(struct fleet *f, const struct metric *m)
{
	for (size_t i = 0; i < m->n_pending; i++)
		f->raws[m->pending[i].raw].any = false;
}

/* What is added to every level of a metric that can be 0, in whichever unit: a twentieth of a
 * typical level above 0, so that 0 is far below, but not infinitely far. Of events that most
 * samples have none of (retransmissions) it is that level itself: one of them is no large ratio. */
static double find_floor(struct fleet *f, struct metric *m)
{
	float *v = alloc_zero(m->n_pending, sizeof(*v));
	double sum[2] = {0}, typical = 1; /* of amounts and of exposures */
	size_t n = 0, some[2] = {0}, all = 0;

	for (size_t i = 0; i < m->n_pending; i++) {
		const struct pending *p = &m->pending[i];
		double x = p->value;
		enum feed_role role = f->feeds[p->feed].role;
		bool exposure = role == FEED_EXPOSURE;

		if (!growth_of(m, &f->raws[p->raw], p->time_s, &x))
			x = 0;
		remember(&f->raws[p->raw], p->time_s, p->value);
		all += !exposure;
		if (x > 0 && role == FEED_LEVEL)
			v[n++] = (float)panel_log2(x);
		if (x > 0) {
			sum[exposure] += x;
			some[exposure]++;
		}
	}
	rewind_pending(f, m);
	if (n)
		typical = exp2((double)gsl_stats_float_select(v, 1, n, n / 2));
	else if (some[0] && some[1])
		typical = sum[0] / (double)some[0] / (sum[1] / (double)some[1]);
	free(v);
	/* A load is no event: its zeros are idle times. */
	m->rare = m->model.worse != WORSE_LOAD && 2 * some[0] < all;
	return m->rare ? typical : typical / 20;
}

static void levels_settle(struct fleet *f, struct metric *m)
{
	double step = m->n_steps
		? (double)gsl_stats_float_select(m->steps, 1, m->n_steps, m->n_steps / 2)
		: 1;

	step = fmin(fmax(step, fmax(f->options.step_s, STEP_LEAST)), STEP_MOST);
	/* Metrics that are sampled together share their cells. */
	for (const struct metric *other = f->metrics; other < f->metrics + f->n_metrics; other++)
		if (other->settled && fabs(other->panel.step_s - step) < 0.2 * step) {
			step = other->panel.step_s;
			break;
		}
	rewind_pending(f, m);
	m->floor = find_floor(f, m);
	m->panel.step_s = m->parts[0].step_s = m->parts[1].step_s = step;
	m->panel.shift = m->parts[0].shift = m->parts[1].shift = f->shift;
	m->asked_s = NAN;
	m->settled = true;
	for (size_t i = 0; i < m->n_pending; i++) {
		const struct pending *p = &m->pending[i];

		use(f, p->raw, p->feed, p->time_s, p->value);
		remember(&f->raws[p->raw], p->time_s, p->value);
	}
	free(m->pending);
	free(m->steps);
	m->pending = NULL;
	m->steps = NULL;
	m->n_pending = m->n_steps = 0;
}

static void wait_for_step(
	struct fleet *f, struct metric *m, uint32_t raw, uint32_t feed, double time_s, double value)
{
	const struct raw *r = &f->raws[raw];

	m->pending = alloc_room(m->pending, m->n_pending, sizeof(*m->pending));
	m->pending[m->n_pending++] = (struct pending){raw, feed, time_s, value};
	if (!m->steps)
		m->steps = alloc_zero(STEPS_WANTED, sizeof(*m->steps));
	if (r->any && time_s > r->last_s)
		m->steps[m->n_steps++] = (float)(time_s - r->last_s);
}

/* The usual sample: above 0, of a gauge, younger than the one before. False: it is another one. */
static inline bool take_quick(struct fleet *f, struct raw *r, double time_s, double value)
{
	struct metric *m = &f->metrics[r->metric];
	struct open_cell *o = &m->open[r->row];

	if (!(value > 0) || !(time_s > r->last_s))
		return false;
	if (time_s != m->asked_s) {
		m->asked_cell = level_cell(f, m, time_s);
		m->asked_s = time_s;
	}
	if (m->asked_cell != o->cell) {
		if (o->n)
			panel_put(&m->panel, r->row, o->cell,
				panel_code(o->n == 1 ? o->sum : o->sum / o->n));
		o->cell = m->asked_cell;
		o->sum = 0;
		o->n = 0;
	}
	o->sum += panel_log2(value);
	o->n++;
	m->samples++;
	r->last_s = time_s;
	r->last_value = value;
	if (++f->since_check >= CHECK_EVERY)
		check_memory(f);
	return true;
}

static void find_quick(const struct fleet *f, struct raw *r)
{
	const struct feed *feed = &f->feeds[r->feeds];
	const struct metric *m = &f->metrics[feed->metric];

	r->metric = feed->metric;
	r->row = feed->row;
	r->quick = r->any && feed->next == NOBODY && feed->role == FEED_LEVEL && m->settled &&
		m->model.kind == KIND_GAUGE && !m->model.counter && m->model.zero != ZERO_VALUE;
}

void level_take(struct fleet *f, uint32_t raw, uint32_t feed, double time_s, double value)
{
	struct raw *r = &f->raws[raw];

	if (r->quick && take_quick(f, r, time_s, value))
		return;
	/* All feeds first, because the last value of the series is for all of them. */
	for (uint32_t i = feed; i != NOBODY; i = f->feeds[i].next) {
		struct metric *m = &f->metrics[f->feeds[i].metric];

		if (m->settled)
			use(f, raw, i, time_s, value);
		else
			wait_for_step(f, m, raw, i, time_s, value);
	}
	remember(r, time_s, value);
	if (r->feeds != NOBODY)
		find_quick(f, r);
	for (uint32_t i = feed; i != NOBODY; i = f->feeds[i].next) {
		struct metric *m = &f->metrics[f->feeds[i].metric];

		if (!m->settled && (m->n_steps == STEPS_WANTED || m->n_pending == PENDING_MAX))
			levels_settle(f, m);
	}
}

void level_finish(struct fleet *f)
{
	for (struct metric *m = f->metrics; m < f->metrics + f->n_metrics; m++) {
		/* Of a metric without any value yet the step is still open. */
		if (!m->settled && m->n_pending)
			levels_settle(f, m);
		for (uint32_t row = 0; row < m->panel.n_rows; row++)
			close_cell(m, row);
	}
	check_memory(f);
}
