/*
 * Trials of the fleet detector on a recording (ci/bench/fleet_public.sh), with its defaults.
 *
 *     fleet_public_trial findings FILE ...
 *
 * prints CSV: for each file, each finding, and the member that is ranked first. Next to a finding
 * are simple statistics: the member's median ratio to its peers (of all time, and of its halves),
 * its distance from the fleet in MADs, and the share of its samples above its peers' median. For a
 * group they compare its median with that of all others.
 *
 *     fleet_public_trial members FILE METRIC
 *
 * prints the severity and the simple statistics of all members.
 *
 *     fleet_public_trial plant FILE METRIC DRAWS [SEED]
 *
 * multiplies values of METRIC of one member by 1.2 to 3 for a share of the time, DRAWS times for
 * each ratio and share, and prints how often it was found, and how many members were found that
 * are not found in the untouched file. Members that are found there are not drawn.
 *
 * A file is what import_file reads, with the columns 'group' and 'member'. All of its samples are
 * held in memory.
 */
#include "ci/bench/fleet_simple.h"
#include "diag/fleet/fleet.h"

/* Judges the recording with a fault (or NULL). The caller frees the result, then the fleet. */
static struct fleet *judge(
	const struct recording *r, const struct plant *p, struct fleet_result **result)
{
	struct fleet *f = fleet_new(&fleet_defaults);
	struct import_sink sink = fleet_sink(f);
	uint32_t *id = alloc_zero(r->n_series, sizeof(*id));
	struct err e;

	for (size_t i = 0; sink.metric && i < r->n_declarations; i++)
		if (sink.metric(sink.ctx, r->declarations[i], &e))
			fail(e.text);
	for (size_t i = 0; i < r->n_series; i++)
		if (sink.series(sink.ctx, &r->series[i].key, &id[i], &e))
			fail(e.text);
	for (size_t i = 0; i < r->n_samples; i++) {
		const struct sample *s = &r->samples[i];
		if (sink.sample(sink.ctx, id[s->series], s->time_s, planted(r, p, s), &e))
			fail(e.text);
	}
	free(id);
	if (fleet_judge(f, 0, 0, result, &e))
		fail(e.text);
	return f;
}

/* The median ratio of a row to its peers in a part of the time. */
static double ratio_within(const struct simple *s, size_t row, size_t from, size_t to)
{
	double *v = alloc_zero(s->n_times, sizeof(*v)), m;
	size_t n = 0;

	for (size_t t = from; t < to; t++) {
		double d = s->level[row * s->n_times + t] - s->peers[row * s->n_times + t];
		if (!isnan(d))
			v[n++] = d;
	}
	m = exp(median(v, n));
	free(v);
	return s->less ? 1 / m : m;
}

static void print_row(const struct simple *s, size_t row)
{
	size_t worse = 0, n = 0;

	for (size_t t = 0; t < s->n_times; t++) {
		double d = s->level[row * s->n_times + t] - s->peers[row * s->n_times + t];
		n += !isnan(d);
		worse += s->less ? d < 0 : d > 0;
	}
	printf(",%zu,%.3f,%.3f,%.3f,%.1f,%.3f\n", n, exp(s->lasting[row]),
		ratio_within(s, row, 0, s->n_times / 2),
		ratio_within(s, row, s->n_times / 2, s->n_times),
		(s->lasting[row] - s->center) / s->scale, (double)worse / (double)n);
}

/* The same of a group: the median of its levels over that of all other levels, at each time. */
static void print_group(const struct simple *s, const char *group)
{
	double *in = alloc_zero(s->n_rows, sizeof(*in)), *out = alloc_zero(s->n_rows, sizeof(*out));
	double *v = alloc_zero(s->n_times, sizeof(*v));
	size_t n = 0, worse = 0;

	for (size_t t = 0; t < s->n_times; t++) {
		size_t n_in = 0, n_out = 0;
		for (size_t i = 0; i < s->n_rows; i++) {
			double level = s->level[i * s->n_times + t];
			if (isnan(level))
				continue;
			if (!strcmp(s->r->series[s->series[i]].group, group))
				in[n_in++] = level;
			else
				out[n_out++] = level;
		}
		if (n_in && n_out) {
			v[n] = median(in, n_in) - median(out, n_out);
			worse += s->less ? v[n] < 0 : v[n] > 0;
			n++;
		}
	}
	printf(",%zu,%.3f,,,,%.3f\n", n, exp(median(v, n)), (double)worse / (double)n);
	free(in);
	free(out);
	free(v);
}

