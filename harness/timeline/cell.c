/* Puts a cell of a run on a timeline. */
#include "harness/timeline/cell.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/writings.h"
#include "harness/timeline/cell_impl.h"

/* ---- choosing the cell ---- */

/* Rank, lower is better: scored with a fault, scored, neither. */
static int worth(const json_t *row)
{
	const bool training = jget_int(row, "training") || jget_true(row, "training");

	if (!jget_int(row, "files"))
		return 3;
	return training ? 2 : json_array_size(jget(row, "victims")) ? 0 : 1;
}

static bool is_better(const json_t *a, const json_t *b)
{
	if (!b || worth(a) != worth(b))
		return !b || worth(a) < worth(b);
	return jget_int(a, "cell") < jget_int(b, "cell");
}

int cell_choose(struct store *s, int64_t number, size_t recording, json_t **out, struct err *e)
{
	auto_json json_t *rows = NULL;
	json_t *row, *best = NULL;
	size_t i;
	int rc = store_rows(s, ROWS_TRACED, 0, &rows, e);

	if (rc)
		return rc;
	json_array_foreach(rows, i, row)
		if (number ? jget_int(row, "cell") == number : is_better(row, best))
			best = row;
	if (!best && number)
		return err_set(e, -ENOENT, "the run has no confirmed cell %lld", (long long)number);
	if (!best)
		return err_set(e, -ENOENT, "'%s' has no confirmed cell yet", store_folder(s));
	return writing_choose(best, recording, out, e);
}

char *cell_title(const struct store *s, const json_t *row)
{
	const json_t *victims = jget(row, "victims"), *v;
	const char *workload = jget_text(row, "workload"), *fault = jget_text(row, "fault");
	auto_free char *written = writing_name(row);
	size_t i, size;
	char *text;
	FILE *f = alloc_text(&text, &size);

	fprintf(f, "%s, cell %lld: %s", store_run_id(s), (long long)jget_int(row, "cell"),
		fault && strcmp(fault, "none") != 0 ? fault : "no fault");
	json_array_foreach(victims, i, v)
		fprintf(f, "%s%s", i ? ", " : " on ",
			json_is_string(v) ? json_string_value(v) : "?");
	if (workload)
		fprintf(f, " under %s", workload);
	if (*written)
		fprintf(f, ", %s", written);
	fclose(f);
	return text;
}

/* ---- two passes over the logs: clocks first, then everything ---- */

static void opened_first(void *ctx, struct stream *s, const char *node)
{
	(void)node;
	cell_watch(ctx, s, 0, false);
}

static void opened(void *ctx, struct stream *s, const char *node)
{
	const enum cell_log log = stream_spec(s)->owner == OWNER_APP ? LOG_APPLICATION : LOG_SYSTEM;
	struct filling *c = ctx;
	uint32_t i = 0;

	while (i < c->n_nodes && strcmp(c->nodes[i].name, node) != 0)
		i++;
	if (i < c->n_nodes)
		c->nodes[i].logs[log] = s;
	cell_watch(c, s, i, true);
}

static bool has_node(const struct filling *c, const struct place *p)
{
	for (size_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].place == p)
			return true;
	return false;
}

static void add_node(struct filling *c, const struct place *p)
{
	c->nodes[c->n_nodes++] = (struct cell_node){
		.name = p->name, .place = p, .server = places_is_server(&c->places, p)};
}

/* After the first pass: flow.h's nodes first, in its order. */
static void find_nodes(struct filling *c)
{
	const struct flow *f = flows_flow(c->flows);
	const struct place *p;

	c->nodes = alloc_zero(c->places.n, sizeof(*c->nodes));
	for (uint32_t i = 0; i < flow_nodes(f); i++)
		if ((p = places_find(&c->places, flow_node_name(f, i))))
			add_node(c, p);
	for (size_t k = 0; k < c->places.n; k++)
		if (!has_node(c, &c->places.place[k]))
			add_node(c, &c->places.place[k]);
}

static int cell_read_all(
	struct filling *c, struct store *s, const char *fs, bool draw, struct err *e)
{
	static const struct flow_sink nothing = {0};
	struct flow_sink sink = draw ? cell_sink : nothing;
	int rc;

	sink.ctx = c;
	for (size_t i = 0; i < c->n_nodes; i++)
		memset(c->nodes[i].logs, 0, sizeof(c->nodes[i].logs));
	flows_free(c->flows);
	c->flows = NULL;
	rc = flows_open(s, c->row, fs, &sink, draw ? opened : opened_first, c, &c->flows, e);
	return rc ? rc : flow_run(flows_flow(c->flows), e);
}

static void add_missing(struct cell_found *found, const char *text)
{
	const size_t n = strlen(found->missing);

	snprintf(found->missing + n, sizeof(found->missing) - n, "%s%s", n ? "; " : "", text);
}

/* Results of the first pass: how much there is to show. */
static void cell_look(struct filling *c, struct cell_found *found)
{
	const struct flow_counts *n = flow_counts(flows_flow(c->flows));
	const char *trouble;
	char why[512];

	c->with_messages = !flows_complete(c->flows, why, sizeof(why));
	found->requests = n->requests;
	if (!c->calls)
		snprintf(why, sizeof(why),
			"the logs have no calls, only sums, so there are counters and marks "
			"only: run the scenario with tracer = { \"ebpf\", mode = \"flow\", "
			"heads = true }");
	if (c->with_messages && (!c->calls || !*found->missing))
		add_missing(found, why);
	for (size_t i = 0; (trouble = flows_trouble(c->flows, i)); i++)
		add_missing(found, trouble);
}

