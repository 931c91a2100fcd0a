/*
 * Layout of a trace log, version 8. All numbers are little-endian; crc is zlib's crc32.
 *
 *   head    192 bytes:
 *      0  "CULPRLOG"
 *      8  u32 version, u32 crc of bytes 16..191
 *     16  i64 start_ns, i64 bias_ns
 *     32  arch[16] tracer[16] host[65] boot_id[37], NUL-padded
 *    168  u32 what it is a log of: enum log_how; zeros up to 192
 *   blocks, each
 *      0  u32 "CBLK", u32 payload size (1 .. 64 KiB)
 *      8  u32 records in it, u32 crc of bytes 0..11, 16..23 and the payload
 *     16  u64 number of its first record
 *     24  payload: records
 *   last, a block with only the END record. Its size is fixed, so that the end of a log can be read
 *   without the rest. The file ends there.
 *
 * Version. It changes whenever a program that knows the old layout would misread the new one or
 * refuse a record of it. A program writes version 8 and also reads its subsets: version 7 has no
 * bulk data in SUM; version 6 also lacks UNSEEN; version 5 also lacks processor times and peers of
 * sockets; version 4 also lacks FUSE, MARK, names, positions and heads of calls; version 3 also
 * lacks 'asked'. When it refuses another version, the error names the newest and the oldest.
 *
 * Each block can be decoded without earlier ones. "Last" means the closest earlier record in the
 * block that has the field; without one, the value is 0. v is a LEB128 varint, z a zigzag varint.
 * The first byte of a record holds its type in bits 0..2; READING, FUSE, MARK and UNSEEN, which do
 * not fit, are type 0, FUSE with bit 6, MARK with bits 5 and 6, UNSEEN with bits 4 and 6.
 *
 *   CALL    u64 control, then 0..8 bytes for each of 12 fields. Control, from bit 0:
 *           type:3 unfinished:1 (12 x length:4) offset:1 paths:1 nr:10. If nr is 1023, the number
 *           follows the control as u32. The fields:
 *              start    zigzag of the difference to the last start_ns of any record
 *              service  service_ns, zigzag
 *              pid tid  XOR with the last call's
 *              result   zigzag
 *              seq      zigzag of the difference to the last seq of a call or signal, less 1
 *              args     6, each XOR with the argument in the same slot
 *           Slots: 1024 sets of six arguments, all 0 at the start of a block; layout_slot(nr, tid)
 *           is the slot of a call. A loop that repeats a call mostly stores no argument.
 *           With 'offset' (without it the offset is -1, and the following is missing): u8 enum
 *           layout_offset, with MORE_POSITION, MORE_HEAD and MORE_CPU; 'next' is the end of the
 *           last call in the slot with an offset: its offset plus its result; with 'asked' the
 *           offset is -1. MORE_POSITION: positioned. The expected position is the last one in
 *           layout_connection(pid, nr, args[0]) plus the result; with MORE_MOVED, z difference of
 *           the position to it. MORE_HEAD: u8 size of the head, 1 .. 32, and its bytes.
 *           MORE_CPU: z difference of cpu_ns to the end of the last call in layout_thread(tid);
 *           v cpu_call_ns
 *           With 'paths': path and path2, each v length with its NUL (0: none), then the path
 *   SIGNAL  byte; z start; z seq-less-1; v pid, tid, signo; bit 3 of the byte: fatal
 *   FD      byte; z start; v pid; z fd; bit 3: open. If open: u8 kind; v path length with its NUL,
 *           path. A socket: z sock_type, and local, then remote: u8 length and the sockaddr's
 *           bytes, without trailing zeros. Bit 4 (tag): v device, inode, z start less
 *           first_ns. Bit 5 (peer): v peer
 *   PROCESS byte; z start; v pid, tid, parent; u8 what; z status; v name length with NUL; name
 *   FUSE    byte; z start; v pid, tid; z difference to the last unique; v nodeid, device, opcode;
 *           bit 3 of the byte: ended; then z error
 *   SUM     byte; z start; v pid; u8 class; u8 fd_class; bit 3 of the byte: messages, 4: selected.
 *           Bit 5: v device. Bit 6: local, remote as in FD. Bit 7: bulk. v count, errors, failed,
 *           failed_ns, bytes, total_ns, max_ns; v bit set of the histogram's buckets that are not
 *           0; v each of these
 *   READING byte; z start; v what; bit 3 of the byte: peer as an address in FD; bit 4: accepted;
 *           v count; f64 sum; f64 max, left out if bit 5 (max is sum)
 *   MARK    byte; z start; v text length with its NUL; text
 *   UNSEEN  byte; z start; v what, count
 *   LOST    byte; z start; v cpu, count
 *   END     byte; u64 start, records, lost; not compressed
 */
