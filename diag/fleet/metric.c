#include "diag/fleet/metric.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/near.h"

void metric_models_clear(struct metric_models *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].name);
		free(m->v[i].unit);
		free(m->v[i].per);
	}
	free(m->v);
	*m = (struct metric_models){0};
}

const struct metric_model *metric_find(const struct metric_models *m, const char *name)
{
	for (size_t i = 0; m && i < m->n; i++)
		if (!strcmp(m->v[i].name, name))
			return &m->v[i];
	return NULL;
}

/* Words that a key takes, in the order of its enum behind the guess. */
static const char *const worse_words[] = {"more", "less", "load", "none", NULL};
static const char *const kind_words[] = {"gauge", "counter", "amount", "bucket", NULL};
static const char *const zero_words[] = {"missing", "value", NULL};
static const char *const yes_words[] = {"yes", "no", NULL};
static const char *const keys[] = {
	"unit", "worse", "kind", "per", "zero", "quantile", "counter", NULL};

/* Place of 'word' in a list, or -EINVAL with a sentence. */
static int word_of(const char *what, const char *const *list, const char *word, struct err *e)
{
	char hint[96];

	for (int i = 0; list[i]; i++)
		if (!strcmp(list[i], word))
			return i;
	return err_set(
		e, -EINVAL, "there is no %s '%.60s'%s", what, word, near_hint(word, list, hint));
}

static int set_key(struct metric_model *m, const char *key, const char *value, struct err *e)
{
	int k = word_of("key", keys, key, e), w = 0;
	char *end;

	if (k < 0)
		return k;
	switch (k) {
	case 0: m->unit = alloc_copy(value); break;
	case 1:
		m->worse = (enum metric_worse)(
			1 + (w = word_of("direction", worse_words, value, e)));
		break;
	case 2:
		m->kind = (enum metric_kind)(1 + (w = word_of("kind", kind_words, value, e)));
		break;
	case 3: m->per = alloc_copy(value); break;
	case 4:
		m->zero = (enum metric_zero)(1 + (w = word_of("zero", zero_words, value, e)));
		break;
	case 5:
		m->quantile = strtod(value, &end);
		if (*end || end == value || !(m->quantile > 0 && m->quantile < 1))
			return err_set(
				e, -EINVAL, "quantile is between 0 and 1, not '%.60s'", value);
		break;
	default: w = word_of("answer", yes_words, value, e); m->counter = w == 0;
	}
	return w < 0 ? w : 0;
}

static int check_model(const struct metric_model *m, struct err *e)
{
	if (m->per && m->kind != KIND_AMOUNT && m->kind != KIND_GUESS)
		return err_set(e, -EINVAL, "per= is for kind=amount only");
	if (!m->per && m->kind == KIND_AMOUNT)
		return err_set(e, -EINVAL,
			"kind=amount needs per=METRIC, the work that the amount was spent on");
	if (m->per && !strcmp(m->per, m->name))
		return err_set(e, -EINVAL, "a metric cannot be per itself");
	return 0;
}

int metric_declare(struct metric_models *m, const char *declaration, struct err *e)
{
	struct metric_model model = {.quantile = 0.99};
	auto_free char *copy = alloc_copy(declaration);
	char *rest = copy, *word, *value;
	int rc = 0;

	word = strtok_r(copy, " \t\r\n", &rest);
	if (!word)
		return err_set(e, -EINVAL,
			"a declaration begins with a metric's name: 'latency worse=more'");
	if (metric_find(m, word))
		return err_set(e, -EINVAL, "the metric '%.100s' is declared twice", word);
	model.name = alloc_copy(word);
	while (!rc && (word = strtok_r(NULL, " \t\r\n", &rest))) {
		value = strchr(word, '=');
		if (!value || !value[1]) {
			rc = err_set(e, -EINVAL, "'%.60s' is not of the form KEY=VALUE", word);
			break;
		}
		*value++ = '\0';
		if ((!strcmp(word, "unit") && model.unit) || (!strcmp(word, "per") && model.per))
			rc = err_set(e, -EINVAL, "%s= stands twice", word);
		else
			rc = set_key(&model, word, value, e);
	}
	rc = rc ?: check_model(&model, e);
	if (rc) {
		struct metric_models one = {alloc_zero(1, sizeof(model)), 1};

		one.v[0] = model;
		metric_models_clear(&one);
		return err_blame(
			e, ERR_SCENARIO, err_prefix(e, rc, "metric '%.100s'", declaration));
	}
	if (model.per)
		model.kind = KIND_AMOUNT;
	m->v = alloc_resize(m->v, m->n + 1, sizeof(*m->v));
	m->v[m->n++] = model;
	return 0;
}

