/* libFuzzer entry of the zone index: make fuzz, then out/fuzz/zones_fuzz CORPUS. The input changes
 * bytes of a good index, whose checks are corrected then, so that what is behind them is tested:
 * zones and checkpoints that do not belong to the log. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ci/tests/query/drawn.h"
#include "diag/query/scan.h"
#include "diag/query/zones_impl.h"
#include "diag/record/layout.h"
#include "harness/base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/zones_fuzz.XXXXXX", log_path[64], *index_path, *good;
static size_t good_size;

static void remove_dir(void)
{
	file_remove_tree(dir, NULL);
	free(index_path);
	free(good);
}

static void prepare(void)
{
	if (!mkdtemp(dir) || setenv("XDG_CACHE_HOME", dir, 1))
		abort();
	atexit(remove_dir);
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	if (drawn_log(log_path, 4000, true, NULL) || zones_path(log_path, &index_path, NULL) ||
		zones_make(index_path, log_path, 5000, NULL, NULL) ||
		file_read(index_path, &good, &good_size, NULL))
		abort();
}

/* The checks of the blocks of the checkpoints' records, from 'at' on. */
static void mend_log(uint8_t *p, size_t at, size_t size)
{
	for (at += LAYOUT_HEAD; at + LAYOUT_BLOCK_HEAD < size;) {
		uint32_t payload = bytes_get32(p + at + 4);

		if (payload > size - at - LAYOUT_BLOCK_HEAD)
			return;
		bytes_put32(p + at + 12, layout_crc(p + at, payload));
		at += LAYOUT_BLOCK_HEAD + payload;
	}
}

static void mend(uint8_t *p, size_t size)
{
	struct zones z;
	size_t zones, checkpoints;

	memcpy(&z.head, p, sizeof(z.head));
	if (z.head.n_zones > size / sizeof(*z.zone) ||
		z.head.n_checkpoints > size / sizeof(*z.checkpoint))
		return;
	zones = z.head.n_zones * sizeof(*z.zone);
	checkpoints = z.head.n_checkpoints * sizeof(*z.checkpoint);
	if (sizeof(z.head) + zones + checkpoints > size)
		return;
	z.zone = (struct zone *)(p + sizeof(z.head));
	z.checkpoint = (struct zone_checkpoint *)(p + sizeof(z.head) + zones);
	z.head.crc = zones_crc(&z);
	memcpy(p, &z.head, sizeof(z.head));
	mend_log(p, sizeof(z.head) + zones + checkpoints, size);
}

static void ask(unsigned how)
{
	static const struct stream_spec nothing_known;
	struct scan_spec spec = {.state = how & 1, .details = how & 2, .index_least = 1};
	struct stream_item *item;
	struct scan *scan;
	size_t named = 0;

	scan_filter_all(&spec.filter, how & 4 ? ~0u : 1u << RECORD_CALL);
	spec.filter.failed = how & 8;
	spec.filter.either = how & 16 ? 103 : 0;
	spec.filter.from_ns = 1700000000000000000 + (int64_t)(how >> 5) * 1000000000;
	if (scan_open(log_path, &nothing_known, &scan, NULL))
		abort();
	if (!scan_begin(scan, &spec, NULL))
		while (scan_next(scan, &item, NULL) == 1)
			named += *stream_name(item->stream, record_pid(item->record), 0);
	scan_close(scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (!good)
		prepare();
	copy = malloc(good_size);
	memcpy(copy, good, good_size);
	for (size_t i = 1; i + 4 <= size; i += 4) {
		size_t at = (data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16);

		copy[at % good_size] = data[i + 3];
	}
	mend(copy, good_size);
	if (file_write_atomic(index_path, 0600, copy, good_size, NULL))
		abort();
	ask(size ? data[0] : 0);
	free(copy);
	return 0;
}
