/*
 * A timeline while its run goes on: a page on a loopback address behind a token, which asks once a
 * second for what was published last.
 *
 * What is published is a whole timeline, not what has been added: the caller keeps what it wants to
 * be seen (the last minute, say), fills a new builder from it, publishes and frees it. So that
 * window bounds the page's memory and the encoder's time, and an attempt that is discarded leaves
 * nothing behind. The page keeps its folds, filters, selection and place, and follows the end of
 * the time unless it was moved away from it.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_LIVE_H
#define CULPRIT_HARNESS_WEB_TIMELINE_LIVE_H

#include "harness/web/timeline/timeline.h"

enum { TIMELINE_LIVE_CONNECTIONS_MAX = 8, TIMELINE_LIVE_TIMEOUT_S = 10 };

struct timeline_live;

/* Listens on 127.0.0.1; port 0: any that is free. -EADDRINUSE and what page_new says. */
int timeline_live_open(unsigned short port, struct timeline_live **out, struct err *e);
/* NULL is fine. */
void timeline_live_close(struct timeline_live *l);

/* "http://127.0.0.1:PORT/?token=..." : whoever knows it can look. Valid until close. */
const char *timeline_live_url(const struct timeline_live *l);

/* What the page shows from now on, 3 MB at most; 't' stays the caller's. Encodes in the calling
 * thread. As timeline_html. */
int timeline_live_publish(struct timeline_live *l, struct timeline *t, struct err *e);

/* The parts: the page without data, and the data as one JSON object. */
int timeline_live_page(FILE *f, struct err *e);
int timeline_data(
	struct timeline *t, FILE *f, uint64_t generation, uint64_t bytes_max, struct err *e);

#endif
