/*
 * The report's page: one HTML file that needs neither other files nor the network.
 *
 * The page's text, style and scripts (harness/web, with the charting library in kit/vendor/) are
 * included unchanged; data from a run is never markup. The data is in script elements that
 * browsers do not execute: the index as JSON (ASCII, '<' escaped), and one block per attempt. A
 * block has the length of its JSON (4 bytes, little endian), the JSON, and the samples
 * (harness/cli/report.h), deflated (zlib) and in base64. The browser's DecompressionStream
 * unpacks it when the open cell becomes visible. The page's policy allows only its original style
 * and scripts, by their SHA-256.
 */
#ifndef CULPRIT_HARNESS_WEB_PAGE_H
#define CULPRIT_HARNESS_WEB_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

struct page;

/* The files of a page, in harness/web/; lists are NULL-terminated. */
struct page_parts {
	const char *html;
	const char *const *styles, *const *scripts;
	bool connects; /* its scripts may send requests to the page's server */
};
extern const struct page_parts page_of_run, page_of_fleet, page_of_timeline, page_of_live_timeline,
	page_of_serve;

/* Reads the page's files; -ENOENT if they do not exist. */
int page_new(const struct page_parts *parts, struct page **out, struct err *e);
void page_free(struct page *p);

/* Call in this order: once, any number of times, once. Writes only to 'f'. -EIO for a write
 * error, -EINVAL for data that JSON cannot represent. */
int page_begin(struct page *p, const char *title, const json_t *index, FILE *f, struct err *e);
/* Writes an attempt: JSON, and the bytes that it describes. */
int page_block(
	int64_t attempt, const json_t *data, const void *more, size_t size, FILE *f, struct err *e);
void page_base64(const void *data, size_t size, FILE *f);
/* Writes deflated bytes as the text (base64) of an element with this id. */
int page_packed(const char *id, const void *data, size_t size, FILE *f, struct err *e);
int page_end(struct page *p, FILE *f, struct err *e);

/* Bytes of the page without data from a run, plus an index (if it has no '<'). */
size_t page_size(const struct page *p);
size_t page_json_size(const json_t *index);

#endif
