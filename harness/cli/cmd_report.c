#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/cli/cmd.h"
#include "harness/cli/report_data.h"
#include "results/report/page.h"

static void usage(FILE *f)
{
	fputs("usage: culprit report RUN [-o FILE.html]\n\n"
	      "Writes a run, or a corpus, as one HTML file that opens offline: the scores of every\n"
	      "fault, workload and detector as a heat map with counts and intervals; for every cell\n"
	      "what was measured on each server, when the fault acted, what each detector said and\n"
	      "why; what was not scored and why; and where the run comes from.\n\n"
	      "  -o, --output FILE  the file (default: report.html in the run's folder); - is stdout\n\n"
	      "The file holds names of hosts and the scenario, but not the inventory.\n",
		f);
}

static int write_page(struct store *s, struct page *p, FILE *f, struct err *e)
{
	json_t *index = NULL, *attempts = NULL, *verdicts = NULL, *files = NULL, *row;
	char title[512];
	size_t i;
	int rc = report_index(s, &index, e);

	if (!rc)
		rc = store_table(s, "attempt", &attempts, e);
	if (!rc)
		rc = store_verdicts(s, &verdicts, e);
	if (!rc)
		rc = store_table(s, "file", &files, e);
	if (rc)
		goto out;
	snprintf(title, sizeof(title), "%s - culprit report", store_run_id(s));
	rc = page_begin(p, title, index, f, e);
	json_array_foreach(attempts, i, row)
	{
		json_t *block = NULL;

		if (!rc)
			rc = report_block(s, row, verdicts, files, &block, e);
		if (!rc)
			rc = page_block(
				p, json_integer_value(json_object_get(row, "id")), block, f, e);
		json_decref(block);
	}
	if (!rc)
		rc = page_end(p, f, e);
out:
	json_decref(index);
	json_decref(attempts);
	json_decref(verdicts);
	json_decref(files);
	return rc;
}

/* Whole or not at all: an old report stays until the new one is complete. */
static int report(struct store *s, const char *output, struct err *e)
{
	struct page *p = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int rc = f ? page_new(&p, e) : err_errno(e, -ENOMEM, "cannot make a report");

	if (!rc)
		rc = write_page(s, p, f, e);
	if (f && fclose(f) && !rc)
		rc = err_errno(e, -ENOMEM, "cannot make a report");
	if (!rc && !strcmp(output, "-")) {
		if (fwrite(text, 1, size, stdout) != size || fflush(stdout))
			rc = err_errno(e, -errno, "cannot print the report");
	} else if (!rc) {
		rc = file_write_atomic(output, 0644, text, size, e);
	}
	page_free(p);
	free(text);
	return rc;
}

int cmd_report(int argc, char **argv)
{
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *output = NULL;
	char *beside = NULL;
	struct store *s;
	struct err e;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "ho:", longs, NULL)) != -1) {
		switch (opt) {
		case 'o': output = optarg; break;
		case 'h': usage(stdout); return CULPRIT_EXIT_OK;
		default: usage(stderr); return CULPRIT_EXIT_USAGE;
		}
	}
	if (argc - optind != 1)
		return cmd_fail(
			"report", CULPRIT_EXIT_USAGE, "which run? 'culprit report runs/NAME'");
	if (store_open(argv[optind], &s, &e))
		return cmd_fail("report", CULPRIT_EXIT_USAGE, "%s", e.text);
	if (!output && asprintf(&beside, "%s/report.html", argv[optind]) < 0)
		code = cmd_fail("report", CULPRIT_EXIT_INVALID, "out of memory");
	else if (report(s, output ? output : beside, &e))
		code = cmd_fail("report", CULPRIT_EXIT_INVALID, "%s", e.text);
	else if (!output || strcmp(output, "-"))
		printf("%s\n", output ? output : beside);
	free(beside);
	store_close(s);
	return code;
}
