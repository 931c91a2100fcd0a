/* Opens the shards of a run as one run. */
#include "harness/cli/shards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/run/cell_key.h"

/* A shard that was given. */
struct given {
	struct store *store;
	json_t *shard; /* its fact */
};

struct set {
	struct given *list;
	size_t n;
};

static void set_clear(struct set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		json_decref(s->list[i].shard);
		store_close(s->list[i].store);
	}
	free(s->list);
}

int shards_any(int n, char **folders, bool *any, struct err *e)
{
	*any = false;
	for (int i = 0; i < n && !*any; i++) {
		struct store *s = NULL;
		json_auto_t *shard = NULL, *shards = NULL;
		int rc = store_open(folders[i], &s, e);

		if (!rc && (rc = store_get_json(s, "shard", &shard, e)) == 0)
			rc = store_get_json(s, "shards", &shards, e);
		store_close(s);
		if (rc < 0)
			return rc;
		*any = rc == 1;
	}
	return 0;
}

/* Reads what the run says of itself as a shard. */
static int read_shard(struct given *p, struct err *e)
{
	json_auto_t *joined = NULL;
	int rc = store_get_json(p->store, "shards", &joined, e);

	if (rc == 1)
		return err_set(e, -EINVAL,
			"'%s' holds several shards already; give the shards themselves",
			store_folder(p->store));
	if (!rc)
		rc = store_get_json(p->store, "shard", &p->shard, e);
	if (!rc)
		return err_set(e, -EINVAL,
			"'%s' is no shard of a run (culprit run --shard); only shards of one run "
			"are taken as one",
			store_folder(p->store));
	if (rc == 1 &&
		(jget_int(p->shard, "index") < 1 ||
			jget_int(p->shard, "index") > jget_int(p->shard, "of") ||
			jget_int(p->shard, "of") > SHARDS_MAX || !jget_text(p->shard, "plan")))
		return err_blame(e, ERR_DAMAGED,
			err_set(e, -EBADMSG, "'%s' is damaged: its fact 'shard' is incomplete",
				store_folder(p->store)));
	return rc < 0 ? rc : 0;
}

static int by_index(const void *a, const void *b)
{
	const struct given *x = a, *y = b;
	json_int_t i = jget_int(x->shard, "index"), k = jget_int(y->shard, "index");

	return i < k ? -1 : i > k;
}

static int open_set(int n, char **folders, struct set *s, struct err *e)
{
	int rc = 0;

	s->list = alloc_zero((size_t)n, sizeof(*s->list));
	for (int i = 0; i < n && !rc; i++) {
		struct given *p = &s->list[s->n];

		for (int k = 0; k < i && !rc; k++)
			if (!strcmp(folders[i], folders[k]))
				rc = err_set(e, -EINVAL, "'%s' is given twice", folders[i]);
		rc = rc ?: store_open(folders[i], &p->store, e);
		s->n += !rc;
		rc = rc ?: read_shard(p, e);
	}
	if (!rc)
		qsort(s->list, s->n, sizeof(*s->list), by_index);
	return rc;
}

static int differ(const struct given *p, const struct given *first, struct err *e, const char *what)
{
	return err_set(e, -EINVAL, "'%s' and '%s' are no shards of one run: %.800s",
		store_folder(p->store), store_folder(first->store), what);
}

/* Texts that must be alike. Long ones are not shown. */
static int compare_facts(struct given *p, const struct given *first, struct err *e)
{
	static const struct {
		const char *key, *what;
		bool shown;
	} facts[] = {{"scenario", "the scenario", true}, {"seed", "the seed", true},
		{"culprit_version", "culprit's version", true},
		{"scenario_text", "the scenario's text", false},
		{"measure", "what is measured", true}, {"tracer", "the tracer", true},
		{"judged_seconds", "the length of a cell", true},
		{"file_system_type", "the file system", true},
		{"detectors", "the detectors", false},
		{"detector_texts", "the text of a detector", false}};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		auto_free char *one = NULL, *other = NULL, *what = NULL;
		int rc = store_get(first->store, facts[i].key, &one, e);

		rc = rc < 0 ? rc : store_get(p->store, facts[i].key, &other, e);
		if (rc < 0)
			return rc;
		if (!strcmp(one ? one : "", other ? other : ""))
			continue;
		what = facts[i].shown ? alloc_format("%s is '%s' and '%s'", facts[i].what,
						other ? other : "?", one ? one : "?")
				      : alloc_format("%s differs", facts[i].what);
		return differ(p, first, e, what);
	}
	return 0;
}

/* Each shard has its own cluster: what names its hosts need not be alike. */
static int read_inputs(struct store *s, json_t **out, struct err *e)
{
	int rc = store_get_json(s, "inputs", out, e);
	const char *name;
	json_t *v;
	void *next;

	if (rc < 0)
		return rc;
	json_object_foreach_safe(*out, next, name, v) if (!strncmp(name, "host ", 5) ||
		!strncmp(name, "program ", 8)) json_object_del(*out, name);
	return 0;
}

