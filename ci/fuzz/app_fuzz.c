/* libFuzzer entry of application traces: make fuzz, then out/fuzz/app_fuzz CORPUS. The input
 * changes bytes of a good trace, whose checks are corrected then, so that what is behind them is
 * tested. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ci/tests/app/drawn.h"
#include "diag/app/layout.h"
#include "harness/base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/app_fuzz.XXXXXX", path[64], *good;
static size_t good_size;
static FILE *nowhere;

static void remove_dir(void)
{
	file_remove_tree(dir, NULL);
	free(good);
	fclose(nowhere);
}

static void prepare(void)
{
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/trace", dir);
	nowhere = fopen("/dev/null", "w");
	if (!nowhere || drawn_trace(path, 3, 2, 20, 1) || file_read(path, &good, &good_size, NULL))
		abort();
	atexit(remove_dir);
}

static void mend(uint8_t *p, size_t size)
{
	uint64_t tables = bytes_get64(p + 16);

	bytes_put64(p + 24, size);
	bytes_put32(p + 12, (uint32_t)crc32(0, p + 16, 16));
	if (tables < APP_HEAD || tables > size - APP_TABLES_HEAD)
		return;
	for (size_t at = APP_HEAD; at + APP_BLOCK_HEAD <= tables;) {
		uint32_t payload = bytes_get32(p + at + 4);

		if (payload > tables - at - APP_BLOCK_HEAD)
			break;
		bytes_put32(p + at + 16, app_block_crc(p + at, p + at + APP_BLOCK_HEAD, payload));
		at += APP_BLOCK_HEAD + payload;
	}
	bytes_put32(p + tables + 4,
		(uint32_t)crc32(
			0, p + tables + APP_TABLES_HEAD, (uInt)(size - tables - APP_TABLES_HEAD)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct app_trace *t;
	struct err e;
	uint8_t *copy;
	size_t cut = size ? (size_t)data[0] * 4 : 0, left;

	if (!good)
		prepare();
	if (cut > good_size - APP_HEAD)
		return 0;
	left = size && data[0] & 1 ? good_size - cut : good_size;
	copy = malloc(left);
	memcpy(copy, good, left);
	for (size_t i = 1; i + 4 <= size; i += 4)
		copy[(data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16) %
			left] = data[i + 3];
	mend(copy, left);
	if (file_write_atomic(path, 0600, copy, left, NULL))
		abort();
	free(copy);
	if (app_open(path, &t, &e))
		return 0;
	/* What was opened has been checked, all of it. */
	if (app_print(t, UINT32_MAX, nowhere, &e) || app_print_summary(t, nowhere, &e))
		abort();
	app_free(t);
	return 0;
}
