/* The virtual tables: one module for all of them. A cursor goes through the logs one by one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/query/query_impl.h"
#include "harness/base/alloc.h"

/* What makes a table: the module's data. */
struct origin {
	struct query *query;
	const struct query_table *table;
};

struct table {
	sqlite3_vtab base;
	const struct origin *origin;
	int n_columns;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct push *pushes;
	size_t n_pushes;
	unsigned needs;
	uint64_t used; /* columns that the query names: 1 << index; the last bit: all from 63 on */
	struct summed *totals; /* of a summed table: its rows are the groups */
	size_t log;            /* the next one */
	struct scan *scan;     /* NULL: between logs, or behind the last one */
	struct query_ask ask;  /* of a source */
	void *rows;            /* a source's; NULL: behind the last one */
	sqlite3_int64 rowid;   /* how many rows there were before; of a summed table: the group */
	struct query_row row;
};

static struct query *query_of(const struct cursor *c)
{
	return ((struct table *)c->base.pVtab)->origin->query;
}

static const struct query_table *table_of(const struct cursor *c)
{
	return ((struct table *)c->base.pVtab)->origin->table;
}

/* Where the table's rows come from; NULL: from the logs. */
static const struct query_source *source_of(const struct origin *o)
{
	const struct query_spec *spec = &o->query->spec;

	return spec->store ? spec->store : o->table->made ? spec->made : NULL;
}

static const struct query_source *source_at(const struct cursor *c)
{
	return source_of(((struct table *)c->base.pVtab)->origin);
}

static int vt_connect(
	sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **error)
{
	static const char *const types[] = {"INTEGER", "REAL", "TEXT"};
	const struct origin *o = aux;
	sqlite3_str *sql = sqlite3_str_new(db);
	struct table *t;
	char *text;
	int rc, n = 0;

	(void)argc, (void)argv, (void)error;
	sqlite3_str_appendall(sql, "CREATE TABLE t(");
	for (const struct column *c = o->table->columns; c->name; c++, n++)
		sqlite3_str_appendf(sql, "%s\"%w\" %s", n ? ", " : "", c->name, types[c->type]);
	sqlite3_str_appendall(sql, ")");
	text = sqlite3_str_finish(sql);
	o->query->declaring = true;
	rc = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
	o->query->declaring = false;
	sqlite3_free(text);
	if (rc != SQLITE_OK)
		return rc;
	t = alloc_zero(1, sizeof(*t));
	t->origin = o;
	t->n_columns = n;
	*out = &t->base;
	return SQLITE_OK;
}

static int vt_disconnect(sqlite3_vtab *v)
{
	free(v);
	return SQLITE_OK;
}

static int op_of(int op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ: return PUSH_EQ;
	case SQLITE_INDEX_CONSTRAINT_GT: return PUSH_GT;
	case SQLITE_INDEX_CONSTRAINT_GE: return PUSH_GE;
	case SQLITE_INDEX_CONSTRAINT_LT: return PUSH_LT;
	case SQLITE_INDEX_CONSTRAINT_LE: return PUSH_LE;
	case SQLITE_INDEX_CONSTRAINT_ISNOTNULL: return PUSH_NOT_NULL;
	default: return 0;
	}
}

/* How much of the rows a condition is thought to leave. Only the order matters: places and short
 * times are narrow, and a comparison of one side is wide. */
static double share(enum column_key key, int op)
{
	switch (key) {
	case KEY_CELL:
	case KEY_ATTEMPT:
	case KEY_LOG: return 0.05;
	case KEY_NODE:
	case KEY_OWNER:
	case KEY_PHASE: return 0.3;
	case KEY_TIME_NS:
	case KEY_T: return op == PUSH_EQ ? 0.0001 : 0.2;
	default: return op == PUSH_EQ || op == PUSH_NOT_NULL ? 0.1 : 0.4;
	}
}

static double records_of(const struct query *q)
{
	return 1e6 * (double)(q->spec.n_logs ? q->spec.n_logs : 1);
}

/* What vt_filter gets: idxStr is "USED:", the columns that the query names, then "COLUMN OP" of
 * each condition that is passed; idxNum is what the columns need. SQLite checks all conditions
 * again. */