static void print_simple(const struct simple *s, const char *path)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct series *one = &s->r->series[s->series[i]];
		char *own = alloc_format("%s/%s", one->group, one->member);
		bool is = !strcmp(own, path);

		free(own);
		if (is) {
			print_row(s, i);
			return;
		}
	}
	printf(",,,,,,\n");
}

/* 'simple' has one place for each metric of the result. */
static void print_finding(const struct recording *r, const struct fleet_result *x,
	const struct fleet_finding *g, struct simple *simple)
{
	const char *metric = x->metrics[g->metric].model->name;
	const char *who = g->kind == FINDING_GROUP ? x->groups[g->member].path
						   : x->members[g->member].path;

	printf(",%s,%s,%s,%.2f,%.3f,%.4f,%.4f,%.0f,%.0f,%u", finding_kind_names[g->kind], who,
		metric, g->severity, g->effect, g->share, g->share_of_all, g->since_s, g->until_s,
		g->kind == FINDING_CLASS ? g->count : 1);
	if (!simple[g->metric].r)
		simple_new(&simple[g->metric], r, metric);
	if (g->kind == FINDING_GROUP)
		print_group(&simple[g->metric], who);
	else
		print_simple(&simple[g->metric], who);
}

static void findings(const char *path)
{
	struct recording r;
	struct fleet_result *x;
	struct fleet *f;
	struct simple *simple;

	recording_read(&r, path);
	f = judge(&r, NULL, &x);
	simple = alloc_zero(x->n_metrics, sizeof(*simple));
	for (size_t i = 0; i < x->n_findings; i++) {
		printf("%s", path);
		print_finding(&r, x, &x->findings[i], simple);
	}
	for (size_t i = 0; i < x->n_metrics; i++)
		simple_clear(&simple[i]);
	free(simple);
	if (x->n_members) {
		const struct fleet_member *m = &x->members[x->ranking[0]];
		printf("%s,first,%s,%s,%.2f,%.3f,,,,,1,,,,,,\n", path, m->path,
			m->judged ? x->metrics[m->metric].model->name : "", m->severity, m->effect);
	}
	fleet_result_free(x);
	fleet_free(f);
	recording_clear(&r);
}

/* xorshift64*, so that a seed gives the same draws everywhere. */
static uint64_t random_state;
static size_t draw(size_t n)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (size_t)((random_state * 2685821657736338717u) >> 33) % n;
}

/* 'share' of the pieces: one stretch, or pieces anywhere. */
static void draw_pieces(struct plant *p, double share, bool bursts)
{
	size_t n = (size_t)(share * PIECES + 0.5), first = draw(PIECES - n + 1);

	memset(p->on, 0, sizeof(p->on));
	for (size_t k = 0; k < n; k++) {
		size_t piece = first + k;
		while (bursts && p->on[piece = draw(PIECES)])
			;
		p->on[piece] = true;
	}
}

static const struct fleet_member *member_of(
	const struct fleet_result *x, const struct recording *r, uint32_t series)
{
	for (size_t i = 0; i < x->n_members; i++) {
		const struct fleet_member *m = &x->members[i];
		const struct series *s = &r->series[series];
		size_t group = strlen(s->group);
		if (!strncmp(m->path, s->group, group) && m->path[group] == '/' &&
			!strcmp(m->path + group + 1, s->member))
			return m;
	}
	fail("the detector does not know a member of the file");
	return NULL;
}

static bool accused(const struct fleet_result *x, const struct fleet_member *m)
{
	return m->finding >= 0 &&
		(x->findings[m->finding].kind == FINDING_SHIFT ||
			x->findings[m->finding].kind == FINDING_BURSTS);
}

struct counts {
	unsigned found, first, by_ratio, by_z, others, group;
};

static void members(const char *path, const char *metric)
{
	struct recording r;
	struct simple s;
	struct fleet_result *x;
	struct fleet *f;

	recording_read(&r, path);
	simple_new(&s, &r, metric);
	f = judge(&r, NULL, &x);
	printf("who,found,severity,effect,samples,median_ratio,first_half,second_half,mad_z,"
	       "above_peers\n");
	for (size_t i = 0; i < s.n_rows; i++) {
		const struct fleet_member *m = member_of(x, &r, s.series[i]);
		printf("%s,%s,%.2f,%.3f", m->path,
			m->finding < 0 ? "" : finding_kind_names[x->findings[m->finding].kind],
			m->severity, m->effect);
		print_row(&s, i);
	}
	fleet_result_free(x);
	fleet_free(f);
	simple_clear(&s);
	recording_clear(&r);
}