#ifndef CULPRIT_DIAG_RECORD_LAYOUT_H
#define CULPRIT_DIAG_RECORD_LAYOUT_H

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "diag/record/log.h"
#include "harness/base/bytes.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "trace logs are little-endian, and culprit supports little-endian hosts only"
#endif

#define LAYOUT_MAGIC "CULPRLOG"
enum {
	LAYOUT_VERSION = 8,
	LAYOUT_OLDEST = 3, /* oldest readable version */
	LAYOUT_HEAD = 192,
	LAYOUT_HOW = 168,
	LAYOUT_BLOCK_MAGIC = 0x4b4c4243, /* "CBLK" */
	LAYOUT_BLOCK_HEAD = 24,
	LAYOUT_PAYLOAD = 65536 - LAYOUT_BLOCK_HEAD,
	LAYOUT_END = 25,
	LAYOUT_PATH = 8192,   /* longest path or name with its NUL */
	LAYOUT_RECORD = 1024, /* most bytes of a record without its paths */
	LAYOUT_SLOTS = 1024,
	LAYOUT_FLOWS = 5,  /* the first version with records of flows */
	LAYOUT_CAUSAL = 6, /* with processor times and peers */
	LAYOUT_UNSEEN = 7, /* with unseen activity */
	LAYOUT_BULK = 8,   /* with sums of bulk data */
	LAYOUT_FIELDS = 12,
	LAYOUT_BIG_NR = 1023,
};

/* Bits of a call's control word. */
#define CONTROL_OFFSET (1ull << 52)
#define CONTROL_PATHS (1ull << 53)

/* How a call's offset is stored. */
enum layout_offset {   /* bits 0..2 */
	OFFSET_NEXT,   /* 'next' */
	OFFSET_RESULT, /* the result (lseek) */
	OFFSET_ARG,    /* argument 3 (pread64, pwritev ...) */
	OFFSET_OTHER,  /* a varint follows: zigzag of the difference to 'next' */
	OFFSET_ASKED,  /* no offset; the asked length follows, as a varint */
	OFFSET_NONE,   /* no offset */
	MORE_POSITION = 8,
	MORE_MOVED = 16,
	MORE_HEAD = 32,
	MORE_CPU = 64,
	MORE_ALL = MORE_POSITION | MORE_MOVED | MORE_HEAD | MORE_CPU,
};

/* Bits of a record of type 0. */
enum { TYPE_FUSE = 64, TYPE_MARK = 64 | 32, TYPE_UNSEEN = 64 | 16 };

/* Encoder and decoder state inside one block. */
struct layout_state {
	int64_t start_ns;
	uint64_t seq;
	uint32_t pid, tid;
	uint64_t args[LAYOUT_SLOTS][6];
	int64_t next[LAYOUT_SLOTS];
	uint32_t positions[LAYOUT_SLOTS];
	uint64_t unique;
	uint64_t cpu_ns[LAYOUT_SLOTS];
};

static inline unsigned layout_slot(uint32_t nr, uint32_t tid)
{
	return (nr ^ tid * 0x9e3779b1u >> 22) % LAYOUT_SLOTS;
}

static inline unsigned layout_connection(const struct record_call *c)
{
	return ((uint32_t)c->args[0] + c->nr * 31 + c->pid * 0x9e3779b1u) % LAYOUT_SLOTS;
}

static inline unsigned layout_thread(uint32_t tid)
{
	return tid % LAYOUT_SLOTS;
}

static inline int64_t layout_next(int64_t offset, int64_t result)
{
	return (int64_t)((uint64_t)offset + (result > 0 ? (uint64_t)result : 0));
}

static inline uint32_t layout_crc(const uint8_t *block, uint32_t payload)
{
	uLong crc = crc32(0, block, 12);

	return (uint32_t)crc32(crc, block + 16, LAYOUT_BLOCK_HEAD - 16 + payload);
}

#endif
