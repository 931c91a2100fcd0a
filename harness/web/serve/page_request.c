/* Parses and validates a request's arguments, so that later code gets only valid values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/web/serve/answer.h"
#include "harness/web/serve/serve_impl.h"

enum { TEXT_MAX = 1000 };

#define AGES INT64_C(4000000000000000000) /* in ns: more than a century */

/* 'out' keeps its value if the argument is missing or empty. */
static int whole(const struct loopback_request *r, const char *name, int64_t least, int64_t most,
	int64_t *out, struct err *e)
{
	const char *text = loopback_argument(r, name);
	long long v;
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (*end || errno || v < least || v > most)
		return err_set(e, -EINVAL,
			"'%s' must be a whole number from %lld to %lld, not '%.40s'", name,
			(long long)least, (long long)most, text);
	*out = v;
	return 0;
}

static int page_request_text(
	const struct loopback_request *r, const char *name, const char **out, struct err *e)
{
	const char *given = loopback_argument(r, name);

	if (!given || !*given)
		return 0;
	if (strlen(given) > TEXT_MAX)
		return err_set(e, -EINVAL, "'%s' is longer than %d characters", name, TEXT_MAX);
	*out = given;
	return 0;
}

int page_request_read(const struct loopback_request *r, struct page_request *out, struct err *e)
{
	int64_t from = 0, to = 0, id = 0, failed = 0, skip = 0, limit = 100, points = SERVE_POINTS,
		per_second = 0;
	struct page_request a = {.request = r};
	int rc = whole(r, "attempt", 0, INT64_MAX, &a.attempt, e);

	rc = rc ?: whole(r, "from", -AGES, AGES, &from, e);
	rc = rc ?: whole(r, "to", -AGES, AGES, &to, e);
	rc = rc ?: whole(r, "id", 0, UINT32_MAX, &id, e);
	rc = rc ?: whole(r, "failed", 0, 1, &failed, e);
	rc = rc ?: whole(r, "skip", 0, ANSWER_EVENTS, &skip, e);
	rc = rc ?: whole(r, "limit", 1, ANSWER_EVENTS, &limit, e);
	rc = rc ?: whole(r, "points", 10, 2000, &points, e);
	rc = rc ?: whole(r, "other", 0, INT64_MAX, &a.other, e);
	rc = rc ?: whole(r, "per_second", 0, 1, &per_second, e);
	rc = rc ?: page_request_text(r, "node", &a.focus.node, e);
	rc = rc ?: page_request_text(r, "call", &a.focus.call, e);
	rc = rc ?: page_request_text(r, "class", &a.focus.class, e);
	rc = rc ?: page_request_text(r, "thread", &a.focus.thread, e);
	rc = rc ?: page_request_text(r, "path", &a.focus.path, e);
	if (!rc && from > to)
		rc = err_set(e, -EINVAL, "'from' lies behind 'to'");
	if (rc)
		return rc;
	a.focus.from_ns = from;
	a.focus.to_ns = to;
	a.focus.in_time = from != to;
	a.focus.id = (uint32_t)id;
	a.focus.failed = failed;
	a.skip = (uint64_t)skip;
	a.limit = (uint64_t)limit;
	a.points = (uint64_t)points;
	a.per_second = per_second;
	*out = a;
	return 0;
}

int64_t serve_slot(int64_t span_ns, uint64_t points)
{
	const int64_t least = span_ns / (int64_t)(points ? points : 1) + 1;
	int64_t slot = 1000;

	for (int i = 0; slot < least; i++)
		slot = i % 3 == 1 ? slot / 2 * 5 : slot * 2;
	return slot;
}
