/*
 * Samples: a row a metric and server of an attempt; in stores of version 5 and older, a row a
 * sample.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/series_codec.h"
#include "harness/store/store_impl.h"

bool store_has_table(struct store *s, const char *name)
{
	sqlite3_stmt *st;
	bool there;

	if (store_statement(s, &st, NULL,
		    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", "s", name))
		return false;
	there = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	return there;
}

/* A store of version 5 lacks nothing but the table. */
static int make_room(struct store *s, struct err *e)
{
	char *version;
	int rc;

	if (store_has_table(s, "series"))
		return 0;
	version = store_get(s, "store_version");
	if (!version || strcmp(version, "5"))
		rc = err_set(e, -EINVAL,
			"'%s/run.db' is of version %s, which is read but no longer written",
			s->folder, version ? version : "?");
	else
		rc = store_exec(s,
			STORE_SERIES "UPDATE fact SET value = '6' WHERE key = 'store_version'", e,
			"make a table");
	free(version);
	return rc;
}

static int put_series(struct store *s, int64_t attempt, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	unsigned char *data = NULL;
	size_t size;
	sqlite3_stmt *st;
	int rc = series_encode(samples, n, &data, &size, e);

	if (!rc)
		rc = store_statement(s, &st, e, "INSERT INTO series VALUES (?, ?, ?, ?)", "issb",
			attempt, metric_name(samples->metric), server, data, size);
	if (!rc)
		rc = store_finish(s, st, e, "write samples");
	free(data);
	return rc;
}

int store_put_samples(struct store *s, int64_t attempt, char *const servers[],
	const struct sample *samples, size_t n, struct err *e)
{
	int rc = n ? make_room(s, e) : 0;

	for (size_t from = 0, to; from < n && !rc; from = to) {
		to = from + 1;
		while (to < n && samples[to].metric == samples[from].metric &&
			samples[to].server == samples[from].server)
			to++;
		rc = put_series(
			s, attempt, servers[samples[from].server], samples + from, to - from, e);
	}
	return rc;
}

static int delete_from(struct store *s, const char *sql, int64_t attempt, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, sql, "i", attempt);

	return rc ? rc : store_finish(s, st, e, "drop samples");
}

int store_drop_samples(struct store *s, int64_t attempt, struct err *e)
{
	int rc = 0;

	if (store_has_table(s, "series"))
		rc = delete_from(s, "DELETE FROM series WHERE attempt = ?", attempt, e);
	if (!rc && store_has_table(s, "sample"))
		rc = delete_from(s, "DELETE FROM sample WHERE attempt = ?", attempt, e);
	return rc;
}

static int each_packed(
	struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e,
		    "SELECT metric, server, samples FROM series WHERE attempt = ? ORDER BY metric, server",
		    "i", attempt),
	    step = SQLITE_DONE;

	if (rc)
		return rc;
	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
		const char *metric = (const char *)sqlite3_column_text(st, 0);
		const char *server = (const char *)sqlite3_column_text(st, 1);
		const void *data = sqlite3_column_blob(st, 2);
		struct sample *samples = NULL;
		size_t n;

		rc = series_decode(data, (size_t)sqlite3_column_bytes(st, 2), &samples, &n, e);
		if (rc)
			err_prefix(e, rc, "'%s/run.db', attempt %lld, %s of %s", s->folder,
				(long long)attempt, metric, server);
		else
			rc = fn(ctx, metric, server, samples, n, e);
		free(samples);
	}
	if (!rc && step != SQLITE_DONE)
		rc = store_fail(s, e, "read");
	sqlite3_finalize(st);
	return rc;
}

/* The samples of one series, as they come row by row. */
struct gathered {
	char *metric, *server;
	struct sample *samples;
	size_t n, room;
};

static int hand_over(struct gathered *g, store_series_fn fn, void *ctx, struct err *e)
{
	int rc = g->n ? fn(ctx, g->metric, g->server, g->samples, g->n, e) : 0;

	free(g->metric);
	free(g->server);
	g->metric = g->server = NULL;
	g->n = 0;
	return rc;
}

static int gather(
	struct gathered *g, sqlite3_stmt *st, store_series_fn fn, void *ctx, struct err *e)
{
	const char *metric = (const char *)sqlite3_column_text(st, 0);
	const char *server = (const char *)sqlite3_column_text(st, 1);
	int rc = 0;

	if (g->n && (strcmp(g->metric, metric) || strcmp(g->server, server)))
		rc = hand_over(g, fn, ctx, e);
	if (!g->n) {
		g->metric = strdup(metric);
		g->server = strdup(server);
	}
	if (g->n == g->room) {
		size_t room = 2 * g->room + 64;
		struct sample *more = realloc(g->samples, room * sizeof(*more));

		if (!more)
			return err_errno(e, -ENOMEM, "cannot read samples");
		g->samples = more;
		g->room = room;
	}
	if (!rc && (!g->metric || !g->server))
		rc = err_errno(e, -ENOMEM, "cannot read samples");
	if (!rc)
		g->samples[g->n++] = (struct sample){.second = (int32_t)sqlite3_column_int64(st, 2),
			.count = (uint64_t)sqlite3_column_int64(st, 3),
			.sum_s = sqlite3_column_double(st, 4),
			.max_s = sqlite3_column_double(st, 5),
			.bytes = (uint64_t)sqlite3_column_int64(st, 6)};
	return rc;
}

static int each_row(struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e)
{
	struct gathered g = {0};
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e,
		    "SELECT metric, server, second, count, sum_s, max_s, bytes FROM sample WHERE attempt = ?"
		    " ORDER BY metric, server, second",
		    "i", attempt),
	    step = SQLITE_DONE;

	if (rc)
		return rc;
	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW)
		rc = gather(&g, st, fn, ctx, e);
	if (!rc && step != SQLITE_DONE)
		rc = store_fail(s, e, "read");
	sqlite3_finalize(st);
	if (!rc)
		rc = hand_over(&g, fn, ctx, e);
	free(g.metric);
	free(g.server);
	free(g.samples);
	return rc;
}

int store_samples(struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e)
{
	int rc = store_has_table(s, "series") ? each_packed(s, attempt, fn, ctx, e) : 0;

	return rc || !store_has_table(s, "sample") ? rc : each_row(s, attempt, fn, ctx, e);
}
