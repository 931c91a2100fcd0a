/* Takes a fleet's samples and keeps them as levels, one row for each series. */
#include "diag/fleet/fleet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

#define TIME_MOST 1e12

static struct metric_model copy_model(const struct metric_model *m)
{
	struct metric_model copy = *m;

	copy.name = alloc_copy(m->name);
	copy.unit = m->unit ? alloc_copy(m->unit) : NULL;
	copy.per = m->per ? alloc_copy(m->per) : NULL;
	return copy;
}

struct fleet *fleet_new(const struct fleet_options *o)
{
	struct fleet *f = alloc_zero(1, sizeof(*f));

	f->options = *o;
	f->pool = panel_pool_new();
	f->groups = alloc_zero(1, sizeof(*f->groups));
	f->groups[0] = (struct fleet_group){.path = alloc_copy(""), .parent = NOBODY};
	f->n_groups = 1;
	for (size_t i = 0; o->models && i < o->models->n; i++) {
		f->declared.v = alloc_room(f->declared.v, i, sizeof(*f->declared.v));
		f->declared.v[i] = copy_model(&o->models->v[i]);
		f->declared.n = i + 1;
	}
	return f;
}

static void metric_free(struct metric *m)
{
	struct metric_models one = {alloc_zero(1, sizeof(m->model)), 1};

	one.v[0] = m->model;
	metric_models_clear(&one);
	for (size_t i = 0; i < m->panel.n_rows; i++)
		free(m->open[i].buckets);
	panel_clear(&m->panel);
	panel_clear(&m->parts[0]);
	panel_clear(&m->parts[1]);
	free(m->open);
	free(m->member_of_row);
	free(m->row_of);
	free(m->pending);
	free(m->steps);
	free(m->bounds);
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_metrics; i++)
		metric_free(&f->metrics[i]);
	for (size_t i = 0; i < f->n_members; i++) {
		free(f->members[i].name);
		free(f->members[i].path);
	}
	for (size_t i = 0; i < f->n_groups; i++)
		free(f->groups[i].path);
	names_free(f);
	metric_models_clear(&f->declared);
	panel_pool_free(f->pool);
	free(f->metrics);
	free(f->members);
	free(f->groups);
	free(f->raws);
	free(f->feeds);
	free(f);
}

/* The metric of this name, made with what was declared of it, or guessed. */
static uint32_t metric_of(struct fleet *f, const char *name)
{
	const struct metric_model *declared = metric_find(&f->declared, name);
	struct metric_model bare = {.name = (char *)name, .quantile = 0.99};
	uint32_t own = names_find(f, 'n', 0, name, (uint32_t)f->n_metrics);
	struct metric *m;

	if (own < f->n_metrics)
		return own;
	f->metrics = alloc_room(f->metrics, f->n_metrics, sizeof(*f->metrics));
	m = &f->metrics[f->n_metrics++];
	*m = (struct metric){.model = copy_model(declared ? declared : &bare)};
	metric_guess(&m->model);
	panel_init(&m->panel, f->pool, 1);
	panel_init(&m->parts[0], f->pool, 1);
	panel_init(&m->parts[1], f->pool, 1);
	return own;
}

static void add_feed(struct fleet *f, uint32_t raw, const char *metric, uint32_t member,
	enum feed_role role, uint32_t bucket)
{
	uint32_t m = metric_of(f, metric);

	f->feeds = alloc_room(f->feeds, f->n_feeds, sizeof(*f->feeds));
	f->feeds[f->n_feeds] = (struct feed){.metric = m,
		.row = level_row(&f->metrics[m], member),
		.role = role,
		.bucket = bucket,
		.next = f->raws[raw].feeds};
	f->raws[raw].feeds = (uint32_t)f->n_feeds++;
}

/* The declaration of a histogram whose bucket this is, and the bucket's bound. */
static const struct metric_model *bucket_of(
	const struct fleet *f, const char *metric, double *bound)
{
	const char *open = strstr(metric, "{le=\"");
	auto_free char *name = NULL;
	const struct metric_model *m;
	char *end;

	if (!open)
		return NULL;
	name = alloc_format("%.*s", (int)(open - metric), metric);
	m = metric_find(&f->declared, name);
	if (!m || m->kind != KIND_BUCKET)
		return NULL;
	*bound = strtod(open + 5, &end);
	return end != open + 5 && !strcmp(end, "\"}") ? m : NULL;
}

