/* Opens and creates a run's store. */
#include "harness/store/store_impl.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/text.h"

#define VERSION "7"

/* A reader blocks a writer while it reads; a stopped reader must not end a run of many hours. */
#define BUSY_TIMEOUT_MS 120000

static const char schema[] =
	"PRAGMA journal_mode = DELETE;"
	"CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
	"CREATE TABLE cell (number INTEGER PRIMARY KEY, training INTEGER, workload TEXT,"
	" workload_params TEXT, fault TEXT, fault_params TEXT, resource TEXT, repeat INTEGER,"
	" victims TEXT, skipped TEXT, tracer TEXT);"
	"CREATE TABLE attempt (id INTEGER PRIMARY KEY, cell INTEGER REFERENCES cell,"
	" number INTEGER, outcome TEXT, reason TEXT, started_ns INTEGER, start_ns INTEGER,"
	" onset_ns INTEGER, offset_ns INTEGER, ended_ns INTEGER, seconds INTEGER, detail TEXT,"
	" key TEXT, UNIQUE (cell, number));"
	"CREATE UNIQUE INDEX completed_once ON attempt (cell) WHERE outcome = 'confirmed';"
	"CREATE TABLE series (attempt INTEGER REFERENCES attempt, metric TEXT, server TEXT,"
	" samples BLOB, PRIMARY KEY (attempt, metric, server)) WITHOUT ROWID;"
	"CREATE TABLE event (attempt INTEGER REFERENCES attempt, number INTEGER, kind TEXT,"
	" server TEXT, client TEXT, time_s REAL, detail TEXT, PRIMARY KEY (attempt, number))"
	" WITHOUT ROWID;"
	"CREATE TABLE file (attempt INTEGER REFERENCES attempt, path TEXT PRIMARY KEY,"
	" size INTEGER, sha256 TEXT) WITHOUT ROWID;"
	"CREATE TABLE model (detector TEXT PRIMARY KEY, params TEXT, model TEXT) WITHOUT ROWID;"
	"CREATE TABLE verdict (attempt INTEGER REFERENCES attempt, detector TEXT, metric TEXT,"
	" verdict TEXT, PRIMARY KEY (attempt, detector, metric)) WITHOUT ROWID;"
	"INSERT INTO fact VALUES ('store_version', '" VERSION "');";

static int damaged(const struct store *s, struct err *e, const char *why)
{
	err_set(e, -EBADMSG, "'%s' is damaged: %s", s->path, why);
	return err_blame(e, ERR_DAMAGED, -EBADMSG);
}

/* The error for 'code' on a full disk: SQLite does not report it for every call that fails
 * because of it. */
static int disk_error(struct store *s, int code)
{
	int why = sqlite3_system_errno(s->db);

	if (code == SQLITE_FULL)
		return ENOSPC;
	return (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && (why == ENOSPC || why == EDQUOT)
		? why
		: 0;
}

int store_fail(struct store *s, struct err *e, const char *doing)
{
	int code = sqlite3_errcode(s->db), full;

	if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		return damaged(s, e, sqlite3_errmsg(s->db));
	full = disk_error(s, code);
	if (!full)
		return err_set(
			e, -EIO, "cannot %s in '%s': %s", doing, s->path, sqlite3_errmsg(s->db));
	err_errno(e, -full, "cannot %s in '%s'", doing, s->path);
	return err_blame(e, ERR_HARNESS, -ENOSPC);
}

int store_exec(struct store *s, const char *sql, struct err *e, const char *doing)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_fail(s, e, doing);
}

static int bind_json(sqlite3_stmt *st, int i, const json_t *j)
{
	const size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY;

	return j ? sqlite3_bind_text(st, i, json_dumps(j, flags), -1, free) : SQLITE_OK;
}

static int store_prepare(struct store *s, sqlite3_stmt **out, struct err *e, const char *sql,
	const char *types, va_list ap)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
	const void *data;

	for (int i = 1; rc == SQLITE_OK && types[i - 1]; i++) {
		switch (types[i - 1]) {
		case 'i': rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t)); break;
		case 'd': rc = sqlite3_bind_double(st, i, va_arg(ap, double)); break;
		case 's':
			data = va_arg(ap, const char *);
			rc = sqlite3_bind_text(st, i, data, -1, SQLITE_TRANSIENT);
			break;
		case 'b':
			data = va_arg(ap, const void *);
			rc = sqlite3_bind_blob64(st, i, data, va_arg(ap, size_t), SQLITE_STATIC);
			break;
		default: rc = bind_json(st, i, va_arg(ap, const json_t *));
		}
	}
	if (rc != SQLITE_OK) {
		rc = store_fail(s, e, "prepare a statement");
		sqlite3_finalize(st);
		return rc;
	}
	*out = st;
	return 0;
}

int store_statement(
	struct store *s, sqlite3_stmt **out, struct err *e, const char *sql, const char *types, ...)
{
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = store_prepare(s, out, e, sql, types, ap);
	va_end(ap);
	return rc;
}