static int vt_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
	const struct table *t = (const struct table *)v;
	const struct column *columns = t->origin->table->columns;
	const bool any = source_of(t->origin);
	sqlite3_str *plan = sqlite3_str_new(NULL);
	double left = t->origin->table->summed ? 0.01 : 1;
	int n = 0;

	sqlite3_str_appendf(plan, "%llu:", (unsigned long long)info->colUsed);

	for (int i = 0; i < info->nConstraint; i++) {
		int at = info->aConstraint[i].iColumn, op = op_of(info->aConstraint[i].op);

		if (!info->aConstraint[i].usable || at < 0 || !op ||
			(!any && columns[at].key == KEY_NONE) ||
			(!any && op == PUSH_NOT_NULL && columns[at].key != KEY_ERRNO) ||
			strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
			continue;
		left *= share(columns[at].key, op);
		if (sqlite3_vtab_in(info, i, -1) && sqlite3_vtab_in(info, i, 1))
			op = PUSH_IN;
		info->aConstraintUsage[i].argvIndex = ++n;
		sqlite3_str_appendf(plan, "%d%c", at, op);
	}
	info->idxNum = 0;
	for (int i = 0; i < t->n_columns; i++)
		if (info->colUsed >> (i < 63 ? i : 63) & 1)
			info->idxNum |= (int)columns[i].needs;
	info->idxStr = sqlite3_str_finish(plan);
	info->needToFreeIdxStr = 1;
	info->estimatedRows = (sqlite3_int64)(records_of(t->origin->query) * left) + 1;
	info->estimatedCost = 1e4 + records_of(t->origin->query) * left;
	return SQLITE_OK;
}

static int vt_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
	struct cursor *c = alloc_zero(1, sizeof(*c));

	(void)v;
	*out = &c->base;
	return SQLITE_OK;
}

static void tables_forget(struct cursor *c)
{
	for (size_t i = 0; i < c->n_pushes; i++) {
		for (size_t k = 0; k < c->pushes[i].n; k++)
			free(c->pushes[i].values[k].text);
		free(c->pushes[i].values);
	}
	free(c->pushes);
	c->pushes = NULL;
	c->n_pushes = 0;
}

static void leave_rows(struct cursor *c)
{
	if (c->rows)
		source_at(c)->close(c->rows);
	c->rows = NULL;
}

static void leave_log(struct cursor *c)
{
	struct query *q = query_of(c);

	if (c->scan) {
		q->counts.read += scan_counts(c->scan).read;
		q->counts.passed += scan_counts(c->scan).passed;
	}
	scan_close(c->scan);
	c->scan = NULL;
}

static int vt_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	leave_log(c);
	leave_rows(c);
	tables_forget(c);
	summed_free(c->totals);
	free(c);
	return SQLITE_OK;
}

static bool tables_stop(void *ctx, struct err *e)
{
	if (!query_stopped(ctx))
		return false;
	err_set(e, -EINTR, "stopped");
	return true;
}

static bool pushes_hold(const struct cursor *c, const struct query_log *log,
	const struct log_head *head, struct scan_filter *f)
{
	for (size_t i = 0; i < c->n_pushes; i++)
		if (!push_apply(&c->pushes[i], log, head, f))
			return false;
	return true;
}

/* Opens the log if one of its records can be asked for. 1: it is open; 0: it is passed over. */
static int enter_log(struct cursor *c, const struct query_log *log, struct err *e)
{
	struct query *q = query_of(c);
	const struct query_focus *focus = &q->spec.focus;
	const enum record_type of = table_of(c)->of;
	const unsigned needs = c->needs | focus_needs(focus, of);
	struct scan_spec spec = {.details = needs & NEEDS_DETAILS,
		.moved = needs & NEEDS_MOVED,
		.state = needs & NEEDS_STATE,
		.no_index = q->spec.no_index,
		.index_least = q->spec.index_least,
		.stop = {.fn = tables_stop, .ctx = q}};
	int rc;

	scan_filter_all(&spec.filter, 1u << of);
	memset(spec.filter.calls, 0xff, sizeof(spec.filter.calls));
	if (!pushes_hold(c, log, NULL, &spec.filter) ||
		!focus_apply(focus, of, log, NULL, &spec.filter))
		return 0;
	rc = scan_open(log->path, &log->spec, &c->scan, e);
	if (rc)
		return rc;
	c->row.log = log;
	c->row.slot_ns = q->spec.slot_ns;
	c->row.head = stream_head(scan_stream(c->scan));
	if (!pushes_hold(c, log, c->row.head, &spec.filter) ||
		!focus_apply(focus, of, log, c->row.head, &spec.filter)) {
		leave_log(c);
		return 0;
	}
	rc = scan_begin(c->scan, &spec, e);
	if (rc)
		leave_log(c);
	else if (of == RECORD_CALL)
		query_note_kind(q, log, c->row.head);
	return rc;
}

