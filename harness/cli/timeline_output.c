/* Writes the files of 'culprit timeline'. */
#include "harness/cli/timeline.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/outfile.h"

bool timeline_is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

typedef int (*write_fn)(struct timeline *t, FILE *f, struct err *e);

static int write_page(struct timeline *t, FILE *f, struct err *e)
{
	return timeline_html(t, f, 0, e);
}

/* 'say': print the path. */
static int write_to(struct timeline *t, const char *path, write_fn write, bool say, struct err *e)
{
	struct outfile out;
	int rc;

	if (!path)
		return 0;
	rc = outfile_open(&out, path, e);
	if (!rc)
		rc = outfile_close(&out, write(t, out.f, e), e);
	if (!rc && say)
		puts(path);
	return rc;
}

int timeline_write(struct timeline *t, const struct timeline_output *o, struct err *e)
{
	const bool say = !timeline_is_stdout(o->page) && !timeline_is_stdout(o->perfetto) &&
		!timeline_is_stdout(o->otlp);

	return write_to(t, o->page, write_page, say, e)
		?: write_to(t, o->perfetto, timeline_perfetto, say, e)
		?: write_to(t, o->otlp, timeline_otlp, say, e);
}
