/* Inserts batches into ClickHouse, each exactly once. */
#include "diag/ship/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "diag/ship/catalog.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/bytes.h"
#include "harness/base/clock.h"

/* Rows of one table that wait for the end of their batch, in RowBinary. */
struct waiting {
	uint8_t *data;
	size_t size, room;
	int64_t rows;
	/* The columns that are stored, and how. */
	struct answer_cache {
		const struct column *column;
		enum schema_form form;
		bool whole;
	} kept[64];
	size_t n_kept;
};

struct sender {
	struct clickhouse *c;
	char *run_id;
	struct waiting tables[CATALOG_TABLES];
	int64_t log, session, from, first_ns, last_ns, part;
	uint64_t batches;
	struct catalog catalog; /* of the log at hand */
	char *name;
};

/* ---- rows ---- */

static uint8_t *room_for(struct waiting *w, size_t n)
{
	if (w->size + n > w->room) {
		w->room = 2 * (w->size + n) + 65536;
		w->data = alloc_resize(w->data, w->room, 1);
	}
	return w->data + w->size;
}

static void put_int(struct waiting *w, int64_t v)
{
	memcpy(room_for(w, sizeof(v)), &v, sizeof(v));
	w->size += sizeof(v);
}

static void sender_put_text(struct waiting *w, const char *s, size_t n)
{
	uint8_t *p = room_for(w, n + BYTES_VARINT), *at;

	at = bytes_put_varint(p, n);
	memcpy(at, s, n);
	w->size += (size_t)(at - p) + n;
}

static void put_string(struct waiting *w, const char *s)
{
	sender_put_text(w, s ?: "", s ? strlen(s) : 0);
}

static void put_flag(struct waiting *w, bool null)
{
	*room_for(w, 1) = null;
	w->size++;
}

static void put_nullable_string(struct waiting *w, const char *s)
{
	put_flag(w, !s);
	if (s)
		put_string(w, s);
}

static void put_value(struct waiting *w, bool whole, const struct column_value *v)
{
	int64_t bits = 0;

	if (whole) {
		put_int(w, v->number);
		return;
	}
	put_flag(w, v->type == VALUE_NULL);
	switch (v->type) {
	case VALUE_NULL: break;
	case VALUE_INT: put_int(w, v->number); break;
	case VALUE_REAL:
		memcpy(&bits, &v->real, sizeof(bits));
		put_int(w, bits);
		break;
	case VALUE_TEXT: put_string(w, v->text); break;
	}
}

static void sender_put_number(struct waiting *w, int64_t number)
{
	put_int(w, number >> 8);
	*room_for(w, 1) = (uint8_t)number;
	w->size++;
}

static int sender_row(void *ctx, const struct query_table *t, struct query_row *r, struct err *e)
{
	struct sender *s = ctx;
	struct waiting *w = &s->tables[t - query_tables];
	const int64_t time_ns = record_start_ns(r->item->record);

	(void)e;
	put_int(w, s->log);
	put_int(w, s->part);
	for (size_t i = 0; i < w->n_kept; i++) {
		const struct answer_cache *k = &w->kept[i];
		struct column_value v = {.type = VALUE_NULL};

		k->column->get(r, &v);
		if (k->form == FORM_NUMBER) {
			sender_put_number(w, v.number);
			continue;
		}
		if (k->form == FORM_SEQ && v.type == VALUE_INT)
			v.number -= (int64_t)r->item->record->number;
		put_value(w, k->whole, &v);
	}
	w->rows++;
	if (time_ns < s->first_ns)
		s->first_ns = time_ns;
	if (time_ns > s->last_ns)
		s->last_ns = time_ns;
	return 0;
}

/* ---- batches ---- */

static int64_t draw(void)
{
	int64_t v = 0;

	while (getrandom(&v, sizeof(v), 0) != sizeof(v))
		;
	v &= INT64_MAX;
	return v ? v : 1;
}

static void start_batch(struct sender *s, uint64_t from)
{
	for (size_t i = 0; i < CATALOG_TABLES; i++)
		s->tables[i].size = 0, s->tables[i].rows = 0;
	s->from = (int64_t)from;
	s->part = draw();
	s->first_ns = INT64_MAX;
	s->last_ns = INT64_MIN;
}

static int one_number(struct clickhouse *c, const char *sql, int64_t *out, struct err *e)
{
	json_auto_t *rows = NULL;
	int rc = clickhouse_ask(c, sql, &rows, e);

	if (!rc)
		*out = json_integer_value(json_array_get(json_array_get(rows, 0), 0));
	return rc;
}

/* Has nobody else begun with the log since? */
static int check_session(struct sender *s, struct err *e)
{
	auto_free char *sql = alloc_format(
		"SELECT max(session) FROM %s.culprit_sessions WHERE log = %lld",
		clickhouse_database(s->c), (long long)s->log);
	int64_t newest = 0;
	int rc = one_number(s->c, sql, &newest, e);

	if (!rc && newest != s->session)
		rc = err_blame(e, ERR_CLUSTER,
			err_set(e, -EBUSY,
				"another shipper has taken '%s' over; nothing is lost or doubled",
				s->name));
	return rc;
}

