#include "harness/run/store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/evp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 3: cells without a tracer; read as they are. */
#define VERSION "4"
#define OLD_VERSION "3"

struct store {
	sqlite3 *db;
	char *folder, *run_id;
};

static const char schema[] =
	"PRAGMA journal_mode = DELETE;"
	"CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
	"CREATE TABLE cell (number INTEGER PRIMARY KEY, training INTEGER, workload TEXT, workload_params TEXT,"
	" fault TEXT, fault_params TEXT, resource TEXT, repeat INTEGER, victims TEXT, skipped TEXT, tracer TEXT);"
	"CREATE TABLE attempt (id INTEGER PRIMARY KEY, cell INTEGER REFERENCES cell, number INTEGER, outcome TEXT,"
	" reason TEXT, started_ns INTEGER, start_ns INTEGER, onset_ns INTEGER, offset_ns INTEGER, ended_ns INTEGER,"
	" seconds INTEGER, detail TEXT, UNIQUE (cell, number));"
	"CREATE TABLE sample (attempt INTEGER REFERENCES attempt, metric TEXT, server TEXT, second INTEGER,"
	" count INTEGER, sum_s REAL, max_s REAL, bytes INTEGER, PRIMARY KEY (attempt, metric, server, second))"
	" WITHOUT ROWID;"
	"CREATE TABLE event (attempt INTEGER REFERENCES attempt, number INTEGER, kind TEXT, server TEXT, client TEXT,"
	" time_s REAL, detail TEXT, PRIMARY KEY (attempt, number)) WITHOUT ROWID;"
	"CREATE TABLE file (attempt INTEGER REFERENCES attempt, path TEXT PRIMARY KEY, size INTEGER, sha256 TEXT)"
	" WITHOUT ROWID;"
	"CREATE TABLE model (detector TEXT PRIMARY KEY, params TEXT, model TEXT) WITHOUT ROWID;"
	"CREATE TABLE verdict (attempt INTEGER REFERENCES attempt, detector TEXT, metric TEXT, verdict TEXT,"
	" PRIMARY KEY (attempt, detector, metric)) WITHOUT ROWID;"
	"INSERT INTO fact VALUES ('store_version', '" VERSION "');";

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = {"confirmed", "invalid", "error"};

	return names[o];
}

static int fail(struct store *s, struct err *e, const char *doing)
{
	return err_set(e, -EIO, "cannot %s in '%s/run.db': %s", doing, s->folder, sqlite3_errmsg(s->db));
}

static int execute(struct store *s, const char *sql, struct err *e, const char *doing)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(s, e, doing);
}

/* Prepares 'sql' and binds by 'types': i int64_t, d double, s text (may be NULL), j JSON (may be NULL). */
static int statement(struct store *s, sqlite3_stmt **out, struct err *e, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st = NULL;
	va_list ap;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	va_start(ap, types);
	for (int i = 1; rc == SQLITE_OK && types[i - 1]; i++) {
		const json_t *j;

		switch (types[i - 1]) {
		case 'i':
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
			break;
		case 'd':
			rc = sqlite3_bind_double(st, i, va_arg(ap, double));
			break;
		case 's':
			rc = sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
			break;
		default:
			j = va_arg(ap, const json_t *);
			if (j)
				rc = sqlite3_bind_text(st, i, json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY),
						       -1, free);
		}
	}
	va_end(ap);
	if (rc != SQLITE_OK) {
		sqlite3_finalize(st);
		return fail(s, e, "prepare a statement");
	}
	*out = st;
	return 0;
}

static int finish(struct store *s, sqlite3_stmt *st, struct err *e, const char *doing)
{
	int rc = sqlite3_step(st) == SQLITE_DONE ? 0 : fail(s, e, doing);

	sqlite3_finalize(st);
	return rc;
}

