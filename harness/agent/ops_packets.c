#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agent/agent.h"

#define ADDRESSES_MAX 64

static int addresses(const json_t *list, struct packets_address **out, size_t *n, struct err *e)
{
	size_t count = json_array_size(list);
	struct packets_address *a;
	int rc = 0;

	if (!count)
		return 0;
	if (count > ADDRESSES_MAX)
		return err_set(e, -E2BIG, "at most %d addresses, not %zu", ADDRESSES_MAX, count);
	a = calloc(count, sizeof(*a));
	if (!a)
		return err_errno(e, -ENOMEM, "cannot drop packets");
	for (size_t i = 0; i < count && !rc; i++)
		rc = packets_address_parse(json_string_value(json_array_get(list, i)), &a[i], e);
	if (rc) {
		free(a);
		return rc;
	}
	*out = a;
	*n = count;
	return 0;
}

/* Two lists that name no common family would match nothing. */
static bool families_meet(const struct packets_spec *s)
{
	for (size_t i = 0; i < s->n_from; i++)
		for (size_t j = 0; j < s->n_to; j++)
			if (s->from[i].family == s->to[j].family)
				return true;
	return !s->n_from || !s->n_to;
}

int op_packets_drop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *direction = json_string_value(json_object_get(args, "direction"));
	struct packets_address *from = NULL, *to = NULL;
	struct packets_spec s = {.percent = json_number_value(json_object_get(args, "percent"))};
	enum packets_backend backend;
	struct handle *h = NULL;
	double max_s = 0;
	int rc;

	if (!(s.percent > 0 && s.percent <= 100))
		return err_set(
			e, -EINVAL, "percent must be above 0 and at most 100, not %g", s.percent);
	if (direction && strcmp(direction, "in") && strcmp(direction, "out"))
		return err_set(e, -EINVAL, "direction must be 'in' or 'out', not '%s'", direction);
	s.out = direction && !strcmp(direction, "out");
	rc = agent_seconds(args, "max_s", 1e6, &max_s, e);
	if (!rc)
		rc = addresses(json_object_get(args, "from"), &from, &s.n_from, e);
	if (!rc)
		rc = addresses(json_object_get(args, "to"), &to, &s.n_to, e);
	if (rc)
		goto out;
	s.from = from;
	s.to = to;
	if (!families_meet(&s)) {
		rc = err_set(e, -EINVAL, "'from' and 'to' have no IP version in common");
		goto out;
	}
	rc = packets_check(a->packets_backend, &backend, e);
	if (rc)
		goto out;
	h = handle_new(a, HANDLE_PACKETS);
	if (!h || !(h->inverse = packets_inverse(backend, a->session, h->name))) {
		rc = err_errno(e, -ENOMEM, "cannot drop packets");
		goto out;
	}
	rc = handle_record(a, h, "packets", max_s, e);
	if (rc)
		goto out;
	rc = packets_drop(&s, h->inverse, e);
	guard_acted(a->guard, h->name);
	if (rc) {
		guard_undo(a->guard, h->name);
		goto out;
	}
	agent_answer(a, id,
		json_pack(
			"{s:s, s:s}", "handle", h->name, "backend", packets_backend_name(backend)));
	h = NULL;
out:
	if (h)
		handle_free(a, h);
	free(from);
	free(to);
	return rc;
}

int op_packets_counters(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct packets_counters c;
	struct handle *h;
	int rc;

	rc = handle_get(
		a, json_string_value(json_object_get(args, "handle")), HANDLE_PACKETS, &h, e);
	if (!rc)
		rc = packets_read(h->inverse, &c, e);
	if (!rc)
		agent_answer(a, id,
			json_pack("{s:I, s:I, s:I, s:I}", "seen", (json_int_t)c.seen, "dropped",
				(json_int_t)c.dropped, "seen_bytes", (json_int_t)c.seen_bytes,
				"dropped_bytes", (json_int_t)c.dropped_bytes));
	return rc;
}
