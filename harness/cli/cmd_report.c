#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/report_data.h"
#include "results/report/page.h"

static int write_page(struct store *s, struct page *p, FILE *f, struct err *e)
{
	json_t *index = NULL, *attempts = NULL, *verdicts = NULL, *files = NULL, *row;
	char *title = alloc_format("%s - culprit report", store_run_id(s));
	size_t i;
	int rc = report_index(s, &index, e);

	if (!rc)
		rc = store_table(s, "attempt", &attempts, e);
	if (!rc)
		rc = store_rows(s, ROWS_VERDICTS, 0, &verdicts, e);
	if (!rc)
		rc = store_table(s, "file", &files, e);
	if (!rc)
		rc = page_begin(p, title, index, f, e);
	json_array_foreach(attempts, i, row) {
		json_t *block = NULL;

		if (!rc)
			rc = report_block(s, row, verdicts, files, &block, e);
		if (!rc)
			rc = page_block(jget_int(row, "id"), block, f, e);
		json_decref(block);
	}
	if (!rc)
		rc = page_end(p, f, e);
	free(title);
	json_decref(index);
	json_decref(attempts);
	json_decref(verdicts);
	json_decref(files);
	return rc;
}

/* Writes atomically: an old report stays until the new one is complete. */
static int report(struct store *s, const char *output, struct err *e)
{
	struct page *p = NULL;
	struct file_text t;
	int rc = page_new(&page_of_run, &p, e);

	if (!rc)
		rc = file_text_open(&t, e);
	if (!rc) {
		rc = write_page(s, p, t.f, e);
		if (rc)
			file_text_save(&t, NULL, 0, NULL);
		else
			rc = file_text_save(&t, output, 0644, e);
	}
	page_free(p);
	return rc;
}

struct options {
	const char *output;
};

static int run(const struct call *c)
{
	const struct options *o = c->options;
	char *path;
	struct store *s;
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (store_open(c->args[0], &s, &e))
		return cmd_error("report", &e, ERR_USAGE);
	path = alloc_format(
		"%s%s", o->output ? o->output : c->args[0], o->output ? "" : "/report.html");
	if (report(s, path, &e))
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
	.summary = "write a run as one HTML file: matrix, charts, verdicts, provenance",
	.arguments = "RUN",
	.about = "Writes a run, or a corpus, as one HTML file that opens offline. It shows the "
		 "scores of every fault, workload and detector as a heat map with counts and "
		 "intervals; for every cell what was measured on each server, when the fault "
		 "acted, and each detector's verdict with its evidence; what was not scored and "
		 "why; and the run's provenance.\n\n"
		 "The file holds host names and the scenario, but not the inventory.",
	.examples =
		"culprit report runs/NAME\nculprit report runs/NAME -o - | gzip >report.html.gz",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.run = run};
