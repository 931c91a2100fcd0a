/*
 * The pseudo-application of Mesnier et al. 2007, section 5.1, after the one of Los Alamos: ranks
 * write a checkpoint into one file, block by block and interleaved, synchronise, and read it back.
 *
 *	Pseudo          pseudo FILE
 *	PseudoSync      pseudo --sync FILE      a barrier after each write
 *	PseudoSyncDat   pseudo --syncdat FILE   and work on each block that was read: --compute 100
 *
 * --compute N adds the bytes of a block up N times; Mesnier et al. multiplied the application's own
 * computation by 100. A rank reads what its neighbour wrote, so that no cache of its own answers.
 */
#include <fcntl.h>
#include <getopt.h>

#include "workloads/mpi/app.h"

struct work {
	uint64_t block, blocks, compute;
	int sync, direct, rank, ranks;
	const char *path;
};

static void usage(FILE *f)
{
	fputs("usage: pseudo [--block BYTES] [--blocks N] [--sync] [--compute N] [--syncdat] "
	      "[--direct] FILE\n"
	      "Ranks write a shared file and read it back: N blocks each (64) of BYTES (1m).\n"
	      "Without --sync it is Pseudo of Mesnier et al. 2007, with --sync PseudoSync, with "
	      "--syncdat\nPseudoSyncDat, which is --sync --compute 100.\n",
		f);
}

static int parse(int argc, char **argv, struct work *w)
{
	static const struct option options[] = {{"block", required_argument, NULL, 'b'},
		{"blocks", required_argument, NULL, 'n'}, {"compute", required_argument, NULL, 'c'},
		{"sync", no_argument, NULL, 's'}, {"syncdat", no_argument, NULL, 'S'},
		{"direct", no_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'b': w->block = app_number("block", optarg, 1); break;
		case 'n': w->blocks = app_number("blocks", optarg, 1); break;
		case 'c': w->compute = app_number("compute", optarg, 0); break;
		case 's': w->sync = 1; break;
		case 'S':
			w->sync = 1;
			w->compute = 100;
			break;
		case 'd': w->direct = O_DIRECT; break;
		default: return c == 'h' ? 0 : 2;
		}
	}
	w->path = argc - optind == 1 ? argv[optind] : NULL;
	return w->path ? -1 : 2;
}

static uint64_t offset(const struct work *w, uint64_t i, int rank)
{
	return (i * (uint64_t)w->ranks + (uint64_t)rank) * w->block;
}

static void write_phase(const struct work *w, unsigned char *buffer)
{
	int fd = open(w->path, O_WRONLY | O_CREAT | w->direct, 0644);

	if (fd < 0)
		app_die("open", w->path);
	memset(buffer, 'a' + w->rank % 26, w->block);
	for (uint64_t i = 0; i < w->blocks; i++) {
		app_write(fd, buffer, w->block, offset(w, i, w->rank));
		if (w->sync)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	if (close(fd) < 0)
		app_die("close", w->path);
}

static uint64_t work_on(const unsigned char *data, uint64_t bytes, uint64_t times)
{
	volatile uint64_t sum = 0;

	for (uint64_t t = 0; t < times; t++) {
		uint64_t s = t;

		for (uint64_t i = 0; i < bytes; i++)
			s = s * 31 + data[i];
		sum += s;
	}
	return sum;
}

static void read_phase(const struct work *w, unsigned char *buffer)
{
	int fd = open(w->path, O_RDONLY | w->direct), of = (w->rank + 1) % w->ranks;

	if (fd < 0)
		app_die("open", w->path);
	for (uint64_t i = 0; i < w->blocks; i++) {
		app_read(fd, buffer, w->block, offset(w, i, of));
		if (buffer[0] != 'a' + of % 26) {
			errno = EBADMSG;
			app_die("find what was written in", w->path);
		}
		work_on(buffer, w->block, w->compute);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct work w = {.block = 1 << 20, .blocks = 64};
	unsigned char *buffer;
	double begin;
	int code;

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
	write_phase(&w, buffer);
	MPI_Barrier(MPI_COMM_WORLD);
	read_phase(&w, buffer);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!w.rank)
		printf("pseudo: %d ranks, %.3f s\n", w.ranks, MPI_Wtime() - begin);
	free(buffer);
	MPI_Finalize();
	return 0;
}
