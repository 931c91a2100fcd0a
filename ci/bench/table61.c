/*
 * table61 averages RUN [SECONDS]: the CSV of averages_print; so many seconds after the onset are
 * left out (default 0).
 * table61 table AVERAGES [PUBLISHED]: the ratios as Markdown, next to a published table's.
 *
 * AVERAGES, PUBLISHED: files. Exit code 2: it cannot be done, and one line says why.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "ci/bench/averages.h"
#include "ci/bench/ratios.h"

static int averages(const char *run, const char *seconds, struct err *e)
{
	struct store *s = NULL;
	char *end = NULL;
	long skip = seconds ? strtol(seconds, &end, 10) : 0;
	int rc;

	if (seconds && (end == seconds || *end || skip < 0 || skip > 86400))
		return err_set(e, -EINVAL, "'%s' is no number of seconds from 0 to 86400", seconds);
	rc = store_open(run, &s, e) ?: averages_print(s, (int32_t)skip, stdout, e);
	store_close(s);
	return rc;
}

static int table(const char *path, const char *published, struct err *e)
{
	char *text = NULL, *theirs = NULL;
	struct ratios *r = NULL;
	int rc = file_read(path, &text, NULL, e);

	if (!rc && published)
		rc = file_read(published, &theirs, NULL, e);
	rc = rc ?: ratios_parse(path, text, &r, e);
	rc = rc ?: ratios_render(r, theirs, TABLE_MARKDOWN, stdout, e);
	ratios_free(r);
	free(theirs);
	free(text);
	return rc;
}

int main(int argc, char **argv)
{
	struct err e = {""};
	int rc = -EINVAL;

	if (argc < 3 || argc > 4)
		err_set(&e, rc,
			"usage: table61 averages RUN [SECONDS], or table AVERAGES [PUBLISHED]");
	else if (!strcmp(argv[1], "averages"))
		rc = averages(argv[2], argc > 3 ? argv[3] : NULL, &e);
	else if (!strcmp(argv[1], "table"))
		rc = table(argv[2], argc > 3 ? argv[3] : NULL, &e);
	else
		err_set(&e, rc, "no '%s'; 'averages' or 'table'", argv[1]);
	if (rc)
		fprintf(stderr, "table61: %s\n", e.text);
	return rc ? 2 : 0;
}
