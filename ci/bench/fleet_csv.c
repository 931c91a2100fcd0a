/*
 * fleet_csv FAMILY [key=value...]: a made-up fleet as CSV on standard output: time, groups, member,
 * metrics.
 *     seed=1 members=200 group=0 (size; 0: 4 to 40) hours=24 step=60
 *     who=one (none, one, third) when=episode (short) ratio=2 share=1 (of the time)
 *     order=time (series: in less memory)
 *     labels=FILE   writes the ill members, with their groups, to FILE
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ci/bench/fleet_maker.h"
#include "harness/base/alloc.h"

struct options {
	struct maker_spec spec;
	const char *labels;
	bool by_time;
};

static bool is(const char *word, const char *key, const char **value)
{
	size_t n = strlen(key);

	*value = word + n + 1;
	return !strncmp(word, key, n) && word[n] == '=';
}

static bool set(struct options *o, const char *word)
{
	const char *value;

	if (is(word, "seed", &value))
		o->spec.seed = strtoull(value, NULL, 10);
	else if (is(word, "members", &value))
		o->spec.members = (unsigned)atoi(value);
	else if (is(word, "group", &value))
		o->spec.group_size = (unsigned)atoi(value);
	else if (is(word, "hours", &value))
		o->spec.duration_s = 3600 * atof(value);
	else if (is(word, "step", &value))
		o->spec.step_s = atof(value);
	else if (is(word, "ratio", &value))
		o->spec.ratio = atof(value);
	else if (is(word, "share", &value))
		o->spec.share = atof(value);
	else if (is(word, "who", &value))
		o->spec.who = *value == 'n' ? WHO_NONE : *value == 't' ? WHO_THIRD : WHO_ONE;
	else if (is(word, "when", &value))
		o->spec.when = *value == 's' ? WHEN_SHORT_ONES : WHEN_EPISODE;
	else if (is(word, "order", &value))
		o->by_time = *value == 't';
	else if (is(word, "labels", &value))
		o->labels = value;
	else
		return false;
	return true;
}

static void print_groups(FILE *f, const struct maker *m, unsigned member)
{
	const char *group[MAKER_LEVELS_MAX];
	unsigned n = maker_groups(m, member, group);

	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s,", group[i]);
}

static void print_head(FILE *f, const struct maker *m)
{
	const char *group[MAKER_LEVELS_MAX];
	unsigned n = maker_groups(m, 0, group);

	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s,", maker_group_column(m, i));
}

/* A row; where a sample is missing in a recording with gaps, there is none. */
static void print_row(const struct maker *m, unsigned member, unsigned step, float *const values[])
{
	if (isnan(values[0][step]))
		return;
	printf("%.3f,", maker_time(m, member, step));
	print_groups(stdout, m, member);
	printf("%s", m->members[member].name);
	for (unsigned k = 0; k < m->n_metrics; k++)
		printf(",%.6g", (double)values[k][step]);
	putchar('\n');
}

static void print_by_series(const struct maker *m)
{
	float *values[MAKER_METRICS_MAX];

	for (unsigned k = 0; k < MAKER_METRICS_MAX; k++)
		values[k] = alloc_zero(m->n_steps, sizeof(float));
	for (unsigned i = 0; i < m->n_members; i++) {
		maker_series(m, i, values);
		for (unsigned s = 0; s < m->n_steps; s++)
			print_row(m, i, s, values);
	}
	for (unsigned k = 0; k < MAKER_METRICS_MAX; k++)
		free(values[k]);
}

static void print_by_time(const struct maker *m)
{
	float *(*values)[MAKER_METRICS_MAX] = alloc_zero(m->n_members, sizeof(*values));

	for (unsigned i = 0; i < m->n_members; i++) {
		for (unsigned k = 0; k < m->n_metrics; k++)
			values[i][k] = alloc_zero(m->n_steps, sizeof(float));
		maker_series(m, i, values[i]);
	}
	for (unsigned s = 0; s < m->n_steps; s++)
		for (unsigned i = 0; i < m->n_members; i++)
			print_row(m, i, s, values[i]);
	for (unsigned i = 0; i < m->n_members; i++)
		for (unsigned k = 0; k < m->n_metrics; k++)
			free(values[i][k]);
	free(values);
}

static int print_labels(const struct maker *m, const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f) {
		fprintf(stderr, "cannot write '%s'\n", path);
		return 3;
	}
	print_head(f, m);
	fprintf(f, "member,from\n");
	for (unsigned i = 0; i < m->n_members; i++) {
		if (!m->members[i].ill)
			continue;
		print_groups(f, m, i);
		fprintf(f, "%s,%.3f\n", m->members[i].name, m->start_s + m->members[i].onset_s);
	}
	return fclose(f) ? 3 : 0;
}

int main(int argc, char **argv)
{
	struct options o = {.spec = {.seed = 1,
				    .members = 200,
				    .duration_s = 86400,
				    .step_s = 60,
				    .who = WHO_ONE,
				    .ratio = 2,
				    .share = 1},
		.by_time = true};
	int family = argc > 1 ? maker_family_find(argv[1]) : -1, rc;
	struct maker *m;

	for (int i = 2; i < argc && family >= 0; i++)
		family = set(&o, argv[i]) ? family : -1;
	if (family < 0 || o.spec.members < 1 || !(o.spec.duration_s >= o.spec.step_s) ||
		!(o.spec.step_s > 0) || o.spec.duration_s / o.spec.step_s > 1e7 ||
		(o.spec.group_size && o.spec.group_size < 4)) {
		fprintf(stderr, "usage: %s FAMILY [key=value...]: see the head of fleet_csv.c\n",
			argv[0]);
		for (int i = 0; i < MAKER_FAMILIES; i++)
			fprintf(stderr, "  %-16s %s\n", maker_families[i].name,
				maker_families[i].summary);
		return 2;
	}
	o.spec.family = (size_t)family;
	m = maker_new(&o.spec);
	for (unsigned k = 0; k < m->n_metrics; k++)
		printf("# metric %s\n", maker_declaration(m, k));
	printf("time,");
	print_head(stdout, m);
	printf("member");
	for (unsigned k = 0; k < m->n_metrics; k++)
		printf(",%s", maker_metric(m, k));
	putchar('\n');
	if (o.by_time)
		print_by_time(m);
	else
		print_by_series(m);
	rc = o.labels ? print_labels(m, o.labels) : 0;
	maker_free(m);
	return fflush(stdout) ? 3 : rc;
}
