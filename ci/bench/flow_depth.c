/*
 * flow_depth RUN ...: does peer-robust profit from what requests say of layers? Each confirmed
 * cell of runs that recorded flows is judged three times: from its own metrics; with each layer's
 * time per request ("time"); with each layer's requests in flight ("depth"). By fault and strength:
 * cells with all victims and nobody else named, cells with a healthy server named, and the median
 * of the seconds from the onset to the first alarm for a victim, of the cells that all three found.
 *
 * A metric that the detector does not know it takes for a service time, with the limit of those.
 * Exit code 2: it cannot be done, and one line says why.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/judging/flows.h"
#include "harness/store/store.h"

enum { LAYERS = 12, SERVERS = 64, VARIANTS = 3 };

static const char *const variants[VARIANTS] = {"without", "time", "depth"};

/* What one variant said of a cell. */
struct said {
	bool right, wrong;
	double delay_s;
};

struct trial {
	char fault[80];
	bool faulty;
	struct said said[VARIANTS];
};

static struct trial *cells;
static size_t n_cells;

/* A cell's series: own metrics by their numbers, layers after them. */
struct series {
	const char *servers[SERVERS];
	size_t n_servers;
	const char *metrics[METRIC_COUNT + LAYERS];
	char layers[LAYERS][40];
	size_t n_layers;
	struct sample *samples;
	size_t n, room, n_own;
};

static void put(struct series *s, struct sample one)
{
	if (s->n == s->room) {
		s->room = s->room ? s->room * 2 : 1024;
		s->samples = alloc_resize(s->samples, s->room, sizeof(*s->samples));
	}
	s->samples[s->n++] = one;
}

static size_t server_of(const struct series *s, const char *name)
{
	size_t i = 0;

	while (i < s->n_servers && strcmp(s->servers[i], name) != 0)
		i++;
	return i;
}

static int add_own(void *ctx, const char *metric, const char *server, const struct sample *samples,
	size_t n, struct err *e)
{
	struct series *s = ctx;
	enum metric m;
	const size_t i = server_of(s, server);

	(void)e;
	for (size_t k = 0; i < s->n_servers && !metric_from_name(metric, &m) && k < n; k++) {
		struct sample one = samples[k];

		one.metric = m;
		one.server = (uint32_t)i;
		put(s, one);
	}
	return 0;
}

static void add_layers(struct series *s, const struct flows *flows, int32_t seconds, bool depth)
{
	const struct flow *f = flows_flow(flows);

	s->n = s->n_own;
	for (uint32_t node = 0; node < flow_nodes(f); node++) {
		const size_t i = server_of(s, flow_node_name(f, node));

		for (size_t l = 0; i < s->n_servers && l < s->n_layers; l++)
			for (int32_t k = 0; k < seconds; k++) {
				const struct flow_depth d = flow_depth(f, l, node, k);

				if (!depth && d.entered <= 0)
					continue;
				put(s,
					(struct sample){.metric = (enum metric)(METRIC_COUNT + l),
						.server = (uint32_t)i,
						.second = k,
						.count = depth ? 1 : (uint64_t)lround(d.entered),
						.sum_s = d.average,
						.max_s = d.average});
			}
	}
}

/* ---- one cell ---- */

static bool is_in(const json_t *list, const char *name)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v)
		if (!strcmp(json_string_value(v), name))
			return true;
	return false;
}

static void read_verdict(const json_t *verdicts, const json_t *row, struct said *out)
{
	const json_t *any = json_array_get(verdicts, json_array_size(verdicts) - 1);
	const json_t *victims = jget(row, "victims"), *indicted = jget(any, "indicted"), *v;
	const double onset_s = (double)(jget_int(row, "onset_ns") - jget_int(row, "start_ns")) *
		1e-9;
	size_t i, hits = 0;

	*out = (struct said){.delay_s = NAN};
	json_array_foreach((json_t *)indicted, i, v) {
		const bool hit = is_in(victims, json_string_value(v));
		const json_t *at = jget(jget(any, "time_s"), json_string_value(v));

		hits += hit;
		out->wrong |= !hit;
		if (hit && json_is_number(at))
			out->delay_s = fmin(isnan(out->delay_s) ? INFINITY : out->delay_s,
				json_number_value(at) - onset_s);
	}
	out->right = !out->wrong && hits == json_array_size(victims);
}

static int ask(struct detector *d, const json_t *model, const struct series *s, const json_t *row,
	size_t n, struct said *out, struct err *e)
{
	const struct detector_run run = {.id = "cell",
		.seconds = (int32_t)jget_int(row, "seconds"),
		.servers = s->servers,
		.n_servers = s->n_servers,
		.samples = s->samples,
		.n_samples = n,
		.metrics = s->metrics,
		.n_metrics = METRIC_COUNT + (n > s->n_own ? s->n_layers : 0)};
	json_t *verdicts = NULL;
	int rc = detector_diagnose(d, model, &run, &verdicts, e);

	if (!rc)
		read_verdict(verdicts, row, out);
	json_decref(verdicts);
	return rc;
}

