#include "ci/bench/fleet_maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "harness/base/alloc.h"

/* Noise is looked up by 13 random bits in a table of quantiles, so that a sample costs nanoseconds;
 * the logs of the outermost strata end at 3.8 standard deviations. Pareto tails are drawn exactly.
 */
enum { QUANTILES = 8192, BLOCK = 16 };

/* Streams of random numbers: a fleet's, and a member's or a group's, by what they are for. */
enum stream {
	OF_FLEET,
	OF_NOISE = 1 << 20,
	OF_WALK = 2 << 20,
	OF_ILL = 3 << 20,
	OF_GROUP = 4 << 20,
	OF_GAPS = 5 << 20,
	OF_LOAD = 6 << 20,
	OF_BURSTS = 7 << 20,
	OF_TIMES = 8 << 20,
	OF_DRIFT = 9 << 20
};

struct maker_fleet {
	float noise[QUANTILES];
	float *shared;  /* the factor that all have, step by step */
	float *load;    /* 0 to 1 */
	float **bursts; /* of each group; NULL: none */
	double level, quantum;
	double record_from, record_to; /* parts of the day that are recorded */
	double gaps;                   /* share of the samples */
};

static uint64_t rotated(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

uint64_t maker_bits(struct maker_rng *r)
{
	uint64_t *s = r->s, result = rotated(s[0] + s[3], 23) + s[0], t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotated(s[3], 45);
	return result;
}

void maker_seed(struct maker_rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + stream * 0xd1342543de82ef95u;

	for (int i = 0; i < 4; i++) {
		uint64_t z = x += 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		r->s[i] = z ^ z >> 31;
	}
}

double maker_uniform(struct maker_rng *r)
{
	return ((double)(maker_bits(r) >> 11) + 0.5) * 0x1p-53;
}

double maker_gauss(struct maker_rng *r)
{
	return sqrt(-2 * log(maker_uniform(r))) * cos(2 * M_PI * maker_uniform(r));
}

static double between(struct maker_rng *r, const double range[2])
{
	return range[0] > 0 ? range[0] * pow(range[1] / range[0], maker_uniform(r)) : 0;
}

struct maker_spec maker_draw(size_t family, uint64_t seed, bool faulty, double ratio, double share,
	unsigned members_most)
{
	static const struct {
		double duration_s, step_s;
	} recordings[] = {{3600, 10}, {86400, 60}, {7 * 86400, 300}, {28 * 86400, 900}};
	const double members[2] = {40, members_most};
	struct maker_rng r;
	struct maker_spec s = {
		.family = family, .seed = seed, .ratio = ratio, .share = share, .who = WHO_NONE};
	size_t i;

	maker_seed(&r, seed, 77);
	i = maker_bits(&r) >> 62;
	s.members = (unsigned)between(&r, members);
	s.duration_s = recordings[i].duration_s;
	s.step_s = recordings[i].step_s;
	if (faulty)
		s.who = seed & 1 ? WHO_THIRD : WHO_ONE;
	s.when = seed & 2 ? WHEN_EPISODE : WHEN_SHORT_ONES;
	return s;
}

/* A walk in logs that returns to 0: standard deviation 'sigma', time constant 'tau_s'. */
struct walk {
	struct maker_rng rng;
	double sigma, keep, at;
};

static void walk_start(
	struct walk *w, const struct maker *m, uint64_t stream, double sigma, double tau_s)
{
	maker_seed(&w->rng, m->spec.seed, stream);
	w->sigma = sigma;
	w->keep = sigma > 0 ? exp(-BLOCK * m->spec.step_s / tau_s) : 0;
	w->at = sigma > 0 ? sigma * maker_gauss(&w->rng) : 0;
}

static double walk_next(struct walk *w)
{
	if (w->sigma > 0)
		w->at = w->keep * w->at +
			w->sigma * sqrt(1 - w->keep * w->keep) * maker_gauss(&w->rng);
	return w->at;
}

/* Load of the day and the week, with its own walk. */
static void draw_shared(struct maker *m, struct maker_rng *r)
{
	double phase = maker_uniform(r) * 2 * M_PI, day = m->family->day, factor = 1, next = 1;
	struct walk w;

	walk_start(&w, m, OF_LOAD, 0.1, 1800);
	m->own->shared = alloc_zero(m->n_steps, sizeof(float));
	m->own->load = alloc_zero(m->n_steps, sizeof(float));
	for (unsigned i = 0; i < m->n_steps; i++) {
		double t = i * m->spec.step_s, wave = sin(2 * M_PI * t / 86400 + phase);
		bool weekend = fmod(t / 86400, 7) >= 5;

		if (i % BLOCK == 0) {
			factor = next;
			next = exp(walk_next(&w));
		}
		m->own->load[i] = (float)fmin(1,
			(0.4 + 0.25 * wave - 0.1 * weekend) *
				(factor + (next - factor) * (i % BLOCK) / BLOCK));
		m->own->shared[i] = day > 0 && !m->family->load
			? (float)(exp(day * (wave - 0.5 * weekend)) * factor)
			: 1;
	}
}

static void draw_quantiles(struct maker *m, struct maker_rng *r)
{
	double sigma = between(r, m->family->noise);

	for (int i = 0; i < QUANTILES; i++)
		m->own->noise[i] = (float)exp(
			sigma * gsl_cdf_ugaussian_Pinv((i + 0.5) / QUANTILES));
}

static unsigned draw_groups(struct maker *m, struct maker_rng *r)
{
	static const double sizes[2] = {4, 41};
	unsigned n = 0;

	while (n < m->spec.members) {
		unsigned size = m->spec.group_size ? m->spec.group_size
						   : (unsigned)between(r, sizes);
		struct maker_group *g;

		m->groups = alloc_resize(m->groups, m->n_groups + 1, sizeof(*m->groups));
		g = &m->groups[m->n_groups++];
		*g = (struct maker_group){.first = n,
			.n = size,
			.off = 1,
			.level = m->family->groups * maker_gauss(r),
			.dispersion = m->dispersion};
		if (m->family->mixed)
			g->dispersion = m->family->dispersion[maker_bits(r) >> 63];
		n += size;
	}
	return n;
}

static void draw_members(struct maker *m, struct maker_rng *r)
{
	double model = log(fmax(1, between(r, m->family->model_ratio))), freedom = m->family->heavy;

	m->members = alloc_zero(m->n_members, sizeof(*m->members));
	for (unsigned g = 0; g < m->n_groups; g++)
		for (unsigned i = 0; i < m->groups[g].n; i++) {
			struct maker_member *x = &m->members[m->groups[g].first + i];
			double z = maker_gauss(r), chi = 0;

			for (int k = 0; k < freedom; k++)
				chi += pow(maker_gauss(r), 2);
			x->group = g;
			x->level = m->groups[g].dispersion * z /
				sqrt(freedom > 0 ? chi / freedom : 1);
			x->second_model = model > 0 && maker_uniform(r) < 1.0 / 3;
			x->level += x->second_model ? model : 0;
			snprintf(x->name, sizeof(x->name), "d%02u", i);
			snprintf(x->host, sizeof(x->host), "h%03u", g);
			snprintf(x->model, sizeof(x->model), "m%u", x->second_model);
		}
}

static void make_ill(struct maker *m, struct maker_rng *r, struct maker_member *x)
{
	bool first_day = m->spec.share >= 1 || maker_bits(r) >> 63;

	x->ill = true;
	x->onset_s = first_day ? 0 : maker_uniform(r) * (1 - m->spec.share) * m->spec.duration_s;
}

/* Up to a third of a group that has no ill members yet. */
static void make_group_ill(struct maker *m, struct maker_rng *r, const struct maker_group *g)
{
	unsigned first = (unsigned)(maker_bits(r) % g->n),
		 n = 1 + (unsigned)(maker_bits(r) % (g->n / 3));

	for (unsigned i = 0; i < g->n; i++)
		if (m->members[g->first + i].ill)
			return;
	for (unsigned i = 0; i < n; i++)
		make_ill(m, r, &m->members[g->first + (first + i) % g->n]);
}

/* From its own stream: a fleet without ill members is otherwise the same. */
static void draw_ill(struct maker *m)
{
	unsigned groups = m->n_groups / 4 + (m->n_groups < 4);
	struct maker_rng ill, *r = &ill;

	maker_seed(r, m->spec.seed, OF_ILL - 1);

	if (m->spec.who == WHO_ONE)
		make_ill(m, r, &m->members[maker_bits(r) % m->n_members]);
	for (unsigned i = 0; m->spec.who == WHO_THIRD && i < groups; i++)
		make_group_ill(m, r, &m->groups[maker_bits(r) % m->n_groups]);
}

static void draw_bursts(struct maker *m)
{
	double a_step = m->family->group_bursts * m->spec.step_s / 86400;

	m->own->bursts = alloc_zero(m->n_groups, sizeof(*m->own->bursts));
	for (unsigned g = 0; g < m->n_groups && a_step > 0; g++) {
		struct maker_rng r;
		float *v = m->own->bursts[g] = alloc_zero(m->n_steps, sizeof(*v));

		maker_seed(&r, m->spec.seed, OF_BURSTS + g);
		for (unsigned i = 0; i < m->n_steps; i++)
			v[i] = 1;
		for (double at = 0; (at -= log(maker_uniform(&r)) / a_step) < m->n_steps;) {
			unsigned length = 2 + (unsigned)(maker_bits(&r) % 15);
			float factor = (float)(1.5 + 3 * maker_uniform(&r));

			for (unsigned i = (unsigned)at; i < m->n_steps && length--; i++)
				v[i] = factor;
		}
	}
}

static void draw_off(struct maker *m, struct maker_rng *r)
{
	unsigned n = m->family->group_off[0] > 0 ? m->n_groups / 10 + (m->n_groups < 10) : 0;

	/* With fewer than three groups nothing tells which of them is off. */
	for (unsigned i = 0; i < n && m->n_groups >= 3; i++)
		m->groups[maker_bits(r) % m->n_groups].off = between(r, m->family->group_off);
}

struct maker *maker_new(const struct maker_spec *spec)
{
	static const double levels[2] = {0.5, 20}, gaps[2] = {0.02, 0.2};
	struct maker *m = alloc_zero(1, sizeof(*m));
	struct maker_rng r;

	m->spec = *spec;
	m->family = &maker_families[spec->family];
	m->own = alloc_zero(1, sizeof(*m->own));
	m->n_steps = (unsigned)(spec->duration_s / spec->step_s);
	m->n_metrics = m->family->load ? 2 : 1;
	m->start_s = 1767225600; /* 2026-01-01 */
	maker_seed(&r, spec->seed, OF_FLEET);
	m->dispersion = between(&r, m->family->dispersion);
	m->own->level = between(&r, levels) * (m->family->less ? 20 : 1);
	m->own->quantum = between(&r, m->family->quantum) * m->own->level;
	m->own->gaps = between(&r, gaps);
	m->own->record_from = maker_uniform(&r);
	m->own->record_to = m->own->record_from +
		(maker_bits(&r) >> 63 || spec->duration_s < 2 * 86400 ? 1 : 8.0 / 24);
	m->n_members = draw_groups(m, &r);
	draw_members(m, &r);
	draw_ill(m);
	draw_off(m, &r);
	draw_shared(m, &r);
	draw_quantiles(m, &r);
	draw_bursts(m);
	return m;
}

void maker_free(struct maker *m)
{
	if (!m)
		return;
	for (unsigned g = 0; g < m->n_groups; g++)
		free(m->own->bursts[g]);
	free(m->own->bursts);
	free(m->own->shared);
	free(m->own->load);
	free(m->own);
	free(m->members);
	free(m->groups);
	free(m);
}

const char *maker_metric(const struct maker *m, unsigned metric)
{
	return metric ? "load_iops" : m->family->less ? "throughput_mbs" : "latency_ms";
}

const char *maker_declaration(const struct maker *m, unsigned metric)
{
	return metric                  ? "load_iops unit=1/s worse=load kind=gauge"
		: m->family->less      ? "throughput_mbs unit=MB/s worse=less kind=gauge"
		: m->family->zeros > 0 ? "latency_ms unit=ms worse=more kind=gauge zero=missing"
				       : "latency_ms unit=ms worse=more kind=gauge";
}

unsigned maker_groups(const struct maker *m, unsigned member, const char *group[MAKER_LEVELS_MAX])
{
	const struct maker_member *x = &m->members[member];

	group[0] = m->family->model_known ? x->model : x->host;
	group[1] = x->host;
	return m->family->model_known ? 2 : 1;
}

const char *maker_group_column(const struct maker *m, unsigned level)
{
	return m->family->model_known && !level ? "model" : "host";
}

double maker_time(const struct maker *m, unsigned member, unsigned step)
{
	double t = m->start_s + step * m->spec.step_s;
	struct maker_rng r;

	if (!m->family->missing)
		return t;
	maker_seed(&r, m->spec.seed, OF_TIMES + ((uint64_t)member << 32) + step);
	return t + 0.3 * m->spec.step_s * maker_uniform(&r);
}

unsigned maker_ill_steps(const struct maker *m, unsigned member, uint8_t *ill)
{
	const struct maker_member *x = &m->members[member];
	unsigned first = (unsigned)(x->onset_s / m->spec.step_s), n = m->n_steps - first;
	unsigned want = (unsigned)fmin(n, fmax(1, round(m->spec.share * m->n_steps))), got = 0;
	struct maker_rng r;

	memset(ill, 0, m->n_steps);
	if (!x->ill || !m->n_steps)
		return 0;
	if (m->spec.when == WHEN_EPISODE || want >= n) {
		memset(ill + first, 1, want);
		return want;
	}
	/* Short ones, of 1 to 8 steps, in the place of as many equal parts. */
	maker_seed(&r, m->spec.seed, OF_ILL + member);
	while (got < want) {
		unsigned at = first + (unsigned)(maker_bits(&r) % n),
			 length = maker_bits(&r) % 8 + 1;

		for (; length && got < want && at < m->n_steps; at++, length--) {
			got += !ill[at];
			ill[at] = 1;
		}
	}
	return got;
}

/* Level x walks x noise. */
static void make_noise(const struct maker *m, unsigned member, float *v)
{
	const struct maker_member *x = &m->members[member];
	const struct maker_group *g = &m->groups[x->group];
	double level = log(m->own->level) + x->level + g->level + log(g->off), next;
	unsigned tail = (unsigned)(m->family->tail_share * 65536);
	struct maker_rng r;
	struct walk slow, drift;

	maker_seed(&r, m->spec.seed, OF_NOISE + member);
	walk_start(&slow, m, OF_WALK + member, m->family->slow, m->family->slow_tau_s);
	walk_start(&drift, m, OF_DRIFT + member, m->family->drift, m->family->drift_tau_s);
	next = exp(level + slow.at + drift.at);
	for (unsigned i = 0; i < m->n_steps; i += BLOCK) {
		float now = (float)next, by;
		unsigned n = m->n_steps - i < BLOCK ? m->n_steps - i : BLOCK;

		next = exp(level + walk_next(&slow) + walk_next(&drift));
		by = ((float)next - now) / BLOCK;
		for (unsigned k = 0; k < n; k++) {
			uint64_t bits = maker_bits(&r);

			v[i + k] = (now + by * (float)k) * m->own->noise[bits >> 51] *
				m->own->shared[i + k];
			if ((bits & 65535) < tail)
				v[i + k] *= (float)pow(
					maker_uniform(&r), -1 / m->family->tail_alpha);
		}
	}
}

static void add_bursts(const struct maker *m, unsigned member, float *v)
{
	const float *group = m->own->bursts[m->members[member].group];
	double a_step = m->family->member_bursts * m->spec.step_s / 86400;
	struct maker_rng r;

	for (unsigned i = 0; group && i < m->n_steps; i++)
		v[i] *= group[i];
	if (a_step <= 0)
		return;
	maker_seed(&r, m->spec.seed, OF_GROUP + member);
	for (double at = 0; (at -= log(maker_uniform(&r)) / a_step) < m->n_steps;) {
		unsigned length = 1 + (unsigned)(maker_bits(&r) % 3);
		float factor = (float)(1.5 + 3 * maker_uniform(&r));

		for (unsigned i = (unsigned)at; i < m->n_steps && length--; i++)
			v[i] *= factor;
	}
}

static void add_illness(const struct maker *m, unsigned member, float *v)
{
	uint8_t *ill;

	if (!m->members[member].ill)
		return;
	ill = alloc_zero(m->n_steps, 1);
	maker_ill_steps(m, member, ill);
	for (unsigned i = 0; i < m->n_steps; i++)
		v[i] *= ill[i] ? (float)m->spec.ratio : 1;
	free(ill);
}

/* Latency and throughput under a load of which members have unequal parts. */
static void add_load(const struct maker *m, unsigned member, float *latency, float *iops)
{
	struct maker_rng r;
	double part;

	maker_seed(&r, m->spec.seed, OF_LOAD + member + 1);
	part = exp(0.35 * maker_gauss(&r));
	for (unsigned i = 0; i < m->n_steps; i++) {
		double here = m->own->load[i] * part * (0.9 + 0.2 * maker_uniform(&r));

		if (m->family->load == LOAD_OPEN) {
			here = fmin(here, 0.9);
			latency[i] *= (float)(1 / (1 - here));
			iops[i] = (float)(1000 * here / m->own->level);
		} else { /* 'here' stands for up to 16 requests in flight */
			latency[i] *= (float)(1 + 16 * here * 0.2);
			iops[i] = (float)(1000 * (1 + 16 * here)) / latency[i];
		}
	}
}

static void add_gaps(const struct maker *m, unsigned member, float *v)
{
	double from = 0, to = 1, of_day = 86400 / m->spec.step_s;
	struct maker_rng r;
	bool in_gap = false;

	maker_seed(&r, m->spec.seed, OF_GAPS + member);
	if (maker_uniform(&r) < 0.2) { /* comes late, goes early, or both */
		from = fmax(0, maker_uniform(&r) - 0.5);
		to = fmin(1, 0.6 + 0.6 * maker_uniform(&r));
	}
	for (unsigned i = 0; i < m->n_steps; i++) {
		double day = i / of_day - m->own->record_from + 1, at = (double)i / m->n_steps;
		double leave = 0.1, enter = leave * m->own->gaps / (1 - m->own->gaps);

		in_gap = maker_uniform(&r) < (in_gap ? 1 - leave : enter);
		if (in_gap || at < from || at > to ||
			day - floor(day) > m->own->record_to - m->own->record_from)
			v[i] = NAN;
	}
}

static void quantise(const struct maker *m, unsigned member, float *v)
{
	float q = (float)m->own->quantum;
	struct maker_rng r;

	maker_seed(&r, m->spec.seed, OF_GAPS + member);
	for (unsigned i = 0; i < m->n_steps; i++)
		v[i] = maker_uniform(&r) < m->family->zeros ? 0 : roundf(v[i] / q) * q;
}

void maker_series(const struct maker *m, unsigned member, float *values[MAKER_METRICS_MAX])
{
	float *v = values[0];

	make_noise(m, member, v);
	add_bursts(m, member, v);
	add_illness(m, member, v);
	if (m->family->load)
		add_load(m, member, v, values[1]);
	if (m->family->missing)
		add_gaps(m, member, v);
	if (m->own->quantum > 0)
		quantise(m, member, v);
	for (unsigned i = 0; m->family->less && i < m->n_steps; i++)
		v[i] = (float)(m->own->level * m->own->level) / v[i];
}

static int give_series(const struct maker *m, const struct import_sink *sink, unsigned member,
	float *values[MAKER_METRICS_MAX], struct err *e)
{
	uint32_t id[MAKER_METRICS_MAX];
	int rc = 0;

	for (unsigned k = 0; k < m->n_metrics && !rc; k++) {
		struct series_key key = {
			.metric = maker_metric(m, k), .member = m->members[member].name};

		key.n_groups = maker_groups(m, member, key.group);
		rc = sink->series(sink->ctx, &key, &id[k], e);
	}
	maker_series(m, member, values);
	for (unsigned k = 0; k < m->n_metrics; k++)
		for (unsigned i = 0; i < m->n_steps && !rc; i++)
			if (!isnan(values[k][i]))
				rc = sink->sample(sink->ctx, id[k], maker_time(m, member, i),
					(double)values[k][i], e);
	return rc;
}

int maker_run(const struct maker *m, const struct import_sink *sink, struct err *e)
{
	float *values[MAKER_METRICS_MAX];
	int rc = 0;

	for (unsigned k = 0; k < MAKER_METRICS_MAX; k++)
		values[k] = alloc_zero(m->n_steps, sizeof(float));
	for (unsigned k = 0; k < m->n_metrics && !rc && sink->metric; k++)
		rc = sink->metric(sink->ctx, maker_declaration(m, k), e);
	for (unsigned i = 0; i < m->n_members && !rc; i++)
		rc = give_series(m, sink, i, values, e);
	for (unsigned k = 0; k < MAKER_METRICS_MAX; k++)
		free(values[k]);
	return rc;
}
