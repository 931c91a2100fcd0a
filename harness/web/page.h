/*
 * The report's page: one HTML file that needs neither other files nor the network.
 *
 * The page's own text, style and scripts (harness/web, with the charting library in kit/vendor/)
 * are put in as they are; what comes from a run is data and never markup. It stands in script
 * elements that no browser executes: the index as JSON (ASCII, '<' escaped), and one block an
 * attempt: the length of its JSON (4 bytes, little endian), the JSON, and its samples
 * (harness/cli/report.h), deflated (zlib) and in base64, unpacked by the browser's
 * DecompressionStream when somebody sees the open cell. The page's policy allows the style and the
 * scripts that it was written with, by their SHA-256, and nothing else.
 */
#ifndef CULPRIT_HARNESS_WEB_PAGE_H
#define CULPRIT_HARNESS_WEB_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

struct page;

/* The files of a page, in harness/web/; lists end with NULL. */
struct page_parts {
	const char *html;
	const char *const *styles, *const *scripts;
	bool connects; /* its scripts may ask the server that the page came from */
};
extern const struct page_parts page_of_run, page_of_fleet, page_of_timeline, page_of_live_timeline,
	page_of_serve;

/* Reads the page's files; -ENOENT when they are not there. */
int page_new(const struct page_parts *parts, struct page **out, struct err *e);
void page_free(struct page *p);

/* In this order: once, any number of times, once. Nothing but 'f' is written. -EIO when that fails,
 * -EINVAL for data that JSON cannot hold. */
int page_begin(struct page *p, const char *title, const json_t *index, FILE *f, struct err *e);
/* An attempt: JSON, and bytes that it describes. */
int page_block(
	int64_t attempt, const json_t *data, const void *more, size_t size, FILE *f, struct err *e);
void page_base64(const void *data, size_t size, FILE *f);
/* Any deflated bytes, as the text (base64) of an element with this id. */
int page_packed(const char *id, const void *data, size_t size, FILE *f, struct err *e);
int page_end(struct page *p, FILE *f, struct err *e);

/* Bytes of the page without what comes from a run, and of an index on it (if it holds no '<'). */
size_t page_size(const struct page *p);
size_t page_json_size(const json_t *index);

#endif