/* Goes to the next record, if there is one. */
static int next_record(struct cursor *c)
{
	struct query *q = query_of(c);
	struct err e;
	int rc;

	for (;;) {
		if (c->scan) {
			rc = scan_next(c->scan, &c->row.item, &e);
			if (rc == 1 && !focus_holds(&q->spec.focus, table_of(c)->of, &c->row))
				continue;
			if (rc == 1) {
				q->may_call |= table_of(c)->of == RECORD_CALL;
				return SQLITE_OK;
			}
			leave_log(c);
		} else if (c->log == q->spec.n_logs) {
			return SQLITE_OK;
		} else {
			rc = enter_log(c, &q->spec.logs[c->log++], &e);
		}
		if (rc == -EINTR)
			return SQLITE_INTERRUPT;
		if (rc < 0)
			query_note(q, c->log - 1, e.text);
	}
}

/* A source's error ends the query. */
static int source_failed(struct cursor *c, int rc)
{
	struct query *q = query_of(c);

	q->failed = rc;
	return rc == -EINTR && q->why ? SQLITE_INTERRUPT : SQLITE_ERROR;
}

static int next_row(struct cursor *c)
{
	struct query *q = query_of(c);
	int rc;

	if (query_stopped(q))
		return SQLITE_INTERRUPT;
	rc = source_at(c)->next(c->rows, &q->error);
	if (rc != 1)
		leave_rows(c);
	return rc < 0 ? source_failed(c, rc) : SQLITE_OK;
}

/* Asked of what cannot have any logs, tables of records are not empty but not known. */
static int refuse_without_logs(struct cursor *c)
{
	struct query *q = query_of(c);

	return source_failed(
		c, err_set(&q->error, -ENODATA, "%s: %s", table_of(c)->name, q->spec.no_logs));
}

static bool unwanted(void *ctx)
{
	return query_stopped(ctx);
}

static void tables_note(void *ctx, const char *why)
{
	query_note_text(ctx, why);
}

/* Goes to the first row of a source. */
static int open_rows(struct cursor *c)
{
	struct query *q = query_of(c);
	const struct query_source *source = source_at(c);
	int rc;

	leave_rows(c);
	if (table_of(c)->made && !(source && source->has(source->ctx, table_of(c))))
		return source_failed(c,
			err_set(&q->error, -ENODATA,
				"%s: only runs that were recorded with flows have them: they are "
				"followed through all logs of an attempt, so ask the run",
				table_of(c)->name));
	c->ask = (struct query_ask){.table = table_of(c),
		.used = c->used,
		.pushes = c->pushes,
		.n_pushes = c->n_pushes,
		.slot_ns = q->spec.slot_ns,
		.focus = &q->spec.focus,
		.stop = unwanted,
		.note = tables_note,
		.ctx = q};
	rc = source->open(source->ctx, &c->ask, &c->rows, &q->error);
	return rc ? source_failed(c, rc) : next_row(c);
}

static bool from_source(const struct cursor *c)
{
	return source_at(c) || table_of(c)->made;
}

static int vt_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	c->rowid++;
	if (table_of(c)->summed)
		return SQLITE_OK;
	return from_source(c) ? next_row(c) : next_record(c);
}

static int next_to_sum(struct cursor *c, bool *is)
{
	int rc = from_source(c) ? next_row(c) : next_record(c);

	*is = rc == SQLITE_OK && (from_source(c) ? c->rows != NULL : c->scan != NULL);
	return rc;
}

/* All records at once. */
static int sum_up(struct cursor *c)
{
	int rc;
	bool is;

	summed_free(c->totals);
	c->totals = summed_new(table_of(c)->columns, c->used);
	if (from_source(c)) {
		rc = open_rows(c);
		is = rc == SQLITE_OK && c->rows;
	} else {
		rc = next_to_sum(c, &is);
	}
	for (; is; rc = next_to_sum(c, &is))
		if (from_source(c) ? !summed_add_part(c->totals, source_at(c), c->rows)
				   : !summed_add(c->totals, &c->row)) {
			c->base.pVtab->zErrMsg = sqlite3_mprintf(
				"too many different rows: name fewer columns of totals");
			return SQLITE_ERROR;
		}
	return rc;
}

