/* Parses Prometheus's answers to range queries. */
#include "diag/import/prometheus_answer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/json_scan.h"
#include "diag/import/lines.h"
#include "harness/base/alloc.h"
#include "harness/base/text.h"

#define INSTANT                                                                                    \
	"this is the answer of an instant query, with one sample for each series: ask for a "      \
	"range, with /api/v1/query_range or 'promtool query range'"

enum { LABELS_BYTES = 64 * 1024, WARNINGS_MAX = 5 };

struct answer {
	struct json_scan s;
	const char *metric;
	struct labels *labels; /* NULL: only the error is wanted */
	prometheus_take *take;
	void *ctx;
	struct import_said *said;
	struct err *e;
	uint32_t series; /* of the current element */
	bool has_series, wanted, failed;
	bool some;        /* seen: "result", or a series */
	bool take_failed; /* the error is the sink's, not the answer's */
	bool histograms;
	bool partial;
	unsigned warnings, infos;
	char error[600];
	char arena[LABELS_BYTES];
};

static int prometheus_answer_scan(struct answer *a)
{
	return json_scan(&a->s, a->e);
}

static int prometheus_answer_bad(struct answer *a, const char *what)
{
	return err_set(a->e, -EINVAL, "%lu: %s", a->s.line, what);
}

/* Reads {"name": "value", ...} without __name__, which '*name' gets. */
static int read_labels(struct answer *a, struct label *v, size_t *n, const char **name)
{
	int rc = json_scan_want(&a->s, JSON_SCAN_OBJECT, "\"metric\"", a->e);
	size_t used = 0;
	char *text[2];

	while (rc >= 0 && (rc = prometheus_answer_scan(a)) == JSON_SCAN_KEY) {
		for (int i = 0; i < 2; i++) {
			if (i &&
				(rc = json_scan_want(&a->s, JSON_SCAN_STRING, "a label", a->e)) < 0)
				return rc;
			if (a->s.cut || used + a->s.length + 1 > sizeof(a->arena))
				return prometheus_answer_bad(
					a, "a series has labels that are too long");
			text[i] = memcpy(a->arena + used, a->s.text, a->s.length + 1);
			used += a->s.length + 1;
		}
		if (!strcmp(text[0], "__name__"))
			*name = text[1];
		else if (*n == LABELS_MAX)
			return prometheus_answer_bad(a, "a series has too many labels");
		else
			v[(*n)++] = (struct label){text[0], text[1]};
	}
	return rc;
}

static int read_metric(struct answer *a)
{
	struct label v[LABELS_MAX];
	const char *name = NULL;
	size_t n = 0;
	int rc = read_labels(a, v, &n, &name);

	if (rc < 0)
		return rc;
	a->has_series = true;
	a->wanted = labels_add(a->labels, a->metric ? a->metric : name, v, n, &a->series) >= 0;
	return 0;
}

/* Reads [1.5, "2"], after the bracket. */
static int read_point(struct answer *a)
{
	double time_s, value;
	char *end;
	int rc = json_scan_want(&a->s, JSON_SCAN_NUMBER, "a time", a->e);

	if (rc < 0)
		return rc;
	time_s = a->s.number;
	rc = json_scan_want(&a->s, JSON_SCAN_STRING, "a value", a->e);
	if (rc < 0)
		return rc;
	value = strtod(a->s.text, &end);
	if (end == a->s.text || *end)
		return prometheus_answer_bad(a, "a value is not a number");
	rc = json_scan_want(&a->s, JSON_SCAN_ARRAY_END, "the end of a sample", a->e);
	if (rc < 0 || !a->wanted)
		return rc;
	rc = a->take(a->ctx, a->series, time_s, value, a->e);
	a->take_failed = rc < 0;
	return rc;
}

