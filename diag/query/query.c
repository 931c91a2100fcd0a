/* Opens SQLite over the logs, read-only, and counts what a query read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/query/query_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/clock.h"

enum {
	PROGRESS_STEPS = 10000, /* of SQLite's machine between two looks at the clock */
	HEAP_BYTES = 1 << 30,   /* beyond it SQLite reports an error; its sorter uses files */
};

static const char views[] =
	"CREATE VIEW files AS SELECT cell, attempt, node, log, file, max(path) AS path, kind,"
	" device, inode, sum(open) AS opened, min(time_ns) AS first_ns, max(time_ns) AS last_ns"
	" FROM descriptors WHERE file IS NOT NULL"
	" GROUP BY cell, attempt, node, log, file;"
	"CREATE VIEW threads AS SELECT cell, attempt, node, log, pid, tid, name,"
	" min(time_ns) AS first_ns FROM processes WHERE what <> 'exit'"
	" GROUP BY cell, attempt, node, log, pid, tid, name;";

bool query_stopped(struct query *q)
{
	if (q->spec.interrupted && *q->spec.interrupted)
		q->why = -EINTR;
	else if (q->until_s && clock_mono_s() > q->until_s)
		q->why = -ETIME;
	else if (q->spec.unwanted && q->spec.unwanted(q->spec.ctx))
		q->why = -EINTR;
	return q->why;
}

static int progress(void *ctx)
{
	return query_stopped(ctx);
}

void query_note(struct query *q, size_t log, const char *why)
{
	if (q->problems[log])
		return;
	q->problems[log] = alloc_copy(why);
	q->problem_of[q->n_problems++] = log;
}

void query_note_text(struct query *q, const char *why)
{
	for (size_t i = 0; i < q->n_notes; i++)
		if (!strcmp(q->notes[i], why))
			return;
	q->notes = alloc_room(q->notes, q->n_notes, sizeof(*q->notes));
	q->notes[q->n_notes++] = alloc_copy(why);
}

void query_note_kind(struct query *q, const struct query_log *log, const struct log_head *head)
{
	const bool sums = (head->how & LOG_MODE) == LOG_SUMS;

	if (!sums && strcmp(head->tracer, "sampler") != 0)
		q->may_call = true;
	else if (!q->no_calls)
		q->no_calls = alloc_format("%s is no log of calls, but of %s, and no other was "
					   "read: %s",
			log->name, sums ? "sums (table 'sums')" : "readings (table 'readings')",
			log->in_attempt ? "run the scenario with tracer = { \"ebpf\", mode = "
					  "\"events\" }"
					: "trace with --mode events");
}

const char *query_no_calls(const struct query *q)
{
	return q->may_call ? NULL : q->no_calls;
}

const char *query_problem(const struct query *q, size_t i)
{
	const struct query_source *store = q->spec.store;

	if (i < q->n_problems)
		return q->problems[q->problem_of[i]];
	i -= q->n_problems;
	if (i < q->n_notes)
		return q->notes[i];
	i -= q->n_notes;
	return store && store->problem ? store->problem(store->ctx, i) : NULL;
}

void query_counts(const struct query *q, uint64_t *read, uint64_t *passed)
{
	*read = q->counts.read;
	*passed = q->counts.passed;
}

