/* Shared by the files of the reader. */
#ifndef CULPRIT_DIAG_APP_READER_IMPL_H
#define CULPRIT_DIAG_APP_READER_IMPL_H

#include "diag/app/layout.h"

struct app_place {
	uint64_t offset; /* of the block */
	uint32_t payload, ops;
};

struct app_trace {
	int fd;
	char *path;
	char id[20];
	uint32_t head_check;
	uint64_t size, tables_at, n_ops, n_edges;
	char *strings; /* all strings of the tables, each with a NUL */
	struct app_about about;
	struct app_rank *ranks;
	struct app_thread *threads;
	struct app_file *files;
	struct app_handle *handles; /* [0] is handle 1 */
	uint32_t n_ranks, n_threads, n_files, n_handles;
	struct app_place *blocks; /* by thread, in order */
	uint64_t n_blocks;
	uint64_t *first_block; /* of each thread, plus an end */
};

/* Bytes being decoded; the getters return false at the end or if the value is out of range. */
struct app_bytes {
	const uint8_t *pos, *end;
};

bool app_get(struct app_bytes *b, uint64_t *out);
bool app_get_u32(struct app_bytes *b, uint32_t *out);
bool app_get_signed(struct app_bytes *b, int64_t *out);

int app_damaged(const struct app_trace *t, uint64_t at, const char *what, struct err *e);

/* Decodes the tables into 't'. */
int app_read_tables(struct app_trace *t, struct err *e);

/* Checks all ops: edges, references, cycles. */
int app_check(struct app_trace *t, struct err *e);

#endif
