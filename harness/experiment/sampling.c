#include "harness/experiment/sampling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_TIMEOUT_S 30

static struct member *member_at(struct cluster *c, size_t i)
{
	return i < c->n_servers ? c->servers[i] : c->clients[i - c->n_servers];
}

int sampling_check(struct cluster *c, struct progress *p, struct err *e)
{
	size_t n = c->n_servers + c->n_clients, used = 0;
	struct node_request *requests = calloc(n + 1, sizeof(*requests));
	char without[512] = "";
	int rc;

	if (!requests)
		return err_errno(e, -ENOMEM, "cannot check the sampler");
	for (size_t i = 0; i < n; i++)
		requests[i] = (struct node_request){.node = member_at(c, i)->node,
			.op = "check",
			.args = json_pack("{s:s}", "what", "trace.sampler")};
	rc = node_call_all(requests, n, CHECK_TIMEOUT_S, e);
	for (size_t i = 0; i < n; i++) {
		struct member *m = member_at(c, i);
		const char *reason = json_string_value(
			json_object_get(requests[i].result, "reason"));

		m->sampled = json_is_true(json_object_get(requests[i].result, "able"));
		if (!rc && !m->sampled && used < sizeof(without))
			used += (size_t)snprintf(without + used, sizeof(without) - used, "%s%s: %s",
				used ? "; " : "", m->host->ssh.name,
				reason ? reason : "no reason given");
		json_decref(requests[i].result);
	}
	free(requests);
	if (!rc && used)
		progress_say(p, "not sampled (sockets, disk, processors): %s", without);
	return rc;
}

json_t *sampling_args(const struct member *m, const char *out)
{
	json_t *args = json_pack(
		"{s:s, s:s, s:O}", "tracer", "sampler", "out", out, "pids", m->pids);

	if (m->host->storage)
		json_object_set_new(args, "paths", json_pack("[s]", m->host->storage));
	return args;
}
