#include "diag/import/prometheus_answer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/json_scan.h"
#include "harness/base/alloc.h"
#include "harness/base/text.h"

enum { LABELS_BYTES = 64 * 1024, WARNINGS_MAX = 5 };

struct answer {
	struct json_scan s;
	const char *source, *metric;
	struct labels *labels; /* NULL: only the error is wanted */
	const struct import_sink *sink;
	struct import_said *said;
	struct err *e;
	uint32_t series; /* of the element that is being read */
	bool has_series, wanted, failed;
	bool sink_failed; /* the error is not the answer's */
	bool histograms;
	bool partial;
	unsigned warnings, infos;
	char error[600];
	char arena[LABELS_BYTES];
};

static int scan(struct answer *a)
{
	return json_scan(&a->s, a->e);
}

static int bad(struct answer *a, const char *what)
{
	return err_set(a->e, -EINVAL, "%lu: %s", a->s.line, what);
}

/* {"name": "value", ...}, without __name__ ('*name' gets it). */
static int read_labels(struct answer *a, struct label *v, size_t *n, const char **name)
{
	int rc = json_scan_want(&a->s, JSON_SCAN_OBJECT, "\"metric\"", a->e);
	size_t used = 0;
	char *text[2];

	while (rc >= 0 && (rc = scan(a)) == JSON_SCAN_KEY) {
		for (int i = 0; i < 2; i++) {
			if (i &&
				(rc = json_scan_want(&a->s, JSON_SCAN_STRING, "a label", a->e)) < 0)
				return rc;
			if (a->s.cut || used + a->s.length + 1 > sizeof(a->arena))
				return bad(a, "a series has labels that are too long");
			text[i] = memcpy(a->arena + used, a->s.text, a->s.length + 1);
			used += a->s.length + 1;
		}
		if (!strcmp(text[0], "__name__"))
			*name = text[1];
		else if (*n == LABELS_MAX)
			return bad(a, "a series has too many labels");
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

/* [1.5, "2"]: behind the bracket. */
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
		return bad(a, "a value is no number");
	rc = json_scan_want(&a->s, JSON_SCAN_ARRAY_END, "the end of a sample", a->e);
	if (rc < 0 || !a->wanted)
		return rc;
	rc = labels_sample(a->labels, a->series, time_s, value, a->sink, a->said, a->e);
	a->sink_failed = rc < 0;
	return rc;
}

static int read_values(struct answer *a)
{
	int rc;

	if (!a->has_series)
		return bad(a, "a series has values before its labels");
	if (!a->sink)
		return json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
	rc = json_scan_want(&a->s, JSON_SCAN_ARRAY, "\"values\"", a->e);
	while (rc >= 0 && (rc = scan(a)) == JSON_SCAN_ARRAY)
		rc = read_point(a);
	if (rc >= 0 && rc != JSON_SCAN_ARRAY_END)
		return bad(a, "a sample is not [time, \"value\"]");
	return rc;
}

static int read_element(struct answer *a)
{
	int rc;

	a->has_series = false;
	while ((rc = scan(a)) == JSON_SCAN_KEY) {
		if (!strcmp(a->s.text, "metric")) {
			rc = read_metric(a);
		} else if (!strcmp(a->s.text, "values")) {
			rc = read_values(a);
		} else {
			a->histograms |= !strcmp(a->s.text, "histograms");
			rc = json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
		}
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int read_result(struct answer *a)
{
	int rc = json_scan_want(&a->s, JSON_SCAN_ARRAY, "\"result\"", a->e);

	while (rc >= 0 && (rc = scan(a)) == JSON_SCAN_OBJECT)
		rc = read_element(a);
	if (rc >= 0 && rc != JSON_SCAN_ARRAY_END)
		return bad(a, "a series is not an object");
	return rc;
}

static int read_data(struct answer *a)
{
	int rc;

	if (!a->labels)
		return json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
	rc = json_scan_want(&a->s, JSON_SCAN_OBJECT, "\"data\"", a->e);
	while (rc >= 0 && (rc = scan(a)) == JSON_SCAN_KEY) {
		if (!strcmp(a->s.text, "resultType")) {
			rc = json_scan_want(&a->s, JSON_SCAN_STRING, "\"resultType\"", a->e);
			if (rc >= 0 && strcmp(a->s.text, "matrix"))
				return bad(a, "the result is no matrix of series");
		} else if (!strcmp(a->s.text, "result")) {
			rc = read_result(a);
		} else {
			rc = json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
		}
	}
	return rc;
}

/* Warnings say that series or samples are missing: a store that did not answer, a limit. */
static void take_warning(struct answer *a)
{
	char clean[300], note[400];

	if (a->warnings++ >= WARNINGS_MAX)
		return;
	text_clean(a->s.text, clean, sizeof(clean));
	snprintf(note, sizeof(note), "the server warns: %s", clean);
	import_note_partial(a->said, note);
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

/* "warnings" or "infos": a list of texts, one text, or null. */
static int read_texts(struct answer *a, void (*take)(struct answer *a))
{
	int rc = scan(a);

	if (rc == JSON_SCAN_STRING)
		take(a);
	if (rc != JSON_SCAN_ARRAY)
		return json_scan_skip(&a->s, rc, a->e);
	while ((rc = scan(a)) == JSON_SCAN_STRING)
		take(a);
	return rc < 0 || rc == JSON_SCAN_ARRAY_END ? rc : bad(a, "a warning is no text");
}

/* Of VictoriaMetrics: a node that stores series did not answer. */
static int read_partial(struct answer *a)
{
	int rc = scan(a);

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

static int read_envelope(struct answer *a)
{
	bool data = false;
	int rc = json_scan_want(&a->s, JSON_SCAN_OBJECT, "the answer", a->e);

	while (rc >= 0 && (rc = scan(a)) == JSON_SCAN_KEY) {
		if (!strcmp(a->s.text, "status")) {
			rc = json_scan_want(&a->s, JSON_SCAN_STRING, "\"status\"", a->e);
			a->failed = rc >= 0 && strcmp(a->s.text, "success") != 0;
		} else if (!strcmp(a->s.text, "data")) {
			rc = read_data(a);
			data = true;
		} else if (!strcmp(a->s.text, "error")) {
			rc = read_error(a);
		} else if (!strcmp(a->s.text, "warnings")) {
			rc = read_texts(a, take_warning);
		} else if (!strcmp(a->s.text, "infos")) {
			rc = read_texts(a, take_info);
		} else if (!strcmp(a->s.text, "isPartial")) {
			rc = read_partial(a);
		} else {
			rc = json_scan_skip(&a->s, JSON_SCAN_KEY, a->e);
		}
	}
	if (rc < 0 || a->failed)
		return rc;
	return data ? 0 : bad(a, "the answer has no \"data\"");
}

int prometheus_answer_read(FILE *f, const char *source, const char *metric, struct labels *labels,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct answer *a = alloc_zero(1, sizeof(*a));
	int rc;

	a->s.f = f;
	a->s.line = 1;
	a->source = source;
	a->metric = metric;
	a->labels = labels;
	a->sink = sink;
	a->said = said;
	a->e = e;
	rc = read_envelope(a);
	if (rc >= 0 && a->failed)
		rc = err_set(e, -EINVAL, "%s: %s", source, *a->error ? a->error : "an error");
	else if (rc == -EINVAL && !a->sink_failed)
		rc = err_prefix(e, -EPROTO, "%s: the answer is not Prometheus's: line", source);
	else if (rc < 0)
		rc = err_prefix(e, rc, "%s", source);
	if (a->partial)
		import_note_partial(said, "the server says that its answer is partial (isPartial)");
	if (a->warnings > WARNINGS_MAX)
		import_note_partial(said, "the server has more warnings");
	if (a->histograms && sink && rc >= 0)
		import_note(said,
			"native histograms are left out; ask for "
			"histogram_quantile() of them");
	free(a);
	return rc < 0 ? rc : 0;
}

void prometheus_answer_error(FILE *f, char *out, size_t size)
{
	struct answer *a = alloc_zero(1, sizeof(*a));
	char head[200];
	size_t n = fread(head, 1, sizeof(head) - 1, f);
	FILE *again;

	/* Error answers are short; what is longer is a page that says nothing to us. */
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
