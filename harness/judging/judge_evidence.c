/* The evidence for detectors: an attempt's measurements under aliases. */
#include "harness/judging/judge_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/jget.h"

void evidence_clear(struct evidence *ev)
{
	columns_free(ev->columns);
	json_decref(ev->events);
	json_decref(ev->clients);
}

/* The client's alias, numbered in order of appearance, for this run only. 'known': {alias:
 * name}. */
static const char *client_alias(json_t *known, const char *name)
{
	const char *alias;
	char text[32];
	json_t *other;

	json_object_foreach(known, alias, other) {
		if (!strcmp(json_string_value(other), name))
			return alias;
	}
	snprintf(text, sizeof(text), "client-%04zu", json_object_size(known) + 1);
	json_object_set_new(known, text, json_string(name));
	return client_alias(known, name);
}

/* The minimum duration of an event (culprit.Event). */
static double shortest(const char *kind, const char *state)
{
	if (!strcmp(kind, "link-quiet"))
		return state && !strcmp(state, "waiting") ? 0.5 : 5;
	return !strcmp(kind, "app-slow") ? 1 : 0;
}

/* Cuts an event as if the log had ended after 'seconds'; returns false if it began later. */
static bool cut_event(json_t *v, int32_t seconds)
{
	const char *kind = jget_text(v, "kind");
	double first = jget_real(v, "time_s"), last = jget_real(v, "last_s");

	if (first >= seconds)
		return false;
	if (last <= seconds)
		return true;
	if (kind && seconds - first < shortest(kind, jget_text(v, "state")))
		return false;
	json_object_set_new(v, "last_s", json_real(seconds));
	if (jget(v, "open"))
		json_object_set_new(v, "open", json_true());
	if (kind && !strcmp(kind, "app-slow"))
		json_object_set_new(v, "longest_s", json_real(seconds - first));
	return true;
}

static size_t server_index(const struct judge *j, const char *name)
{
	size_t k = 0;

	while (k < j->n_servers && strcmp(j->names[k], name))
		k++;
	return k;
}

/* The events of an attempt in the form for detectors: flat, cut, with aliases. */
static int events_read(
	struct judge *j, int64_t attempt, int32_t seconds, struct evidence *ev, struct err *e)
{
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(j->store, ROWS_EVENTS, attempt, &rows, e);

	ev->events = json_array();
	ev->clients = json_object();
	json_array_foreach(rows, i, row) {
		const char *server = jget_text(row, "server");
		const char *client = jget_text(row, "client");
		json_auto_t *v = json_deep_copy(jget(row, "detail"));
		size_t k = server ? server_index(j, server) : 0;

		json_object_set(v, "kind", jget(row, "kind"));
		json_object_set(v, "time_s", jget(row, "time_s"));
		if (server && k < j->n_servers)
			json_object_set_new(v, "server", json_string(j->aliases[k]));
		if (client)
			json_object_set_new(
				v, "client", json_string(client_alias(ev->clients, client)));
		if ((!server || k < j->n_servers) && cut_event(v, seconds))
			json_array_append(ev->events, v);
	}
	return rc;
}

struct taking {
	const struct judge *judge;
	struct columns *columns;
};

static int judge_evidence_take_series(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	struct taking *t = ctx;
	size_t k = server_index(t->judge, server);
	enum metric m;

	(void)e;
	if (k == t->judge->n_servers || metric_from_name(metric, &m))
		return 0;
	columns_put_samples(t->columns, m, k, samples, n);
	return 0;
}

int evidence_read(
	struct judge *j, int64_t attempt, int32_t seconds, struct evidence *ev, struct err *e)
{
	struct taking t = {j, ev->columns = columns_new(METRIC_COUNT, j->n_servers, seconds)};
	int rc = store_samples(j->store, attempt, judge_evidence_take_series, &t, e);

	if (!rc)
		rc = events_read(j, attempt, seconds, ev, e);
	if (rc)
		return rc;
	/* Use the attempt's number in its own run: a joined run is judged like its parts. */
	attempt -= j->first ? j->first - 1 : 0;
	snprintf(ev->id, sizeof(ev->id), "%08llx",
		(unsigned long long)(judge_draw(j, "run", attempt) >> 32));
	ev->run = (struct detector_run){.id = ev->id,
		.seconds = seconds,
		.servers = j->alias_list,
		.n_servers = j->n_servers,
		.columns = ev->columns,
		.events = ev->events,
		.file_system = j->file_system};
	return 0;
}