static int name_all(struct series *s, const json_t *row, const struct flow *f, struct err *e)
{
	const json_t *servers = jget(jget(jget(row, "detail"), "reduction"), "servers"), *v;
	size_t i;

	if (json_array_size(servers) > SERVERS || flow_layers(f) > LAYERS)
		return err_set(e, -EINVAL, "cell %lld has too many servers or layers",
			(long long)jget_int(row, "cell"));
	json_array_foreach((json_t *)servers, i, v)
		s->servers[s->n_servers++] = jget_text(v, "name");
	for (i = 0; i < METRIC_COUNT; i++)
		s->metrics[i] = metric_name((enum metric)i);
	s->n_layers = flow_layers(f);
	for (i = 0; i < s->n_layers; i++) {
		snprintf(s->layers[i], sizeof(s->layers[i]), "layer_%s", flow_layer_name(f, i));
		s->metrics[METRIC_COUNT + i] = s->layers[i];
	}
	return 0;
}

static int judge_cell(struct store *store, const json_t *row, struct detector *d,
	const json_t *model, struct err *e)
{
	const struct flow_sink sink = {0};
	struct series s = {.n_servers = 0};
	struct flows *flows = NULL;
	struct trial c = {.faulty = json_array_size(jget(row, "victims")) > 0};
	char why[200];
	int rc = flows_new(store, row, NULL, &sink, &flows, e) ?: flow_run(flows_flow(flows), e);

	if (!rc && !flows_complete(flows, why, sizeof(why)))
		rc = err_set(e, -EINVAL, "cell %lld: %s", (long long)jget_int(row, "cell"), why);
	rc = rc ?: name_all(&s, row, flows_flow(flows), e);
	rc = rc ?: store_samples(store, jget_int(row, "attempt"), add_own, &s, e);
	s.n_own = s.n;
	for (int v = 0; v < VARIANTS && !rc; v++) {
		if (v)
			add_layers(&s, flows, (int32_t)jget_int(row, "seconds"), v == 2);
		rc = ask(d, model, &s, row, s.n, &c.said[v], e);
	}
	flows_free(flows);
	free(s.samples);
	if (rc)
		return rc;
	snprintf(c.fault, sizeof(c.fault), "%s", jget_text(row, "fault"));
	cells = alloc_resize(cells, n_cells + 1, sizeof(*cells));
	cells[n_cells++] = c;
	return 0;
}

static int judge_run(const char *path, struct err *e)
{
	struct detector *d = NULL;
	struct store *s = NULL;
	json_t *rows = NULL, *model = NULL, *row;
	size_t i;
	int rc = store_open(path, &s, e);

	if (!rc && store_is_corpus(s))
		rc = err_set(e, -EINVAL, "'%s' is a corpus: the traces are not in it", path);
	rc = rc ?: store_rows(s, ROWS_TRACED, 0, &rows, e);
	rc = rc ?: detector_load("peer-robust", NULL, &d, e);
	rc = rc ?: detector_train(d, NULL, 0, &model, e);
	json_array_foreach(rows, i, row)
		if (!rc && !jget_true(row, "training"))
			rc = judge_cell(s, row, d, model, e);
	detector_free(d);
	json_decref(model);
	json_decref(rows);
	store_close(s);
	return rc;
}

/* ---- the table ---- */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of the cells of a fault that all variants found. */
static double median_delay(const char *fault, int variant)
{
	double *v = alloc_zero(n_cells + 1, sizeof(*v)), m = NAN;
	size_t n = 0;

	for (size_t i = 0; i < n_cells; i++) {
		bool all = !strcmp(cells[i].fault, fault);

		for (int k = 0; k < VARIANTS; k++)
			all = all && cells[i].said[k].right && !isnan(cells[i].said[k].delay_s);
		if (all)
			v[n++] = cells[i].said[variant].delay_s;
	}
	if (n) {
		qsort(v, n, sizeof(*v), by_size);
		m = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	}
	free(v);
	return m;
}

static void print_fault(const char *fault)
{
	for (int k = 0; k < VARIANTS; k++) {
		const double delay_s = median_delay(fault, k);
		size_t n = 0, right = 0, wrong = 0;
		bool faulty = false;

		for (size_t i = 0; i < n_cells; i++) {
			if (strcmp(cells[i].fault, fault) != 0)
				continue;
			n++;
			faulty = cells[i].faulty;
			right += cells[i].said[k].right;
			wrong += cells[i].said[k].wrong;
		}
		printf("| %s | %s |", fault, variants[k]);
		if (faulty)
			printf(" %zu of %zu | %zu |", right, n, wrong);
		else
			printf(" - | %zu of %zu |", wrong, n);
		if (isnan(delay_s))
			puts(" - |");
		else
			printf(" %.1f |\n", delay_s);
	}
}

static void print_table(void)
{
	puts("| fault | layers | right | healthy named | delay, s |\n|---|---|--:|--:|--:|");
	for (size_t i = 0; i < n_cells; i++) {
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen = seen || !strcmp(cells[k].fault, cells[i].fault);
		if (!seen)
			print_fault(cells[i].fault);
	}
}

int main(int argc, char **argv)
{
	struct err e = {""};
	int rc = argc > 1 ? 0 : err_set(&e, -EINVAL, "usage: flow_depth RUN ...");

	for (int i = 1; i < argc && !rc; i++)
		rc = judge_run(argv[i], &e);
	if (rc)
		fprintf(stderr, "flow_depth: %s\n", e.text);
	else
		print_table();
	free(cells);
	return rc ? 2 : 0;
}