static int insert(struct sender *s, const struct query_table *t, struct err *e)
{
	struct waiting *w = &s->tables[t - query_tables];
	auto_free char *into = schema_into(s->c, t);
	auto_free char *count = alloc_format("SELECT count() FROM %s.rows_%s WHERE _batch = %lld",
		clickhouse_database(s->c), t->name, (long long)s->part);
	int64_t there = 0;
	int rc = w->rows ? clickhouse_insert(s->c, into, w->data, w->size, e)
			?: one_number(s->c, count, &there, e)
			 : 0;

	if (!rc && there != w->rows)
		rc = err_blame(e, ERR_CLUSTER,
			err_set(e, -EIO,
				"the store at %s took %lld rows of %lld of '%s' and said nothing",
				clickhouse_url(s->c), (long long)there, (long long)w->rows,
				s->name));
	return rc;
}

static int commit(struct sender *s, uint64_t to, struct err *e)
{
	auto_free char *into = alloc_format("%s.culprit_parts", clickhouse_database(s->c));
	struct waiting w = {.data = NULL};
	const int64_t head[] = {
		s->part, s->log, s->session, s->from, (int64_t)to, s->first_ns, s->last_ns};
	int rc;

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		put_int(&w, head[i]);
	for (size_t i = 0; query_tables[i].name; i++)
		if (schema_has_table(&query_tables[i]))
			put_int(&w, s->tables[i].rows);
	rc = clickhouse_insert(s->c, into, w.data, w.size, e);
	free(w.data);
	return rc;
}

static int batch(void *ctx, uint64_t to, struct err *e)
{
	struct sender *s = ctx;
	int rc = 0;

	for (const struct query_table *t = query_tables; !rc && t->name; t++)
		if (schema_has_table(t))
			rc = insert(s, t, e);
	rc = rc ?: check_session(s, e) ?: commit(s, to, e);
	if (rc)
		return err_prefix(e, rc, "'%s', from block %lld on", s->name, (long long)s->from);
	s->batches++;
	start_batch(s, to);
	return 0;
}

/* ---- a log ---- */

static int note_log(struct sender *s, const struct ship_subject *of, struct err *e)
{
	const struct query_log *l = of->log;
	const int64_t ahead = l->spec.clock_offset_ns;
	auto_free char *into = alloc_format("%s.culprit_logs", clickhouse_database(s->c));
	struct waiting w = {.data = NULL};
	int rc;

	put_int(&w, s->log);
	put_int(&w, s->session);
	put_int(&w, of->ordinal);
	put_string(&w, of->made_of);
	put_string(&w, l->name);
	put_nullable_string(&w, query_node(l, of->head));
	put_nullable_string(&w, query_owner(l));
	put_flag(&w, !l->in_attempt);
	if (l->in_attempt)
		put_int(&w, l->cell);
	put_flag(&w, !l->in_attempt);
	if (l->in_attempt)
		put_int(&w, l->attempt);
	put_int(&w, query_start_ns(l, of->head));
	put_int(&w, l->onset_ns ? l->onset_ns + ahead : 0);
	put_int(&w, l->offset_ns ? l->offset_ns + ahead : 0);
	put_int(&w, ahead);
	put_int(&w, of->head->start_ns);
	put_string(&w, of->head->host);
	put_string(&w, of->head->arch);
	rc = clickhouse_insert(s->c, into, w.data, w.size, e);
	free(w.data);
	return rc;
}

static int note_session(struct sender *s, int64_t from, struct err *e)
{
	auto_free char *sql = alloc_format(
		"INSERT INTO %s.culprit_sessions VALUES (%lld, %lld, %lld)",
		clickhouse_database(s->c), (long long)s->log, (long long)s->session,
		(long long)from);

	return clickhouse_do(s->c, sql, e);
}

/* Later than all that began with the log, by whichever clock. */
static int64_t new_session(int64_t newest)
{
	int64_t now = (clock_real_ns() & ~0xfffll) | (draw() & 0xfff);

	return now > newest ? now : newest + 1 + (draw() & 0xfff);
}

static int sender_begin(void *ctx, const struct ship_subject *of, uint64_t *from, struct err *e)
{
	struct sender *s = ctx;
	const struct catalog_log *l;
	int64_t next = 0;
	int rc;

	free(s->name);
	s->name = alloc_copy(of->log->name);
	s->log = of->id;
	catalog_clear(&s->catalog);
	s->catalog = (struct catalog){.logs = NULL};
	rc = catalog_load(s->c, of->id, &s->catalog, e);
	if (rc)
		return rc;
	l = s->catalog.n ? &s->catalog.logs[0] : NULL;
	next = l && l->n_parts ? l->parts[l->n_parts - 1].to : 0;
	s->session = new_session(l ? l->newest : 0);
	/* The log's row first: a session without it would fence nobody. */
	rc = (l ? 0 : note_log(s, of, e)) ?: note_session(s, next, e);
	*from = (uint64_t)next;
	start_batch(s, *from);
	return rc;
}

