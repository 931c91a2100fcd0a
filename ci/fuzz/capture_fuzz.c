/* The result of a replay, as JSON from anywhere, drawn beside a small capture: it is refused with a
 * sentence, or drawn. It is given the trace's id, so that what is behind that check is tested. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/timeline/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/capture_fuzz.XXXXXX", result[64];
static struct app_trace *trace;

static void remove_dir(void)
{
	app_free(trace);
	file_remove_tree(dir, NULL);
}

static void put(struct app_writer *w, uint32_t thread, struct app_op op)
{
	op.file2 = APP_NO_FILE;
	op.result = op.size ? (int64_t)op.size : 0;
	if (app_put(w, thread, &op, NULL))
		abort();
}

static void prepare(void)
{
	const struct app_about about = {.comment = "two", .root = "/", .kernel = ""};
	struct app_edge edge = {0, 1};
	struct app_writer *w;
	char path[64];

	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/trace", dir);
	snprintf(result, sizeof(result), "%s/result", dir);
	if (app_create(path, &w, NULL))
		abort();
	for (uint32_t r = 0; r < 2; r++)
		if (app_add_rank(w, r, "x", "y") < 0 || app_add_thread(w, r, r) < 0)
			abort();
	app_add_file(w, "a", 0, 100, false);
	put(w, 0, (struct app_op){.call = APP_STAT, .offset = -1, .start_ns = 5, .took_ns = 3});
	put(w, 1,
		(struct app_op){.call = APP_TRUNCATE,
			.offset = -1,
			.size = 9,
			.start_ns = 9000,
			.took_ns = 1000,
			.compute_ns = 20,
			.n_edges = 1,
			.edges = &edge});
	if (app_finish(w, &about, NULL) || app_open(path, &trace, NULL))
		abort();
	atexit(remove_dir);
}

static void draw(json_t *v)
{
	const struct capture_options all = {0};
	struct timeline *t;
	struct err e = {""};

	if (timeline_new(&t, &e))
		abort();
	if (capture_timeline(trace, &v, 1, &all, t, &e) && !*e.text)
		abort();
	timeline_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *v = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL), *read;
	struct err e = {""};
	char *text;

	if (!trace)
		prepare();
	if (!json_is_object(v)) {
		json_decref(v);
		return 0;
	}
	json_object_set_new(v, "trace_id", json_string(app_id(trace)));
	text = json_dumps(v, 0);
	if (file_write_atomic(result, 0600, text, strlen(text), NULL))
		abort();
	free(text);
	json_decref(v);
	if (!capture_replay(result, trace, &read, &e)) {
		draw(read);
		json_decref(read);
	} else if (!*e.text) {
		abort();
	}
	return 0;
}
