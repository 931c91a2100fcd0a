/* A file or standard input as a stream of text: decompresses gzip and zstd while reading, in a few
 * hundred KiB of memory (zstd: plus the file's window, at most 128 MiB). */
#ifndef CULPRIT_DIAG_IMPORT_INPUT_H
#define CULPRIT_DIAG_IMPORT_INPUT_H

#include <stddef.h>
#include <stdio.h>

#include "harness/base/err.h"

enum { INPUT_HEAD_MAX = 64 * 1024 };

struct input; /* opaque */

/* Opens 'path' ("-": standard input) and reads its head. */
int input_open(const char *path, struct input **in, struct err *e);
void input_close(struct input *in); /* NULL is fine */
/* "standard input", or the path. */
const char *input_name(const struct input *in);
/* The first bytes of the text, at most INPUT_HEAD_MAX, NUL-terminated. input_file gives them
 * again. */
const char *input_head(const struct input *in, size_t *size);
/* The text, from its first byte; input_close closes it. Call it once. */
FILE *input_file(struct input *in, struct err *e);
/* Why reading failed: 0 if it did not, or a negative errno with a sentence. -EINVAL: the compressed
 * data is damaged or truncated. */
int input_failure(const struct input *in, struct err *e);

#endif
