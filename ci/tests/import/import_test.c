/* Tests files of series: plain and compressed, complete and damaged, small and large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "ci/tests/scratch.h"
#include "diag/import/import.h"
#include "harness/base/alloc.h"

struct sums {
	uint32_t series;
	double times, values;
	uint64_t n;
};

static int on_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	(void)key;
	(void)e;
	*id = ((struct sums *)ctx)->series++;
	return 0;
}

static int on_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct sums *s = ctx;

	(void)e;
	assert_true(id < s->series);
	s->times += time_s;
	s->values += isnan(value) ? 0 : value;
	s->n++;
	return 0;
}

static int take(const char *path, const struct import_options *o, struct sums *sums, struct err *e)
{
	struct import_sink sink = {.ctx = sums, .series = on_series, .sample = on_sample};
	struct import_said said = {0};
	int rc;

	*sums = (struct sums){0};
	rc = import_file(path, o, &sink, &said, e);
	import_said_clear(&said);
	return rc;
}

static const char *put(const char *name, const void *data, size_t size)
{
	static char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
	return path;
}

/* A table longer than all buffers: 10 members, 40,000 times, each value 0.5. */
static char *table(size_t *size)
{
	char *text;
	FILE *f = alloc_text(&text, size);

	fprintf(f, "time,a,b,c,d,e,f,g,h,i,j\n");
	for (int t = 0; t < 40000; t++)
		fprintf(f, "%d,0.5,0.5,.5,5e-1,0.50,0.5,0.5,0.5,0.5,\n", t);
	fclose(f);
	return text;
}

static void is_table(const char *path)
{
	struct sums s;
	struct err e;

	if (take(path, NULL, &s, &e))
		fail_msg("%s", e.text);
	assert_int_equal(s.n, 400000);
	assert_true(s.values == 180000);
	assert_true(s.times == 10 * (39999.0 * 20000));
}

static void *gzipped(const void *data, size_t size, size_t *packed)
{
	z_stream z = {0};
	void *out = alloc_zero(size + 1000, 1);

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (void *)data;
	z.avail_in = (uInt)size;
	z.next_out = out;
	z.avail_out = (uInt)size + 1000;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*packed = z.total_out;
	deflateEnd(&z);
	return out;
}

static void *zstded(const void *data, size_t size, size_t *packed)
{
	void *out = alloc_zero(ZSTD_compressBound(size), 1);

	*packed = ZSTD_compress(out, ZSTD_compressBound(size), data, size, 3);
	assert_false(ZSTD_isError(*packed));
	return out;
}

static void refused(const char *path, const char *want)
{
	struct sums s;
	struct err e;
	int rc = take(path, NULL, &s, &e);

	if (!rc || !strstr(e.text, want))
		fail_msg("%d '%s', not '%s'", rc, rc ? e.text : "", want);
	assert_int_equal(err_exit_code(&e), 2);
}

/* If it is truncated at any byte, or any byte is changed, it is refused, or (for a byte that does
 * not matter) read completely. */
static void damage(const char *name, const char *packed, size_t size, const char *said)
{
	char *copy = alloc_zero(size + 4, 1);
	struct sums s;
	struct err e;

	for (size_t i = 5; i < size; i += size / 40) {
		refused(put(name, packed, i), "it ends in the middle of its compressed data");
		memcpy(copy, packed, size);
		copy[i] = (char)(copy[i] ^ 0x55);
		if (take(put(name, copy, size), NULL, &s, &e))
			assert_int_equal(err_exit_code(&e), 2);
		else
			assert_int_equal(s.n, 400000);
	}
	memcpy(copy, packed, size);
	memcpy(copy + size, "junk", 4);
	refused(put(name, copy, size + 4), said);
	free(copy);
}

