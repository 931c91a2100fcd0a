#include "results/report/page.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/home.h"

/* Shown as they are read; later files use what earlier ones define. */
#define STYLE "style.css"
#define BASICS "dom.js", "theme.js"
static const char *const run_styles[] = {"vendor/uplot/uPlot.min.css", STYLE, NULL};
static const char *const run_scripts[] = {"vendor/uplot/LICENSE", "vendor/uplot/uPlot.iife.min.js",
	BASICS, "data.js", "head.js", "matrix.js", "chart.js", "cell.js", "cells.js", "overhead.js",
	"doses.js", "run.js", "main.js", NULL};
static const char *const fleet_styles[] = {STYLE, "fleet.css", NULL};
static const char *const fleet_scripts[] = {
	BASICS, "plot.js", "fleet.js", "fleet_curves.js", "fleet_main.js", NULL};

const struct page_parts page_of_run = {"page.html", run_styles, run_scripts};
const struct page_parts page_of_fleet = {"fleet.html", fleet_styles, fleet_scripts};

enum { HASH_SIZE = 64 };

struct page {
	const char *name; /* "page.html" */
	char *text;       /* it, cut at its marks */
	char *style, *script;
};

void page_free(struct page *p)
{
	if (!p)
		return;
	free(p->text);
	free(p->style);
	free(p->script);
	free(p);
}

static int read_part(const char *name, char **text, struct err *e)
{
	char *sub = alloc_format("results/report/%s", name), *path = NULL;
	int rc = home_path(sub, &path, e);

	if (!rc)
		rc = file_read(path, text, NULL, e);
	free(path);
	free(sub);
	return rc;
}

/* The files one after the other; a licence as a comment. */
static int read_parts(const char *const names[], char **out, struct err *e)
{
	int rc = 0;

	*out = alloc_copy("");
	for (; *names && !rc; names++) {
		char *text = NULL, *before = *out;

		rc = read_part(*names, &text, e);
		if (rc)
			break;
		if (strstr(text, "</script") || strstr(text, "</style") || strstr(text, "<!--"))
			rc = err_set(e, -EINVAL,
				"'results/report/%s' cannot stand in a page: it holds a tag that "
				"ends it",
				*names);
		*out = alloc_format(
			strstr(*names, "LICENSE") ? "%s/*\n%s*/\n" : "%s%s\n", before, text);
		free(before);
		free(text);
	}
	return rc;
}

int page_new(const struct page_parts *parts, struct page **out, struct err *e)
{
	struct page *p = alloc_zero(1, sizeof(*p));
	int rc = read_part(parts->html, &p->text, e);

	p->name = parts->html;
	if (!rc)
		rc = read_parts(parts->styles, &p->style, e);
	if (!rc)
		rc = read_parts(parts->scripts, &p->script, e);
	if (rc)
		page_free(p);
	else
		*out = p;
	return rc;
}

/* "sha256-..." of an element's text, as a content security policy names it. */
static void hash_text(const char *text, char out[HASH_SIZE])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	int n;

	EVP_Digest(text, strlen(text), digest, &len, EVP_sha256(), NULL);
	n = snprintf(out, HASH_SIZE, "sha256-");
	EVP_EncodeBlock((unsigned char *)out + n, digest, (int)len);
}

static void put_escaped(const char *text, FILE *f)
{
	for (; *text; text++)
		strchr("<>&\"'", *text) ? fprintf(f, "&#%d;", *text) : fputc(*text, f);
}

/* JSON that may stand in a script element. */
static int put_json(const json_t *v, FILE *f, struct err *e)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));

	if (!text)
		return err_set(e, -EINVAL, "cannot write what the report holds as JSON");
	for (const char *c = text; *c; c++)
		*c == '<' ? fputs("\\u003c", f) : fputc(*c, f);
	free(text);
	return 0;
}

static int written(FILE *f, struct err *e)
{
	return ferror(f) ? err_errno(e, -EIO, "cannot write the report") : 0;
}

/* Writes the page up to 'mark', then 'content'; '*text' moves behind the mark. */
static int put_until(const struct page *p, const char **text, const char *mark, const char *content,
	FILE *f, struct err *e)
{
	const char *at = strstr(*text, mark);

	if (!at)
		return err_set(
			e, -EINVAL, "'results/report/%s' is without its mark '%s'", p->name, mark);
	fwrite(*text, 1, (size_t)(at - *text), f);
	fputs(content, f);
	*text = at + strlen(mark);
	return 0;
}

int page_begin(struct page *p, const char *title, const json_t *index, FILE *f, struct err *e)
{
	char style[HASH_SIZE], script[HASH_SIZE], policy[4 * HASH_SIZE];
	const char *text = p->text;
	int rc;

	hash_text(p->style, style);
	hash_text(p->script, script);
	snprintf(policy, sizeof(policy),
		"default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; "
		"form-action 'none'",
		style, script);
	rc = put_until(p, &text, "{{policy}}", policy, f, e);
	if (!rc)
		rc = put_until(p, &text, "{{title}}", "", f, e);
	if (!rc) {
		put_escaped(title, f);
		rc = put_until(p, &text, "{{style}}", p->style, f, e);
	}
	if (!rc)
		rc = put_until(p, &text, "{{index}}", "", f, e);
	if (!rc)
		rc = put_json(index, f, e);
	if (!rc)
		rc = put_until(p, &text, "{{blocks}}", "", f, e);
	return rc ? rc : written(f, e);
}

int page_block(int64_t attempt, const json_t *data, FILE *f, struct err *e)
{
	/* Six digits are more than a measurement here has; they halve what is stored. */
	char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(6));
	uLong size = text ? strlen(text) : 0, packed_size = compressBound(size);
	unsigned char *packed = alloc_zero(packed_size, 1), *coded;

	if (!text || compress(packed, &packed_size, (const unsigned char *)text, size) != Z_OK) {
		free(packed);
		free(text);
		return err_set(e, -EINVAL, "cannot write attempt %lld as JSON", (long long)attempt);
	}
	coded = alloc_zero(packed_size / 3 * 4 + 8, 1);
	EVP_EncodeBlock(coded, packed, (int)packed_size);
	fprintf(f, "<script type=\"application/octet-stream\" id=\"attempt-%lld\">%s</script>\n",
		(long long)attempt, coded);
	free(coded);
	free(packed);
	free(text);
	return written(f, e);
}

int page_end(struct page *p, FILE *f, struct err *e)
{
	const char *text = strstr(p->text, "{{blocks}}") + strlen("{{blocks}}");
	int rc = put_until(p, &text, "{{script}}", p->script, f, e);

	if (rc)
		return rc;
	fputs(text, f);
	return fflush(f) ? err_errno(e, -EIO, "cannot write the report") : written(f, e);
}
