/* Guesses or reads what a metric means: unit, direction, and how it becomes a level. */
#include "diag/fleet/metric.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/near.h"

static void model_clear(struct metric_model *m)
{
	free(m->name);
	free(m->unit);
	free(m->per);
}

void metric_models_clear(struct metric_models *m)
{
	for (size_t i = 0; i < m->n; i++)
		model_clear(&m->v[i]);
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
enum { KEY_UNIT, KEY_WORSE, KEY_KIND, KEY_PER, KEY_ZERO, KEY_QUANTILE, KEY_COUNTER };
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

static int set_key(struct metric_model *m, int key, const char *value, struct err *e)
{
	int w = 0;
	char *end;

	switch (key) {
	case KEY_UNIT: m->unit = alloc_copy(value); break;
	case KEY_WORSE:
		m->worse = (enum metric_worse)(
			1 + (w = word_of("direction", worse_words, value, e)));
		break;
	case KEY_KIND:
		m->kind = (enum metric_kind)(1 + (w = word_of("kind", kind_words, value, e)));
		break;
	case KEY_PER: m->per = alloc_copy(value); break;
	case KEY_ZERO:
		m->zero = (enum metric_zero)(1 + (w = word_of("zero", zero_words, value, e)));
		break;
	case KEY_QUANTILE:
		m->quantile = strtod(value, &end);
		if (*end || end == value || !(m->quantile > 0 && m->quantile < 1))
			return err_set(
				e, -EINVAL, "quantile is between 0 and 1, not '%.60s'", value);
		break;
	default: w = word_of("answer", yes_words, value, e); m->counter = w == 0;
	}
	return w < 0 ? w : 0;
}

static int check_model(const struct metric_model *m, unsigned given, struct err *e)
{
	if (m->per && m->kind != KIND_AMOUNT && m->kind != KIND_GUESS)
		return err_set(e, -EINVAL, "per= is for kind=amount only");
	if (!m->per && m->kind == KIND_AMOUNT)
		return err_set(e, -EINVAL,
			"kind=amount needs per=METRIC, the work that the amount was spent on");
	if (m->per && !strcmp(m->per, m->name))
		return err_set(e, -EINVAL, "a metric cannot be per itself");
	if (given & 1u << KEY_COUNTER && !m->per)
		return err_set(e, -EINVAL,
			"counter= is for an amount (per=METRIC); a counter by itself is "
			"kind=counter");
	if (given & 1u << KEY_QUANTILE && m->kind != KIND_BUCKET)
		return err_set(e, -EINVAL, "quantile= is for kind=bucket only");
	return 0;
}

/* Takes the pairs behind the name. */
static int set_pairs(struct metric_model *m, char *rest, struct err *e)
{
	unsigned given = 0;
	char *word, *value;
	int k;

	while ((word = strtok_r(NULL, " \t\r\n", &rest))) {
		value = strchr(word, '=');
		if (!value || !value[1])
			return err_set(e, -EINVAL, "'%.60s' is not of the form KEY=VALUE", word);
		*value++ = '\0';
		k = word_of("key", keys, word, e);
		if (k < 0)
			return k;
		if (given & 1u << k)
			return err_set(e, -EINVAL, "%s= stands twice", word);
		given |= 1u << k;
		k = set_key(m, k, value, e);
		if (k < 0)
			return k;
	}
	return check_model(m, given, e);
}

int metric_declare(struct metric_models *m, const char *declaration, struct err *e)
{
	struct metric_model model = {.quantile = 0.99};
	auto_free char *copy = alloc_copy(declaration);
	char *rest = copy, *name = strtok_r(copy, " \t\r\n", &rest);
	int rc;

	if (!name)
		return err_blame(e, ERR_SCENARIO,
			err_set(e, -EINVAL,
				"a declaration begins with a metric's name: "
				"'latency unit=ms worse=more'"));
	if (metric_find(m, name))
		return err_blame(e, ERR_SCENARIO,
			err_set(e, -EINVAL, "the metric '%.100s' is declared twice", name));
	model.name = alloc_copy(name);
	rc = set_pairs(&model, rest, e);
	if (rc) {
		model_clear(&model);
		return err_blame(
			e, ERR_SCENARIO, err_prefix(e, rc, "metric '%.100s'", declaration));
	}
	if (model.per)
		model.kind = KIND_AMOUNT;
	m->v = alloc_room(m->v, m->n, sizeof(*m->v));
	m->v[m->n++] = model;
	return 0;
}

int metric_declare_file(struct metric_models *m, const char *path, struct err *e)
{
	const int fd = file_open_readable(path, "", e);
	auto_file FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	auto_free char *line = NULL;
	size_t room = 0, number = 0;
	int rc = 0;

	if (!f)
		return err_blame(e, ERR_SCENARIO,
			fd < 0 ? fd : err_errno(e, -errno, "cannot read '%s'", path));
	while (!rc && getline(&line, &room, f) > 0) {
		number++;
		line[strcspn(line, "#\r\n")] = '\0';
		if (line[strspn(line, " \t")] && (rc = metric_declare(m, line, e)))
			err_prefix(e, rc, "%s:%zu", path, number);
	}
	if (!rc && ferror(f))
		rc = err_blame(e, ERR_SCENARIO, err_errno(e, -errno, "cannot read '%s'", path));
	return rc;
}

/* The words of a name: "readLatency_ms" has read, latency, ms; "CPUIdle%" has cpu, idle, %. */
static void metric_split(const char *name, char *words, size_t size)
{
	size_t n = 0;
	unsigned char before = ' ';

	words[n++] = ' ';
	for (const char *p = name; *p && n + 5 < size; before = (unsigned char)*p++) {
		unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];

		if (isupper(c) && (islower(before) || (isupper(before) && islower(next))))
			words[n++] = ' ';
		if (c == '%')
			words[n++] = ' ';
		words[n++] = isalnum(c) || c == '%' ? (char)tolower(c) : ' ';
		if (c == '%')
			words[n++] = ' ';
	}
	words[n++] = ' ';
	words[n] = '\0';
}

