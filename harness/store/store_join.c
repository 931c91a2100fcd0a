/* Reads the shards of a run as one run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/store/store_impl.h"

/* Offsets added to a shard's own numbers. */
struct shift {
	int64_t attempt, training;
};

/* Attaches 'from' as the schema "shard". A corpus is in the memory of another connection, so its
 * pages are copied. */
static int store_join_attach(struct store *s, const struct store *from, struct err *e)
{
	sqlite3_int64 size = 0;
	unsigned char *pages;
	int rc = store_do(s, e, "attach a shard", "ATTACH ? AS shard", "s",
		from->packed ? ":memory:" : from->path);

	if (rc || !from->packed)
		return rc;
	pages = sqlite3_serialize(from->db, "main", &size, 0);
	if (!pages)
		return err_errno(e, -ENOMEM, "cannot read '%s'", from->path);
	if (sqlite3_deserialize(s->db, "shard", pages, size, size,
		    SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
		return store_fail(s, e, "read a shard");
	return 0;
}

/* Copies the tables of a shard with numbers that no other shard uses. */
static const struct {
	const char *sql, *types;
	bool of_cells;
} copies[] = {
	{"INSERT INTO cell SELECT number + iif(training, ?1, 0), training, workload,"
	 " workload_params, fault, fault_params, resource, repeat, victims, skipped, tracer"
	 " FROM shard.cell",
		"i", true},
	{"INSERT INTO attempt SELECT a.id + ?1, a.cell + iif(c.training, ?2, 0), a.number, outcome,"
	 " reason, started_ns, start_ns, onset_ns, offset_ns, ended_ns, seconds, detail, key"
	 " FROM shard.attempt AS a JOIN shard.cell AS c ON c.number = a.cell",
		"ii", false},
	{"INSERT INTO series SELECT attempt + ?1, metric, server, samples FROM shard.series", "i",
		false},
	{"INSERT INTO event SELECT attempt + ?1, number, kind, server, client, time_s, detail"
	 " FROM shard.event",
		"i", false},
	{"INSERT INTO verdict SELECT attempt + ?1, detector, metric, verdict FROM shard.verdict",
		"i", false},
};

static int copy_requests(struct store *s, struct shift by, struct err *e)
{
	const int rc = store_knows_requests(s, "shard", e);

	if (rc <= 0)
		return rc;
	return store_make_requests(s, e)
		?: store_do(s, e, "add a shard's requests",
			   "INSERT INTO request SELECT attempt + ?1, recording, block, data"
			   " FROM shard.request",
			   "i", by.attempt);
}

static int copy_tables(struct store *s, const struct store *from, struct shift by, struct err *e)
{
	const char *folder = from->folder;
	int rc = 0;

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]) && !rc; i++)
		rc = store_do(s, e, "add a shard", copies[i].sql, copies[i].types,
			copies[i].of_cells ? by.training : by.attempt, by.training);
	rc = rc ?: copy_requests(s, by, e);
	rc = rc
		?: store_do(s, e, "add a shard's files",
			   "INSERT INTO file SELECT attempt + ?1, ?2 || '/' || path, size, sha256"
			   " FROM shard.file",
			   "is", by.attempt, folder);
	return rc
		?: store_do(s, e, "add a shard's models",
			   "INSERT INTO model SELECT detector || ' (' || ?1 || ')', params, model"
			   " FROM shard.model",
			   "s", from->run_id);
}

static int one_number(struct store *s, const char *sql, int64_t *out, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, sql, "");

	if (rc)
		return rc;
	if (sqlite3_step(st) == SQLITE_ROW)
		*out = sqlite3_column_int64(st, 0);
	else
		rc = store_fail(s, e, "read a number");
	sqlite3_finalize(st);
	return rc;
}

/* The data of one shard for judging. */
static int store_join_describe(
	struct store *from, const struct shift *by, int64_t last, json_t *parts, struct err *e)
{
	json_auto_t *own = NULL, *servers = NULL;
	char key[80];
	int64_t training = 0;
	int rc = store_get_json(from, "shard", &own, e);

	if (rc >= 0)
		rc = store_get_json(from, "servers", &servers, e);
	if (rc >= 0 && (!own || !servers))
		rc = err_set(e, -EINVAL, "'%s' is not a shard of a run", from->folder);
	rc = rc < 0 ? rc : store_blind_key(from, key, e);
	rc = rc ?: one_number(from, "SELECT count(*) FROM cell WHERE training", &training, e);
	if (!rc)
		json_array_append_new(parts,
			json_pack("{s:O, s:O, s:O, s:s, s:s, s:O, s:I, s:I, s:I}", "index",
				jget(own, "index"), "of", jget(own, "of"), "cells",
				jget(own, "cells"), "run", from->run_id, "key", key, "servers",
				servers, "first", (json_int_t)by->attempt + 1, "last",
				(json_int_t)last, "training", (json_int_t)training));
	return rc;
}

