/* Publishes the timeline of a run in progress. */
#include "harness/web/timeline/live.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/web/loopback.h"

enum { DATA_MAX = 3000000 };

struct timeline_live {
	struct loopback *server;
	char *page;
	size_t page_size;
	pthread_mutex_t lock; /* protects the members below */
	char *data;
	size_t data_size;
	uint64_t generation;
};

static void live_give(struct loopback_answer *out, const char *type, const char *text, size_t size)
{
	out->code = MHD_HTTP_OK;
	out->type = type;
	out->text = alloc_zero(size, 1);
	out->size = size;
	memcpy(out->text, text, size);
}

/* The data, unless the page already has it. */
static void give_data(
	struct timeline_live *l, const struct loopback_request *r, struct loopback_answer *out)
{
	const char *have = loopback_argument(r, "have");

	pthread_mutex_lock(&l->lock);
	if (!l->data || (have && strtoull(have, NULL, 10) == l->generation))
		out->code = MHD_HTTP_NO_CONTENT;
	else
		live_give(out, "application/json", l->data, l->data_size);
	pthread_mutex_unlock(&l->lock);
}

static void live_answer(
	void *ctx, const char *path, const struct loopback_request *r, struct loopback_answer *out)
{
	struct timeline_live *l = ctx;

	if (!strcmp(path, "/"))
		live_give(out, "text/html; charset=utf-8", l->page, l->page_size);
	else if (!strcmp(path, "/data"))
		give_data(l, r, out);
}

int timeline_live_open(unsigned short port, struct timeline_live **out, struct err *e)
{
	struct timeline_live *l = alloc_zero(1, sizeof(*l));
	const struct loopback_spec spec = {.port = port,
		.connections_max = TIMELINE_LIVE_CONNECTIONS_MAX,
		.timeout_s = TIMELINE_LIVE_TIMEOUT_S,
		.answer = live_answer,
		.ctx = l};
	FILE *f = alloc_text(&l->page, &l->page_size);
	int rc = timeline_live_page(f, e);

	fclose(f);
	pthread_mutex_init(&l->lock, NULL);
	if (!rc)
		rc = loopback_open(&spec, &l->server, e);
	if (rc)
		timeline_live_close(l);
	else
		*out = l;
	return rc;
}

void timeline_live_close(struct timeline_live *l)
{
	if (!l)
		return;
	loopback_close(l->server);
	pthread_mutex_destroy(&l->lock);
	free(l->page);
	free(l->data);
	free(l);
}

const char *timeline_live_url(const struct timeline_live *l)
{
	return loopback_url(l->server);
}

int timeline_live_publish(struct timeline_live *l, struct timeline *t, struct err *e)
{
	uint64_t generation = l->generation + 1; /* only this thread writes it */
	char *data = NULL, *before;
	size_t size = 0;
	FILE *f = alloc_text(&data, &size);
	int rc = timeline_data(t, f, generation, DATA_MAX, e);

	fclose(f);
	if (rc) {
		free(data);
		return rc;
	}
	pthread_mutex_lock(&l->lock);
	before = l->data;
	l->data = data;
	l->data_size = size;
	l->generation = generation;
	pthread_mutex_unlock(&l->lock);
	free(before);
	return 0;
}
