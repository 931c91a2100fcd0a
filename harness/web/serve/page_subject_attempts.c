/* A run's attempts with their names on the page, and their faults and verdicts as marks. */
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/web/serve/page_subject_impl.h"

enum { CELLS, ATTEMPTS, VERDICTS }; /* in the order of run_logs_tables */

static const json_t *rows(const struct snapshot *snap, size_t i)
{
	return snap->run ? run_tables_rows(snap->run, i) : NULL;
}

json_t *page_subject_clean(const char *s)
{
	const size_t n = s ? text_clean(s, (char[1]){""}, 1) : 0;
	auto_free char *out = alloc_zero(n + 1, 1);

	text_clean(s ? s : "", out, n + 1);
	return json_string(out);
}

static const json_t *page_subject_attempts_cell_of(const struct snapshot *snap, int64_t number)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows(snap, CELLS), i, row)
		if (jget_int(row, "number") == number)
			return row;
	return NULL;
}

static json_t *victims_of(const json_t *cell)
{
	const char *text = jget_text(cell, "victims");

	return text ? json_loads(text, 0, NULL) : NULL;
}

static bool is_faulty(const json_t *cell)
{
	const char *fault = jget_text(cell, "fault");

	return fault && strcmp(fault, "none") != 0;
}

/* "disk-hog on s2 under ddw"; "recording": a capture, which has no fault. */
static char *page_subject_attempts_text_of(const json_t *cell, const json_t *victims)
{
	const char *workload = jget_text(cell, "workload");
	const json_t *v;
	size_t i, size;
	char *text;
	FILE *f;

	if (workload && !strcmp(workload, "recording") && !is_faulty(cell))
		return alloc_copy(workload);
	f = alloc_text(&text, &size);
	fputs(is_faulty(cell) ? jget_text(cell, "fault") : "no fault", f);
	json_array_foreach(victims, i, v)
		fprintf(f, "%s%s", i ? ", " : " on ",
			json_is_string(v) ? json_string_value(v) : "?");
	if (workload)
		fprintf(f, " under %s", workload);
	fclose(f);
	return text;
}

char *page_subject_cell_title(const struct snapshot *snap, int64_t number, int64_t attempt)
{
	const json_t *cell = page_subject_attempts_cell_of(snap, number);
	auto_json json_t *victims = victims_of(cell);
	auto_free char *text = page_subject_attempts_text_of(cell, victims);

	return attempt > 1
		? alloc_format("cell %lld.%lld: %s", (long long)number, (long long)attempt, text)
		: alloc_format("cell %lld: %s", (long long)number, text);
}

char *page_subject_cell_victim(const struct snapshot *snap, int64_t number)
{
	auto_json json_t *victims = victims_of(page_subject_attempts_cell_of(snap, number));
	const char *first = json_string_value(json_array_get(victims, 0));

	return first ? alloc_copy(first) : NULL;
}

/* The attempt whose marks are being made. */
struct marking {
	json_t *marks;
	const char *title;     /* page_subject_cell_title */
	const json_t *victims; /* of its fault; empty: a control */
	int64_t start_ns;
	double end_s;
};

static double seconds(int64_t ns, int64_t start_ns)
{
	return (double)(ns - start_ns) / 1e9;
}

static json_t *moment_or_null(int64_t ns, int64_t start_ns)
{
	return ns ? json_real(seconds(ns, start_ns)) : json_null();
}

void page_subject_mark_fault(json_t *marks, const char *title, const char *victim, int64_t start_ns,
	const struct page_subject_fault *f)
{
	const char *text = strstr(title, ": ");

	json_array_append_new(marks,
		json_pack("{s:s, s:o, s:o, s:f, s:o, s:o, s:o}", "kind", "fault", "of",
			page_subject_clean(title), "asked", moment_or_null(f->inject_ns, start_ns),
			"from", seconds(f->onset_ns, start_ns), "to",
			moment_or_null(f->offset_ns, start_ns), "text",
			page_subject_clean(text ? text + 2 : title), "server",
			victim ? page_subject_clean(victim) : json_null()));
}

/* When the fault was requested, from the attempt's steps. */
static int64_t inject_of(const json_t *row)
{
	const char *text = jget_text(row, "detail");
	auto_json json_t *detail = text ? json_loads(text, 0, NULL) : NULL;
	const json_t *step;
	size_t i;

	json_array_foreach(jget(detail, "steps"), i, step) {
		const char *name = jget_text(step, "step");

		if (name && !strcmp(name, "inject"))
			return jget_int(step, "at_ns");
	}
	return 0;
}

static void mark_fault(const struct marking *m, const json_t *row)
{
	const struct page_subject_fault f = {.onset_ns = jget_int(row, "onset_ns"),
		.offset_ns = jget_int(row, "offset_ns"),
		.inject_ns = jget_int(row, "onset_ns") ? inject_of(row) : 0};

	if (f.onset_ns)
		page_subject_mark_fault(m->marks, m->title,
			json_string_value(json_array_get(m->victims, 0)), m->start_ns, &f);
}

