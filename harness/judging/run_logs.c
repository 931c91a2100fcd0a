/* Lists the logs of a run for queries. */
#include "harness/judging/run_logs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/places.h"

/* An attempt's description, from which its logs borrow. */
struct described {
	json_t *detail;
	struct places places;
};

struct run_logs {
	struct query_log *logs;
	size_t n;
	struct described **attempts;
	size_t n_attempts;
};

const struct run_logs_table run_logs_tables[] = {
	{"cells", "cell", "the run's plan",
		{"number", "training", "workload", "workload_params", "fault", "fault_params",
			"resource", "repeat", "victims", "skipped", "tracer"}},
	{"attempts", "attempt",
		"attempts: outcome; times in ns since 1970 on the orchestrator's clock "
		"(onset, offset: the fault was verified as active, as gone); detail is JSON",
		{"id", "cell", "number", "outcome", "reason", "started_ns", "start_ns", "onset_ns",
			"offset_ns", "ended_ns", "seconds", "detail"}},
	{"verdicts", "verdict", "the detectors' verdicts; verdict is JSON",
		{"attempt", "detector", "metric", "verdict"}},
	{"facts", "fact", "facts about the run: seed, scenario, versions", {"key", "value"}},
	{0},
};

int run_logs_rows(struct store *s, const struct run_logs_table *t, json_t **rows, struct err *e)
{
	int rc = store_table(s, t->of, rows, e);

	for (size_t i = rc ? 0 : json_array_size(*rows); i-- > 0;) {
		const char *key = jget_text(json_array_get(*rows, i), "key");

		if (!strcmp(t->name, "facts") && key && !strcmp(key, "blind_key"))
			json_array_remove(*rows, i);
	}
	return rc;
}

/* The kind of log of a file, and where its node's name ends; -1: not a log. */
static int log_of(const char *file, size_t *node)
{
	size_t n = strlen(file), m;

	for (int i = 0; i < PLACE_LOGS; i++) {
		m = strlen(place_log_names[i]) + 1;
		if (n > m && file[n - m] == '.' && !strcmp(file + n - m + 1, place_log_names[i])) {
			*node = n - m;
			return i;
		}
	}
	return -1;
}

static void run_logs_add_log(struct run_logs *r, const struct described *d, const json_t *row,
	const char *run, const char *folder, const char *file)
{
	size_t node_length = 0;
	const int kind = log_of(file, &node_length);
	const struct place *place;
	struct query_log *log;
	char *node;

	if (kind < 0)
		return;
	r->logs = alloc_room(r->logs, r->n, sizeof(*r->logs));
	log = &r->logs[r->n++];
	node = alloc_format("%.*s", (int)node_length, file);
	*log = (struct query_log){.path = alloc_format("%s/%s/%s", run, folder, file),
		.name = alloc_format("%s/%s", folder, file),
		.node = node,
		.in_attempt = true,
		.goes_on = !jget_int(row, "ended_ns"),
		.cell = jget_int(row, "cell"),
		.attempt = jget_int(row, "id"),
		.start_ns = jget_int(row, "start_ns") ?: jget_int(row, "started_ns"),
		.onset_ns = jget_int(row, "onset_ns"),
		.offset_ns = jget_int(row, "offset_ns")};
	place = places_find(&d->places, node);
	if (place)
		log->spec = places_stream(&d->places, place, (enum place_log)kind);
	else if (kind == PLACE_APP)
		log->spec.owner = OWNER_APP;
}

static int read_folder(struct run_logs *r, const struct described *d, const json_t *row,
	const char *run, const char *name, struct err *e)
{
	auto_free char *path = alloc_format("%s/%s", run, name);
	struct dirent **files;
	int n = scandir(path, &files, NULL, alphasort);

	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "cannot read '%s'", path);
	for (int i = 0; i < n; i++) {
		run_logs_add_log(r, d, row, run, name, files[i]->d_name);
		free(files[i]);
	}
	free(files);
	return 0;
}

static int read_attempt(
	struct run_logs *r, struct store *s, const json_t *row, size_t recording, struct err *e)
{
	auto_free char *name = alloc_format("cells/%04lld.%lld", (long long)jget_int(row, "cell"),
		(long long)jget_int(row, "number"));
	struct described *d = alloc_zero(1, sizeof(*d));
	const char *detail = jget_text(row, "detail");
	const json_t *cluster, *written;
	int rc = 0;

	r->attempts = alloc_room(r->attempts, r->n_attempts, sizeof(*r->attempts));
	r->attempts[r->n_attempts++] = d;
	d->detail = detail ? json_loads(detail, 0, NULL) : NULL;
	cluster = jget(d->detail, "reduction");
	written = jget(jget(d->detail, "recorder"), "written");
	if (json_is_object(cluster))
		rc = places_read(&d->places, cluster, e);
	if (!recording)
		rc = rc ?: read_folder(r, d, row, store_folder(s), name, e);
	for (size_t i = 1; i <= json_array_size(written) && !rc; i++) {
		auto_free char *below = alloc_format("%s/recorder.%zu", name, i);

		if (!recording || i == recording)
			rc = read_folder(r, d, row, store_folder(s), below, e);
	}
	return rc;
}

int run_logs_new(
	struct store *s, int64_t cell, size_t recording, struct run_logs **out, struct err *e)
{
	struct run_logs *r = alloc_zero(1, sizeof(*r));
	json_auto_t *rows = NULL;
	bool found = false;
	json_t *row;
	size_t i;
	int rc = 0;

	if (store_is_corpus(s))
		rc = err_set(
			e, -ENODATA, "'%s' is a corpus: the logs are not in it", store_folder(s));
	rc = rc ?: store_table(s, "attempt", &rows, e);
	json_array_foreach(rows, i, row) {
		if (rc || (cell && jget_int(row, "cell") != cell))
			continue;
		found = true;
		rc = read_attempt(r, s, row, recording, e);
	}
	if (!rc && cell && !found)
		rc = err_set(e, -EINVAL, "cell %lld of '%s' has no attempt", (long long)cell,
			store_folder(s));
	else if (!rc && !r->n && recording)
		rc = err_set(e, -EINVAL, "'%s' has no recording %zu of a flight recorder",
			store_folder(s), recording);
	else if (!rc && !r->n)
		rc = err_set(e, -ENODATA, "'%s' has no logs", store_folder(s));
	if (rc)
		run_logs_free(r);
	else
		*out = r;
	return rc;
}

void run_logs_free(struct run_logs *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		free((char *)r->logs[i].path);
		free((char *)r->logs[i].name);
		free((char *)r->logs[i].node);
	}
	for (size_t i = 0; i < r->n_attempts; i++) {
		places_clear(&r->attempts[i]->places);
		json_decref(r->attempts[i]->detail);
		free(r->attempts[i]);
	}
	free(r->attempts);
	free(r->logs);
	free(r);
}

const struct query_log *run_logs_list(const struct run_logs *r, size_t *n)
{
	*n = r->n;
	return r->logs;
}
