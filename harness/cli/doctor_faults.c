/* culprit doctor: the cluster's roles, and every fault's own check on every server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/doctor.h"
#include "harness/run/fault_check.h"

struct asking {
	struct report *report;
	struct cluster *cluster;
	struct acts *acts;
};

/* What the undo of an operation cannot give back. */
static const struct {
	const char *begin; /* of its name */
	const char *how;   /* NULL: by any means */
	const char *sentence;
} limits_of_undo[] = {
	{"service.", NULL,
		"undo restarts the server, so what it had not written is lost, and clients wait or "
		"fail until it serves again"},
	{"fs.readonly", NULL,
		"undo stops the server for e2fsck, which takes minutes on a large file system"},
	{"disk.fail", NULL,
		"undo stops the server for e2fsck if the file system has met an error, which takes "
		"minutes on a large one"},
	{"disk.degrade", "cgroup",
		"only the server's own requests are slowed; those in flight end at their own "
		"speed"},
	{"signal.", NULL, "a client that has given the server up may not come back by itself"},
	{"packets.drop", NULL,
		"connections that time out stay closed, and a client may not come back by itself"},
};

/* "packets.drop by nftables on s1 s2 s3; ..." */
static char *describe_means(const json_t *able)
{
	json_auto_t *groups = json_object();
	char *text = alloc_copy("");
	json_t *one;
	const char *means;
	size_t i;

	json_array_foreach((json_t *)able, i, one) {
		const char *how = jget_text(one, "how"), *node = jget_text(one, "node");
		auto_free char *key = alloc_format("%s%s%s", jget_text(one, "what"),
			how && *how ? " by " : "", how ? how : "");
		json_t *nodes = json_object_get(groups, key);

		if (!nodes)
			json_object_set_new(groups, key, nodes = json_object());
		json_object_set_new(nodes, node, json_true());
	}
	json_object_foreach(groups, means, one) {
		char *longer = alloc_format("%s%s%s on", text, *text ? "; " : "", means);
		const char *node;
		json_t *yes;

		free(text);
		text = longer;
		json_object_foreach(one, node, yes) {
			longer = alloc_format("%s %s", text, node);
			free(text);
			text = longer;
		}
	}
	return text;
}

/* The sentences of what was found to be possible, each once. */
static char *describe_limits(const json_t *able)
{
	char *text = alloc_copy(""), *longer;

	for (size_t k = 0; k < sizeof(limits_of_undo) / sizeof(limits_of_undo[0]); k++) {
		const char *begin = limits_of_undo[k].begin, *by = limits_of_undo[k].how;
		json_t *one;
		size_t i;

		json_array_foreach((json_t *)able, i, one) {
			const char *how = jget_text(one, "how");

			if (strncmp(jget_text(one, "what"), begin, strlen(begin)) ||
				(by && (!how || !strstr(how, by))))
				continue;
			longer = alloc_format("%s; %s", text, limits_of_undo[k].sentence);
			free(text);
			text = longer;
			break;
		}
	}
	return text;
}

/* How a fault that can run would be made, and what its undo does not promise. */
static void tell_means(struct report *r, const struct part *p, bool checks, const json_t *able)
{
	auto_free char *means = describe_means(able), *limits = describe_limits(able);

	if (!checks)
		doctor_add(r, LEVEL_OK, p->name,
			"can run, as far as is known: it has no 'check', so only an injection "
			"shows it");
	else if (!*means)
		doctor_add(r, LEVEL_OK, p->name, "can run, by programs of its own");
	else
		doctor_add(r, LEVEL_OK, p->name, "can run: %.500s%s%.700s", means,
			*limits ? ". Not promised: " : "", *limits ? limits + strlen("; ") : "");
}

static int ask_fault(void *ctx, lua_State *L, const struct part *p)
{
	struct asking *a = ctx;
	json_auto_t *able = json_array();
	const int top = lua_gettop(L);
	bool checks = bind_push_function(L, p, "check");
	struct err e;
	int rc;

	lua_settop(L, top);

	if (!p->path)
		return 0;
	if (!a->acts)
		a->acts = bind_open(L);
	acts_note_able(a->acts, able);
	rc = fault_check(L, a->acts, a->cluster, p, "doctor", &e);
	acts_note_able(a->acts, NULL);
	if (rc == -EOPNOTSUPP)
		doctor_add(a->report, LEVEL_NOTE, p->name, "cannot run: %s", e.text);
	else if (rc)
		doctor_add(a->report, LEVEL_BAD, p->name, "its check failed: %s", e.text);
	else
		tell_means(a->report, p, checks, able);
	return 0;
}

/* A built-in one, unless the scenario has it. */
static int ask_other(void *ctx, lua_State *L, const struct part *p)
{
	const struct scenario *s = ((struct asking *)ctx)->report->scenario;

	for (size_t i = 0; s && i < s->n_faults; i++)
		if (!strcmp(s->faults[i].name, p->name))
			return 0;
	return ask_fault(ctx, L, p);
}

static void ask_faults(struct asking *a)
{
	struct report *r = a->report;
	struct err e;

	for (size_t i = 0; r->scenario && i < r->scenario->n_faults; i++)
		ask_fault(a, r->scenario->L, &r->scenario->faults[i]);
	bind_close(a->acts); /* they are of the scenario's Lua state */
	a->acts = NULL;
	if (part_each(PART_FAULT, ask_other, a, &e))
		doctor_add(r, LEVEL_BAD, "faults", "%s", e.text);
}

static void check_roles(struct report *r, const struct cluster *c)
{
	enum level level = c->n_servers >= 3 ? LEVEL_OK : LEVEL_NOTE;

	doctor_add(r, level, "roles", "%zu server%s, %zu client%s, %zu outsider%s%s", c->n_servers,
		c->n_servers == 1 ? "" : "s", c->n_clients, c->n_clients == 1 ? "" : "s",
		c->n_outsiders, c->n_outsiders == 1 ? "" : "s",
		level == LEVEL_OK
			? ""
			: ": peers are compared with each other, which takes three servers");
}

void doctor_cluster(struct report *r)
{
	struct asking a = {.report = r};
	struct err e = {""};

	r->where = "cluster";
	if (cluster_load(r->inventory->path, &a.cluster, &e)) {
		doctor_add(r, LEVEL_BAD, "roles", "%s", e.text);
		return;
	}
	cluster_protect(a.cluster, r->limits.never, r->limits.n_never, &e);
	check_roles(r, a.cluster);
	if (cluster_connect(a.cluster, &e)) {
		doctor_add(r, LEVEL_BAD, "together", "%s", e.text);
	} else {
		doctor_add(r, LEVEL_OK, "together",
			"all nodes at once; the file system's processes are there");
		r->where = "faults";
		ask_faults(&a);
	}
	bind_close(a.acts);
	cluster_free(a.cluster);
}
