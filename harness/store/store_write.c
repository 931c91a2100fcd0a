#include "harness/store/store_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int store_put_attempt(struct store *s, struct attempt_row *row, struct err *e)
{
	sqlite3_stmt *st;
	int rc;

	rc = store_statement(s, &st, e,
		"INSERT INTO attempt VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"iissiiiiiijs", (int64_t)row->cell, (int64_t)row->number,
		outcome_name(row->outcome), row->reason, row->started_ns, row->start_ns,
		row->onset_ns, row->offset_ns, row->ended_ns, (int64_t)row->seconds, row->detail,
		row->key);
	if (!rc)
		rc = store_finish(s, st, e, "write an attempt");
	if (!rc)
		row->id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

/* What an event says besides its kind, whose it is, and when it began. */
static json_t *event_detail(const struct event *v)
{
	json_t *d = json_pack("{s:f, s:I}", "last_s", v->last_s, "count", (json_int_t)v->count);
	const struct {
		const char *key, *value;
	} texts[] = {{"call", v->call}, {"error", v->error}, {"signal", v->signal},
		{"place", event_place_name(v->place)}, {"state", link_state_name(v->state)}};

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

		rc = store_statement(s, &st, e, "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)",
			"iisssdj", attempt, (int64_t)i + 1, event_kind_name(v->kind),
			v->server < 0 ? NULL : servers[v->server],
			v->client < 0 ? NULL : clients[v->client], v->first_s, detail);
		json_decref(detail);
		if (!rc)
			rc = store_finish(s, st, e, "write an event");
	}
	return rc;
}

int store_drop_events(struct store *s, int64_t attempt, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, "DELETE FROM event WHERE attempt = ?", "i", attempt);

	return rc ? rc : store_finish(s, st, e, "drop events");
}

int store_hash_file(const char *path, char hex[65], int64_t *size, bool sync, struct err *e)
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
	else if (sync && fsync(fd) < 0)
		rc = err_errno(e, -errno, "cannot write '%s' to the disk", path);
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
	rc = store_hash_file(full, hex, &size, true, e);
	free(full);
	if (!rc)
		rc = store_statement(s, &st, e, "INSERT INTO file VALUES (?, ?, ?, ?)", "isis",
			attempt, path, size, hex);
	return rc ? rc : store_finish(s, st, e, "list a file");
}

int store_put_model(struct store *s, const char *detector, const json_t *params,
	const json_t *model, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, "INSERT OR REPLACE INTO model VALUES (?, ?, ?)", "sjj",
		detector, params, model);

	return rc ? rc : store_finish(s, st, e, "write a model");
}

int store_put_verdict(struct store *s, int64_t attempt, const char *detector, const json_t *verdict,
	struct err *e)
{
	const char *metric = json_string_value(json_object_get(verdict, "metric"));
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, "INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?)",
		"issj", attempt, detector, metric ? metric : "any", verdict);

	return rc ? rc : store_finish(s, st, e, "write a verdict");
}

int store_clear_verdicts(struct store *s, struct err *e)
{
	return store_exec(s, "DELETE FROM verdict; DELETE FROM model", e, "clear the verdicts");
}