static int open_db(const char *folder, int flags, struct store **out, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	char *path = NULL, *real = NULL;
	int rc = 0;

	if (!s || asprintf(&path, "%s/run.db", folder) < 0) {
		rc = err_errno(e, -ENOMEM, "cannot open '%s'", folder);
		goto out;
	}
	real = realpath(folder, NULL);
	s->folder = strdup(folder);
	s->run_id = real ? strdup(basename(real)) : NULL;
	if (!s->folder || !s->run_id) {
		rc = err_errno(e, real ? -ENOMEM : -errno, "cannot open the run '%s'", folder);
		goto out;
	}
	if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
		rc = err_set(e, -ENOENT, "cannot open '%s': %s", path, s->db ? sqlite3_errmsg(s->db) : "out of memory");
		goto out;
	}
	sqlite3_busy_timeout(s->db, 10000);
out:
	free(real);
	free(path);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

int store_create(const char *folder, struct store **out, struct err *e)
{
	struct store *s;
	int rc;

	if (mkdir(folder, 0700) < 0)
		return err_errno(e, -errno, "cannot make the run's folder '%s'", folder);
	rc = open_db(folder, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &s, e);
	if (rc)
		return rc;
	rc = execute(s, schema, e, "make the tables");
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

int store_open(const char *folder, struct store **out, struct err *e)
{
	struct store *s;
	char *path = NULL, *version;
	int rc;

	if (asprintf(&path, "%s/run.db", folder) < 0)
		return err_errno(e, -ENOMEM, "cannot open '%s'", folder);
	rc = access(path, R_OK) ? err_set(e, -ENOENT, "'%s' is no run: there is no run.db in it", folder) : 0;
	free(path);
	if (!rc)
		rc = open_db(folder, SQLITE_OPEN_READWRITE, &s, e);
	if (rc)
		return rc;
	version = store_get(s, "store_version");
	if (!version || (strcmp(version, VERSION) && strcmp(version, OLD_VERSION)))
		rc = err_set(e, -EINVAL, "'%s/run.db' is %s%s; this program reads versions " OLD_VERSION " and " VERSION, folder,
			     version ? "of version " : "no run store", version ? version : "");
	free(version);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	free(s->folder);
	free(s->run_id);
	free(s);
}

const char *store_folder(const struct store *s)
{
	return s->folder;
}

const char *store_run_id(const struct store *s)
{
	return s->run_id;
}

int store_set(struct store *s, const char *key, const char *value, struct err *e)
{
	sqlite3_stmt *st;
	int rc = statement(s, &st, e, "INSERT OR REPLACE INTO fact VALUES (?, ?)", "ss", key, value);

	return rc ? rc : finish(s, st, e, "write a fact");
}

char *store_get(struct store *s, const char *key)
{
	sqlite3_stmt *st;
	char *value = NULL;

	if (statement(s, &st, NULL, "SELECT value FROM fact WHERE key = ?", "s", key))
		return NULL;
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		value = strdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return value;
}

int store_begin(struct store *s, struct err *e)
{
	return execute(s, "BEGIN IMMEDIATE", e, "begin");
}

int store_commit(struct store *s, struct err *e)
{
	return execute(s, "COMMIT", e, "commit");
}

void store_rollback(struct store *s)
{
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

int store_put_plan(struct store *s, const struct scenario *sc, const struct plan *p, char *const servers[],
		   struct err *e)
{
	int rc = store_begin(s, e);

	for (size_t i = 0; i < p->n && !rc; i++) {
		const struct cell *c = &p->cells[i];
		const struct part *w = &sc->workloads[c->workload], *f = c->fault == SIZE_MAX ? NULL : &sc->faults[c->fault];
		json_t *victims = c->n_victims ? json_array() : NULL;
		sqlite3_stmt *st;

		for (size_t k = 0; k < c->n_victims; k++)
			json_array_append_new(victims, json_string(servers[c->victims[k]]));
		rc = statement(s, &st, e, "INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)", "iisjsjsijs",
			       (int64_t)c->number, (int64_t)c->training, w->label, w->params, cell_fault(sc, c),
			       f ? f->params : NULL, f ? f->resource : NULL, (int64_t)c->repeat, victims,
			       sc->tracers[c->tracer].label);
		json_decref(victims);
		if (!rc)
			rc = finish(s, st, e, "write the plan");
	}
	if (!rc)
		rc = store_commit(s, e);
	if (rc)
		store_rollback(s);
	return rc;
}

int store_skip_tracer(struct store *s, const char *tracer, const char *reason, struct err *e)
{
	sqlite3_stmt *st;
	int rc = statement(s, &st, e, "UPDATE cell SET skipped = ? WHERE tracer = ?", "ss", reason, tracer);

	return rc ? rc : finish(s, st, e, "write a skip");
}

int store_skip(struct store *s, const char *fault, const char *reason, struct err *e)
{
	sqlite3_stmt *st;
	int rc = statement(s, &st, e, "UPDATE cell SET skipped = ? WHERE fault = ? AND NOT training", "ss", reason, fault);

	return rc ? rc : finish(s, st, e, "write a skip");
}

int store_put_attempt(struct store *s, struct attempt_row *row, struct err *e)
{
	sqlite3_stmt *st;
	int rc;

	rc = statement(s, &st, e, "INSERT INTO attempt VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "iissiiiiiij",
		       (int64_t)row->cell, (int64_t)row->number, outcome_name(row->outcome), row->reason,
		       row->started_ns, row->start_ns, row->onset_ns, row->offset_ns, row->ended_ns,
		       (int64_t)row->seconds, row->detail);
	if (!rc)
		rc = finish(s, st, e, "write an attempt");
	if (!rc)
		row->id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

int store_put_samples(struct store *s, int64_t attempt, char *const servers[], const struct sample *samples, size_t n,
		      struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		const struct sample *x = &samples[i];
		sqlite3_stmt *st;

		rc = statement(s, &st, e, "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?)", "issiiddi", attempt,
			       metric_name(x->metric), servers[x->server], (int64_t)x->second, (int64_t)x->count,
			       x->sum_s, x->max_s, (int64_t)x->bytes);
		if (!rc)
			rc = finish(s, st, e, "write a sample");
	}
	return rc;
}

/* What an event says besides its kind, whose it is, and when it began. */
static json_t *event_detail(const struct event *v)
{
	json_t *d = json_pack("{s:f, s:I}", "last_s", v->last_s, "count", (json_int_t)v->count);
	const struct {
		const char *key, *value;
	} texts[] = {{"call", v->call},
		     {"error", v->error},
		     {"signal", v->signal},
		     {"place", event_place_name(v->place)},
		     {"state", link_state_name(v->state)}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].value)
			json_object_set_new(d, texts[i].key, json_string(texts[i].value));
	if (v->place)
		json_object_set_new(d, "longest_s", json_real(v->longest_s));
	if (v->kind == EVENT_APP_SLOW || v->kind == EVENT_LINK_QUIET)
		json_object_set_new(d, "open", json_boolean(v->open));
	if (v->kind == EVENT_LINK_QUIET)
		json_object_set_new(d, "waiting", json_integer(v->waiting));
	if (v->kind == EVENT_SERVER_END && !v->signal)
		json_object_set_new(d, "status", json_integer(v->status));
	return d;
}

int store_put_events(struct store *s, int64_t attempt, char *const servers[], char *const clients[],
		     const struct event *events, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		const struct event *v = &events[i];
		json_t *detail = event_detail(v);
		sqlite3_stmt *st;

		rc = statement(s, &st, e, "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", "iisssdj", attempt,
			       (int64_t)i + 1, event_kind_name(v->kind), v->server < 0 ? NULL : servers[v->server],
			       v->client < 0 ? NULL : clients[v->client], v->first_s, detail);
		json_decref(detail);
		if (!rc)
			rc = finish(s, st, e, "write an event");
	}
	return rc;
}