int metric_declare_file(struct metric_models *m, const char *path, struct err *e)
{
	auto_file FILE *f = fopen(path, "re");
	auto_free char *line = NULL;
	size_t room = 0, number = 0;
	int rc = 0;

	if (!f)
		return err_blame(e, ERR_SCENARIO, err_errno(e, -errno, "cannot open '%s'", path));
	while (!rc && getline(&line, &room, f) > 0) {
		number++;
		line[strcspn(line, "#")] = '\0';
		if (line[strspn(line, " \t\r\n")] && (rc = metric_declare(m, line, e)))
			err_prefix(e, rc, "%s:%zu", path, number);
	}
	if (!rc && ferror(f))
		rc = err_errno(e, -EIO, "cannot read '%s'", path);
	return rc;
}

/* The words of a name: "readLatency_ms" has read, latency and ms. */
static void split(const char *name, char *words, size_t size)
{
	size_t n = 0;
	char before = ' ';

	words[n++] = ' ';
	for (const char *p = name; *p && n + 3 < size; before = *p++) {
		bool sign = *p == '%';

		if (isupper((unsigned char)*p) && islower((unsigned char)before))
			words[n++] = ' ';
		words[n++] = isalnum((unsigned char)*p) || sign ? (char)tolower((unsigned char)*p)
								: ' ';
	}
	words[n++] = ' ';
	words[n] = '\0';
}

static bool has(const char *words, const char *list)
{
	char one[32];

	for (const char *p = list; *p;) {
		size_t n = strcspn(p, " ");

		snprintf(one, sizeof(one), " %.*s ", (int)n, p);
		if (strstr(words, one))
			return true;
		p += n + strspn(p + n, " ");
	}
	return false;
}

static const char *unit_in(const char *words)
{
	static const char *const units[][2] = {{"ms msec msecs millis milliseconds", "ms"},
		{"us usec usecs micros microseconds", "us"}, {"ns nsec nanoseconds", "ns"},
		{"s sec secs seconds", "s"}, {"bytes", "bytes"}, {"percent pct % util", "%"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (has(words, units[i][0]))
			return units[i][1];
	return NULL;
}

static const char time_words[] =
	"latency lat latencies await wait waiting delay duration time svctm rtt response "
	"dread dwrite nsread ncread r_await w_await ms msec us usec ns nsec seconds millis "
	"milliseconds microseconds p50 p90 p95 p99 p999 jitter lag stall";
static const char work_words[] =
	"throughput bandwidth bw iops ops reads writes read written requests rps qps tps "
	"transactions bytes kb mb mbps mib kib tput rate bps load packets sectors io ios";
static const char less_words[] =
	"hit hits free available avail idle healthy health speed success remaining uptime score";

void metric_guess(struct metric_model *m)
{
	char words[512];
	bool time, work;

	split(m->name, words, sizeof(words));
	time = has(words, time_words);
	work = !time && has(words, work_words) &&
		!has(words, "error errors failed failures retransmitted dropped queue depth");
	m->guessed = m->worse == WORSE_GUESS || m->kind == KIND_GUESS;
	if (m->worse == WORSE_GUESS)
		m->worse = time                  ? WORSE_MORE
			: work                   ? WORSE_LOAD
			: has(words, less_words) ? WORSE_LESS
						 : WORSE_MORE;
	if (m->kind == KIND_GUESS)
		m->kind = has(words, "total") ? KIND_COUNTER : KIND_GAUGE;
	if (m->zero == ZERO_GUESS)
		m->zero = m->kind == KIND_AMOUNT || m->kind == KIND_BUCKET ||
				(time && m->kind == KIND_GAUGE)
			? ZERO_MISSING
			: ZERO_VALUE;
	if (!m->unit && unit_in(words))
		m->unit = alloc_copy(unit_in(words));
}

char *metric_describe(const struct metric_model *m)
{
	static const char *const worse[] = {"?", "more is worse", "less is worse",
		"work, which excuses and accuses nobody", "not looked at"};
	const char *unit = m->unit ? m->unit : "";

	return alloc_format("%s: %s; %s%s%s%s%s%s%s", m->name, worse[m->worse],
		m->kind ? kind_words[m->kind - 1] : "?", m->per ? " per " : "",
		m->per ? m->per : "", *unit ? ", in " : "", unit,
		m->zero == ZERO_MISSING ? ", 0 is no value" : "",
		m->guessed ? " (guessed from its name)" : "");
}