static uint32_t bucket_place(struct fleet *f, const char *metric, double bound)
{
	uint32_t own = metric_of(f, metric); /* may move them all */
	struct metric *m = &f->metrics[own];

	for (uint32_t i = 0; i < m->n_bounds; i++)
		if (m->bounds[i] == bound)
			return i;
	if (m->n_bounds == BUCKETS_MAX)
		return NOBODY;
	m->bounds = alloc_room(m->bounds, m->n_bounds, sizeof(*m->bounds));
	m->bounds[m->n_bounds] = bound;
	return (uint32_t)m->n_bounds++;
}

static int fleet_take_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct fleet *f = ctx;
	uint32_t member = names_member(f, key);
	const struct metric_model *declared = metric_find(&f->declared, key->metric);
	const struct metric_model *histogram;
	double bound = 0;

	*id = names_find(f, 's', member, key->metric, (uint32_t)f->n_raws);
	if (*id < f->n_raws)
		return 0;
	f->raws = alloc_room(f->raws, f->n_raws, sizeof(*f->raws));
	f->raws[f->n_raws++] = (struct raw){.feeds = NOBODY};
	histogram = bucket_of(f, key->metric, &bound);
	if (histogram) {
		uint32_t place = bucket_place(f, histogram->name, bound);

		if (place == NOBODY)
			return err_set(e, -E2BIG, "'%.100s' has more than %d buckets",
				histogram->name, BUCKETS_MAX);
		add_feed(f, *id, histogram->name, member, FEED_BUCKET, place);
	} else if (!declared || declared->worse != WORSE_NONE) {
		bool amount = declared && declared->kind == KIND_AMOUNT;

		add_feed(f, *id, key->metric, member, amount ? FEED_AMOUNT : FEED_LEVEL, 0);
	}
	for (size_t i = 0; i < f->declared.n; i++)
		if (f->declared.v[i].per && !strcmp(f->declared.v[i].per, key->metric))
			add_feed(f, *id, f->declared.v[i].name, member, FEED_EXPOSURE, 0);
	return 0;
}

static int fleet_take_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct fleet *f = ctx;

	if (isnan(value))
		return 0;
	/* Cells are counted by 63 bits. */
	if (!(fabs(time_s) <= TIME_MOST))
		return err_set(e, -ERANGE,
			"the time %g s is more than 30,000 years from zero: in which unit are "
			"times?",
			time_s);
	if (!f->begun) {
		f->begun = true;
		f->zero_s = f->from_s = f->to_s = time_s;
	}
	if (time_s < f->from_s)
		f->from_s = time_s;
	if (time_s > f->to_s)
		f->to_s = time_s;
	level_take(f, id, f->raws[id].feeds, time_s, value);
	return 0;
}

static int take_declaration(void *ctx, const char *declaration, struct err *e)
{
	struct fleet *f = ctx;
	char name[IMPORT_NAME_MAX + 1];

	/* What the user declared on the command line counts more than what the file says. */
	if (sscanf(declaration, "%200s", name) == 1 && metric_find(&f->declared, name))
		return 0;
	return metric_declare(&f->declared, declaration, e);
}

struct import_sink fleet_sink(struct fleet *f)
{
	return (struct import_sink){.ctx = f,
		.series = fleet_take_series,
		.sample = fleet_take_sample,
		.metric = take_declaration};
}

bool fleet_extent(const struct fleet *f, double *from_s, double *to_s)
{
	if (f->begun) {
		*from_s = f->from_s;
		*to_s = f->to_s;
	}
	return f->begun;
}

void fleet_allow(struct fleet *f, double alarms)
{
	f->options.alarms = alarms;
}

static void fleet_forget_metric(struct metric *m, int64_t cell)
{
	panel_forget(&m->panel, cell);
	panel_forget(&m->parts[0], cell);
	panel_forget(&m->parts[1], cell);
}

void fleet_forget(struct fleet *f, double before_s)
{
	if (!f->n_metrics)
		return;
	level_finish(f);
	for (struct metric *m = f->metrics; m < f->metrics + f->n_metrics; m++)
		fleet_forget_metric(m, level_cell(f, m, before_s));
	if (before_s > f->from_s)
		f->from_s = before_s;
}