static int read_values(struct answer *a)
{
	int rc;

	if (!a->has_series)
		return prometheus_answer_bad(a, "a series has values before its labels");
	rc = prometheus_answer_scan(a);
	/* promtool prints null for a series of native histograms, and leaves out the histograms. */
	if (rc == JSON_SCAN_WORD && !strcmp(a->s.text, "null")) {
		a->histograms = true;
		return 0;
	}
	if (rc >= 0 && rc != JSON_SCAN_ARRAY)
		return prometheus_answer_bad(a, "\"values\" is not an array");
	while (rc >= 0 && (rc = prometheus_answer_scan(a)) == JSON_SCAN_ARRAY)
		rc = read_point(a);
	if (rc == JSON_SCAN_NUMBER)
		return prometheus_answer_bad(a,
			"values and times are in separate lists, as from VictoriaMetrics's "
			"/api/v1/export: ask /api/v1/query_range");
	if (rc >= 0 && rc != JSON_SCAN_ARRAY_END)
		return prometheus_answer_bad(a, "a sample is not [time, \"value\"]");
	return rc < 0 ? rc : 0;
}

/* Returns 1 for a key that series do not have, without reading its value. */
static int series_key(struct answer *a)
{
	const char *key = a->s.text;

	if (!strcmp(key, "metric"))
		return read_metric(a);
	if (!strcmp(key, "values"))
		return read_values(a);
	if (!strcmp(key, "value"))
		return prometheus_answer_bad(a, INSTANT);
	if (strcmp(key, "histograms"))
		return 1;
	a->histograms = true;
	return json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
}

