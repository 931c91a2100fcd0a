/* Output files that appear whole, and why writing to a stream failed. */
#ifndef CULPRIT_HARNESS_BASE_OUTFILE_H
#define CULPRIT_HARNESS_BASE_OUTFILE_H

#include <stdio.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Flushes 'f'. -errno if that fails, or if an earlier write to 'f' did: the reason is then found by
 * one more. 'e' says "cannot write to standard output: reason", ERR_HARNESS. */
int outfile_flush(FILE *f, struct err *e);

/* A file that is written to 'f' and takes its name, and the place of an older one, once it is
 * whole. */
struct outfile {
	FILE *f;
	const char *path; /* the caller's, for errors */
	char *target, *part;
};

/* "-" is standard output. Devices, FIFOs that somebody reads and what is below /proc are written to
 * as they are; folders, sockets and other FIFOs are refused. The errors' classes are those of
 * file_write_atomic. */
int outfile_open(struct outfile *s, const char *path, struct err *e);

/* 'rc': what the writing came to, with its sentence in 'e'; if not 0, nothing of the file stays.
 * Returns 'rc', or why the file could not be completed. Closes it in any case; harmless if it is
 * not open. A new file has the mode 0666 less the umask. */
int outfile_close(struct outfile *s, int rc, struct err *e);

#endif
