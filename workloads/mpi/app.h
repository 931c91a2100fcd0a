/* What the MPI programs share: options with sizes, aligned buffers, errors that end all ranks. */
#ifndef CULPRIT_WORKLOADS_MPI_APP_H
#define CULPRIT_WORKLOADS_MPI_APP_H

#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APP_ALIGNMENT 4096 /* of direct I/O */

/* Says why, and ends every rank. */
static inline void app_die(const char *what, const char *subject)
{
	fprintf(stderr, "cannot %s '%s': %s\n", what, subject, strerror(errno));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A whole number with the suffix k, m or g (powers of 1024), from 'least'. */
static inline uint64_t app_number(const char *option, const char *text, uint64_t least)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	for (const char *s = "kmg"; *s; s++) {
		if (*end == *s && !end[1]) {
			n <<= 10 * (s - "kmg" + 1);
			end++;
			break;
		}
	}
	if (errno || *text < '0' || *text > '9' || *end || n < least) {
		fprintf(stderr, "--%s: '%s' is no whole number from %llu (64, 4k, 1m)\n", option,
			text, (unsigned long long)least);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return n;
}

static inline unsigned char *app_buffer(uint64_t bytes)
{
	void *buffer;

	errno = posix_memalign(&buffer, APP_ALIGNMENT, bytes);
	if (errno)
		app_die("allocate", "a block");
	memset(buffer, 'c', bytes);
	return buffer;
}

/* One block at 'at', whole: a short read or write of a file that is there is an error. */
static inline void app_write(int fd, const void *block, uint64_t bytes, uint64_t at)
{
	ssize_t n = pwrite(fd, block, bytes, (off_t)at);

	if (n >= 0 && (uint64_t)n != bytes)
		errno = ENOSPC;
	if (n < 0 || (uint64_t)n != bytes)
		app_die("write", "a block");
}

static inline void app_read(int fd, void *block, uint64_t bytes, uint64_t at)
{
	ssize_t n = pread(fd, block, bytes, (off_t)at);

	if (n >= 0 && (uint64_t)n != bytes)
		errno = ENODATA;
	if (n < 0 || (uint64_t)n != bytes)
		app_die("read", "a block");
}

#endif