static int store_join_add(
	struct store *s, struct store *from, struct shift *by, json_t *parts, struct err *e)
{
	int64_t last = by->attempt;
	int rc = store_join_attach(s, from, e) ?: copy_tables(s, from, *by, e)
		?: one_number(s, "SELECT coalesce(max(id), 0) FROM attempt", &last, e);

	/* A failed call leaves its schema attached; the store is then closed. */
	rc = rc ?: store_exec(s, "DETACH shard", e, "detach a shard");
	if (!rc && last < by->attempt)
		last = by->attempt;
	rc = rc ?: store_join_describe(from, by, last, parts, e);
	by->attempt = last;
	return rc;
}

/* {name: host} of all shards; a duplicate name gets its run's name. */
static int join_hosts(struct store *s, struct store *const from[], size_t n, struct err *e)
{
	json_auto_t *all = json_object();
	auto_free char *text = NULL;
	const char *name;
	json_t *host;
	int rc = 0;

	for (size_t i = 0; i < n && rc >= 0; i++) {
		json_auto_t *hosts = NULL;

		rc = store_get_json(from[i], "hosts", &hosts, e);
		json_object_foreach(hosts, name, host) {
			auto_free char *own = alloc_format("%s (%s)", name, from[i]->run_id);

			json_object_set(all, jget(all, name) ? own : name, host);
		}
	}
	if (rc < 0 || !json_object_size(all))
		return rc < 0 ? rc : 0;
	text = json_dumps(all, JSON_COMPACT);
	return store_set(s, "hosts", text, e);
}

/* Every server of every shard, once. */
static json_t *all_servers(const json_t *parts)
{
	json_auto_t *seen = json_object();
	json_t *list = json_array(), *part, *name;
	size_t i, k;

	json_array_foreach((json_t *)parts, i, part)
		json_array_foreach(jget(part, "servers"), k, name) {
			if (jget(seen, json_string_value(name)))
				continue;
			json_object_set_new(seen, json_string_value(name), json_true());
			json_array_append(list, name);
		}
	return list;
}

static int copy_facts(
	struct store *s, struct store *const from[], size_t n, const json_t *parts, struct err *e)
{
	auto_free char *text = json_dumps(parts, JSON_COMPACT), *names = NULL;
	json_auto_t *servers = all_servers(parts);
	int rc = store_join_attach(s, from[0], e)
		?: store_exec(s,
			   "INSERT OR IGNORE INTO fact SELECT * FROM shard.fact WHERE key NOT IN"
			   " ('shard', 'servers', 'blind_key', 'inventory_text', 'inventory_path',"
			   " 'hosts', 'programs');"
			   "DETACH shard",
			   e, "add facts")
		?: store_set(s, "shards", text, e);

	names = json_dumps(servers, JSON_COMPACT);
	return rc ?: store_set(s, "servers", names, e) ?: join_hosts(s, from, n, e);
}

/* If a corpus has no verdicts, drop them all, so that all are judged again. */
static int drop_some_verdicts(struct store *s, struct store *const from[], size_t n, struct err *e)
{
	int64_t found = 1;
	int rc = 0;

	for (size_t i = 0; i < n && !rc && found; i++)
		rc = !from[i]->packed
			? 0
			: one_number(from[i], "SELECT count(*) FROM verdict", &found, e);
	s->packed_parts = !rc && !found;
	return rc || found ? rc : store_exec(s, "DELETE FROM verdict", e, "delete verdicts");
}

int store_join(struct store *const from[], size_t n, struct store **out, struct err *e)
{
	json_auto_t *parts = json_array();
	struct store *s = NULL;
	struct shift by = {0};
	int64_t training = 0, last = 0;
	int rc = store_open_joined(from, n, &s, e);

	for (size_t i = 0; i < n && !rc; i++) {
		rc = store_join_add(s, from[i], &by, parts, e);
		rc = rc
			?: one_number(from[i], "SELECT count(*) FROM cell WHERE training",
				   &training, e);
		last = jget_int(json_array_get(parts, i), "cells");
		by.training = by.training ? by.training + training : last;
	}
	rc = rc ?: copy_facts(s, from, n, parts, e) ?: drop_some_verdicts(s, from, n, e);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}
