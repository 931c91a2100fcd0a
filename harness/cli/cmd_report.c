/* The command 'report': writes a run as one HTML page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/report.h"
#include "harness/cli/shards.h"
#include "harness/cli/tables.h"
#include "harness/web/page.h"

/* A page of this size opens at once, and can be sent by mail. */
enum { LARGE_BYTES = 10 * 1000 * 1000 };

/* All that a report is made of. */
struct material {
	struct store *store;
	struct judge *judge; /* of a corpus */
	json_t *index, *attempts, *verdicts, *files;
	bool brief;
};

static void report_clear(struct material *m)
{
	json_decref(m->index);
	json_decref(m->attempts);
	json_decref(m->verdicts);
	json_decref(m->files);
	judge_free(m->judge);
}

/* A corpus holds no verdicts: the detectors of its scenario judge it. */
static int report_gather(struct material *m, struct err *e)
{
	int rc = table_judge_corpus(m->store, &m->judge, &m->verdicts, e);

	if (!rc && !m->verdicts)
		rc = store_rows(m->store, ROWS_VERDICTS, 0, &m->verdicts, e);
	return rc	  ?: report_index(m->store, m->verdicts, &m->index, e)
		?: store_table(m->store, "attempt", &m->attempts, e)
		?: store_table(m->store, "file", &m->files, e);
}

/* Timelines of cells that lie next to the report, as 'culprit timeline' names them: {"3": FILE}. */
static json_t *pages_beside(const struct material *m, const char *output)
{
	const char *slash = strrchr(output, '/');
	json_t *pages = json_object(), *cell;
	size_t i;

	json_array_foreach(jget(m->index, "cells"), i, cell) {
		const long long number = jget_int(cell, "number");
		auto_free char *name = alloc_format(
			"%s-cell%lld.html", store_run_id(m->store), number);
		auto_free char *path = alloc_format(
			"%.*s%s", slash ? (int)(slash + 1 - output) : 0, output, name);
		auto_free char *key = alloc_format("%lld", number);

		if (!access(path, R_OK))
			json_object_set_new(pages, key, json_string(name));
	}
	return pages;
}

static int write_attempt(const struct material *m, const json_t *row, FILE *f, struct err *e)
{
	struct report_samples samples = {0};
	const int64_t id = jget_int(row, "id");
	json_t *block = NULL;
	int rc = report_samples_read(m->store, id, m->brief, &samples, e)
		?: report_block(m->store, row, m->verdicts, m->files, &samples, m->brief, &block, e)
		?: page_block(id, block, samples.bytes, samples.size, f, e);

	json_decref(block);
	report_samples_clear(&samples);
	return rc;
}

static int write_page(const struct material *m, struct page *p, FILE *f, struct err *e)
{
	char *title = alloc_format("%s - culprit report", store_run_id(m->store));
	json_t *row;
	size_t i;
	int rc;

	json_object_set_new(m->index, "brief", json_boolean(m->brief));
	rc = page_begin(p, title, m->index, f, e);
	json_array_foreach(m->attempts, i, row)
		rc = rc ?: write_attempt(m, row, f, e);
	free(title);
	return rc ?: page_end(p, f, e);
}

/* Writes atomically: an old report stays until the new one is complete. '*large': it would be
 * large, and is not written. */
static int write_once(
	const struct material *m, struct page *p, const char *output, bool *large, struct err *e)
{
	struct file_text t;
	int rc = file_text_open(&t, e), saved;

	if (rc)
		return rc;
	rc = write_page(m, p, t.f, e);
	*large = !rc && !m->brief && ftello(t.f) > LARGE_BYTES;
	saved = file_text_save(&t, rc || *large ? NULL : output, 0644, rc ? NULL : e);
	return rc ?: saved;
}

static int write_report(struct material *m, const char *output, struct err *e)
{
	struct page *p = NULL;
	bool large = false;
	int rc = page_new(&page_of_run, &p, e) ?: write_once(m, p, output, &large, e);

	m->brief = large;
	if (large)
		rc = write_once(m, p, output, &large, e);
	page_free(p);
	return rc;
}

/* With other runs: the first one's report, and how it compares with them. */
static int report(struct store *s, int n, char **folders, const char *output, struct err *e)
{
	struct material m = {.store = s};
	json_t *compared = NULL;
	int rc = n > 1 ? table_runs_json(n, folders, &compared, e) : 0;

	rc = rc ? err_blame(e, ERR_USAGE, rc) : report_gather(&m, e);
	if (!rc) {
		json_object_set_new(m.index, "pages", pages_beside(&m, output));
		json_object_set(m.index, "compared", compared ? compared : json_null());
		rc = write_report(&m, output, e);
	}
	json_decref(compared);
	report_clear(&m);
	return rc;
}

struct options {
	const char *output;
};

/* Shards are parts of one run, which is 'opened' whole; of other runs it is the first. */
static int open_first(const struct call *c, bool *shards, struct store **opened, struct err *e)
{
	const struct options *o = c->options;
	int rc = shards_any(c->n, c->args, shards, e);

	if (!rc && *shards && c->n > 1 && !o->output)
		rc = err_set(
			e, -EINVAL, "give the report of several shards a place: --output FILE");
	return rc ?: shards_open("report", *shards ? c->n : 1, c->args, opened, e);
}

static int report_run(const struct call *c)
{
	const struct options *o = c->options;
	char *path;
	struct store *s;
	struct err e;
	bool shards;
	int code = CULPRIT_EXIT_OK;

	if (open_first(c, &shards, &s, &e))
		return cmd_error("report", &e, ERR_USAGE);
	path = alloc_format(
		"%s%s", o->output ? o->output : c->args[0], o->output ? "" : "/report.html");
	if (report(s, shards ? 1 : c->n, c->args, path, &e))
		code = cmd_error("report", &e, ERR_HARNESS);
	else if (strcmp(path, "-"))
		puts(path);
	free(path);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"output", 'o', OPTION_TEXT, offsetof(struct options, output), "FILE",
		"write to FILE; - is standard output (default: report.html in the run's folder)"},
	{0},
};

const struct command report_command = {.name = "report",
	.summary = "write a run as one web page",
	.arguments = "RUN [OTHER ...]",
	.about = "Writes a run, or a corpus, as one HTML file that opens offline. It shows the "
		 "scores of every fault, workload and detector as a heat map with counts and "
		 "intervals; who was accused and who was guilty, what other limits would find, "
		 "delays, and the run over time; for every cell what was measured on each server, "
		 "what happened when, scores against their limits, and each detector's verdict "
		 "with its evidence; what was not scored and why; and the run's provenance. Every "
		 "chart can be saved as CSV and PNG.\n\n"
		 "With OTHER runs, the report of the first one also compares it with them, as "
		 "'culprit table' does. Shards of one run ('culprit run --shard') are shown as "
		 "that run.\n\n"
		 "Measurements have three digits; 'culprit query --samples' prints all. Above "
		 "10 MB the largest values of readings, and the gates that attempts passed, are "
		 "left out. Of a corpus, the detectors of its scenario judge anew.\n\n"
		 "The file holds host names and the scenario, but not the inventory.",
	.examples =
		"culprit report runs/NAME\nculprit report runs/BEFORE runs/AFTER -o compared.html\n"
		"culprit report runs/NAME -o - | gzip >report.html.gz",
	ARGUMENTS(1, TABLE_RUNS_MAX),
	OPTIONS(rows, struct options),
	.run = report_run};