static struct push_value tables_value_of(sqlite3_value *v)
{
	struct push_value out = {.type = PUSH_OTHER};

	switch (sqlite3_value_type(v)) {
	case SQLITE_INTEGER:
		out.type = PUSH_INT;
		out.number = sqlite3_value_int64(v);
		break;
	case SQLITE_FLOAT:
		out.type = PUSH_REAL;
		out.real = sqlite3_value_double(v);
		break;
	case SQLITE_TEXT:
		out.type = PUSH_TEXT;
		out.text = alloc_copy((const char *)sqlite3_value_text(v));
		break;
	}
	return out;
}

static void add_value(struct push *p, sqlite3_value *v)
{
	p->values = alloc_room(p->values, p->n, sizeof(*p->values));
	p->values[p->n++] = tables_value_of(v);
}

static int vt_filter(
	sqlite3_vtab_cursor *base, int needs, const char *plan, int argc, sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	const struct column *columns = table_of(c)->columns;
	sqlite3_value *v;
	char *at = (char *)plan;

	leave_log(c);
	tables_forget(c);
	c->needs = (unsigned)needs;
	c->used = strtoull(at, &at, 10);
	at++;
	c->log = 0;
	c->rowid = 0;
	c->pushes = alloc_zero((size_t)argc, sizeof(*c->pushes));
	for (int i = 0; i < argc; i++) {
		struct push *p = &c->pushes[c->n_pushes++];

		p->column = (int)strtol(at, &at, 10);
		p->key = columns[p->column].key;
		p->op = (enum push_op) * at++;
		if (p->op != PUSH_IN)
			add_value(p, argv[i]);
		else
			for (int rc = sqlite3_vtab_in_first(argv[i], &v); rc == SQLITE_OK && v;
				rc = sqlite3_vtab_in_next(argv[i], &v))
				add_value(p, v);
	}
	if (query_of(c)->spec.no_logs && !source_at(c))
		return refuse_without_logs(c);
	if (table_of(c)->summed)
		return sum_up(c);
	return from_source(c) ? open_rows(c) : next_record(c);
}

static int vt_eof(sqlite3_vtab_cursor *base)
{
	const struct cursor *c = (const struct cursor *)base;

	if (table_of(c)->summed)
		return (size_t)c->rowid >= summed_count(c->totals);
	return from_source(c) ? !c->rows : !c->scan;
}

static int vt_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
	struct cursor *c = (struct cursor *)base;
	struct column_value v = {.type = VALUE_NULL};

	if (table_of(c)->summed)
		summed_column(c->totals, (size_t)c->rowid, i, &v);
	else if (from_source(c))
		source_at(c)->get(c->rows, i, &v);
	else
		table_of(c)->columns[i].get(&c->row, &v);
	switch (v.type) {
	case VALUE_NULL: break;
	case VALUE_INT: sqlite3_result_int64(ctx, v.number); break;
	case VALUE_REAL: sqlite3_result_double(ctx, v.real); break;
	case VALUE_TEXT:
		sqlite3_result_text(ctx, v.text, -1, v.lasting ? SQLITE_STATIC : SQLITE_TRANSIENT);
		break;
	}
	return SQLITE_OK;
}

/* The same row has the same number whatever the conditions are: of 'A or B' SQLite asks for the
 * rows of A and for those of B, and knows by it which ones it has had. */
static int vt_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	const struct cursor *c = (const struct cursor *)base;

	if (table_of(c)->summed)
		*out = summed_id(c->totals, (size_t)c->rowid);
	else if (from_source(c))
		*out = source_at(c)->rowid(c->rows);
	else
		*out = query_rowid(c->log - 1, c->row.item->record->number);
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = vt_connect,
	.xBestIndex = vt_best_index,
	.xDisconnect = vt_disconnect,
	.xOpen = vt_open,
	.xClose = vt_close,
	.xFilter = vt_filter,
	.xNext = vt_next,
	.xEof = vt_eof,
	.xColumn = vt_column,
	.xRowid = vt_rowid,
};

int query_add_events(struct query *q, struct err *e)
{
	for (const struct query_table *t = query_tables; t->name; t++) {
		struct origin *o = alloc_zero(1, sizeof(*o));

		o->query = q;
		o->table = t;
		if (sqlite3_create_module_v2(q->db, t->name, &module, o, free) != SQLITE_OK)
			return err_set(e, -EIO, "cannot make the table '%s': %s", t->name,
				sqlite3_errmsg(q->db));
	}
	return 0;
}