static void compressed_files(void **state)
{
	size_t size, n, half;
	char *text = table(&size), *packed, *second;

	(void)state;
	is_table(put("plain.csv", text, size));
	packed = gzipped(text, size, &n);
	is_table(put("t.csv.gz", packed, n));
	damage("cut.gz", packed, n, "the gzip data is damaged");
	free(packed);
	packed = zstded(text, size, &n);
	is_table(put("t.csv.zst", packed, n));
	damage("cut.zst", packed, n, "the zstd data is damaged");
	free(packed);
	/* Parts that follow one another, as from 'cat a.gz b.gz'. */
	packed = gzipped(text, size / 2, &n);
	second = gzipped(text + size / 2, size - size / 2, &half);
	packed = alloc_resize(packed, n + half, 1);
	memcpy(packed + n, second, half);
	is_table(put("two.gz", packed, n + half));
	free(second);
	free(packed);
	packed = zstded(text, size / 2, &n);
	second = zstded(text + size / 2, size - size / 2, &half);
	packed = alloc_resize(packed, n + half, 1);
	memcpy(packed + n, second, half);
	is_table(put("two.zst", packed, n + half));
	free(second);
	free(packed);
	free(text);
}

static void standard_input(void **state)
{
	size_t size, n;
	char *text = table(&size), *packed = gzipped(text, size, &n);
	int fd = open(put("in.gz", packed, n), O_RDONLY), old = dup(STDIN_FILENO);
	struct sums s;
	struct err e;

	(void)state;
	dup2(fd, STDIN_FILENO);
	is_table("-");
	close(fd);
	fd = open(put("bad.csv", "time,a\nx,1\n", 11), O_RDONLY);
	dup2(fd, STDIN_FILENO);
	assert_int_not_equal(take("-", NULL, &s, &e), 0);
	assert_int_equal(strncmp(e.text, "standard input:2: time 'x'", 26), 0);
	dup2(old, STDIN_FILENO);
	close(old);
	close(fd);
	free(packed);
	free(text);
}

static void other_files_are_refused(void **state)
{
	const struct import_options unknown = {.format = "cvs"}, csv = {.format = "csv"};
	struct sums s;
	struct err e;
	char path[200];

	(void)state;
	refused(put("empty", "", 0), "empty:1: it is empty");
	refused(put("text", "no table\n", 9), "text:1: this looks like none of ");
	refused(put("excel.txt", "\xff\xfet\0i\0", 6), "excel.txt:1: this is UTF-16");
	refused(put("bom.json", "\xef\xbb\xbf{\"panels\": 1}", 16),
		"bom.json:1: this is a dashboard of Grafana");
	refused("/nonexistent/x.csv", "cannot open '/nonexistent/x.csv': No such file");
	assert_int_not_equal(take(dir, NULL, &s, &e), 0);
	assert_non_null(strstr(e.text, "it is a folder, not a file"));
	snprintf(path, sizeof(path), "%s", put("ok.csv", "time,a\n0,1\n", 11));
	assert_int_not_equal(take(path, &unknown, &s, &e), 0);
	assert_int_equal(strncmp(e.text, "there is no format 'cvs'; there are ", 36), 0);
	assert_int_equal(take(path, &csv, &s, &e), 0);
	assert_int_equal(s.n, 1);
	put("empty.gz", "", 0);
}

