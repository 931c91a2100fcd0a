/*
 * Fitness as in Mesnier et al. 2007, section 5.1: ranks read parts of one file that do not overlap,
 * one rank after the other. The only dependences are n - 1 messages, from each rank to the next.
 *
 *	fitness --make FILE     writes the file, all ranks at the same time
 *	fitness FILE            reads it
 */
#include <fcntl.h>
#include <getopt.h>

#include "workloads/mpi/app.h"

struct work {
	uint64_t block, blocks;
	int make, direct, rank, ranks;
	const char *path;
};

static void usage(FILE *f)
{
	fputs("usage: fitness [--block BYTES] [--blocks N] [--direct] [--make] FILE\n"
	      "Each rank reads its part of FILE in turn: N blocks (64) of BYTES (1m). --make "
	      "writes "
	      "FILE.\n",
		f);
}

static int parse(int argc, char **argv, struct work *w)
{
	static const struct option options[] = {{"block", required_argument, NULL, 'b'},
		{"blocks", required_argument, NULL, 'n'}, {"direct", no_argument, NULL, 'd'},
		{"make", no_argument, NULL, 'm'}, {"help", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'b': w->block = app_number("block", optarg, 1); break;
		case 'n': w->blocks = app_number("blocks", optarg, 1); break;
		case 'd': w->direct = O_DIRECT; break;
		case 'm': w->make = 1; break;
		default: return c == 'h' ? 0 : 2;
		}
	}
	w->path = argc - optind == 1 ? argv[optind] : NULL;
	return w->path ? -1 : 2;
}

/* All blocks of this rank's part. */
static void go_through(const struct work *w, unsigned char *buffer)
{
	int fd = open(w->path, (w->make ? O_WRONLY | O_CREAT : O_RDONLY) | w->direct, 0644);
	uint64_t from = (uint64_t)w->rank * w->blocks * w->block;

	if (fd < 0)
		app_die("open", w->path);
	for (uint64_t i = 0; i < w->blocks; i++) {
		if (w->make)
			app_write(fd, buffer, w->block, from + i * w->block);
		else
			app_read(fd, buffer, w->block, from + i * w->block);
	}
	if (close(fd) < 0)
		app_die("close", w->path);
}

int main(int argc, char **argv)
{
	struct work w = {.block = 1 << 20, .blocks = 64};
	unsigned char *buffer;
	int code, turn = 0;
	double begin;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
	code = parse(argc, argv, &w);
	if (code >= 0) {
		if (!w.rank)
			usage(code ? stderr : stdout);
		MPI_Finalize();
		return code;
	}
	buffer = app_buffer(w.block);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	if (!w.make && w.rank > 0)
		MPI_Recv(&turn, 1, MPI_INT, w.rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	go_through(&w, buffer);
	if (!w.make && w.rank + 1 < w.ranks)
		MPI_Send(&turn, 1, MPI_INT, w.rank + 1, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!w.rank)
		printf("fitness: %d ranks, %.3f s\n", w.ranks, MPI_Wtime() - begin);
	free(buffer);
	MPI_Finalize();
	return 0;
}
