/*
 * Makes an application trace by hand, for tests and for the measurement of scale: what pseudo or
 * fitness (workloads/mpi) would leave, with the same time everywhere. No result is shown of it.
 *
 *	replay_trace pseudo|sync|fitness RANKS BLOCKS BLOCK_BYTES COMPUTE_US FILE
 *	replay_trace cycle 2 1 1 0 FILE         a trace that is refused
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/app.h"

struct shape {
	const char *kind;
	uint32_t ranks;
	uint64_t blocks, bytes, compute_ns;
	struct app_writer *w;
	uint64_t *done; /* ops by rank */
	struct err e;
};

static void put(struct shape *s, uint32_t rank, struct app_op op)
{
	op.file2 = APP_NO_FILE;
	op.start_ns = op.took_ns = -1;
	if (op.call != APP_OPEN)
		op.file = APP_NO_FILE;
	if (op.call == APP_OPEN || op.call == APP_CLOSE)
		op.offset = -1;
	if (app_put(s->w, rank, &op, &s->e)) {
		fprintf(stderr, "replay_trace: %s\n", s->e.text);
		exit(1);
	}
	s->done[rank]++;
}

static void pseudo_rank(struct shape *s, uint32_t r, bool sync)
{
	struct app_edge *edges = calloc(s->ranks, sizeof(*edges));
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ranks; i++)
		if (i != r)
			edges[n++] = (struct app_edge){i, 0};
	put(s, r,
		(struct app_op){.call = APP_OPEN,
			.handle = 1 + 2 * r,
			.flags = O_WRONLY | O_CREAT,
			.mode = 0644});
	for (uint64_t b = 0; b < s->blocks; b++) {
		bool waits = sync && b;

		for (uint32_t i = 0; i < n; i++)
			edges[i].ops = 1 + b;
		put(s, r,
			(struct app_op){.call = APP_PWRITE,
				.handle = 1 + 2 * r,
				.offset = (int64_t)((b * s->ranks + r) * s->bytes),
				.size = s->bytes,
				.result = (int64_t)s->bytes,
				.n_edges = waits ? n : 0,
				.edges = edges});
	}
	put(s, r, (struct app_op){.call = APP_CLOSE, .handle = 1 + 2 * r});
	for (uint32_t i = 0; i < n; i++)
		edges[i].ops = s->blocks + 2;
	put(s, r,
		(struct app_op){
			.call = APP_OPEN, .handle = 2 + 2 * r, .n_edges = n, .edges = edges});
	for (uint64_t b = 0; b < s->blocks; b++)
		put(s, r,
			(struct app_op){.call = APP_PREAD,
				.handle = 2 + 2 * r,
				.offset = (int64_t)((b * s->ranks + (r + 1) % s->ranks) * s->bytes),
				.size = s->bytes,
				.result = (int64_t)s->bytes,
				.compute_ns = b ? s->compute_ns : 0});
	put(s, r, (struct app_op){.call = APP_CLOSE, .handle = 2 + 2 * r});
	free(edges);
}

static void fitness_rank(struct shape *s, uint32_t r)
{
	struct app_edge edge = {r - 1, s->blocks + 2};

	put(s, r,
		(struct app_op){
			.call = APP_OPEN, .handle = 1 + r, .n_edges = r > 0, .edges = &edge});
	for (uint64_t b = 0; b < s->blocks; b++)
		put(s, r,
			(struct app_op){.call = APP_PREAD,
				.handle = 1 + r,
				.offset = (int64_t)((r * s->blocks + b) * s->bytes),
				.size = s->bytes,
				.result = (int64_t)s->bytes,
				.compute_ns = s->compute_ns});
	put(s, r, (struct app_op){.call = APP_CLOSE, .handle = 1 + r});
}

/* Two ranks, each of which waits for the other: no reader takes it. */
static void cycle_rank(struct shape *s, uint32_t r)
{
	struct app_edge edge = {!r, 1};

	put(s, r, (struct app_op){.call = APP_STAT, .offset = -1, .n_edges = 1, .edges = &edge});
}

static bool add_tables(struct shape *s, bool fitness)
{
	int64_t size = (int64_t)(s->ranks * s->blocks * s->bytes);
	bool fine = true;
	char name[32];

	for (uint32_t r = 0; r < s->ranks && fine; r++) {
		snprintf(name, sizeof(name), "made%u", r);
		fine = app_add_rank(s->w, 1000 + r, name, "made") >= 0 &&
			app_add_thread(s->w, r, 1000 + r) >= 0;
	}
	fine = fine && app_add_file(s->w, "data", fitness ? size : -1, size, false) == 0;
	for (uint32_t r = 0; r < s->ranks && fine; r++) {
		struct app_handle h = {.rank = r, .flags = fitness ? O_RDONLY : O_WRONLY | O_CREAT};

		fine = app_add_handle(s->w, &h) > 0;
		h.flags = O_RDONLY;
		fine = fine && (fitness || app_add_handle(s->w, &h) > 0);
	}
	return fine;
}

int main(int argc, char **argv)
{
	const struct app_about about = {
		.comment = "made by replay_trace", .root = "/made", .kernel = ""};
	struct shape s = {0};
	bool fitness;

	if (argc != 7 ||
		(strcmp(argv[1], "pseudo") && strcmp(argv[1], "sync") &&
			strcmp(argv[1], "fitness") &&
			(strcmp(argv[1], "cycle") || strcmp(argv[2], "2")))) {
		fputs("usage: replay_trace pseudo|sync|fitness|cycle RANKS BLOCKS BLOCK_BYTES "
		      "COMPUTE_US FILE\n",
			stderr);
		return 2;
	}
	s.kind = argv[1];
	fitness = !strcmp(s.kind, "fitness");
	s.ranks = (uint32_t)strtoul(argv[2], NULL, 10);
	s.blocks = strtoul(argv[3], NULL, 10);
	s.bytes = strtoul(argv[4], NULL, 10);
	s.compute_ns = strtoul(argv[5], NULL, 10) * 1000;
	s.done = calloc(s.ranks + 1, sizeof(*s.done));
	if (!s.done || app_create(argv[6], &s.w, &s.e) || !add_tables(&s, fitness)) {
		fprintf(stderr, "replay_trace: cannot write '%s' %s\n", argv[6], s.e.text);
		return 1;
	}
	for (uint32_t r = 0; r < s.ranks; r++) {
		if (!strcmp(s.kind, "cycle"))
			cycle_rank(&s, r);
		else if (fitness)
			fitness_rank(&s, r);
		else
			pseudo_rank(&s, r, !strcmp(s.kind, "sync"));
	}
	if (app_finish(s.w, &about, &s.e)) {
		fprintf(stderr, "replay_trace: %s\n", s.e.text);
		return 1;
	}
	free(s.done);
	return 0;
}
