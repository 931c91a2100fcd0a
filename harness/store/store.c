#include "harness/store/store_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/evp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* 3: cells without a tracer; 4: attempts without a key; 5: a row a sample. They are read as they
 * are; 5 becomes 6 when samples are written. */
#define VERSION "6"
#define OLDEST_VERSION "3"

/* A reader holds a writer up for as long as it reads; one that was stopped in the middle must not
 * end a night's run. */
#define BUSY_TIMEOUT_MS 120000

static const char schema[] =
	"PRAGMA journal_mode = DELETE;"
	"CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
	"CREATE TABLE cell (number INTEGER PRIMARY KEY, training INTEGER, workload TEXT, workload_params TEXT,"
	" fault TEXT, fault_params TEXT, resource TEXT, repeat INTEGER, victims TEXT, skipped TEXT, tracer TEXT);"
	"CREATE TABLE attempt (id INTEGER PRIMARY KEY, cell INTEGER REFERENCES cell, number INTEGER, outcome TEXT,"
	" reason TEXT, started_ns INTEGER, start_ns INTEGER, onset_ns INTEGER, offset_ns INTEGER, ended_ns INTEGER,"
	" seconds INTEGER, detail TEXT, key TEXT, UNIQUE (cell, number));"
	"CREATE UNIQUE INDEX completed_once ON attempt (cell) WHERE outcome = 'confirmed';" STORE_SERIES
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

int store_fail(struct store *s, struct err *e, const char *doing)
{
	return err_set(e, sqlite3_errcode(s->db) == SQLITE_FULL ? -ENOSPC : -EIO,
		"cannot %s in '%s/run.db': %s", doing, s->folder, sqlite3_errmsg(s->db));
}

int store_exec(struct store *s, const char *sql, struct err *e, const char *doing)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
								       : store_fail(s, e, doing);
}

int store_statement(
	struct store *s, sqlite3_stmt **out, struct err *e, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st = NULL;
	va_list ap;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	va_start(ap, types);
	for (int i = 1; rc == SQLITE_OK && types[i - 1]; i++) {
		const json_t *j;
		const void *data;

		switch (types[i - 1]) {
		case 'i': rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t)); break;
		case 'd': rc = sqlite3_bind_double(st, i, va_arg(ap, double)); break;
		case 's':
			rc = sqlite3_bind_text(
				st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
			break;
		case 'b':
			data = va_arg(ap, const void *);
			rc = sqlite3_bind_blob64(st, i, data, va_arg(ap, size_t), SQLITE_STATIC);
			break;
		default:
			j = va_arg(ap, const json_t *);
			if (j)
				rc = sqlite3_bind_text(st, i,
					json_dumps(
						j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY),
					-1, free);
		}
	}
	va_end(ap);
	if (rc != SQLITE_OK) {
		sqlite3_finalize(st);
		return store_fail(s, e, "prepare a statement");
	}
	*out = st;
	return 0;
}

int store_finish(struct store *s, sqlite3_stmt *st, struct err *e, const char *doing)
{
	int rc = sqlite3_step(st) == SQLITE_DONE ? 0 : store_fail(s, e, doing);

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
		rc = err_set(e, -ENOENT, "cannot open '%s': %s", path,
			s->db ? sqlite3_errmsg(s->db) : "out of memory");
		goto out;
	}
	sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
out:
	free(real);
	free(path);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

/* What detectors see of names and numbers is drawn from this key, so that nobody can draw it
 * again. */
static int put_blind_key(struct store *s, struct err *e)
{
	unsigned char key[16];
	char hex[2 * sizeof(key) + 1];

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return err_errno(e, -errno, "cannot draw a key");
	for (size_t i = 0; i < sizeof(key); i++)
		sprintf(hex + 2 * i, "%02x", key[i]);
	return store_set(s, "blind_key", hex, e);
}