int store_do(
	struct store *s, struct err *e, const char *doing, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st = NULL;
	va_list ap;
	int rc;

	va_start(ap, types);
	rc = store_prepare(s, &st, e, sql, types, ap);
	va_end(ap);
	if (!rc && sqlite3_step(st) != SQLITE_DONE)
		rc = store_fail(s, e, doing);
	sqlite3_finalize(st);
	return rc;
}

static int open_db(
	const char *folder, const char *name, int flags, struct store **out, struct err *e)
{
	auto_free char *real = realpath(folder, NULL);
	struct store *s;
	int rc;

	if (!real)
		return err_errno(e, -errno, "cannot open the run '%s'", folder);
	s = alloc_zero(1, sizeof(*s));
	s->folder = alloc_copy(folder);
	s->run_id = alloc_copy(basename(real));
	s->path = alloc_format("%s/%s", folder, name);
	if ((rc = file_check_readable(s->path, e))) {
		store_close(s);
		return rc;
	}
	if (sqlite3_open_v2(s->path, &s->db, flags, NULL) != SQLITE_OK) {
		err_set(e, -EIO, "cannot open '%s': %s", s->path,
			s->db ? sqlite3_errmsg(s->db) : "out of memory");
		store_close(s);
		return -EIO;
	}
	sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
	/* A run may come from another user: nothing in it may run by itself. */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	*out = s;
	return 0;
}

/* Names and numbers that detectors see are drawn from this key, so that nobody can repeat the
 * draw from the run's public data. */
static int put_blind_key(struct store *s, struct err *e)
{
	unsigned char key[16];
	char hex[2 * sizeof(key) + 1];

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return err_errno(e, -errno, "cannot draw a key");
	text_hex(key, sizeof(key), hex);
	return store_set(s, "blind_key", hex, e);
}

int store_blind_key(struct store *s, char key[80], struct err *e)
{
	auto_free char *own = NULL;
	int rc = store_get(s, "blind_key", &own, e);

	if (rc < 0)
		return rc;
	if (!rc || !*own || strlen(own) >= 80)
		return damaged(s, e, "it has no valid key for hiding names from detectors");
	strcpy(key, own);
	return 0;
}

int store_create(const char *folder, struct store **out, struct err *e)
{
	struct store *s;
	int rc = file_mkdirs_above(folder, e);

	if (rc)
		return rc;
	if (mkdir(folder, 0700) < 0)
		return err_errno(e, -errno, "cannot make the run's folder '%s'", folder);
	rc = open_db(folder, "run.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &s, e);
	if (rc) {
		rmdir(folder);
		return rc;
	}
	rc = store_exec(s, schema, e, "make the tables");
	if (!rc)
		rc = put_blind_key(s, e);
	file_give_to_sudo_user(folder);
	if (rc) {
		store_close(s);
		file_remove_tree(folder, NULL);
	} else {
		*out = s;
	}
	return rc;
}

int store_open_joined(struct store *const from[], size_t n, struct store **out, struct err *e)
{
	struct store *s = alloc_zero(1, sizeof(*s));
	int rc = 0;

	*s = (struct store){.joined = true,
		.folder = alloc_copy(from[0]->folder),
		.run_id = alloc_copy(from[0]->run_id),
		.path = alloc_copy(from[0]->path)};
	for (size_t i = 1; i < n; i++) {
		char *longer = alloc_format("%s + %s", s->run_id, from[i]->run_id);

		free(s->run_id);
		s->run_id = longer;
	}
	/* SQLite's temporary file: large runs need not fit into memory. */
	if (sqlite3_open_v2("", &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL))
		rc = store_fail(s, e, "join runs");
	rc = rc ?: store_exec(s, schema, e, "make the tables");
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

/* Does the folder have run.db or run.db.gz? */
static int find_db(const char *folder, bool *packed, struct err *e)
{
	static const char *const names[] = {"run.db", "run.db.gz"};

	for (int i = 0; i < 2; i++) {
		auto_free char *path = alloc_format("%s/%s", folder, names[i]);

		*packed = i == 1;
		if (access(path, R_OK) == 0)
			return 0;
		if (errno != ENOENT && errno != ENOTDIR)
			return err_errno(e, -errno, "cannot open '%s'", path);
	}
	return err_set(e, -ENOENT, "'%s' is not a run: it has no run.db", folder);
}

/* SQLite keeps no checksums: this check finds a truncated file or inconsistent pages, but not a
 * changed byte inside a value. The checksum of a run.db.gz also covers those. 50 ms for the
 * largest committed run (45 MB). */
static int check_pages(struct store *s, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, "PRAGMA quick_check(1)", "");
	const char *said;

	if (rc)
		return rc;
	if (sqlite3_step(st) != SQLITE_ROW)
		rc = store_fail(s, e, "check it");
	else if (strcmp(said = (const char *)sqlite3_column_text(st, 0), "ok"))
		rc = damaged(
			s, e, said + (strncmp(said, "*** in database main ***\n", 25) ? 0 : 25));
	sqlite3_finalize(st);
	return rc;
}

/* Views and triggers are programs, which could run for any time and change any row. */
static int check_schema(struct store *s, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e,
		"SELECT type, name FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR"
		" sql LIKE 'CREATE VIRTUAL%'",
		"");
	int step;
	char why[200];

	if (rc)
		return rc;
	step = sqlite3_step(st);
	if (step == SQLITE_ROW) {
		snprintf(why, sizeof(why), "it has a %.20s, '%.100s', which culprit did not create",
			sqlite3_column_text(st, 0), sqlite3_column_text(st, 1));
		rc = damaged(s, e, why);
	} else if (step != SQLITE_DONE) {
		rc = store_fail(s, e, "check it");
	}
	sqlite3_finalize(st);
	return rc;
}

