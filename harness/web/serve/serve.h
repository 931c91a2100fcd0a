/*
 * culprit serve: a page for one session (page_subject.h), or two to compare. The page requests
 * panels (views.h), events and comparisons; each is a query with a time limit, and ends when the
 * browser no longer waits for it. Few queries run at a time, the others wait.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_SERVE_H
#define CULPRIT_HARNESS_WEB_SERVE_SERVE_H

#include "harness/web/serve/page_subject.h"

struct serve;

/* All members are borrowed until serve_close. */
struct serve_spec {
	struct page_subject *session, *other; /* other: for comparison, or NULL */
	const char *views;                    /* folder; NULL: the user's */
	unsigned short port;                  /* 0: any free port */
	double timeout_s;                     /* limit of a query */
	bool no_index;
};

/* -EADDRINUSE, and errors of page_new and views_read. */
int serve_open(const struct serve_spec *spec, struct serve **out, struct err *e);
/* Ends running queries. NULL is fine. */
void serve_close(struct serve *s);
const char *serve_url(const struct serve *s);

#endif