static void other_formats_are_named(void **state)
{
	static const struct {
		const char *text, *said;
	} files[] = {
		{"PAR1xyz", "this is Parquet"},
		{"<!DOCTYPE html>\n<p>a,b\n", "this is a web page"},
		{"groups:\n- name: a, b\n  rules:\n", "this is rules of Prometheus"},
		{"global:\n  scrape_interval: 5s\n", "this is a configuration of Prometheus"},
		{"{\"title\":\"x\",\"panels\":[]}", "this is a dashboard of Grafana"},
		{"{\"results\":{\"A\":{\"frames\":[]}}}", "this is an answer of Grafana's own API"},
		{"[{\"labels\":{},\"generatorURL\":\"http://p\"}]", "this is a list of alerts"},
		{"{\"status\":\"success\",\"data\":{\"alerts\":[]}}", "this is a list of alerts"},
		{"+------+---+\n| time | a |\n+------+---+\n| 1 | 2 |\n", "as mysql draws it"},
		{"| time | a |\n|------|---|\n| 1 | 2 |\n", "as Markdown has them"},
		{"\u250ctime\u252ca\u2510\n\u2502 1 \u2502 2 \u2502\n", "FORMAT CSVWithNames"},
		{"time        a\n----------  ---\n1           2\n", "as sqlite3 draws it"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		refused(put("named", files[i].text, strlen(files[i].text)), files[i].said);
}

/* A saved answer is recognised by its first bytes, compressed or not. */
static void saved_answers(void **state)
{
	static const char
		text[] = "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
			 "{\"metric\":{\"d\":\"a\"},\"values\":[[7,\"1\"],[8,\"2\"]]},"
			 "{\"metric\":{\"d\":\"b\"},\"values\":[[7,\"3\"],[8,\"4\"]]}]}}";
	void *packed[3];
	size_t size[3] = {sizeof(text) - 1};
	struct sums s;
	struct err e;

	(void)state;
	packed[0] = alloc_copy(text);
	packed[1] = gzipped(text, sizeof(text) - 1, &size[1]);
	packed[2] = zstded(text, sizeof(text) - 1, &size[2]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(take(put("saved", packed[i], size[i]), NULL, &s, &e), 0);
		assert_int_equal(s.n, 4);
		assert_true(s.values == 10 && s.times == 30);
		refused(put("saved", packed[i], size[i] - 1), "in the middle of");
		free(packed[i]);
	}
}

/* The number of series is unlimited: 200,000 of them, in groups, long and wide. */
static void many_series(void **state)
{
	enum { SERIES = 200000 };
	struct sums s;
	struct err e;
	char *text;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	(void)state;
	fprintf(f, "time,host,disk,metric,value\n");
	for (int t = 0; t < 3; t++)
		for (int i = 0; i < SERIES; i++)
			/* The last time has another order. */
			fprintf(f, "%d,h%d,d%d,m,1\n", t, (t < 2 ? i : i * 7919 % SERIES) / 20,
				(t < 2 ? i : i * 7919 % SERIES) % 20);
	fclose(f);
	assert_int_equal(take(put("long.csv", text, size), NULL, &s, &e), 0);
	assert_int_equal(s.series, SERIES);
	assert_int_equal(s.n, 3 * SERIES);
	free(text);
	f = alloc_text(&text, &size);
	fprintf(f, "time");
	for (int i = 0; i < SERIES; i++)
		fprintf(f, ",h%d/d%d", i / 20, i % 20);
	for (int t = 0; t < 3; t++) {
		fprintf(f, "\n%d", t);
		for (int i = 0; i < SERIES; i++)
			fprintf(f, ",%d", i % 10);
	}
	fclose(f);
	assert_int_equal(take(put("wide.csv", text, size), NULL, &s, &e), 0);
	assert_int_equal(s.series, SERIES);
	assert_int_equal(s.n, 3 * SERIES);
	assert_true(s.values == 3 * 4.5 * SERIES);
	free(text);
}

/* A quote that is never closed turns the rest of the file into one line. */
static void endless_lines(void **state)
{
	size_t size = 65u << 20;
	char *text = alloc_zero(size, 1);
	const char *path;

	(void)state;
	memset(text, 'x', size);
	memcpy(text, "time,a\n0,1\n0,\"", 14);
	path = put("endless.csv", text, size);
	refused(path, "endless.csv:3: the line is longer than 64 MiB; is a quote not closed?");
	unlink(path);
	memset(text, ',', 3 << 20);
	memcpy(text, "time", 4);
	path = put("head.csv", text, 3 << 20);
	refused(path, "head.csv:1: the row has more than two million fields");
	unlink(path);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_files),
		cmocka_unit_test(standard_input),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(other_formats_are_named),
		cmocka_unit_test(saved_answers),
		cmocka_unit_test(many_series),
		cmocka_unit_test(endless_lines),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
