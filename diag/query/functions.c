/* Functions that SQLite lacks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/query/query_impl.h"
#include "harness/base/stat.h"

/* The numbers of one group. */
struct numbers {
	double *v, p;
	size_t n, room;
};

static void percentile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	struct numbers *s = sqlite3_aggregate_context(ctx, sizeof(*s));
	double p = sqlite3_value_double(argv[1]), *more;

	(void)argc;
	if (sqlite3_value_numeric_type(argv[0]) == SQLITE_NULL)
		return;
	if (!s) {
		sqlite3_result_error_nomem(ctx);
		return;
	}
	if (!(p >= 0 && p <= 100)) {
		sqlite3_result_error(ctx, "percentile() takes 0 to 100 as its second argument", -1);
		return;
	}
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		more = sqlite3_realloc64(s->v, s->room * sizeof(*s->v));
		if (!more) {
			s->room = s->n;
			sqlite3_result_error_nomem(ctx);
			return;
		}
		s->v = more;
	}
	s->p = p;
	s->v[s->n++] = sqlite3_value_double(argv[0]);
}

static void percentile_final(sqlite3_context *ctx)
{
	struct numbers *s = sqlite3_aggregate_context(ctx, 0);

	if (!s || !s->n)
		return;
	sqlite3_result_double(ctx, stat_quantile(s->v, s->n, s->p / 100));
	sqlite3_free(s->v);
	*s = (struct numbers){0};
}

/* What follows the last slash. */
static void basename_of(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const char *path = (const char *)sqlite3_value_text(argv[0]), *slash;

	(void)argc;
	if (!path)
		return;
	slash = strrchr(path, '/');
	sqlite3_result_text(ctx, slash ? slash + 1 : path, -1, SQLITE_TRANSIENT);
}

int query_add_functions(sqlite3 *db)
{
	const int how = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int rc = sqlite3_create_function_v2(
		db, "basename", 1, how, NULL, basename_of, NULL, NULL, NULL);

	if (rc != SQLITE_OK)
		return rc;
	return sqlite3_create_function_v2(
		db, "percentile", 2, how, NULL, NULL, percentile_step, percentile_final, NULL);
}
