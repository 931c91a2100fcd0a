/* libFuzzer entry of the log reader: make fuzz, then out/fuzz/log_fuzz CORPUS. The checksums are
 * corrected first, so that the decoder behind them is tested. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/record/fdtable.h"
#include "diag/record/layout.h"
#include "diag/record/reading.h"
#include "harness/base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *p, size_t size)
{
	size_t at = LAYOUT_HEAD;

	if (size < LAYOUT_HEAD)
		return;
	memcpy(p, LAYOUT_MAGIC, 8);
	bytes_put32(p + 8, LAYOUT_VERSION);
	bytes_put32(p + 12, (uint32_t)crc32(0, p + 16, LAYOUT_HEAD - 16));
	while (at + LAYOUT_BLOCK_HEAD < size) {
		uint32_t payload = bytes_get32(p + at + 4);

		if (payload > size - at - LAYOUT_BLOCK_HEAD)
			payload = (uint32_t)(size - at - LAYOUT_BLOCK_HEAD);
		bytes_put32(p + at, LAYOUT_BLOCK_MAGIC);
		bytes_put32(p + at + 4, payload);
		bytes_put32(p + at + 12, layout_crc(p + at, payload));
		at += LAYOUT_BLOCK_HEAD + payload;
	}
}

/* Reads everything that the record points to, so that the sanitizer checks it. */
static void look_at(const struct record *rec)
{
	static volatile size_t sum;

	for (int i = 0; rec->type == RECORD_CALL && i < rec->call.head_size; i++)
		sum += rec->call.head[i];
	if (rec->type == RECORD_CALL)
		sum += (rec->call.path ? strlen(rec->call.path) : 0) +
			(rec->call.path2 ? strlen(rec->call.path2) : 0);
	else if (rec->type == RECORD_FD)
		sum += strlen(rec->fd.path);
	else if (rec->type == RECORD_PROCESS)
		sum += strlen(rec->process.name);
	else if (rec->type == RECORD_READING)
		sum += strlen(reading_name(rec->reading.what));
	else if (rec->type == RECORD_SUM)
		sum += rec->sum.histogram[SUM_BUCKETS - 1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fdtable *fds = fdtable_new();
	const struct record *rec;
	struct log_reader *r;
	uint8_t *copy = malloc(size + 1);
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[32];

	memcpy(copy, data, size);
	mend(copy, size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd_write_all(fd, copy, size) == 0 && log_reader_new(path, &r, NULL) == 0) {
		while (log_next(r, &rec, NULL) > 0) {
			fdtable_feed(fds, rec);
			look_at(rec);
		}
		log_reader_free(r);
	}
	close(fd);
	free(copy);
	fdtable_free(fds);
	return 0;
}
