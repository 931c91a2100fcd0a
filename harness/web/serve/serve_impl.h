/* Internals of the server: handling of requests. */
#ifndef CULPRIT_HARNESS_WEB_SERVE_SERVE_IMPL_H
#define CULPRIT_HARNESS_WEB_SERVE_SERVE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "harness/web/serve/answer_cache.h"
#include "harness/web/serve/serve.h"
#include "harness/web/serve/views.h"
#include "harness/web/loopback.h"

enum {
	SERVE_CONNECTIONS = 16,
	SERVE_SQL_MAX = 16 << 10,
	SERVE_POINTS = 300, /* slots across a chart */
	SERVE_EXTENTS = 16,
	SERVE_KEPT_BYTES = 32 << 20, /* size of cached answers */
};

struct serve {
	struct serve_spec spec;
	struct loopback *server;
	char *page;
	size_t page_size;
	atomic_bool ending;
	struct answer_cache *kept;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t free;  /* signalled when a query may begin */
	int queries;          /* number that may begin */
	struct views views;
	struct {
		const struct page_subject *of;
		uint64_t generation;
		int64_t attempt;
		struct query_extent extent;
	} extents[SERVE_EXTENTS];
	size_t n_extents; /* total, including replaced ones */
};

/* A request's arguments, checked. */
struct page_request {
	const struct loopback_request *request;
	int64_t attempt;
	struct query_focus focus;
	uint64_t skip, limit, points;
	bool per_second;
	int64_t other; /* attempt for comparison */
};
/* -EINVAL names the argument. */
int page_request_read(const struct loopback_request *r, struct page_request *out, struct err *e);

/* The page of an attempt's timeline (0: of the default attempt) for the requested period; the
 * caller frees it. -ENOENT: no such attempt. */
int serve_timeline(
	struct serve *s, const struct page_request *a, char **page, size_t *size, struct err *e);

/* Waits until a query may begin. -EINTR: the browser no longer waits; -EBUSY: waited too long. */
int serve_begin(struct serve *s, const struct loopback_request *r, struct err *e);

/* The limits of every query of this request; 'watching' must outlive the query. */
struct watching {
	struct serve *serve;
	const struct loopback_request *request;
	double looked_s;
};
struct query_spec serve_limits(struct serve *s, const struct page_request *a, struct watching *w);

/* The time range of the attempt's logs; cached until there is more data. */
int serve_extent(struct serve *s, const struct page_subject *of, const struct snapshot *snap,
	int64_t attempt, const struct query_spec *spec, struct query_extent *out, struct err *e);

/* A round number of ns (1, 2 or 5 times a power of ten), such that 'span_ns' has at most 'points'
 * of them; at least a microsecond. */
int64_t serve_slot(int64_t span_ns, uint64_t points);

/* Answers, as JSON: new references, never NULL. */
json_t *serve_state(struct serve *s, const struct page_request *a);
json_t *serve_panel(struct serve *s, const struct page_request *a);
json_t *serve_own_query(struct serve *s, const struct page_request *a);
json_t *serve_events(struct serve *s, const struct page_request *a);
json_t *serve_compared(struct serve *s, const struct page_request *a);

/* The view named in the request: NULL, with its query, which the caller frees; or an error. */
json_t *serve_find_view(
	struct serve *s, const struct page_request *a, char **sql, enum view_chart *chart);

#endif