/* When the server was first indicted; at the end if the verdict has no time. */
static double page_subject_attempts_moment(const json_t *verdict, const char *server, double end_s)
{
	const json_t *time = jget(verdict, "time_s");

	if (json_is_object(time))
		time = jget(time, server);
	return json_is_number(time) && json_number_value(time) >= 0 ? json_number_value(time)
								    : end_s;
}

static bool page_subject_attempts_is_among(const json_t *names, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)names, i, one)
		if (json_is_string(one) && !strcmp(json_string_value(one), name))
			return true;
	return false;
}

/* 'server' NULL: accuses nobody. 'right': a new reference. */
static void mark_said(const struct marking *m, const char *detector, const char *server,
	const char *word, double from, json_t *right)
{
	auto_free char *said = alloc_format("%s: %s", detector, word);

	json_array_append_new(m->marks,
		json_pack("{s:s, s:o, s:f, s:n, s:o, s:o, s:o, s:o}", "kind", "verdict", "of",
			page_subject_clean(m->title), "from", from, "to", "text",
			page_subject_clean(said), "detector", page_subject_clean(detector),
			"server", server ? page_subject_clean(server) : json_null(), "right",
			right));
}

static void mark_verdict(const struct marking *m, const json_t *row)
{
	const char *detector = jget_text(row, "detector"), *metric = jget_text(row, "metric"),
		   *text = jget_text(row, "verdict");
	auto_json json_t *verdict = text ? json_loads(text, 0, NULL) : NULL;
	const json_t *one, *indicted = jget(verdict, "indicted");
	size_t i;

	if (!detector || detector_is_null(detector) || !metric || strcmp(metric, "any") != 0)
		return;
	if (jget_true(verdict, "abstain"))
		mark_said(m, detector, NULL, "abstains", m->end_s, json_null());
	else if (json_is_array(indicted) && !json_array_size(indicted))
		mark_said(m, detector, NULL, "nobody", m->end_s,
			json_boolean(!json_array_size(m->victims)));
	json_array_foreach((json_t *)indicted, i, one) {
		const char *server = json_is_string(one) ? json_string_value(one) : "?";

		mark_said(m, detector, server, server,
			page_subject_attempts_moment(verdict, server, m->end_s),
			json_boolean(page_subject_attempts_is_among(m->victims, server)));
	}
}

json_t *page_subject_marks(const struct snapshot *snap, const json_t *row)
{
	auto_json json_t *victims = victims_of(
		page_subject_attempts_cell_of(snap, jget_int(row, "cell")));
	auto_free char *title = page_subject_cell_title(
		snap, jget_int(row, "cell"), jget_int(row, "number"));
	const struct marking m = {.marks = json_array(),
		.title = title,
		.victims = victims,
		.start_ns = jget_int(row, "start_ns") ?: jget_int(row, "started_ns"),
		.end_s = (double)jget_int(row, "seconds")};
	const json_t *v;
	size_t i;

	mark_fault(&m, row);
	json_array_foreach(rows(snap, VERDICTS), i, v)
		if (jget_int(v, "attempt") == jget_int(row, "id"))
			mark_verdict(&m, v);
	return m.marks;
}

const json_t *page_subject_attempt_rows(const struct snapshot *snap)
{
	return rows(snap, ATTEMPTS);
}

static bool has_logs(const struct snapshot *snap, int64_t attempt)
{
	for (size_t i = 0; i < snap->n_logs; i++)
		if (snap->logs[i].attempt == attempt)
			return true;
	return false;
}

/* Are its logs still being written? */
static bool goes_on(const struct snapshot *snap, int64_t attempt)
{
	for (size_t i = 0; i < snap->n_logs; i++)
		if (snap->logs[i].attempt == attempt && snap->logs[i].goes_on)
			return true;
	return false;
}

static json_t *attempt_of(const struct snapshot *snap, const json_t *row)
{
	const json_t *cell = page_subject_attempts_cell_of(snap, jget_int(row, "cell"));
	const char *outcome = jget_text(row, "outcome");
	auto_json json_t *victims = victims_of(cell);
	auto_free char *text = page_subject_attempts_text_of(cell, victims);

	return json_pack("{s:I, s:I, s:I, s:o, s:b, s:o, s:I, s:b, s:b, s:o}", "attempt",
		(json_int_t)jget_int(row, "id"), "cell", (json_int_t)jget_int(row, "cell"),
		"number", (json_int_t)jget_int(row, "number"), "outcome",
		page_subject_clean(outcome), "goes_on", goes_on(snap, jget_int(row, "id")), "text",
		page_subject_clean(text), "seconds", (json_int_t)jget_int(row, "seconds"),
		"confirmed", outcome && !strcmp(outcome, "confirmed"), "faulty", is_faulty(cell),
		"marks", page_subject_marks(snap, row));
}

json_t *page_subject_attempts(const struct snapshot *snap)
{
	json_t *all = json_array(), *one;
	const json_t *row;
	size_t i;

	json_array_foreach(rows(snap, ATTEMPTS), i, row) {
		one = has_logs(snap, jget_int(row, "id")) ? attempt_of(snap, row) : NULL;
		if (one)
			json_array_append_new(all, one);
	}
	return all;
}
