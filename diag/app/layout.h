/*
 * Layout of an application trace, version 1. Numbers are little-endian; crc is zlib's crc32; v is a
 * LEB128 varint, z a zigzag varint, s a string: v length, the bytes without NUL.
 *
 *   head    32 bytes:
 *      0  "CULPRAPP"
 *      8  u32 version, u32 crc of bytes 16..31
 *     16  u64 offset of the tables, u64 size of the file
 *   blocks of ops, in any order, those of one thread in the order of their ops:
 *      0  u32 "ABLK", u32 payload size (1 .. 64 KiB)
 *      8  u32 thread, u32 ops in it
 *     16  u32 crc of bytes 0..15 and the payload, u32 0
 *     24  payload: ops
 *   tables, to the end of the file:
 *      0  u32 "ATAB", u32 crc of the payload
 *      8  payload: z start, v wall, v method, s comment, s root, s kernel, v bits (1 anonymised,
 *         2 shared memory), v not captured
 *         v ranks, for each: v pid, s name, s node, v threads, and for each of these: v tid, v ops
 *         v files, for each: s path, z before, z after, v bits (1 directory)
 *         v handles, for each: v file, v flags, v rank, v bits (1 before)
 *
 *   op      v call, v bits, and a value for each bit of enum app_field that is set. Default of a
 *           missing field: file, handle, size: those of the previous op in the block (none and 0 in
 *           the first); result: the size; offset: where the previous op ended; others: none or 0.
 *           Each block can be decoded without others.
 */
#ifndef CULPRIT_DIAG_APP_LAYOUT_H
#define CULPRIT_DIAG_APP_LAYOUT_H

#include <string.h>
#include <zlib.h>

#include "diag/app/app.h"
#include "harness/base/bytes.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "application traces are little-endian, and culprit supports little-endian hosts only"
#endif

#define APP_MAGIC "CULPRAPP"
enum {
	APP_HEAD = 32,
	APP_BLOCK_MAGIC = 0x4b4c4241,  /* "ABLK" */
	APP_TABLES_MAGIC = 0x42415441, /* "ATAB" */
	APP_BLOCK_HEAD = 24,
	APP_PAYLOAD = 65536,
	APP_TABLES_HEAD = 8,
	APP_OP = 160, /* most bytes of an op without its edges */
	APP_EDGE = 15,
};

enum app_field {
	APP_HAS_FILE = 1 << 0,   /* v file + 1; 0: none */
	APP_HAS_FILE2 = 1 << 1,  /* v */
	APP_HAS_HANDLE = 1 << 2, /* v */
	APP_HAS_FLAGS = 1 << 3,  /* v */
	APP_HAS_MODE = 1 << 4,   /* v */
	APP_HAS_OFFSET = 1
		/* z difference to where the previous op ended; if missing, it is that ... */
		<< 5,
	APP_NO_OFFSET = 1 << 6,    /* ... or, with this bit, -1 */
	APP_HAS_SIZE = 1 << 7,     /* v */
	APP_HAS_RESULT = 1 << 8,   /* z */
	APP_HAS_START = 1 << 9,    /* z difference to the last start in the block */
	APP_HAS_TOOK = 1 << 10,    /* v */
	APP_HAS_COMPUTE = 1 << 11, /* v */
	APP_HAS_AWAY = 1 << 12,    /* v */
	APP_HAS_EDGES = 1 << 13,   /* v count; for each: v thread minus the previous one, v ops */
	APP_FIELDS = (1 << 14) - 1,
};

/* Encoder and decoder state inside one block. */
struct app_state {
	uint32_t file, handle;
	uint64_t size;
	int64_t next, start;
};

#define APP_STATE_FIRST ((struct app_state){.file = APP_NO_FILE})

static inline int64_t app_end(int64_t offset, int64_t result)
{
	return (int64_t)((uint64_t)offset + (result > 0 ? (uint64_t)result : 0));
}

static inline int64_t app_difference(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline uint32_t app_block_crc(const uint8_t *head, const uint8_t *payload, uint32_t n)
{
	return (uint32_t)crc32(crc32(0, head, 16), payload, n);
}

#endif
