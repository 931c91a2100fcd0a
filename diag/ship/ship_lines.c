/* Ships logs as JSON lines. */
#include "diag/ship/ship.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/outfile.h"
#include "harness/base/json_text.h"

struct ship_lines {
	struct outfile out;
};

int ship_lines_new(const char *path, struct ship_lines **out, struct err *e)
{
	struct ship_lines *l = alloc_zero(1, sizeof(*l));
	int rc = outfile_open(&l->out, path, e);

	if (rc)
		free(l);
	else
		*out = l;
	return rc;
}

static int ship_lines_begin(void *ctx, const struct ship_subject *s, uint64_t *from, struct err *e)
{
	(void)ctx, (void)s, (void)e;
	*from = 0;
	return 0;
}

static void ship_lines_put_text(FILE *f, const char *s)
{
	json_t *v;

	for (const char *p = s; *p; p++)
		if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\') {
			v = json_text(s);
			json_dumpf(v, f,
				JSON_ENCODE_ANY | JSON_COMPACT |
					(isatty(fileno(f)) ? JSON_ENSURE_ASCII : 0));
			json_decref(v);
			return;
		}
	fprintf(f, "\"%s\"", s);
}

static void put_real(FILE *f, double v)
{
	json_t *real = isfinite(v) ? json_real(v) : json_null();

	json_dumpf(real, f, JSON_ENCODE_ANY);
	json_decref(real);
}

static int ship_lines_row(
	void *ctx, const struct query_table *t, struct query_row *r, struct err *e)
{
	FILE *f = ((struct ship_lines *)ctx)->out.f;

	fprintf(f, "{\"table\":\"%s\"", t->name);
	for (const struct column *c = t->columns; c->name; c++) {
		struct column_value v = {.type = VALUE_NULL};

		c->get(r, &v);
		if (v.type == VALUE_NULL)
			continue;
		fprintf(f, ",\"%s\":", c->name);
		switch (v.type) {
		case VALUE_INT: fprintf(f, "%lld", (long long)v.number); break;
		case VALUE_REAL: put_real(f, v.real); break;
		default: ship_lines_put_text(f, v.text); break;
		}
	}
	fputs("}\n", f);
	return ferror(f) ? outfile_flush(f, e) : 0;
}

static int batch(void *ctx, uint64_t to, struct err *e)
{
	FILE *f = ((struct ship_lines *)ctx)->out.f;

	(void)to;
	return outfile_flush(f, e);
}

static int lines_end(void *ctx, const struct ship_counts *c, struct err *e)
{
	(void)ctx, (void)c, (void)e;
	return 0;
}

struct ship_sink ship_lines_sink(struct ship_lines *l)
{
	return (struct ship_sink){.ctx = l,
		.begin = ship_lines_begin,
		.row = ship_lines_row,
		.batch = batch,
		.end = lines_end};
}

int ship_lines_end(struct ship_lines *l, int rc, struct err *e)
{
	return outfile_close(&l->out, rc, e);
}

void ship_lines_free(struct ship_lines *l)
{
	if (!l)
		return;
	outfile_close(&l->out, -ECANCELED, NULL);
	free(l);
}