/* Reads the keys of an object, and its end; 'key' as series_key. */
static int read_object(struct answer *a, int (*key)(struct answer *a))
{
	int rc;

	a->has_series = false;
	while ((rc = prometheus_answer_scan(a)) == JSON_SCAN_KEY) {
		rc = key(a);
		if (rc > 0)
			rc = json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : 0;
}

/* Reads the series after the bracket, and its end. */
static int read_list(struct answer *a)
{
	int rc = 0;

	a->some = true;
	while (rc >= 0 && (rc = prometheus_answer_scan(a)) == JSON_SCAN_OBJECT)
		rc = read_object(a, series_key);
	if (rc >= 0 && rc != JSON_SCAN_ARRAY_END)
		return prometheus_answer_bad(a, "a series is not an object");
	return rc < 0 ? rc : 0;
}

static int check_type(struct answer *a)
{
	static const struct {
		const char *type, *what;
	} others[] = {
		{"vector", INSTANT},
		{"scalar", INSTANT},
		{"string", INSTANT},
		{"streams", "the result is lines of logs (Loki), not series"},
	};
	int rc = json_scan_want(&a->s, JSON_SCAN_STRING, "\"resultType\"", a->e);

	for (size_t i = 0; rc >= 0 && i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(a->s.text, others[i].type))
			return prometheus_answer_bad(a, others[i].what);
	if (rc >= 0 && strcmp(a->s.text, "matrix"))
		return prometheus_answer_bad(a, "the result is not a matrix of series");
	return rc < 0 ? rc : 0;
}

/* Keys of "data". Other kinds of answers are recognised by their keys and named. */
static int data_key(struct answer *a)
{
	static const struct {
		const char *key, *what;
	} others[] = {
		{"groups", "this is a list of rules, not series"},
		{"alerts", "this is a list of alerts, not series"},
		{"activeTargets", "this is a list of targets, not series"},
	};
	int rc;

	if (!strcmp(a->s.text, "resultType"))
		return check_type(a);
	if (!strcmp(a->s.text, "result")) {
		rc = json_scan_want(&a->s, JSON_SCAN_ARRAY, "\"result\"", a->e);
		return rc < 0 ? rc : read_list(a);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(a->s.text, others[i].key))
			return prometheus_answer_bad(a, others[i].what);
	return 1;
}

static int read_data(struct answer *a)
{
	int rc;

	if (!a->labels)
		return json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
	rc = prometheus_answer_scan(a);
	if (rc == JSON_SCAN_ARRAY)
		return prometheus_answer_bad(a, "\"data\" is a list of names, not series");
	if (rc >= 0 && rc != JSON_SCAN_OBJECT)
		return prometheus_answer_bad(a, "\"data\" is not an object");
	return rc < 0 ? rc : read_object(a, data_key);
}

/* Infos are remarks on the query. */
static void take_info(struct answer *a)
{
	char clean[300];

	if (a->infos++ >= WARNINGS_MAX)
		return;
	text_clean(a->s.text, clean, sizeof(clean));
	import_note(a->said, "the server says: %s", clean);
}

/* Warnings say that series or samples are missing: a store that did not answer, a limit. */
static void take_warning(struct answer *a)
{
	char clean[300], note[400];

	/* Prometheus before 3.0 has no list of infos. */
	if (!strncmp(a->s.text, "PromQL info:", 12)) {
		take_info(a);
		return;
	}
	if (a->warnings++ >= WARNINGS_MAX)
		return;
	text_clean(a->s.text, clean, sizeof(clean));
	snprintf(note, sizeof(note), "the server warns: %s", clean);
	import_note_partial(a->said, note);
}

/* Reads "warnings" or "infos": a list of texts, one text, or null. */
static int read_texts(struct answer *a, void (*take)(struct answer *a))
{
	int rc = prometheus_answer_scan(a);

	if (rc == JSON_SCAN_STRING)
		take(a);
	if (rc != JSON_SCAN_ARRAY)
		return json_scan_skip(&a->s, rc, a->e);
	while ((rc = prometheus_answer_scan(a)) == JSON_SCAN_STRING)
		take(a);
	if (rc >= 0 && rc != JSON_SCAN_ARRAY_END)
		return prometheus_answer_bad(a, "a warning is not a text");
	return rc < 0 ? rc : 0;
}

/* VictoriaMetrics: a node that stores series did not answer. */
static int read_partial(struct answer *a)
{
	int rc = prometheus_answer_scan(a);

	a->partial |= rc == JSON_SCAN_WORD && !strcmp(a->s.text, "true");
	return json_scan_skip(&a->s, rc, a->e);
}

/* Keeps the text of "error", which may come before or after "status". */
static int read_error(struct answer *a)
{
	int rc = json_scan_want(&a->s, JSON_SCAN_STRING, "\"error\"", a->e);

	if (rc >= 0)
		text_clean(a->s.text, a->error, sizeof(a->error));
	return rc;
}

static int read_status(struct answer *a)
{
	int rc = json_scan_want(&a->s, JSON_SCAN_STRING, "\"status\"", a->e);

	a->failed |= rc >= 0 && strcmp(a->s.text, "success") != 0;
	return rc;
}

static int envelope_key(struct answer *a)
{
	static const struct {
		const char *key;
		int (*read)(struct answer *a);
	} keys[] = {{"status", read_status}, {"data", read_data}, {"error", read_error},
		{"isPartial", read_partial}};
	const char *key = a->s.text;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(key, keys[i].key)) {
			int rc = keys[i].read(a);

			return rc < 0 ? rc : 0;
		}
	}
	if (!strcmp(key, "warnings") || !strcmp(key, "infos"))
		return read_texts(a, *key == 'w' ? take_warning : take_info);
	return 1;
}

static int read_envelope(struct answer *a)
{
	int rc = json_scan_want(&a->s, JSON_SCAN_OBJECT, "the answer", a->e);

	rc = rc < 0 ? rc : read_object(a, envelope_key);
	if (rc < 0 || a->failed || a->some || !a->labels)
		return rc;
	return prometheus_answer_bad(a, "the answer has no \"data\" with a \"result\"");
}

/* A saved answer may be whole, or only its data, result or series (jq, promtool). */
static int saved_key(struct answer *a)
{
	int rc = series_key(a);

	if (!rc)
		a->some = true;
	rc = rc > 0 ? data_key(a) : rc;
	return rc > 0 ? envelope_key(a) : rc;
}