static void note_bindings(struct filling *c)
{
	size_t size;
	auto_free char *text = NULL;
	FILE *f = alloc_text(&text, &size);
	char *save, *line;

	flow_print_counts(flows_flow(c->flows), f);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *rest = strstr(line, "  "); /* the column of numbers */
		char *to = line;

		if (!c->with_messages && rest) {
			for (const char *from = line; *from; from++)
				if (*from != ' ' || from[1] != ' ')
					*to++ = *from;
			*to = 0;
			cell_note(c, "bound", "%s", line);
		}
	}
}

/* ---- one cell ---- */

/* The recorded adapter, or "none", which describes no messages. */
static int choose_fs(
	struct filling *c, struct store *s, struct cell_found *found, char **out, struct err *e)
{
	int rc = 1;

	*out = NULL;
	if (c->o->file_system)
		*out = alloc_copy(c->o->file_system);
	else
		rc = store_get(s, "file_system_type", out, e);
	if (rc == 0) {
		*out = alloc_copy("none");
		add_missing(found,
			"the run does not record its file system, so there are no "
			"requests; "
			"give it with --file-system");
	}
	return rc < 0 ? rc : 0;
}

static int64_t in_ns(double s)
{
	return s > 9e9 ? INT64_MAX / 2 : s < -9e9 ? INT64_MIN / 4 : (int64_t)llround(s * 1e9);
}

static int cell_begin(struct filling *c, struct store *s, struct cell_found *found, struct err *e)
{
	const json_t *cluster = jget(jget(c->row, "detail"), "reduction");
	int rc = 0;

	if (store_is_corpus(s))
		rc = err_set(
			e, -EINVAL, "'%s' is a corpus: the traces are not in it", store_folder(s));
	else if (!json_is_object(cluster))
		rc = err_set(e, -EINVAL,
			"'%s' is of an older version, which did not keep nodes' addresses and "
			"clocks",
			store_folder(s));
	rc = rc ?: places_read(&c->places, cluster, e);
	if (rc)
		return rc;
	c->start_ns = jget_int(c->row, "start_ns");
	c->from_ns = c->start_ns + in_ns(c->o->from_s);
	c->to_ns = c->o->to_s > 0 ? c->start_ns + in_ns(c->o->to_s) : INT64_MAX;
	c->logs_from_s = jget_real(jget(c->row, "written"), "from_s");
	c->logs_to_s = jget_real(jget(c->row, "written"), "to_s");
	c->slower_ns = in_ns(c->o->slower_s);
	found->start_ns = c->start_ns;
	found->end_ns = c->start_ns + jget_int(c->row, "seconds") * 1000000000;
	return 0;
}

static void cell_tell(struct filling *c, struct cell_found *found)
{
	found->track = c->root;
	for (size_t i = 0; i < c->n_nodes && i < CELL_NODES; i++) {
		found->nodes[i] = c->nodes[i].track;
		found->names[found->n_nodes++] = alloc_copy(c->nodes[i].name);
	}
	if (*found->missing)
		cell_note(c, "missing", "%s", found->missing);
}

static int cell_fill(struct filling *c, struct store *s, struct cell_found *found, struct err *e)
{
	auto_free char *fs = NULL, *name = NULL, *title = cell_title(s, c->row);
	auto_free char *folder = places_folder(store_folder(s), c->row);
	auto_free char *written = writing_name(c->row);
	int rc = cell_begin(c, s, found, e);
	struct err unread;

	rc = rc ?: choose_fs(c, s, found, &fs, e);
	rc = rc ?: cell_read_all(c, s, fs, false, e);
	if (rc)
		return rc;
	find_nodes(c);
	cell_look(c, found);
	cell_words(c);
	if (c->logs_to_s > 0)
		cell_note(c, "recording",
			"the flight recorder's, which holds at most %.1f s to %.1f s of the cell: "
			"%s",
			c->logs_from_s, c->logs_to_s, written);
	cell_note(c, "cell", "%s, attempt %lld", title, (long long)jget_int(c->row, "number"));
	cell_clocks(c);
	name = alloc_format("%s%scell %lld", c->o->several ? store_run_id(s) : "",
		c->o->several ? ", " : "", (long long)jget_int(c->row, "cell"));
	c->root = timeline_track(c->t, TIMELINE_NONE, TIMELINE_CLUSTER, name);
	cell_tracks(c, c->root);
	rc = c->calls ? cell_read_all(c, s, fs, true, e) : 0;
	if (rc)
		return rc;
	note_bindings(c);
	cell_depths(c);
	if (cell_readings(c, folder, &unread))
		add_missing(found, unread.text);
	rc = cell_marks(c, s, e);
	cell_tell(c, found);
	return rc;
}

int cell_timeline(struct store *s, const json_t *row, const struct cell_options *o,
	struct timeline *t, struct cell_found *found, struct err *e)
{
	struct filling c = {.t = t, .o = o, .row = row};
	int rc = cell_fill(&c, s, found, e);

	flows_free(c.flows);
	for (size_t i = 0; i < c.n_nodes; i++) {
		free(c.nodes[i].to);
		free(c.nodes[i].knots);
		free(c.nodes[i].others.calls);
	}
	free(c.nodes);
	free(c.pending);
	cell_threads_clear(&c.threads);
	cell_threads_clear(&c.processes);
	places_clear(&c.places);
	return rc;
}

void cell_found_clear(struct cell_found *found)
{
	for (size_t i = 0; i < found->n_nodes; i++)
		free(found->names[i]);
	found->n_nodes = 0;
}
