/* Builds one HTML file from parts and data. */
#include "harness/web/page.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/sha256.h"

/* In harness/web/, in loading order; later files use definitions of earlier ones. */
#define KIT(file) "kit/" file
#define REPORT(file) "report/" file
#define TIMELINE(file) "timeline/" file
#define SERVE(file) "serve/" file
#define STYLE KIT("style.css")
#define BASICS KIT("dom.js"), KIT("theme.js")
static const char *const run_styles[] = {
	KIT("vendor/uplot/uPlot.min.css"), STYLE, KIT("plot.css"), NULL};
static const char *const run_scripts[] = {KIT("vendor/uplot/LICENSE"),
	KIT("vendor/uplot/uPlot.iife.min.js"), BASICS, KIT("plot.js"), KIT("decode.js"),
	REPORT("samples.js"), REPORT("data.js"), REPORT("sort.js"), REPORT("save.js"),
	REPORT("head.js"), REPORT("matrix.js"), REPORT("chart.js"), REPORT("cell_plots.js"),
	REPORT("run_charts.js"), REPORT("compared.js"), REPORT("cell.js"), REPORT("cells.js"),
	REPORT("overhead.js"), REPORT("doses.js"), REPORT("run.js"), REPORT("main.js"), NULL};
static const char *const fleet_styles[] = {STYLE, KIT("plot.css"), REPORT("fleet.css"), NULL};
static const char *const fleet_scripts[] = {BASICS, KIT("plot.js"), REPORT("fleet.js"),
	REPORT("fleet_curves.js"), REPORT("fleet_main.js"), NULL};
static const char *const timeline_styles[] = {TIMELINE("timeline.css"), NULL};
static const char *const timeline_scripts[] = {BASICS, KIT("decode.js"), TIMELINE("unpack.js"),
	TIMELINE("model.js"), TIMELINE("counters.js"), TIMELINE("rows.js"), TIMELINE("view.js"),
	TIMELINE("words.js"), TIMELINE("draw_slices.js"), TIMELINE("draw.js"), TIMELINE("links.js"),
	TIMELINE("labels.js"), TIMELINE("details.js"), TIMELINE("legend.js"), TIMELINE("search.js"),
	TIMELINE("slowest.js"), TIMELINE("panes.js"), TIMELINE("input.js"), TIMELINE("link.js"),
	TIMELINE("live.js"), TIMELINE("main.js"), NULL};
static const char *const serve_styles[] = {SERVE("serve.css"), NULL};
static const char *const serve_scripts[] = {BASICS, SERVE("ask.js"), SERVE("scale.js"),
	SERVE("chart.js"), SERVE("draw.js"), SERVE("input.js"), SERVE("table.js"),
	SERVE("filters.js"), SERVE("panels.js"), SERVE("events.js"), SERVE("compare.js"),
	SERVE("own.js"), SERVE("main.js"), NULL};

const struct page_parts page_of_run = {REPORT("page.html"), run_styles, run_scripts};
const struct page_parts page_of_fleet = {REPORT("fleet.html"), fleet_styles, fleet_scripts};
const struct page_parts page_of_timeline = {
	TIMELINE("timeline.html"), timeline_styles, timeline_scripts};
const struct page_parts page_of_live_timeline = {
	TIMELINE("timeline.html"), timeline_styles, timeline_scripts, true};
const struct page_parts page_of_serve = {SERVE("serve.html"), serve_styles, serve_scripts, true};

enum { HASH_SIZE = 64 };

struct packed_part {
	const void *data;
	size_t size;
};

struct page {
	const char *name; /* "report/page.html" */
	char *text;       /* its text, cut at its marks */
	char *style, *script;
	bool connects;
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
	char *sub = alloc_format("harness/web/%s", name), *path = NULL;
	int rc = home_path(sub, &path, e);

	if (!rc)
		rc = file_read(path, text, NULL, e);
	free(path);
	free(sub);
	return rc;
}

/* Concatenates the files; a licence becomes a comment. */
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
				"'harness/web/%s' cannot be part of a page: it contains a tag that "
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
	p->connects = parts->connects;
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

/* "sha256-..." of an element's text, in the form of a content security policy. */
static void hash_text(const char *text, char out[HASH_SIZE])
{
	uint8_t digest[SHA256_BYTES];
	int n;

	sha256(text, strlen(text), digest);
	n = snprintf(out, HASH_SIZE, "sha256-");
	EVP_EncodeBlock((unsigned char *)out + n, digest, sizeof(digest));
}

