/* A sink for tests that writes each declaration and sample to a line:
 *     declared read_ms unit=ms
 *     read_ms host1/sda 17 4.5 */
#ifndef CULPRIT_CI_TESTS_IMPORT_NOTING_H
#define CULPRIT_CI_TESTS_IMPORT_NOTING_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/import.h"
#include "harness/base/alloc.h"

struct noting {
	FILE *f;
	char *text;
	size_t size;
	char **names;
	size_t n, samples;
	double until; /* after this number of samples it refuses; 0: never */
};

static int noting_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct noting *x = ctx;
	char *groups = alloc_copy("");

	(void)e;
	for (size_t i = 0; i < key->n_groups; i++) {
		char *more = alloc_format("%s%s/", groups, key->group[i]);

		free(groups);
		groups = more;
	}
	x->names = alloc_resize(x->names, x->n + 1, sizeof(*x->names));
	x->names[x->n] = alloc_format("%s %s%s", key->metric, groups, key->member);
	free(groups);
	*id = (uint32_t)x->n++;
	return 0;
}

static int noting_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct noting *x = ctx;

	if (x->until > 0 && (double)x->samples >= x->until)
		return err_set(e, -E2BIG, "no more");
	x->samples++;
	fprintf(x->f, "%s %.15g %g\n", x->names[id], time_s, value);
	return 0;
}

static int noting_metric(void *ctx, const char *declaration, struct err *e)
{
	struct noting *x = ctx;

	(void)e;
	fprintf(x->f, "declared %s\n", declaration);
	return 0;
}

static struct import_sink noting_open(struct noting *x)
{
	*x = (struct noting){0};
	x->f = alloc_text(&x->text, &x->size);
	return (struct import_sink){x, noting_series, noting_sample, noting_metric};
}

static void noting_close(struct noting *x)
{
	fclose(x->f);
	for (size_t i = 0; i < x->n; i++)
		free(x->names[i]);
	free(x->names);
	free(x->text);
}

#endif
