/* Output that is written bit by bit: why it failed, and large files that appear whole. */
#ifndef CULPRIT_BASE_STREAM_H
#define CULPRIT_BASE_STREAM_H

#include <stdio.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Flushes 'f'. -errno if that fails, or if an earlier write to 'f' did: the reason is then found by
 * one more. 'e' says "cannot write to standard output: reason", ERR_HARNESS. */
int stream_flush(FILE *f, struct err *e);

/* A file that is written to 'f' and takes its name, and the place of an older one, once it is
 * whole. */
struct stream {
	FILE *f;
	const char *path; /* the caller's, for errors */
	char *target, *part;
};

/* "-" is standard output. Devices, FIFOs that somebody reads and what is below /proc are written to
 * as they are; folders, sockets and other FIFOs are refused. The errors' classes are those of
 * file_write_atomic. */
int stream_open(struct stream *s, const char *path, struct err *e);

/* 'rc': what the writing came to, with its sentence in 'e'; if not 0, nothing of the file stays.
 * Returns 'rc', or why the file could not be completed. Closes it in any case; harmless if it is
 * not open. A new file has the mode 0666 less the umask. */
int stream_close(struct stream *s, int rc, struct err *e);

#endif
