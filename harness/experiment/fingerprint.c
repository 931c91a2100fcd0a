#include "harness/experiment/fingerprint.h"

#include <errno.h>

#include "harness/base/jget.h"

#define CALL_TIMEOUT_S 30

int fingerprint_pids(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	(void)ctx, (void)e;
	if (json_array_size(m->pids))
		*args = json_pack("{s:O}", "pids", m->pids);
	return 0;
}

int fingerprint_take(struct cluster *c, json_t **out, struct err *e)
{
	json_t *all;
	int rc = cluster_ask(c, "fingerprint", fingerprint_pids, NULL, CALL_TIMEOUT_S, &all, e);

	if (rc)
		json_decref(all);
	else
		*out = all;
	return rc;
}

/* The first string of 'list' that 'other' lacks, or NULL. */
static const char *first_not_in(const json_t *list, const json_t *other)
{
	const json_t *a, *b;
	size_t i, j;

	json_array_foreach((json_t *)list, i, a) {
		json_array_foreach((json_t *)other, j, b)
			if (json_equal(a, b))
				break;
		if (j == json_array_size(other))
			return json_string_value(a);
	}
	return NULL;
}

int fingerprint_compare(const json_t *before, const json_t *after, struct err *e)
{
	const char *name, *key;
	json_t *was, *value;

	json_object_foreach((json_t *)before, name, was) {
		json_object_foreach(was, key, value) {
			const json_t *is = jget(jget(after, name), key);
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
