/*
 * The report's page: one HTML file that needs neither other files nor the network.
 *
 * The page's own text, style and scripts (results/report/, with the charting library in vendor/)
 * are put in as they are; what comes from a run is data and never markup. It stands in script
 * elements that no browser executes: the index as JSON (ASCII, '<' escaped), and one block an
 * attempt, which is JSON, deflated (zlib) and in base64, unpacked by the browser's
 * DecompressionStream when somebody opens the cell. The page's policy allows the style and the
 * scripts that it was written with, by their SHA-256, and nothing else.
 */
#ifndef CULPRIT_RESULTS_PAGE_H
#define CULPRIT_RESULTS_PAGE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

struct page;

/* The files of a page, in results/report/; lists end with NULL. */
struct page_parts {
	const char *html;
	const char *const *styles, *const *scripts;
};
extern const struct page_parts page_of_run, page_of_fleet;

/* Reads the page's files; -ENOENT when they are not there. */
int page_new(const struct page_parts *parts, struct page **out, struct err *e);
void page_free(struct page *p);

/* In this order: once, any number of times, once. Nothing but 'f' is written. -EIO when that fails,
 * -EINVAL for data that JSON cannot hold. */
int page_begin(struct page *p, const char *title, const json_t *index, FILE *f, struct err *e);
int page_block(int64_t attempt, const json_t *data, FILE *f, struct err *e);
int page_end(struct page *p, FILE *f, struct err *e);

#endif