void store_blind_key(struct store *s, char key[80])
{
	static const char *const facts[] = {"seed", "scenario_text", "inventory_text", "hosts"};
	unsigned char digest[EVP_MAX_MD_SIZE];
	char *own = store_get(s, "blind_key");
	EVP_MD_CTX *ctx;

	*key = 0;
	if (own) {
		snprintf(key, 80, "%s", own);
		free(own);
		return;
	}
	ctx = EVP_MD_CTX_new();
	if (!ctx)
		return;
	EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (int i = 0; i < 4; i++) {
		char *text = store_get(s, facts[i]);

		EVP_DigestUpdate(ctx, text ? text : "", text ? strlen(text) : 0);
		free(text);
	}
	EVP_DigestFinal_ex(ctx, digest, NULL);
	EVP_MD_CTX_free(ctx);
	for (int i = 0; i < 32; i++)
		sprintf(key + 2 * i, "%02x", digest[i]);
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
	rc = store_exec(s, schema, e, "make the tables");
	if (!rc)
		rc = put_blind_key(s, e);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

int store_open(const char *folder, struct store **out, struct err *e)
{
	struct store *s;
	char *path = NULL, *packed = NULL, *version;
	int rc = 0;

	if (asprintf(&path, "%s/run.db", folder) < 0 ||
		asprintf(&packed, "%s/run.db.gz", folder) < 0)
		return err_errno(e, -ENOMEM, "cannot open '%s'", folder);
	if (access(path, F_OK) == 0 || access(packed, F_OK) < 0) {
		rc = access(path, R_OK)
			? err_set(e, -ENOENT, "'%s' is no run: there is no run.db in it", folder)
			: 0;
		if (!rc)
			rc = open_db(folder, SQLITE_OPEN_READWRITE, &s, e);
	} else {
		rc = open_db(folder, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, &s, e);
		if (!rc && (rc = store_load_packed(s, packed, e)))
			store_close(s);
	}
	free(path);
	free(packed);
	if (rc)
		return rc;
	version = store_get(s, "store_version");
	if (!version || strlen(version) != 1 || *version < *OLDEST_VERSION || *version > *VERSION)
		rc = err_set(e, -EINVAL,
			"'%s/run.db' is %s%s; this program reads versions " OLDEST_VERSION
			" to " VERSION,
			folder, version ? "of version " : "no run store", version ? version : "");
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

bool store_is_corpus(const struct store *s)
{
	return s->packed;
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
	int rc = store_statement(
		s, &st, e, "INSERT OR REPLACE INTO fact VALUES (?, ?)", "ss", key, value);

	return rc ? rc : store_finish(s, st, e, "write a fact");
}

char *store_get(struct store *s, const char *key)
{
	sqlite3_stmt *st;
	char *value = NULL;

	if (store_statement(s, &st, NULL, "SELECT value FROM fact WHERE key = ?", "s", key))
		return NULL;
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		value = strdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return value;
}

int store_begin(struct store *s, struct err *e)
{
	if (s->packed)
		return err_set(e, -EROFS, "'%s' is a corpus: it is not written to", s->folder);
	return store_exec(s, "BEGIN IMMEDIATE", e, "begin");
}

int store_commit(struct store *s, struct err *e)
{
	return store_exec(s, "COMMIT", e, "commit");
}

void store_rollback(struct store *s)
{
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

int store_put_plan(struct store *s, const struct scenario *sc, const struct plan *p,
	char *const servers[], struct err *e)
{
	int rc = store_begin(s, e);

	for (size_t i = 0; i < p->n && !rc; i++) {
		const struct cell *c = &p->cells[i];
		const struct part *w = &sc->workloads[c->workload],
				  *f = c->fault == SIZE_MAX ? NULL : &sc->faults[c->fault];
		json_t *victims = c->n_victims ? json_array() : NULL;
		sqlite3_stmt *st;

		for (size_t k = 0; k < c->n_victims; k++)
			json_array_append_new(victims, json_string(servers[c->victims[k]]));
		rc = store_statement(s, &st, e,
			"INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
			"iisjsjsijs", (int64_t)c->number, (int64_t)c->training, w->label, w->params,
			cell_fault(sc, c), f ? f->params : NULL, f ? f->resource : NULL,
			(int64_t)c->repeat, victims, sc->tracers[c->tracer].label);
		json_decref(victims);
		if (!rc)
			rc = store_finish(s, st, e, "write the plan");
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
	int rc = store_statement(
		s, &st, e, "UPDATE cell SET skipped = ? WHERE tracer = ?", "ss", reason, tracer);

	return rc ? rc : store_finish(s, st, e, "write a skip");
}

int store_skip(struct store *s, const char *fault, const char *reason, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e,
		"UPDATE cell SET skipped = ? WHERE fault = ? AND NOT training", "ss", reason,
		fault);

	return rc ? rc : store_finish(s, st, e, "write a skip");
}