static int hash_file(const char *path, char hex[65], int64_t *size, struct err *e)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	char buf[65536];
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;

	*size = 0;
	if (fd >= 0 && ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL)) {
		while ((n = read(fd, buf, sizeof(buf))) > 0) {
			EVP_DigestUpdate(ctx, buf, (size_t)n);
			*size += n;
		}
		EVP_DigestFinal_ex(ctx, digest, &len);
	}
	if (n < 0)
		rc = err_errno(e, -errno, "cannot read '%s'", path);
	for (unsigned i = 0; i < len && i < 32; i++)
		sprintf(hex + 2 * i, "%02x", digest[i]);
	EVP_MD_CTX_free(ctx);
	if (fd >= 0)
		close(fd);
	return rc;
}

int store_put_file(struct store *s, int64_t attempt, const char *path, struct err *e)
{
	char hex[65], *full;
	sqlite3_stmt *st;
	int64_t size;
	int rc;

	if (asprintf(&full, "%s/%s", s->folder, path) < 0)
		return err_errno(e, -ENOMEM, "cannot list '%s'", path);
	rc = hash_file(full, hex, &size, e);
	free(full);
	if (!rc)
		rc = statement(s, &st, e, "INSERT INTO file VALUES (?, ?, ?, ?)", "isis", attempt, path, size, hex);
	return rc ? rc : finish(s, st, e, "list a file");
}

