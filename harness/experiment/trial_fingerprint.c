#include "harness/experiment/trial.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

/* {node: fingerprint} of the whole cluster. New reference. */
int trial_fingerprint(struct executor *x, json_t **out, struct err *e)
{
	struct cluster *c = x->cluster;
	struct node_request *requests = calloc(c->n_members, sizeof(*requests));
	int rc;

	if (!requests)
		return err_errno(e, -ENOMEM, "cannot take fingerprints");
	for (size_t i = 0; i < c->n_members; i++)
		requests[i] = (struct node_request){.node = c->members[i].node,
			.op = "fingerprint",
			.args = json_array_size(c->members[i].pids)
				? json_pack("{s:O}", "pids", c->members[i].pids)
				: NULL};
	rc = node_call_all(requests, c->n_members, CALL_TIMEOUT_S, e);
	if (!rc) {
		*out = json_object();
		for (size_t i = 0; i < c->n_members; i++)
			json_object_set(*out, node_name(c->members[i].node), requests[i].result);
	}
	trial_drop_results(requests, c->n_members);
	return rc;
}

/* The first string of 'list' that 'other' has not; NULL if there is none. */
static const char *first_not_in(const json_t *list, const json_t *other)
{
	const json_t *a, *b;
	size_t i, j;

	json_array_foreach((json_t *)list, i, a)
	{
		json_array_foreach((json_t *)other, j, b) if (json_equal(a, b)) break;
		if (j == json_array_size(other))
			return json_string_value(a);
	}
	return NULL;
}

/* Says the first difference between two fingerprints of the cluster. */
int trial_compare(const json_t *before, const json_t *after, struct err *e)
{
	const char *name, *key;
	json_t *was, *value;

	json_object_foreach((json_t *)before, name, was)
	{
		json_object_foreach(was, key, value)
		{
			const json_t *is = json_object_get(json_object_get(after, name), key);
			const char *lost = first_not_in(value, is), *new = first_not_in(is, value);

			if (lost || new)
				return err_set(e, -EBUSY,
					"%s: its %s are not what they were: %s%.300s%s%s%.300s",
					name, key, lost ? "lost " : "", lost ? lost : "",
					lost && new ? "; " : "", new ? "new " : "", new ? new : "");
		}
	}
	return 0;
}