static int check_version(struct store *s, struct err *e)
{
	auto_free char *version = NULL;
	int rc = store_get(s, "store_version", &version, e);

	if (rc == -EBADMSG)
		return rc;
	if (rc != 1)
		return err_set(e, -EINVAL, "'%s' is not a run store", s->path);
	return !strcmp(version, VERSION)
		? 0
		: err_set(e, -EINVAL, "'%s' is of version %s; this program reads version " VERSION,
			  s->path, version);
}

int store_open(const char *folder, struct store **out, struct err *e)
{
	struct store *s = NULL;
	bool packed = false;
	int rc = find_db(folder, &packed, e);

	if (!rc)
		rc = open_db(folder, packed ? "run.db.gz" : "run.db",
			SQLITE_OPEN_READWRITE | (packed ? SQLITE_OPEN_MEMORY : 0), &s, e);
	if (!rc && packed)
		rc = store_load_packed(s, e);
	if (!rc)
		rc = check_schema(s, e);
	if (!rc)
		rc = check_pages(s, e);
	if (!rc)
		rc = check_version(s, e);
	if (rc) {
		store_close(s);
		return err_blame(e, rc == -EIO ? ERR_HARNESS : ERR_USAGE, rc);
	}
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	if (s->folder && !s->packed && !s->joined)
		file_give_to_sudo_user(s->folder);
	free(s->folder);
	free(s->run_id);
	free(s->path);
	free(s);
}

bool store_is_corpus(const struct store *s)
{
	return s->packed || s->packed_parts;
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
	return store_do(s, e, "write a fact", "INSERT OR REPLACE INTO fact VALUES (?, ?)", "ss",
		key, value);
}

int store_get(struct store *s, const char *key, char **value, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, "SELECT value FROM fact WHERE key = ?", "s", key), step;
	const char *text;

	*value = NULL;
	if (rc)
		return rc;
	step = sqlite3_step(st);
	if (step == SQLITE_ROW && (text = (const char *)sqlite3_column_text(st, 0))) {
		*value = alloc_copy(text);
		rc = 1;
	} else if (step != SQLITE_DONE && step != SQLITE_ROW) {
		rc = store_fail(s, e, "read a fact");
	}
	sqlite3_finalize(st);
	return rc;
}

int store_get_json(struct store *s, const char *key, json_t **value, struct err *e)
{
	auto_free char *text = NULL;
	char why[80];
	int rc = store_get(s, key, &text, e);

	*value = rc == 1 ? json_loads(text, 0, NULL) : NULL;
	if (rc == 1 && !*value) {
		snprintf(why, sizeof(why), "its fact '%.40s' is not JSON", key);
		rc = damaged(s, e, why);
	}
	return rc;
}

int store_has_runtimes(struct store *s, struct err *e)
{
	auto_free char *measure = NULL;
	int rc = store_get(s, "measure", &measure, e);

	return rc == 1 ? !strcmp(measure, "runtime") : rc;
}

int store_begin(struct store *s, struct err *e)
{
	if (s->packed)
		return err_set(e, -EROFS, "'%s' is a corpus, which is read-only", s->folder);
	if (s->joined)
		return err_set(e, -EROFS, "the joined runs %s are read-only; write to each run",
			s->run_id);
	return store_exec(s, "BEGIN IMMEDIATE", e, "begin");
}

int store_end(struct store *s, int rc, struct err *e)
{
	if (!rc)
		rc = store_exec(s, "COMMIT", e, "commit");
	if (rc)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

static int store_put_planned(struct store *s, const struct scenario *sc, const struct cell *c,
	char *const servers[], struct err *e)
{
	const struct part *w = &sc->workloads[c->workload],
			  *f = c->fault == SIZE_MAX ? NULL : &sc->faults[c->fault];
	json_auto_t *victims = cell_is_faulty(sc, c) ? json_array() : NULL;

	for (size_t k = 0; victims && k < c->n_victims; k++)
		json_array_append_new(victims, json_string(servers[c->victims[k]]));
	return store_do(s, e, "write the plan",
		"INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)", "iisjsjsijs",
		(int64_t)c->number, (int64_t)c->training, w->label, w->params, cell_fault(sc, c),
		f ? f->params : NULL, f ? f->resource : NULL, (int64_t)c->repeat, victims,
		sc->tracers[c->tracer].label);
}

int store_put_plan(struct store *s, const struct scenario *sc, const struct plan *p,
	char *const servers[], struct err *e)
{
	int rc = store_begin(s, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < p->n && !rc; i++)
		rc = store_put_planned(s, sc, &p->cells[i], servers, e);
	return store_end(s, rc, e);
}