int store_put_model(struct store *s, const char *detector, const json_t *params, const json_t *model, struct err *e)
{
	sqlite3_stmt *st;
	int rc = statement(s, &st, e, "INSERT OR REPLACE INTO model VALUES (?, ?, ?)", "sjj", detector, params, model);

	return rc ? rc : finish(s, st, e, "write a model");
}

int store_put_verdict(struct store *s, int64_t attempt, const char *detector, const json_t *verdict, struct err *e)
{
	const char *metric = json_string_value(json_object_get(verdict, "metric"));
	sqlite3_stmt *st;
	int rc = statement(s, &st, e, "INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?)", "issj", attempt, detector,
			   metric ? metric : "any", verdict);

	return rc ? rc : finish(s, st, e, "write a verdict");
}

int store_clear_verdicts(struct store *s, struct err *e)
{
	return execute(s, "DELETE FROM verdict; DELETE FROM model", e, "clear the verdicts");
}

/* Every row of 'sql' as an object of its columns; columns that end in "_json" are parsed (and lose that). */
static int query(struct store *s, const char *sql, int64_t arg, json_t **rows, struct err *e)
{
	json_t *list = json_array();
	sqlite3_stmt *st;
	int rc = statement(s, &st, e, sql, strchr(sql, '?') ? "i" : "", arg), step;

	if (rc)
		goto out;
	while ((step = sqlite3_step(st)) == SQLITE_ROW) {
		json_t *row = json_object();

		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const char *name = sqlite3_column_name(st, i), *text;
			size_t len = strlen(name);
			json_t *v = NULL;

			text = (const char *)sqlite3_column_text(st, i);
			if (len > 5 && !strcmp(name + len - 5, "_json") && text)
				v = json_loads(text, JSON_DECODE_ANY, NULL);
			else if (sqlite3_column_type(st, i) == SQLITE_INTEGER)
				v = json_integer(sqlite3_column_int64(st, i));
			else if (sqlite3_column_type(st, i) == SQLITE_FLOAT)
				v = json_real(sqlite3_column_double(st, i));
			else if (text)
				v = json_string(text);
			json_object_setn_new(row, name, len > 5 && !strcmp(name + len - 5, "_json") ? len - 5 : len,
					     v ? v : json_null());
		}
		json_array_append_new(list, row);
	}
	if (step != SQLITE_DONE)
		rc = fail(s, e, "read");
	sqlite3_finalize(st);
out:
	if (rc)
		json_decref(list);
	else
		*rows = list;
	return rc;
}

