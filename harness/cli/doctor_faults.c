/* culprit doctor: the cluster's roles, and every fault's own check on every server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/doctor.h"
#include "harness/experiment/bind_node.h"
#include "harness/cluster/cluster.h"
#include "harness/scenario/part.h"

struct asking {
	struct report *report;
	struct cluster *cluster;
	struct acts *acts;
};

/* Why the fault cannot run on this server, if it cannot: true, and 'why'. */
static bool refused(struct asking *a, lua_State *L, const struct part *p, struct member *server,
	struct err *why)
{
	int top = lua_gettop(L);
	bool no = false;

	lua_rawgeti(L, LUA_REGISTRYINDEX, p->def_ref);
	lua_getfield(L, -1, "check");
	if (!lua_isnil(L, -1)) {
		bind_push_context(L, a->acts, a->cluster, server, p, "doctor");
		no = luax_call(L, 1, 2, why) != 0;
		if (!no && !lua_toboolean(L, -2))
			no = err_set(why, 1, "%s",
				lua_isstring(L, -1) ? lua_tostring(L, -1)
						    : "its check gave no reason");
	}
	lua_settop(L, top);
	return no;
}

static int ask_fault(void *ctx, lua_State *L, const struct part *p)
{
	struct asking *a = ctx;
	struct err e;
	bool no = false;

	if (!p->path)
		return 0;
	if (!a->acts)
		a->acts = bind_open(L);
	for (size_t i = 0; i < a->cluster->n_servers && !no; i++)
		no = refused(a, L, p, a->cluster->servers[i], &e);
	if (no)
		doctor_add(a->report, LEVEL_NOTE, p->name, "cannot run: %s", e.text);
	else
		doctor_add(a->report, LEVEL_OK, p->name, "can run");
	return 0;
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
	check_roles(r, a.cluster);
	if (cluster_connect(a.cluster, &e)) {
		doctor_add(r, LEVEL_BAD, "together", "%s", e.text);
	} else {
		doctor_add(r, LEVEL_OK, "together",
			"all nodes at once; the file system's processes are there");
		r->where = "faults";
		if (part_each(PART_FAULT, ask_fault, &a, &e))
			doctor_add(r, LEVEL_BAD, "faults", "%s", e.text);
	}
	bind_close(a.acts);
	cluster_free(a.cluster);
}