static int compare_inputs(struct given *p, const struct given *first, struct err *e)
{
	json_auto_t *one = NULL, *other = NULL;
	auto_free char *what = NULL;
	int rc = read_inputs(first->store, &one, e) ?: read_inputs(p->store, &other, e);

	/* A second tracer's run has none; a run that ended too early neither. */
	if (!rc && one && other)
		what = key_difference(one, other);
	return what ? differ(p, first, e, what) : rc;
}

static int compare_plans(struct given *p, const struct given *first, struct err *e)
{
	json_auto_t *one = NULL, *other = NULL;
	char what[160];
	int rc = store_get_json(first->store, "servers", &one, e);

	rc = rc < 0 ? rc : store_get_json(p->store, "servers", &other, e);
	if (rc < 0)
		return rc;
	if (json_array_size(one) != json_array_size(other)) {
		snprintf(what, sizeof(what),
			"victims are drawn among all servers, and there are %zu and %zu",
			json_array_size(other), json_array_size(one));
		return differ(p, first, e, what);
	}
	if (jget_int(p->shard, "of") != jget_int(first->shard, "of")) {
		snprintf(what, sizeof(what), "one is a part of %lld, the other of %lld",
			(long long)jget_int(p->shard, "of"),
			(long long)jget_int(first->shard, "of"));
		return differ(p, first, e, what);
	}
	if (strcmp(jget_text(p->shard, "plan"), jget_text(first->shard, "plan")))
		return differ(p, first, e, "the whole plan's cells differ");
	return 0;
}

static int check_set(struct set *s, struct err *e)
{
	int rc = 0;

	for (size_t i = 1; i < s->n && !rc; i++) {
		struct given *p = &s->list[i];

		rc = compare_facts(p, s->list, e)
			?: compare_inputs(p, s->list, e)
			?: compare_plans(p, s->list, e);
		if (!rc && !by_index(p, p - 1))
			rc = err_set(e, -EINVAL, "'%s' and '%s' are both shard %lld/%lld",
				store_folder(p[-1].store), store_folder(p->store),
				(long long)jget_int(p->shard, "index"),
				(long long)jget_int(p->shard, "of"));
	}
	return rc;
}

char *shards_missing(const json_t *shards)
{
	const json_t *first = json_array_get(shards, 0);
	json_int_t of = jget_int(first, "of");
	size_t i, size, n = 0;
	char *text;
	json_t *row;
	FILE *f = alloc_text(&text, &size);

	fputs((size_t)of == json_array_size(shards) + 1 ? "shard" : "shards", f);
	for (json_int_t k = 1; k <= of && of <= SHARDS_MAX; k++) {
		bool there = false;

		json_array_foreach((json_t *)shards, i, row)
			there = there || jget_int(row, "index") == k;
		if (!there)
			fprintf(f, "%s %lld/%lld", n++ ? "," : "", (long long)k, (long long)of);
	}
	fclose(f);
	if (n)
		return text;
	free(text);
	return NULL;
}

/* All shards together must be the plan; of some it is said which are missing. */
static int check_whole(const char *command, const struct set *set, struct store *s, struct err *e)
{
	const json_t *first = set->list[0].shard;
	json_int_t all = jget_int(first, "cells") - jget_int(first, "training"), here = 0;
	json_auto_t *shards = NULL, *cells = NULL;
	auto_free char *missing = NULL;
	json_t *row;
	size_t i;
	int rc = store_get_json(s, "shards", &shards, e);

	rc = rc < 0 ? rc : store_table(s, "cell", &cells, e);
	if (rc)
		return rc;
	json_array_foreach(cells, i, row)
		here += !jget_int(row, "training");
	missing = shards_missing(shards);
	if (missing)
		cmd_fail(command, 0,
			"%s missing: %lld of the plan's %lld scored cells are not here", missing,
			(long long)(all - here), (long long)all);
	if (missing ? here < all : here == all)
		return 0;
	return err_blame(e, ERR_DAMAGED,
		err_set(e, -EBADMSG, "the shards have %lld scored cells, and the plan has %lld",
			(long long)here, (long long)all));
}

int shards_open(const char *command, int n, char **folders, struct store **out, struct err *e)
{
	struct set set = {0};
	struct store *s = NULL;
	int rc;

	if (n == 1)
		return store_open(folders[0], out, e);
	rc = open_set(n, folders, &set, e) ?: check_set(&set, e);
	if (!rc) {
		auto_free struct store **stores = alloc_zero(set.n, sizeof(struct store *));

		for (size_t i = 0; i < set.n; i++)
			stores[i] = set.list[i].store;
		rc = store_join(stores, set.n, &s, e) ?: check_whole(command, &set, s, e);
	}
	set_clear(&set);
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}