int store_confirmed(struct store *s, json_t **rows, struct err *e)
{
	return query(s,
		     "SELECT cell.number AS cell, training, workload, fault, victims AS victims_json, repeat, attempt.id AS attempt, seconds,"
		     " start_ns, onset_ns, offset_ns FROM cell JOIN attempt ON attempt.cell = cell.number"
		     " WHERE outcome = 'confirmed' ORDER BY cell.number",
		     0, rows, e);
}

int store_runtimes(struct store *s, json_t **rows, struct err *e)
{
	return query(s,
		     "SELECT cell.number AS cell, workload, tracer, repeat, json_extract(detail, '$.runtime_s') AS runtime_s,"
		     " json_extract(detail, '$.lost') AS lost, json_extract(detail, '$.records') AS records"
		     " FROM cell JOIN attempt ON attempt.cell = cell.number WHERE outcome = 'confirmed' ORDER BY cell.number",
		     0, rows, e);
}

int store_samples(struct store *s, int64_t attempt, json_t **rows, struct err *e)
{
	return query(s,
		     "SELECT metric, server, second, count, sum_s, max_s, bytes FROM sample WHERE attempt = ?"
		     " ORDER BY metric, server, second",
		     attempt, rows, e);
}

int store_events(struct store *s, int64_t attempt, json_t **rows, struct err *e)
{
	return query(s,
		     "SELECT kind, server, client, time_s, detail AS detail_json FROM event WHERE attempt = ?"
		     " ORDER BY number",
		     attempt, rows, e);
}

int store_verdicts(struct store *s, json_t **rows, struct err *e)
{
	return query(s, "SELECT attempt, detector, metric, verdict AS verdict_json FROM verdict", 0, rows, e);
}

int store_table(struct store *s, const char *table, json_t **rows, struct err *e)
{
	char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY 1", table);
	int rc = sql ? query(s, sql, 0, rows, e) : err_errno(e, -ENOMEM, "cannot read '%s'", table);

	sqlite3_free(sql);
	return rc;
}

int store_tally(struct store *s, json_t **tally, struct err *e)
{
	json_t *cells = NULL, *attempts = NULL, *reasons = NULL, *skipped = NULL, *row, *result, *missing;
	json_int_t confirmed = 0;
	size_t i;
	int rc;

	rc = query(s,
		   "SELECT number, training, workload, fault, EXISTS (SELECT 1 FROM attempt WHERE cell = cell.number AND"
		   " outcome = 'confirmed') AS done FROM cell WHERE skipped IS NULL ORDER BY number",
		   0, &cells, e);
	if (!rc)
		rc = query(s, "SELECT outcome, count(*) AS n FROM attempt GROUP BY outcome", 0, &attempts, e);
	if (!rc)
		rc = query(s,
			   "SELECT cell, number, outcome, reason FROM attempt WHERE outcome <> 'confirmed' ORDER BY id",
			   0, &reasons, e);
	if (rc)
		goto out;
	if (query(s, "SELECT fault, skipped AS reason, count(*) AS cells FROM cell WHERE skipped IS NOT NULL GROUP BY fault", 0,
		  &skipped, e))
		skipped = json_array();
	missing = json_array();
	json_array_foreach(cells, i, row) {
		if (json_integer_value(json_object_get(row, "done")))
			confirmed++;
		else
			json_array_append(missing, row);
	}
	result = json_pack("{s:I, s:I, s:o, s:O}", "planned", (json_int_t)json_array_size(cells), "confirmed", confirmed,
			   "missing", missing, "failed", reasons);
	json_object_set(result, "cells", cells);
	json_object_set_new(result, "skipped", skipped);
	row = json_pack("{s:i, s:i, s:i}", "confirmed", 0, "invalid", 0, "error", 0);
	for (i = 0; i < json_array_size(attempts); i++) {
		json_t *a = json_array_get(attempts, i);

		json_object_set(row, json_string_value(json_object_get(a, "outcome")), json_object_get(a, "n"));
	}
	json_object_set_new(result, "attempts", row);
	*tally = result;
out:
	json_decref(cells);
	json_decref(attempts);
	json_decref(reasons);
	return rc;
}
