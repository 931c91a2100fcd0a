/* culprit doctor: the cluster's roles, and every fault's own check on every server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/doctor.h"
#include "harness/run/fault_check.h"

struct asking {
	struct report *report;
	struct cluster *cluster;
	struct acts *acts;
};

static int ask_fault(void *ctx, lua_State *L, const struct part *p)
{
	struct asking *a = ctx;
	struct err e;
	int rc;

	if (!p->path)
		return 0;
	if (!a->acts)
		a->acts = bind_open(L);
	rc = fault_check(L, a->acts, a->cluster, p, "doctor", &e);
	if (rc == -EOPNOTSUPP)
		doctor_add(a->report, LEVEL_NOTE, p->name, "cannot run: %s", e.text);
	else if (rc)
		doctor_add(a->report, LEVEL_BAD, p->name, "its check failed: %s", e.text);
	else
		doctor_add(a->report, LEVEL_OK, p->name, "can run");
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
