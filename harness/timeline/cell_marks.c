/* Phases, the fault's onset and offset, and the verdicts, at their moments. */
#include <stdio.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/timeline/cell_impl.h"

static int32_t track_of(const struct filling *c, const char *name)
{
	for (size_t i = 0; name && i < c->n_nodes; i++)
		if (!strcmp(c->nodes[i].name, name))
			return c->nodes[i].track;
	return TIMELINE_NONE;
}

/* The axis begins with the measurement: a fault may have been active before. */
static int64_t onset_of(const struct filling *c)
{
	const int64_t onset = jget_int(c->row, "onset_ns");

	return onset && onset < c->start_ns ? c->start_ns : onset;
}

static void phase(struct filling *c, int32_t root, int64_t from, int64_t to, const char *name)
{
	if (to > from)
		timeline_mark_add(c->t, TIMELINE_PHASE, root, from, to, name);
}

static void phases(struct filling *c, int32_t root, int64_t end)
{
	const int64_t onset = onset_of(c), offset = jget_int(c->row, "offset_ns");

	if (!onset) {
		phase(c, root, c->start_ns, end, "no fault");
		return;
	}
	phase(c, root, c->start_ns, onset, "before");
	phase(c, root, onset, offset ? offset : end, "fault");
	if (offset)
		phase(c, root, offset, end, "after");
}

static void fault(struct filling *c, int64_t end)
{
	const json_t *victims = jget(c->row, "victims"), *v;
	const int64_t onset = onset_of(c), offset = jget_int(c->row, "offset_ns");
	const char *name = jget_text(c->row, "fault");
	size_t i;

	if (!onset)
		return;
	json_array_foreach(victims, i, v) {
		const char *victim = json_string_value(v);
		auto_free char *text = alloc_format(
			"%s on %s", name ? name : "fault", victim ? victim : "?");

		timeline_mark_add(c->t, TIMELINE_FAULT, track_of(c, victim), onset,
			offset ? offset : end, text);
	}
}

/* When a server was first indicted, on the axis; at the end if the verdict has no time. */
static int64_t cell_marks_moment(
	const struct filling *c, const json_t *verdict, const char *server, int64_t end)
{
	const json_t *time = jget(verdict, "time_s");
	double s;

	if (json_is_object(time))
		time = jget(time, server);
	s = json_number_value(time);
	if (!json_is_number(time) || !(s >= 0 && s < 1e9))
		return end;
	return c->start_ns + (int64_t)(s * 1e9);
}

/* Only the union over metrics: "any". */
static void verdict(struct filling *c, const json_t *row, int64_t end)
{
	const json_t *v = jget(row, "verdict"), *servers = jget(v, "indicted"), *one;
	const char *detector = jget_text(row, "detector"), *metric = jget_text(row, "metric");
	size_t i;

	if (!detector || detector_is_null(detector) || !metric || strcmp(metric, "any") != 0)
		return;
	if (!json_array_size(servers))
		cell_note(c, detector, jget_true(v, "abstain") ? "abstained" : "nobody indicted");
	json_array_foreach(servers, i, one) {
		const char *server = json_string_value(one);
		auto_free char *text = alloc_format("%s: %s", detector, server ? server : "?");
		const int64_t at = server ? cell_marks_moment(c, v, server, end) : end;

		timeline_mark_add(c->t, TIMELINE_VERDICT, track_of(c, server), at, at, text);
		cell_note(c, detector, "%s, %.0f s after the start", server ? server : "?",
			(double)(at - c->start_ns) / 1e9);
	}
}

int cell_marks(struct filling *c, struct store *s, struct err *e)
{
	const int64_t attempt = jget_int(c->row, "attempt");
	const int64_t end = c->start_ns + jget_int(c->row, "seconds") * 1000000000;
	auto_json json_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(s, ROWS_VERDICTS, 0, &rows, e);

	phases(c, c->root, end);
	fault(c, end);
	json_array_foreach(rows, i, row)
		if (jget_int(row, "attempt") == attempt)
			verdict(c, row, end);
	return rc;
}