static void put_escaped(const char *text, FILE *f)
{
	for (; *text; text++)
		strchr("<>&\"'", *text) ? fprintf(f, "&#%d;", *text) : fputc(*text, f);
}

#define INDEX_FORM (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9))

/* JSON that is safe inside a script element. */
static int put_json(const json_t *v, FILE *f, struct err *e)
{
	char *text = json_dumps(v, INDEX_FORM);

	if (!text)
		return err_set(e, -EINVAL, "cannot write the report's data as JSON");
	for (const char *c = text; *c; c++)
		*c == '<' ? fputs("\\u003c", f) : fputc(*c, f);
	free(text);
	return 0;
}

static int written(FILE *f, struct err *e)
{
	return ferror(f) ? err_errno(e, -EIO, "cannot write the report") : 0;
}

/* Writes the page up to 'mark', then 'content'; advances '*text' past the mark. */
static int put_until(const struct page *p, const char **text, const char *mark, const char *content,
	FILE *f, struct err *e)
{
	const char *at = strstr(*text, mark);

	if (!at)
		return err_set(e, -EINVAL, "'harness/web/%s' lacks the mark '%s'", p->name, mark);
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
		"default-src 'none'; style-src '%s'; script-src '%s'; %sbase-uri 'none'; "
		"form-action 'none'",
		style, script, p->connects ? "connect-src 'self'; " : "");
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

size_t page_size(const struct page *p)
{
	return strlen(p->text) + strlen(p->style) + strlen(p->script) + 4 * (size_t)HASH_SIZE;
}

size_t page_json_size(const json_t *index)
{
	return json_dumpb(index, NULL, 0, INDEX_FORM);
}

void page_base64(const void *data, size_t size, FILE *f)
{
	enum { SOME = 3 << 14 }; /* a multiple of 3: the pieces' base64 joins without padding */
	unsigned char coded[SOME / 3 * 4 + 1];

	for (size_t at = 0; at < size; at += SOME) {
		size_t some = size - at < SOME ? size - at : SOME;

		EVP_EncodeBlock(coded, (const unsigned char *)data + at, (int)some);
		fputs((const char *)coded, f);
	}
}

int page_packed(const char *id, const void *data, size_t size, FILE *f, struct err *e)
{
	fprintf(f, "<script type=\"application/octet-stream\" id=\"%s\">", id);
	page_base64(data, size, f);
	fputs("</script>\n", f);
	return written(f, e);
}

/* Deflates the parts one after the other, each with separate codes, because their contents
 * differ. '*out' must have room. */
static int deflate_parts(
	const struct packed_part *parts, size_t n, unsigned char *out, size_t *size)
{
	z_stream z = {0};
	int rc = deflateInit(&z, Z_BEST_COMPRESSION);

	if (rc != Z_OK)
		return -EINVAL;
	z.next_out = out;
	z.avail_out = (uInt)*size;
	for (size_t i = 0; i < n && rc == Z_OK; i++) {
		z.next_in = (Bytef *)parts[i].data;
		z.avail_in = (uInt)parts[i].size;
		rc = deflate(&z, i + 1 < n ? Z_BLOCK : Z_FINISH);
	}
	*size = z.total_out;
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : -EINVAL;
}

int page_block(int64_t attempt, const json_t *data, const void *more, size_t more_size, FILE *f,
	struct err *e)
{
	/* Five digits exceed the precision of all measurements here and halve the size. */
	char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(5));
	const size_t length = text ? strlen(text) : 0;
	size_t size = compressBound(length + more_size + 4) + 64;
	unsigned char head[4], *packed = alloc_zero(size, 1);
	char id[32];
	int rc;

	for (int i = 0; i < 4; i++)
		head[i] = (unsigned char)(length >> 8 * i);
	rc = !text ? -EINVAL
		   : deflate_parts((const struct packed_part[]){{head, 4}, {text, length},
					   {more, more_size}},
			     3, packed, &size);
	snprintf(id, sizeof(id), "attempt-%lld", (long long)attempt);
	rc = rc ? err_set(e, rc, "cannot write attempt %lld as JSON", (long long)attempt)
		: page_packed(id, packed, size, f, e);
	free(packed);
	free(text);
	return rc;
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
