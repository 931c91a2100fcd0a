/* Samples: one row per metric and server of an attempt, packed by series_codec. */
#include <errno.h>
#include <stdlib.h>

#include "harness/store/series_codec.h"
#include "harness/store/store_impl.h"

static int put_series(struct store *s, int64_t attempt, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	unsigned char *data = NULL;
	size_t size;
	int rc;

	series_encode(samples, n, &data, &size);
	rc = store_do(s, e, "write samples", "INSERT INTO series VALUES (?, ?, ?, ?)", "issb",
		attempt, metric_name(samples->metric), server, data, size);
	free(data);
	return rc;
}

int store_put_samples(struct store *s, int64_t attempt, char *const servers[],
	const struct sample *samples, size_t n, struct err *e)
{
	int rc = 0;

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

int store_samples(struct store *s, int64_t attempt, store_series_fn fn, void *ctx, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = store_statement(s, &st, e,
		    "SELECT metric, server, samples FROM series WHERE attempt = ?"
		    " ORDER BY metric, server",
		    "i", attempt),
	    step = SQLITE_DONE;

	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
		const char *metric = (const char *)sqlite3_column_text(st, 0);
		const char *server = (const char *)sqlite3_column_text(st, 1);
		const void *data = sqlite3_column_blob(st, 2);
		struct sample *samples = NULL;
		size_t n;

		rc = series_decode(data, (size_t)sqlite3_column_bytes(st, 2), &samples, &n, e);
		if (rc == -EBADMSG)
			err_blame(e, ERR_DAMAGED, rc);
		if (rc)
			err_prefix(e, rc, "'%s', attempt %lld, %s of %s", s->path,
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