static void try_one(const struct recording *r, const struct simple *s,
	const struct fleet_result *clean, const struct plant *p, struct counts *c)
{
	struct fleet_result *x;
	struct fleet *f = judge(r, p, &x);
	const struct fleet_member *victim = member_of(x, r, p->series);
	double lasting = simple_lasting(s, s->row[p->series], p);

	c->found += accused(x, victim);
	c->first += victim == &x->members[x->ranking[0]];
	c->by_ratio += exp(lasting) > 1.5;
	c->by_z += lasting - s->center > 5 * s->scale;
	for (size_t i = 0; i < x->n_members; i++) {
		const struct fleet_member *m = &x->members[i];
		c->others += m != victim && accused(x, m) && !accused(clean, &clean->members[i]);
	}
	for (size_t i = 0; i < x->n_findings; i++)
		c->group += x->findings[i].kind == FINDING_GROUP &&
			x->findings[i].member == victim->group;
	fleet_result_free(x);
	fleet_free(f);
}

static void plant(const char *path, const char *metric, unsigned draws, uint64_t seed)
{
	static const double ratios[] = {1, 1.2, 1.5, 2, 3}, shares[] = {0.1, 0.3, 1};
	struct recording r;
	struct simple s;
	struct fleet_result *clean;
	struct fleet *f;
	uint32_t *may;
	size_t n = 0, untouched_ratio = 0, untouched_z = 0, untouched = 0;

	recording_read(&r, path);
	simple_new(&s, &r, metric);
	f = judge(&r, NULL, &clean);
	may = alloc_zero(s.n_rows, sizeof(*may));
	for (size_t i = 0; i < s.n_rows; i++) {
		const struct fleet_member *m = member_of(clean, &r, s.series[i]);
		untouched += accused(clean, m);
		untouched_ratio += exp(s.lasting[i]) > 1.5;
		untouched_z += s.lasting[i] - s.center > 5 * s.scale;
		if (m->judged && m->finding < 0 && isfinite(s.lasting[i]) &&
			s.lasting[i] < log(1.5) && s.lasting[i] - s.center <= 5 * s.scale)
			may[n++] = s.series[i];
	}
	if (!n)
		fail("no member can be drawn");
	printf("ratio,share,way,draws,found,first,median_ratio,mad_z,others,group\n");
	printf("1,0,untouched,%zu,%zu,,%zu,%zu,0,\n", s.n_rows, untouched, untouched_ratio,
		untouched_z);
	for (size_t i = 1; i < sizeof(ratios) / sizeof(*ratios); i++)
		for (size_t k = 0; k < sizeof(shares) / sizeof(*shares); k++)
			for (int bursts = 0; bursts < (shares[k] < 1 ? 2 : 1); bursts++) {
				struct counts c = {0};
				for (unsigned d = 0; d < draws; d++) {
					/* the same members in each row */
					random_state = (seed + d) * 0x9e3779b97f4a7c15u | 1;
					struct plant p = {
						.series = may[draw(n)], .ratio = ratios[i]};
					if (s.less)
						p.ratio = 1 / p.ratio;
					draw_pieces(&p, shares[k], bursts);
					try_one(&r, &s, clean, &p, &c);
				}
				printf("%g,%g,%s,%u,%u,%u,%u,%u,%u,%u\n", ratios[i], shares[k],
					bursts ? "bursts" : "stretch", draws, c.found, c.first,
					c.by_ratio, c.by_z, c.others, c.group);
				fflush(stdout);
			}
	free(may);
	fleet_result_free(clean);
	fleet_free(f);
	simple_clear(&s);
	recording_clear(&r);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "findings")) {
		printf("file,kind,who,metric,severity,effect,share,share_of_all,since_s,until_s,"
		       "members,samples,median_ratio,first_half,second_half,mad_z,above_peers\n");
		for (int i = 2; i < argc; i++)
			findings(argv[i]);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "members")) {
		members(argv[2], argv[3]);
		return 0;
	}
	if (argc >= 5 && !strcmp(argv[1], "plant")) {
		plant(argv[2], argv[3], (unsigned)strtoul(argv[4], NULL, 10),
			argc > 5 ? strtoull(argv[5], NULL, 10) : 20261122);
		return 0;
	}
	fail("usage: fleet_public_trial findings FILE ... | members FILE METRIC | "
	     "plant FILE METRIC DRAWS [SEED]");
}