/* Questions only: no writing, no attaching, no pragmas. */
static int authorize(
	void *ctx, int action, const char *a, const char *b, const char *c, const char *d)
{
	struct query *q = ctx;

	(void)a, (void)c, (void)d;
	if (q->declaring)
		return SQLITE_OK;
	switch (action) {
	case SQLITE_READ:
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE: return SQLITE_OK;
	case SQLITE_FUNCTION:
		return b && !sqlite3_stricmp(b, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	default: return SQLITE_DENY;
	}
}

int query_fail(struct query *q, const char *doing, struct err *e)
{
	return err_set(e, -EIO, "cannot %s: %s", doing, sqlite3_errmsg(q->db));
}

/* SQLite makes these tables when they are first named, which the authorizer would refuse. */
static const char json_tables[] = "SELECT 1 FROM json_each('[]'), json_tree('[]')";

static int open_db(struct query *q, struct err *e)
{
	int rc;

	sqlite3_hard_heap_limit64(HEAP_BYTES);
	rc = sqlite3_open_v2(":memory:", &q->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return query_fail(q, "open a store in memory", e);
	sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(q->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(q->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	rc = query_add_events(q, e);
	if (rc)
		return rc;
	if (query_add_functions(q->db) != SQLITE_OK ||
		sqlite3_exec(q->db, views, NULL, NULL, NULL) != SQLITE_OK ||
		sqlite3_exec(q->db, json_tables, NULL, NULL, NULL) != SQLITE_OK)
		return query_fail(q, "make the tables", e);
	return 0;
}

static int check_logs(const struct query_spec *spec, struct err *e)
{
	struct log_reader *r;
	int rc = 0;

	for (size_t i = 0; !rc && i < spec->n_logs; i++) {
		if (spec->logs[i].in_attempt)
			continue;
		rc = log_reader_new(spec->logs[i].path, &r, e);
		if (!rc)
			log_reader_free(r);
	}
	return rc;
}

int query_new(const struct query_spec *spec, struct query **out, struct err *e)
{
	int rc = check_logs(spec, e);
	struct query *q;

	if (rc)
		return rc;
	q = alloc_zero(1, sizeof(*q));
	q->spec = *spec;
	q->spec.slot_ns = spec->slot_ns > 0 ? spec->slot_ns : 1000000000;
	q->problems = alloc_zero(spec->n_logs, sizeof(*q->problems));
	q->problem_of = alloc_zero(spec->n_logs, sizeof(*q->problem_of));
	rc = open_db(q, e);
	if (rc)
		query_free(q);
	else
		*out = q;
	return rc;
}

void query_free(struct query *q)
{
	if (!q)
		return;
	sqlite3_close(q->db);
	for (size_t i = 0; i < q->spec.n_logs; i++)
		free(q->problems[i]);
	free(q->problems);
	free(q->problem_of);
	for (size_t i = 0; i < q->n_notes; i++)
		free(q->notes[i]);
	free(q->notes);
	free(q->no_calls);
	free(q);
}

/* SQLite's message, with its place and the text from there. */
static int query_wrong(struct query *q, const char *sql, struct err *e)
{
	int code = sqlite3_errcode(q->db), at = sqlite3_error_offset(q->db);

	if (code == SQLITE_AUTH || strstr(sqlite3_errmsg(q->db), "may not be modified"))
		return err_set(e, -EINVAL,
			"only SELECT is allowed: logs and runs are never written (%s)",
			sqlite3_errmsg(q->db));
	if (at < 0 || (size_t)at > strlen(sql))
		return err_set(e, -EINVAL, "wrong SQL: %s", sqlite3_errmsg(q->db));
	return err_set(e, -EINVAL, "wrong SQL at character %d, '%.40s': %s", at + 1, sql + at,
		sqlite3_errmsg(q->db));
}

static struct query_cell query_cell_of(sqlite3_stmt *st, int i)
{
	struct query_cell c = {.type = CELL_NULL};

	switch (sqlite3_column_type(st, i)) {
	case SQLITE_INTEGER:
		c.type = CELL_INT;
		c.number = sqlite3_column_int64(st, i);
		break;
	case SQLITE_FLOAT:
		c.type = CELL_REAL;
		c.real = sqlite3_column_double(st, i);
		break;
	case SQLITE_TEXT:
		c.type = CELL_TEXT;
		c.text = (const char *)sqlite3_column_text(st, i);
		c.size = (size_t)sqlite3_column_bytes(st, i);
		break;
	case SQLITE_BLOB:
		c.type = CELL_BLOB;
		c.text = sqlite3_column_blob(st, i);
		c.size = (size_t)sqlite3_column_bytes(st, i);
		break;
	}
	return c;
}

int query_was_stopped(const struct query *q, struct err *e)
{
	if (q->why == -ETIME)
		return err_set(e, -ETIME,
			"the query did not end within %g s (--timeout sets the limit)",
			q->spec.timeout_s);
	err_set(e, -EINTR, "interrupted");
	return err_blame(e, ERR_INTERRUPTED, -EINTR);
}

/* Steps through the statement. */
static int query_run_sql(struct query *q, const char *sql, sqlite3_stmt *st,
	const struct query_sink *sink, struct err *e)
{
	int n = sqlite3_column_count(st), step = SQLITE_DONE, rc;
	const char **names = alloc_zero((size_t)n + 1, sizeof(*names));
	struct query_cell *cells = alloc_zero((size_t)n + 1, sizeof(*cells));

	for (int i = 0; i < n; i++)
		names[i] = sqlite3_column_name(st, i);
	rc = sink->begin ? sink->begin(sink->ctx, n, names, e) : 0;
	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++)
			cells[i] = query_cell_of(st, i);
		rc = sink->row(sink->ctx, n, cells, e);
	}
	/* An interrupt also ends a write of the sink's, which then fails. */
	if ((!rc && q->why) || (rc < 0 && query_stopped(q) && q->why == -EINTR)) {
		rc = query_was_stopped(q, e);
	} else if (!rc && q->failed) {
		*e = q->error;
		rc = q->failed;
	} else if (!rc && step != SQLITE_DONE) {
		rc = query_wrong(q, sql, e);
	}
	free(names);
	free(cells);
	return rc;
}

static bool is_blank(const char *s)
{
	return !s[strspn(s, " \t\r\n;")];
}

static int bind_one(sqlite3_stmt *st, int i, const struct query_param *p)
{
	switch (p->type) {
	case PARAM_INT: return sqlite3_bind_int64(st, i, p->number);
	case PARAM_REAL: return sqlite3_bind_double(st, i, p->real);
	case PARAM_TEXT: return sqlite3_bind_text(st, i, p->text, -1, SQLITE_TRANSIENT);
	default: return sqlite3_bind_null(st, i);
	}
}

/* Each parameter that the statement names must be given. */
static int bind_all(const struct query *q, sqlite3_stmt *st, struct err *e)
{
	for (int i = 1; i <= sqlite3_bind_parameter_count(st); i++) {
		const char *name = sqlite3_bind_parameter_name(st, i);
		const struct query_param *p = q->spec.params;

		while (p && p->name && name && strcmp(p->name, name) != 0)
			p++;
		if (!p || !p->name || !name)
			return err_set(e, -EINVAL, "nothing is known of the parameter '%s'",
				name ? name : "?");
		if (bind_one(st, i, p) != SQLITE_OK)
			return err_set(e, -EINVAL, "'%s' cannot have its value", name);
	}
	return 0;
}

/* Compiles one statement that only asks. */
static int query_prepare(struct query *q, const char *sql, sqlite3_stmt **out, struct err *e)
{
	sqlite3_stmt *st = NULL;
	const char *tail;
	int rc;

	if (sqlite3_prepare_v2(q->db, sql, -1, &st, &tail) != SQLITE_OK)
		return query_wrong(q, sql, e);
	if (!st)
		return err_set(e, -EINVAL, "there is no statement in '%.40s'", sql);
	if (!is_blank(tail))
		rc = err_set(
			e, -EINVAL, "one statement at a time: '%.40s' follows the first", tail);
	else if (!sqlite3_column_count(st) || !sqlite3_stmt_readonly(st))
		rc = err_set(e, -EINVAL, "only SELECT is allowed: logs and runs are never written");
	else
		rc = bind_all(q, st, e);
	if (rc)
		sqlite3_finalize(st);
	else
		*out = st;
	return rc;
}

void query_watch(struct query *q)
{
	q->why = 0;
	q->failed = 0;
	q->error = (struct err){.text = ""};
	q->until_s = q->spec.timeout_s > 0 ? clock_mono_s() + q->spec.timeout_s : 0;
}

static void query_guard(struct query *q)
{
	query_watch(q);
	sqlite3_set_authorizer(q->db, authorize, q);
	sqlite3_progress_handler(q->db, PROGRESS_STEPS, progress, q);
}

static void unwatch(struct query *q)
{
	sqlite3_progress_handler(q->db, 0, NULL, NULL);
	sqlite3_set_authorizer(q->db, NULL, NULL);
}

int query_check(struct query *q, const char *sql, int *at, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc;

	query_guard(q);
	rc = query_prepare(q, sql, &st, e);
	*at = rc ? sqlite3_error_offset(q->db) : -1;
	sqlite3_finalize(st);
	unwatch(q);
	return rc;
}

int query_run(struct query *q, const char *sql, const struct query_sink *sink, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc;

	query_guard(q);
	rc = query_prepare(q, sql, &st, e);
	if (!rc)
		rc = query_run_sql(q, sql, st, sink, e);
	sqlite3_finalize(st);
	unwatch(q);
	return rc;
}
