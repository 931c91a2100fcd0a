/*
 * habits WHAT FOLDER: a program with one bad habit in its use of files, or its twin that does the
 * same work well. Everything is done by plain calls, so that a trace shows it.
 *
 *     rename          writes FOLDER/new and renames it to FOLDER/conf; rename-well: syncs it before
 *     small           reads FOLDER/data in pieces of 100 bytes; small-well: of 64 KiB
 *     scattered       reads it in pieces of 4 KiB, in an order that jumps; scattered-well: in order
 *     reopen          opens it for each piece that it reads; reopen-well: once
 *     lost            writes where a limit allows a part of it only; lost-well: then the rest
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIZE = 4 << 20, PIECE = 4096, PIECES = SIZE / PIECE };

static _Alignas(4096) char buffer[65536];
static const char *folder;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static const char *path(const char *name)
{
	static char out[2][4096];
	static int n;

	n = !n;
	snprintf(out[n], sizeof(out[n]), "%s/%s", folder, name);
	return out[n];
}

static int open_or_die(const char *name, int flags)
{
	int fd = open(path(name), flags, 0600);

	if (fd < 0)
		die(name);
	return fd;
}

static void make_data(void)
{
	int fd = open_or_die("data", O_CREAT | O_WRONLY | O_TRUNC);

	for (int at = 0; at < SIZE; at += (int)sizeof(buffer))
		if (pwrite(fd, buffer, sizeof(buffer), at) != (ssize_t)sizeof(buffer))
			die("write");
	close(fd);
}

static void do_rename(bool well)
{
	int fd = open_or_die("new", O_CREAT | O_WRONLY | O_TRUNC);

	if (pwrite(fd, "setting = 1\n", 12, 0) != 12 || (well && fsync(fd) < 0))
		die("new");
	close(fd);
	if (rename(path("new"), path("conf")) < 0)
		die("rename");
}

static void do_small(bool well)
{
	const size_t piece = well ? sizeof(buffer) : 100;
	int fd = open_or_die("data", O_RDONLY);

	for (off_t at = 0; at < 20000 * 100; at += (off_t)piece)
		if (pread(fd, buffer, piece, at) < 0)
			die("read");
	close(fd);
}

static void do_scattered(bool well)
{
	int fd = open_or_die("data", O_RDONLY | O_DIRECT); /* from the disk */

	for (int i = 0; i < PIECES; i++)
		if (pread(fd, buffer, PIECE, (off_t)(well ? i : i * 383 % PIECES) * PIECE) < 0)
			die("read");
	close(fd);
}

static void do_reopen(bool well)
{
	int fd = open_or_die("data", O_RDONLY);

	for (int i = 0; i < PIECES; i++) {
		if (!well) {
			close(fd);
			fd = open_or_die("data", O_RDONLY);
		}
		if (pread(fd, buffer, PIECE, (off_t)i * PIECE) < 0)
			die("read");
	}
	close(fd);
}

static void do_lost(bool well)
{
	struct rlimit before, limit;
	int fd = open_or_die("out", O_CREAT | O_WRONLY | O_TRUNC);
	ssize_t n;

	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &before) < 0)
		die("getrlimit");
	limit = (struct rlimit){10000, before.rlim_max};
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		die("setrlimit");
	n = pwrite(fd, buffer, 16384, 0);
	if (n != 10000)
		die("write");
	if (setrlimit(RLIMIT_FSIZE, &before) < 0)
		die("setrlimit");
	if (well && pwrite(fd, buffer, (size_t)(16384 - n), n) != 16384 - n)
		die("write");
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*act)(bool well);
	} habits[] = {{"rename", do_rename}, {"small", do_small}, {"scattered", do_scattered},
		{"reopen", do_reopen}, {"lost", do_lost}};
	size_t n;

	if (argc != 3)
		return 2;
	folder = argv[2];
	make_data();
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		n = strlen(habits[i].name);
		if (strncmp(argv[1], habits[i].name, n) != 0 ||
			(argv[1][n] && strcmp(argv[1] + n, "-well") != 0))
			continue;
		habits[i].act(argv[1][n]);
		return 0;
	}
	return 2;
}