static bool metric_has(const char *words, const char *list)
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

/* Whether the last word is one of these. */
static bool ends(const char *words, const char *list)
{
	size_t n = strlen(words);

	while (n > 1 && words[n - 1] == ' ')
		n--;
	while (n && words[n - 1] != ' ')
		n--;
	return n && metric_has(words + n - 1, list);
}

static const char *unit_in(const char *words)
{
	static const char *const units[][2] = {{"ms msec msecs millis milliseconds", "ms"},
		{"us usec usecs micros microseconds", "us"}, {"ns nsec nanoseconds", "ns"},
		{"s sec secs seconds", "s"}, {"bytes", "bytes"}, {"celsius", "C"},
		{"percent percentage pct % util utilization utilisation", "%"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (metric_has(words, units[i][0]))
			return units[i][1];
	return NULL;
}

/* What a name is of: the first list that has one of its words decides. */
static const char fact_words[] = "info timestamp boot start created uptime hours version";
static const char fault_words[] =
	"error errors err errs rxerr txerr fail failed failure failures fault faults drop drops "
	"dropped rxdrop txdrop loss lost retrans retransmit retransmits retransmitted retry "
	"retries timeout timeouts reallocated reallocations pending uncorrectable corrected "
	"miss misses queue queued depth backlog inflight outstanding now stall stalls wear "
	"temperature temp celsius";
static const char less_words[] =
	"hit hits free freeable available avail idle healthy health up success successes "
	"remaining score speed balance spare wearout";
static const char time_words[] =
	"latency lat latencies await wait waiting iowait delay duration time svctm rtt response "
	"dread dwrite nsread ncread ms msec msecs us usec usecs ns nsec seconds millis "
	"milliseconds micros microseconds nanoseconds p50 p90 p95 p99 p999 jitter lag";
static const char work_words[] =
	"throughput bandwidth bw iops op ops operations reads writes read written requests rps "
	"qps tps transactions bytes kb mb mbps mib kib tput rate bps load load1 load5 load15 "
	"packets sectors io ios areq rareq wareq dareq avgrq connections sessions";
/* "mb_s", "ops_s": a rate, and not "read_s", a time. */
static const char sized_words[] =
	"b kb mb gb kib mib gib bytes bits op ops iops io ios reads writes requests packets "
	"transactions messages sectors";
/* Times of which 0 is one: a follower that does not lag. */
static const char from_zero_words[] = "lag jitter busy weighted";

/* Time in which a member waits for others. Not "await", which a disk takes for a request. */
static const char
	waiting_words[] = "wait waits waited waiting iowait blocked stall stalls stalled barrier";

bool metric_waits(const char *name)
{
	char words[512];

	metric_split(name, words, sizeof(words));
	return metric_has(words, waiting_words);
}

/* "r/s", "ops_per_second": how often, not how long. */
static bool is_rate(const char *name, const char *words)
{
	const char *slash = strrchr(name, '/');

	return ends(words, "s sec second") &&
		(metric_has(words, "per") ||
			(slash && isalpha((unsigned char)slash[1]) && !strpbrk(slash, " _")));
}

static enum metric_worse guess_worse(const char *words, bool time, bool rate)
{
	if (metric_has(words, fact_words))
		return WORSE_NONE;
	if (metric_has(words, less_words) && !(time && !metric_has(words, "idle remaining")))
		return WORSE_LESS;
	if (metric_has(words, fault_words))
		return WORSE_MORE;
	/* How many there were of what took so long. */
	if (rate || (time && ends(words, "count")))
		return WORSE_LOAD;
	return !time && metric_has(words, work_words) ? WORSE_LOAD : WORSE_MORE;
}

void metric_guess(struct metric_model *m)
{
	char words[512];
	bool time, rate;

	metric_split(m->name, words, sizeof(words));
	rate = is_rate(m->name, words);
	time = !rate &&
		(metric_has(words, time_words) ||
			(ends(words, "s") && !metric_has(words, sized_words)));
	m->guessed = m->worse == WORSE_GUESS;
	m->kind_guessed = m->kind == KIND_GUESS;
	if (m->worse == WORSE_GUESS)
		m->worse = guess_worse(words, time, rate);
	if (m->kind == KIND_GUESS)
		m->kind = ends(words, "total") || (time && ends(words, "sum count")) ? KIND_COUNTER
										     : KIND_GAUGE;
	if (m->zero == ZERO_GUESS)
		m->zero = m->kind == KIND_AMOUNT || m->kind == KIND_BUCKET ||
				(time && m->kind == KIND_GAUGE && m->worse == WORSE_MORE &&
					!metric_has(words, from_zero_words))
			? ZERO_MISSING
			: ZERO_VALUE;
	if (!m->unit && !rate && !ends(words, "count") && unit_in(words))
		m->unit = alloc_copy(unit_in(words));
}

char *metric_describe(const struct metric_model *m)
{
	static const char *const worse[] = {"?", "more is worse", "less is worse",
		"work, which excuses and accuses nobody", "not looked at"};
	const char *unit = m->unit ? m->unit : "";
	const char *guess = m->guessed && m->kind_guessed ? " (guessed from its name)"
		: m->guessed                              ? " (direction guessed from its name)"
		: m->kind_guessed                         ? " (kind guessed from its name)"
							  : "";

	return alloc_format("%s: %s; %s%s%s%s%s%s%s", m->name, worse[m->worse],
		m->kind ? kind_words[m->kind - 1] : "?", m->per ? " per " : "",
		m->per ? m->per : "", *unit ? ", in " : "", unit,
		m->zero == ZERO_MISSING ? ", 0 is no value" : "", guess);
}