/* Counts the log's rows in the store, all of its parts. */
static int count_all(struct sender *s, struct err *e)
{
	struct catalog *t = &s->catalog;
	int64_t there, want;
	int rc;

	catalog_clear(t);
	*t = (struct catalog){.logs = NULL};
	rc = catalog_load(s->c, s->log, t, e);
	for (size_t i = 0; !rc && query_tables[i].name; i++) {
		auto_free char *sql = NULL;
		size_t size;
		FILE *f;

		want = there = 0;
		for (size_t k = 0; k < t->logs[0].n_parts; k++)
			want += t->logs[0].parts[k].rows[i];
		if (!want)
			continue;
		f = alloc_text(&sql, &size);
		fprintf(f, "SELECT count() FROM %s.rows_%s WHERE _batch IN (0",
			clickhouse_database(s->c), query_tables[i].name);
		for (size_t k = 0; k < t->logs[0].n_parts; k++)
			if (t->logs[0].parts[k].rows[i])
				fprintf(f, ", %lld", (long long)t->logs[0].parts[k].part);
		fputc(')', f);
		fclose(f);
		rc = one_number(s->c, sql, &there, e);
		if (!rc && there != want)
			rc = err_blame(e, ERR_DAMAGED,
				err_set(e, -EBADMSG,
					"of '%s' the store at %s has %lld rows in %s, and had "
					"taken "
					"%lld: use another database and send the log again",
					s->name, clickhouse_url(s->c), (long long)there,
					query_tables[i].name, (long long)want));
	}
	return rc;
}

static int sender_end(void *ctx, const struct ship_counts *c, struct err *e)
{
	struct sender *s = ctx;
	auto_free char *into = alloc_format("%s.culprit_ends", clickhouse_database(s->c));
	struct waiting w = {.data = NULL};
	const int64_t numbers[] = {s->log, s->session, (int64_t)c->blocks, (int64_t)c->records,
		(int64_t)c->lost, c->whole};
	int rc = count_all(s, e);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put_int(&w, numbers[i]);
	put_string(&w, c->problem);
	rc = rc ?: clickhouse_insert(s->c, into, w.data, w.size, e);
	free(w.data);
	return rc;
}

struct ship_sink sender_sink(struct sender *s)
{
	return (struct ship_sink){.ctx = s,
		.begin = sender_begin,
		.row = sender_row,
		.batch = batch,
		.end = sender_end};
}

int sender_run(struct sender *s, const json_t *tables, struct err *e)
{
	auto_free char *into = alloc_format("%s.culprit_run", clickhouse_database(s->c));
	auto_free char *text = json_dumps(tables, JSON_COMPACT | JSON_SORT_KEYS);
	struct waiting w = {.data = NULL};
	int rc;

	put_int(&w, clock_real_ns());
	put_string(&w, s->run_id);
	put_string(&w, text);
	rc = clickhouse_insert(s->c, into, w.data, w.size, e);
	free(w.data);
	return rc;
}

/* One run a database, or logs by themselves: the numbers of cells mean one thing. */
static int check_run(struct sender *s, struct err *e)
{
	struct catalog all = {.logs = NULL};
	int rc = catalog_load(s->c, 0, &all, e);
	const char *holds = all.run_id ? all.run_id : all.n ? "logs outside of runs" : NULL;

	if (!rc && holds &&
		(!all.run_id != !s->run_id || (all.run_id && strcmp(all.run_id, s->run_id) != 0)))
		rc = err_blame(e, ERR_USAGE,
			err_set(e, -EEXIST,
				"the database '%s' holds %s%s, and takes nothing else: use another "
				"database",
				clickhouse_database(s->c), all.run_id ? "the run " : "", holds));
	catalog_clear(&all);
	return rc;
}

static void plan(struct sender *s)
{
	for (const struct query_table *t = query_tables; t->name; t++) {
		struct waiting *w = &s->tables[t - query_tables];

		for (const struct column *c = t->columns; schema_has_table(t) && c->name; c++)
			if (schema_stores(c))
				w->kept[w->n_kept++] = (struct answer_cache){
					c, schema_form(c), schema_is_whole(c)};
	}
}

int sender_new(struct clickhouse *c, const char *run_id, struct sender **out, struct err *e)
{
	struct sender *s = alloc_zero(1, sizeof(*s));
	int rc;

	s->c = c;
	s->run_id = run_id ? alloc_copy(run_id) : NULL;
	plan(s);
	rc = schema_make(c, e) ?: check_run(s, e);
	if (rc)
		sender_free(s);
	else
		*out = s;
	return rc;
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < CATALOG_TABLES; i++)
		free(s->tables[i].data);
	catalog_clear(&s->catalog);
	free(s->run_id);
	free(s->name);
	free(s);
}
