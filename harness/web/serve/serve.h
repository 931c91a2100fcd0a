/*
 * culprit serve: a page over a session (served.h), or over two to compare. The page asks for panels
 * (views.h), events and comparisons; each is a query with a time limit, and ends when the browser
 * no longer waits for it. Few run at once, the others wait.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_SERVE_H
#define CULPRIT_HARNESS_WEB_SERVE_SERVE_H

#include "harness/web/serve/page_subject.h"

struct serve;

/* Borrowed, and used until serve_close. */
struct serve_spec {
	struct page_subject *session, *other; /* other: to compare with; or NULL */
	const char *views;                    /* folder; NULL: the user's */
	unsigned short port;                  /* 0: any that is free */
	double timeout_s;                     /* of a query */
	bool no_index;
};

/* -EADDRINUSE, and what page_new and views_read say. */
int serve_open(const struct serve_spec *spec, struct serve **out, struct err *e);
/* Ends queries that run. NULL is fine. */
void serve_close(struct serve *s);
const char *serve_url(const struct serve *s);

#endif
