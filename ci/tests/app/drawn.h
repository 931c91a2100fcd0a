/* A random trace, always the same for a seed. Op k of a thread waits only for ops below k / 2, so
 * there can be no cycle. */
#ifndef CULPRIT_CI_TESTS_APP_DRAWN_H
#define CULPRIT_CI_TESTS_APP_DRAWN_H

#include <string.h>

#include "diag/app/app.h"

struct drawn {
	uint64_t x, n;
	uint32_t thread, n_threads;
	struct app_op op;
	struct app_edge edges[4];
};

static uint64_t drawn_number(struct drawn *d)
{
	d->x ^= d->x << 13;
	d->x ^= d->x >> 7;
	d->x ^= d->x << 17;
	return d->x;
}

static void drawn_begin(struct drawn *d, uint32_t thread, uint32_t n_threads, uint64_t seed)
{
	memset(d, 0, sizeof(*d));
	d->x = (seed + 1) * 0x9e3779b97f4a7c15 + thread * 1234567891ull;
	d->thread = thread;
	d->n_threads = n_threads;
}

static void drawn_edges(struct drawn *d)
{
	d->op.edges = d->edges;
	if (d->n < 4 || drawn_number(d) % 8)
		return;
	for (uint32_t i = 1; i < d->n_threads && d->op.n_edges < 4; i += 3)
		if (i != d->thread)
			d->edges[d->op.n_edges++] = (struct app_edge){
				i, 1 + drawn_number(d) % (d->n / 2)};
}

static const struct app_op *drawn_next(struct drawn *d)
{
	struct app_op *op = &d->op;

	memset(op, 0, sizeof(*op));
	d->n++;
	op->call = (uint8_t)(1 + drawn_number(d) % (APP_CALLS - 1));
	op->file = drawn_number(d) % 4 ? (uint32_t)(drawn_number(d) % 2) : APP_NO_FILE;
	op->file2 = op->call == APP_RENAME ? 1 : APP_NO_FILE;
	op->handle = (uint32_t)(drawn_number(d) % 3);
	op->flags = op->call == APP_OPEN ? 0x8042 : 0;
	op->mode = op->call == APP_OPEN ? 0644 : 0;
	op->offset = (int64_t)(drawn_number(d) % 5) - 1;
	if (op->offset > 0)
		op->offset = (int64_t)(drawn_number(d) >> (drawn_number(d) % 60 + 1));
	op->size = drawn_number(d) >> (1 + drawn_number(d) % 60);
	op->result = drawn_number(d) % 3 ? (int64_t)op->size : -(int64_t)(drawn_number(d) % 133);
	op->start_ns = drawn_number(d) % 5 ? (int64_t)(d->n * 1000) : -1;
	op->took_ns = drawn_number(d) % 5 ? (int64_t)(drawn_number(d) >> 20) : -1;
	op->compute_ns = drawn_number(d) % 3 ? drawn_number(d) >> 30 : 0;
	op->away_ns = drawn_number(d) % 3 ? 0 : drawn_number(d) >> 30;
	drawn_edges(d);
	return op;
}

static int drawn_tables(struct app_writer *w, uint32_t ranks, uint32_t threads)
{
	struct app_handle h = {.file = 1, .flags = 2};
	char name[32];

	for (uint32_t r = 0; r < ranks; r++) {
		snprintf(name, sizeof(name), "rank%u", r);
		if (app_add_rank(w, 1000 + r, name, "node") < 0)
			return -1;
		for (uint32_t i = 0; i < threads; i++)
			if (app_add_thread(w, r, 1000 + r + i) < 0)
				return -1;
	}
	if (app_add_file(w, "", 4096, 4096, true) ||
		app_add_file(w, "d/file1", -1, 1 << 20, false) != 1)
		return -1;
	if (app_add_handle(w, &h) != 1)
		return -1;
	h.before = true;
	return app_add_handle(w, &h) == 2 ? 0 : -1;
}

static int drawn_trace(
	const char *path, uint32_t ranks, uint32_t threads, uint64_t ops, uint64_t seed)
{
	struct app_about about = {.start_ns = 1700000000000000000,
		.wall_ns = 5000000000,
		.method = APP_BY_MESSAGES,
		.comment = "mpirun \xc3\xa4\n",
		.root = "/mnt",
		.kernel = "6.1"};
	struct app_writer *w;
	int rc;

	if (app_create(path, &w, NULL))
		return -1;
	rc = drawn_tables(w, ranks, threads);
	for (uint32_t i = 0; !rc && i < ranks * threads; i++) {
		struct drawn d;

		drawn_begin(&d, i, ranks * threads, seed);
		for (uint64_t n = 0; !rc && n < ops; n++)
			rc = app_put(w, i, drawn_next(&d), NULL);
	}
	if (!rc)
		return app_finish(w, &about, NULL);
	app_drop(w);
	return rc;
}

#endif
