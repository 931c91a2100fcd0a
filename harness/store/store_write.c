/* Writes, repairs and deletes attempts and verdicts. */
#include "harness/store/store_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = {"confirmed", "invalid", "error", "aborted"};

	return names[o];
}

int store_skip(
	struct store *s, const char *what, const char *label, const char *reason, struct err *e)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "UPDATE cell SET skipped = ? WHERE %s = ? AND NOT training",
		what);
	return store_do(s, e, "write a skip", sql, "ss", reason, label);
}

int store_unskip(struct store *s, struct err *e)
{
	return store_exec(s, "UPDATE cell SET skipped = NULL", e, "delete skip marks");
}

int store_put_cell(struct store *s, size_t number, const char *workload, struct err *e)
{
	return store_do(s, e, "write a cell",
		"INSERT INTO cell (number, training, workload, workload_params, fault,"
		" fault_params, repeat, victims) VALUES (?, 0, ?, '{}', 'none', '{}', 1, '[]')",
		"is", (int64_t)number, workload);
}

int store_put_attempt(struct store *s, struct attempt_row *row, struct err *e)
{
	int rc = store_do(s, e, "write an attempt",
		"INSERT INTO attempt VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"iissiiiiiijs", (int64_t)row->cell, (int64_t)row->number,
		outcome_name(row->outcome), row->reason, row->started_ns, row->start_ns,
		row->onset_ns, row->offset_ns, row->ended_ns, (int64_t)row->seconds, row->detail,
		row->key);

	if (!rc)
		row->id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

/* All members of an event except kind, server, client and start. */
static json_t *event_detail(const struct event *v)
{
	json_t *d = json_pack("{s:f, s:I, s:s*, s:s*, s:s*, s:s*, s:s*}", "last_s", v->last_s,
		"count", (json_int_t)v->count, "call", v->call, "error", v->error, "signal",
		v->signal, "place", event_place_name(v->place), "state", link_state_name(v->state));

	if (v->place)
		json_object_set_new(d, "longest_s", json_real(v->longest_s));
	if (v->bytes)
		json_object_set_new(d, "bytes", json_integer((json_int_t)v->bytes));
	if (v->redone)
		json_object_set_new(d, "redone", json_integer((json_int_t)v->redone));
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
		json_auto_t *detail = event_detail(v);

		rc = store_do(s, e, "write an event",
			"INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", "iisssdj", attempt,
			(int64_t)i + 1, event_kind_name(v->kind),
			v->server < 0 ? NULL : servers[v->server],
			v->client < 0 ? NULL : clients[v->client], v->first_s, detail);
	}
	return rc;
}

int store_drop(struct store *s, const char *table, int64_t attempt, struct err *e)
{
	char sql[96], doing[96];

	snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE %s = ?", table,
		strcmp(table, "attempt") ? "attempt" : "id");
	snprintf(doing, sizeof(doing), "delete the %s rows of an attempt", table);
	return store_do(s, e, doing, sql, "i", attempt);
}

int store_drop_attempt(struct store *s, int64_t attempt, struct err *e)
{
	static const char *const tables[] = {"verdict", "series", "event", "file", "attempt", NULL};
	int rc = store_begin(s, e);

	if (rc)
		return rc;
	rc = store_drop_requests(s, attempt, -1, e);
	for (const char *const *table = tables; *table && !rc; table++)
		rc = store_drop(s, *table, attempt, e);
	return store_end(s, rc, e);
}

int store_spoil(struct store *s, int64_t cell, int64_t number, const char *reason, struct err *e)
{
	int rc = store_begin(s, e);

	if (rc)
		return rc;
	rc = store_do(s, e, "delete verdicts",
		"DELETE FROM verdict WHERE attempt ="
		" (SELECT id FROM attempt WHERE cell = ? AND number = ?)",
		"ii", cell, number);
	if (!rc)
		rc = store_do(s, e, "make an attempt invalid",
			"UPDATE attempt SET outcome = 'invalid', reason = ?"
			" WHERE cell = ? AND number = ?",
			"sii", reason, cell, number);
	return store_end(s, rc, e);
}

/* Size and SHA-256 of the run's file 'path'; with 'sync' the file is on the disk on return. */
static int hash_file(
	struct store *s, const char *path, char hex[65], int64_t *size, bool sync, struct err *e)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	auto_free char *full = alloc_format("%s/%s", s->folder, path);
	char buf[65536];
	int fd = open(full, O_RDONLY | O_CLOEXEC), rc = 0;
	ssize_t n = -1;

	*size = 0;
	EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0) {
		EVP_DigestUpdate(ctx, buf, (size_t)n);
		*size += n;
	}
	if (n < 0)
		rc = err_errno(e, -errno, "cannot read '%s'", full);
	else if (sync && fsync(fd) < 0)
		rc = err_errno(e, -errno, "cannot write '%s' to the disk", full);
	EVP_DigestFinal_ex(ctx, digest, NULL);
	text_hex(digest, 32, hex);
	EVP_MD_CTX_free(ctx);
	if (fd >= 0)
		close(fd);
	return rc;
}

int store_put_file(struct store *s, int64_t attempt, const char *path, struct err *e)
{
	char hex[65];
	int64_t size;
	int rc = hash_file(s, path, hex, &size, true, e);

	return rc ? rc
		  : store_do(s, e, "list a file", "INSERT INTO file VALUES (?, ?, ?, ?)", "isis",
			    attempt, path, size, hex);
}

int store_check_files(struct store *s, int64_t attempt, struct err *why)
{
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(s, ROWS_FILES, attempt, &rows, why);

	json_array_foreach(rows, i, row) {
		const char *path = jget_text(row, "path");
		char hex[65];
		int64_t size;

		if (hash_file(s, path, hex, &size, false, why))
			return err_set(
				why, -EBADMSG, "its file '%s' is missing or cannot be read", path);
		if (size != jget_int(row, "size") || strcmp(hex, jget_text(row, "sha256")))
			return err_set(why, -EBADMSG,
				"its file '%s' has changed: its checksum differs", path);
	}
	return rc;
}

int store_put_model(struct store *s, const char *detector, const json_t *params,
	const json_t *model, struct err *e)
{
	return store_do(s, e, "write a model", "INSERT OR REPLACE INTO model VALUES (?, ?, ?)",
		"sjj", detector, params, model);
}

int store_put_verdict(struct store *s, int64_t attempt, const char *detector, const json_t *verdict,
	struct err *e)
{
	const char *metric = jget_text(verdict, "metric");

	return store_do(s, e, "write a verdict",
		"INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?)", "issj", attempt, detector,
		metric ? metric : "any", verdict);
}

int store_clear_verdicts(struct store *s, struct err *e)
{
	return store_exec(s, "DELETE FROM verdict; DELETE FROM model", e, "delete the verdicts");
}
