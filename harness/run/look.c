/* What the nodes of a cluster are doing, for a condition. */
#include "harness/run/cluster.h"

static int look_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	(void)ctx, (void)e;
	if (m->host->role == ROLE_OUTSIDER)
		return 1;
	*args = json_pack("{s:b}", "apart", 1);
	if (json_array_size(m->pids))
		json_object_set(*args, "pids", m->pids);
	return 0;
}

int cluster_look(struct cluster *c, double timeout_s, json_t **out, struct err *e)
{
	json_t *loads = NULL, *load, *nodes = json_object();
	const char *name;
	int rc = cluster_ask(c, "load", look_args, NULL, timeout_s, &loads, e);

	json_object_foreach(loads, name, load)
		json_object_set_new(nodes, name,
			json_pack("{s:s, s:O}", "role",
				role_name(cluster_member(c, name)->host->role), "load", load));
	json_decref(loads);
	if (rc)
		json_decref(nodes);
	else
		*out = nodes;
	return rc;
}