static int read_saved(struct answer *a)
{
	int rc = 0;

	while (rc >= 0 && (rc = prometheus_answer_scan(a)) > JSON_SCAN_END) {
		if (rc == JSON_SCAN_ARRAY)
			rc = read_list(a);
		else if (rc == JSON_SCAN_OBJECT)
			rc = read_object(a, saved_key);
		else
			return prometheus_answer_bad(a, "this is not an answer of Prometheus");
		if (a->failed)
			return rc;
	}
	return rc < 0 || a->some ? rc : prometheus_answer_bad(a, "the answer has no series");
}

static struct answer *answer_new(FILE *f, const char *metric, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e)
{
	struct answer *a = alloc_zero(1, sizeof(*a));

	a->s.f = f;
	a->s.line = 1;
	a->metric = metric;
	a->labels = labels;
	a->take = take;
	a->ctx = ctx;
	a->said = said;
	a->e = e;
	return a;
}

static void answer_free(struct answer *a)
{
	if (a->partial)
		import_note_partial(
			a->said, "the server says that its answer is partial (isPartial)");
	if (a->warnings > WARNINGS_MAX)
		import_note_partial(a->said, "the server has more warnings");
	if (a->histograms)
		import_note(a->said,
			"native histograms are left out; ask for "
			"histogram_quantile() of them");
	free(a);
}

int prometheus_answer_read(FILE *f, const char *source, const char *metric, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e)
{
	struct answer *a = answer_new(f, metric, labels, take, ctx, said, e);
	int rc = read_envelope(a);

	if (rc >= 0 && a->failed)
		rc = err_set(e, -EINVAL, "%s: %s", source, *a->error ? a->error : "an error");
	else if (rc == -EINVAL && !a->take_failed)
		rc = err_prefix(e, -EPROTO, "%s: the answer is not Prometheus's: line", source);
	else if (rc < 0)
		rc = err_prefix(e, rc, "%s", source);
	answer_free(a);
	return rc < 0 ? rc : 0;
}

int prometheus_answer_saved(FILE *f, const char *source, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e)
{
	struct answer *a = answer_new(f, NULL, labels, take, ctx, said, e);
	int rc = read_saved(a);

	if (rc >= 0 && a->failed)
		rc = err_set(e, -EINVAL, "%s: the server answered with an error: %s", source,
			*a->error ? a->error : "no reason given");
	else if (rc == -EINVAL && !a->take_failed && a->s.depth && feof(f))
		rc = err_set(e, -EINVAL,
			"%s:%lu: the file ends in the middle of an answer: save it again, whole",
			source, a->s.line);
	else if (rc < 0 && a->take_failed)
		err_prefix(e, rc, "%s:%lu", source, a->s.line);
	else if (rc < 0)
		lines_where(e, source, rc);
	answer_free(a);
	return rc < 0 ? rc : 0;
}

void prometheus_answer_error(FILE *f, char *out, size_t size)
{
	struct answer *a = alloc_zero(1, sizeof(*a));
	char head[200];
	size_t n = fread(head, 1, sizeof(head) - 1, f);
	FILE *again;

	/* Error answers are short; a longer text is a page without useful content. */
	head[n] = '\0';
	for (char *p = head; *p; p++)
		if (*p == '\n' || *p == '\r' || *p == '\t')
			*p = ' ';
	text_clean(head, out, size);
	a->s.line = 1;
	if (n && head[0] == '{') {
		char *all;
		size_t length;

		again = alloc_text(&all, &length);
		fwrite(head, 1, n, again);
		for (int c, i = 0; i < LABELS_BYTES && (c = getc(f)) != EOF; i++)
			putc(c, again);
		fclose(again);
		a->s.f = fmemopen(all, length, "r");
		if (a->s.f && read_envelope(a) >= 0 && *a->error)
			snprintf(out, size, "%s", a->error);
		if (a->s.f)
			fclose(a->s.f);
		free(all);
	}
	free(a);
}
