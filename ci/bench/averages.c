#include "ci/bench/averages.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/flows.h"

#define SECOND_NS 1e9

/* Whole seconds of an attempt, since its start. */
struct window {
	int32_t from, to;
};

struct printing {
	FILE *f;
	const json_t *row;
	struct window window;
};

double averages_depth(const struct flow *f, size_t layer, uint32_t node, int32_t from, int32_t to)
{
	double sum = 0;

	for (int32_t s = from; s < to; s++)
		sum += flow_depth(f, layer, node, s).average;
	return to > from ? sum / (to - from) : NAN;
}

/* ---- windows ---- */

static bool is_faulty(const json_t *row)
{
	return json_array_size(jget(row, "victims")) > 0 && jget_int(row, "onset_ns") &&
		jget_int(row, "offset_ns");
}

static double since_start_s(const json_t *row, const char *what)
{
	return (double)(jget_int(row, what) - jget_int(row, "start_ns")) / SECOND_NS;
}

/* Means over the run's faulty attempts: a control has neither onset nor offset. */
static void usual_window(const json_t *rows, double *onset_s, double *offset_s)
{
	const json_t *row;
	size_t i, n = 0;

	*onset_s = *offset_s = 0;
	json_array_foreach(rows, i, row) {
		if (jget_int(row, "training") || !is_faulty(row))
			continue;
		*onset_s += since_start_s(row, "onset_ns");
		*offset_s += since_start_s(row, "offset_ns");
		n++;
	}
	if (n) {
		*onset_s /= (double)n;
		*offset_s /= (double)n;
	}
}

static int window_of(const json_t *row, const double usual_s[2], int32_t skip_s, struct window *out,
	struct err *e)
{
	const double onset_s = is_faulty(row) ? since_start_s(row, "onset_ns") : usual_s[0];
	const double offset_s = is_faulty(row) ? since_start_s(row, "offset_ns") : usual_s[1];
	const int64_t seconds = jget_int(row, "seconds");

	*out = (struct window){
		(int32_t)ceil(onset_s) + skip_s, (int32_t)fmin(floor(offset_s), (double)seconds)};
	if (out->from < 0 || out->to <= out->from)
		return err_set(e, -EINVAL,
			"cell %" PRIi64 " has no whole second from %d s after the onset to the end "
			"of the fault",
			jget_int(row, "cell"), skip_s);
	return 0;
}

/* ---- rows ---- */

static bool is_victim(const json_t *row, const char *server)
{
	const json_t *name;
	size_t i;

	json_array_foreach(jget(row, "victims"), i, name)
		if (!strcmp(json_string_value(name), server))
			return true;
	return false;
}

static void print_row(
	const struct printing *p, const char *server, const char *component, double average)
{
	const char *fault = jget_text(p->row, "fault");

	fprintf(p->f, "%" PRIi64 ",%.*s,%s,%d,%s,%.6g\n", jget_int(p->row, "cell"),
		(int)strcspn(fault, "("), fault, server, is_victim(p->row, server), component,
		average);
}

static bool find_reading(const char *name, enum reading *out)
{
	for (int r = 0; r < READING_TOTAL; r++)
		if (!strcmp(reading_name((enum reading)r), name)) {
			*out = (enum reading)r;
			return true;
		}
	return false;
}

/* Seconds without a sample were not measured. */
static int print_reading(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	const struct printing *p = ctx;
	double sum = 0, count = 0;
	enum reading r;

	(void)e;
	if (!find_reading(metric, &r) || reading_is_tcp(r))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (samples[i].second >= p->window.from && samples[i].second < p->window.to) {
			sum += samples[i].sum_s;
			count++;
		}
	if (count > 0)
		print_row(p, server, metric, sum / count);
	return 0;
}

static int print_layers(
	const struct printing *p, struct store *s, struct flow_counts *counts, struct err *e)
{
	const struct flow_sink sink = {0};
	struct flows *flows = NULL;
	const struct flow *f;
	char why[200];
	int rc = flows_new(s, p->row, NULL, &sink, &flows, e) ?: flow_run(flows_flow(flows), e);

	if (!rc && !flows_complete(flows, why, sizeof(why)))
		rc = err_set(e, -EINVAL, "cell %" PRIi64 ": %s", jget_int(p->row, "cell"), why);
	if (!rc) {
		f = flows_flow(flows);
		*counts = *flow_counts(f);
		for (uint32_t node = 0; node < flow_nodes(f); node++)
			for (size_t l = 0; flows_is_server(flows, node) && l < flow_layers(f); l++)
				print_row(p, flow_node_name(f, node), flow_layer_name(f, l),
					averages_depth(f, l, node, p->window.from, p->window.to));
	}
	flows_free(flows);
	return rc;
}

static int print_attempt(struct printing *p, struct store *s, struct err *e)
{
	struct flow_counts c;
	int rc = print_layers(p, s, &c, e);

	if (!rc)
		fprintf(p->f,
			"# cell %" PRIi64 ": seconds %d to %d; %" PRIu64 " of %" PRIu64
			" receives bound, %" PRIu64 " of %" PRIu64 " requests whole\n",
			jget_int(p->row, "cell"), p->window.from, p->window.to, c.receives_bound,
			c.receives, c.requests_whole, c.requests);
	return rc ?: store_samples(s, jget_int(p->row, "attempt"), print_reading, p, e);
}

int averages_print(struct store *s, int32_t skip_s, FILE *f, struct err *e)
{
	json_auto_t *rows = NULL;
	auto_free char *fs = NULL;
	double usual_s[2];
	size_t i;
	json_t *row;
	int rc = store_rows(s, ROWS_TRACED, 0, &rows, e);

	if (!rc && (rc = store_get(s, "file_system_type", &fs, e)) >= 0)
		rc = 0;
	if (rc)
		return rc;
	usual_window(rows, &usual_s[0], &usual_s[1]);
	fprintf(f, "# run: %s\n# file system: %s\n", store_run_id(s), fs ? fs : "?");
	fprintf(f, "# window: from %d s after the onset to the end of the fault\n", skip_s);
	fputs("cell,fault,server,victim,component,average\n", f);
	json_array_foreach(rows, i, row) {
		struct printing p = {.f = f, .row = row};

		if (jget_int(row, "training"))
			continue;
		rc = window_of(row, usual_s, skip_s, &p.window, e) ?: print_attempt(&p, s, e);
		if (rc)
			return rc;
	}
	if (fflush(f) || ferror(f))
		return err_errno(e, -EIO, "cannot write averages");
	return 0;
}
