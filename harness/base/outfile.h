/* Output files that appear only when complete, and the reason for a failed write to a stream. */
#ifndef CULPRIT_HARNESS_BASE_OUTFILE_H
#define CULPRIT_HARNESS_BASE_OUTFILE_H

#include <stdio.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Flushes 'f'. Returns -errno if the flush or an earlier write failed; writes once more to find
 * the reason. 'e' says "cannot write to standard output: reason", class ERR_HARNESS. */
int outfile_flush(FILE *f, struct err *e);

/* A file that is written through 'f' and takes its final name, replacing an older file, once it
 * is complete. */
struct outfile {
	FILE *f;
	const char *path; /* owned by the caller, for errors */
	char *target, *part;
};

/* "-" is standard output. Devices, FIFOs with a reader and paths below /proc are written to
 * directly; folders, sockets and FIFOs without a reader are refused. Error classes are those of
 * file_write_atomic. */
int outfile_open(struct outfile *s, const char *path, struct err *e);

/* Completes the file. 'rc' is the writer's result, with its error in 'e'; if it is not 0, the
 * file is discarded. Returns 'rc', or the error that prevented completion. Always closes the
 * file; harmless if it is not open. A new file has mode 0666 minus the umask. */
int outfile_close(struct outfile *s, int rc, struct err *e);

#endif
