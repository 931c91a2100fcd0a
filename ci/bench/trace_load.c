/*
 * A syscall-heavy load, as PostMark's: many small files, created, written, read, statted and
 * removed, one after the other. trace_load DIR FILES; prints seconds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/clock.h"

int main(int argc, char **argv)
{
	char path[4096], buf[8192] = "";
	int n = argc == 3 ? atoi(argv[2]) : 0;
	double start = clock_mono_s();
	struct stat st;

	for (int i = 0; i < n; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/load-%d-%d", argv[1], getpid(), i % 16);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			return 1;
		for (int k = 0; k < 8; k++)
			if (pwrite(fd, buf, 512, k * 512) != 512)
				return 1;
		for (int k = 0; k < 8; k++)
			if (pread(fd, buf, 512, k * 512) != 512)
				return 1;
		if (fstat(fd, &st) < 0 || close(fd) < 0 || stat(path, &st) < 0 || unlink(path) < 0)
			return 1;
	}
	printf("%.6f\n", clock_mono_s() - start);
	return 0;
}
