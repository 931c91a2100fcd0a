/*
 * The timeline of a run in progress: a page on a loopback address, protected by a token, that
 * polls the latest publication once a second.
 *
 * A publication is a complete timeline, not an increment: the caller keeps the window to show
 * (the last minute, for example), fills a new builder from it, publishes and frees it. The window
 * thus bounds the page's memory and the encoder's time, and a discarded attempt leaves nothing
 * behind. The page keeps its folds, filters, selection and position, and follows the end of the
 * time unless the user moved away from it.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_LIVE_H
#define CULPRIT_HARNESS_WEB_TIMELINE_LIVE_H

#include "harness/web/timeline/timeline.h"

enum { TIMELINE_LIVE_CONNECTIONS_MAX = 8, TIMELINE_LIVE_TIMEOUT_S = 10 };

struct timeline_live;

/* Listens on 127.0.0.1; port 0: any free port. -EADDRINUSE, and errors of page_new. */
int timeline_live_open(unsigned short port, struct timeline_live **out, struct err *e);
/* NULL is fine. */
void timeline_live_close(struct timeline_live *l);

/* "http://127.0.0.1:PORT/?token=...": anybody who knows it has access. Valid until close. */
const char *timeline_live_url(const struct timeline_live *l);

/* Sets the page's content, at most 3 MB; the caller keeps ownership of 't'. Encodes in the
 * calling thread. Errors like timeline_html. */
int timeline_live_publish(struct timeline_live *l, struct timeline *t, struct err *e);

/* The parts: the page without data, and the data as one JSON object. */
int timeline_live_page(FILE *f, struct err *e);
int timeline_data(
	struct timeline *t, FILE *f, uint64_t generation, uint64_t bytes_max, struct err *e);

#endif
