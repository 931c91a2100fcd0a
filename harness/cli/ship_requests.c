/* Ships the requests of a run. */
#include "harness/cli/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/query/requests.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

enum { REQUESTS_A_BLOCK = 500 }; /* for batches: about the size of a block of records */

struct sending {
	const struct ship_spec *spec;
	const struct ship_sink *sink;
	struct ship_counts *counts;
	const struct query_table *table;
	uint64_t from, batch_from;
	struct query_row row;
	struct stream_item item;
	struct record record;
};

static int send_row(void *ctx, const struct request_row *r, struct err *e)
{
	struct sending *s = ctx;
	struct ship_counts *c = s->counts;
	int rc = 0;

	if (s->spec->interrupted && *s->spec->interrupted)
		return err_blame(e, ERR_INTERRUPTED, err_set(e, -EINTR, "interrupted"));
	c->records++;
	if (c->blocks++ < s->from) {
		c->before++;
		return 0;
	}
	if (c->blocks - 1 >= s->batch_from + s->spec->batch_blocks * REQUESTS_A_BLOCK) {
		rc = s->sink->batch(s->sink->ctx, c->blocks - 1, e);
		s->batch_from = c->blocks - 1;
	}
	if (rc)
		return rc;
	c->sent++;
	request_row_show(&s->row, r, &s->item, &s->record);
	return s->sink->row(s->sink->ctx, s->table, &s->row, e);
}

/* Is it in the folder, and in none below it? */
static bool is_in(const struct query_log *log, const char *folder)
{
	const size_t n = strlen(folder);

	return !strncmp(log->name, folder, n) && log->name[n] == '/' &&
		!strchr(log->name + n + 1, '/');
}

/* Known by the logs that they are made of. */
static int id_of(const struct run_logs *logs, const char *folder, int64_t *id, struct err *e)
{
	auto_free char *text = NULL;
	const struct query_log *all;
	size_t n, size;
	int64_t one;
	FILE *f = alloc_text(&text, &size);
	int rc = 0;

	all = run_logs_list(logs, &n);
	fputs("requests", f);
	for (size_t i = 0; !rc && i < n; i++) {
		if (!is_in(&all[i], folder))
			continue;
		rc = ship_log_id(all[i].path, &one, e);
		fprintf(f, " %lld", (long long)one);
	}
	fclose(f);
	*id = ship_text_id(text);
	return rc;
}

static int count_one(void *ctx, const struct request_row *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 1;
}

int ship_requests(struct run_requests *r, size_t i, const struct run_logs *logs,
	const struct ship_spec *spec, const struct ship_sink *sink, struct ship_counts *counts,
	bool *none, struct err *e)
{
	struct log_head head = {.version = 0};
	struct ship_subject subject = {.log = run_requests_log(r, i),
		.head = &head,
		.ordinal = 1000000000 + (int64_t)i,
		.made_of = "requests"};
	struct sending *s = alloc_zero(1, sizeof(*s));
	int rc;

	*counts = (struct ship_counts){.whole = true};
	*s = (struct sending){.spec = spec, .sink = sink, .counts = counts, .table = query_tables};
	while (!s->table->made || s->table->unshipped)
		s->table++;
	s->row.log = subject.log;
	s->row.head = &head;
	/* Follows them; the first one is enough to know whether there are any. */
	rc = run_requests_each(r, i, count_one, NULL, e);
	*none = rc == 0 && run_requests_without(r, i);
	if (rc >= 0 && !*none) {
		rc = id_of(logs, subject.log->name, &subject.id, e);
		rc = rc ?: sink->begin(sink->ctx, &subject, &s->from, e);
		s->batch_from = s->from;
		rc = rc ?: run_requests_each(r, i, send_row, s, e);
		if (!rc && counts->blocks > s->batch_from)
			rc = sink->batch(sink->ctx, counts->blocks, e);
		rc = rc ?: sink->end(sink->ctx, counts, e);
	}
	free(s);
	return rc < 0 ? rc : 0;
}
