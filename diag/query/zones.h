/*
 * Zone index of a log: for each of its blocks what is in it (times, threads, calls, kinds of
 * record), and now and then a checkpoint, i.e. the descriptors and names of threads that there were
 * before a block. A reader passes over blocks in which there is nothing for it, and begins near the
 * place.
 *
 * The index is derived: it can be thrown away at any time, and is made anew where it is missing. It
 * lies in the user's cache ($XDG_CACHE_HOME/culprit/index, else ~/.cache/culprit/index; folder
 * 0700, files 0600), not next to the log, because a run's folder may be read-only or another
 * user's, is copied and compared by checksums, and must hold nothing but what was recorded. It
 * holds for the file whose device, inode number, size and times of change it names, and is stale
 * for any other; while a log is being written, for the part of that file that it knows.
 *
 * Layout, little-endian: struct zones_head; its zones; its checkpoints; a log (layout.h) with the
 * checkpoints' records: a NAME of each thread and an FD of each descriptor.
 */
#ifndef CULPRIT_DIAG_QUERY_ZONES_H
#define CULPRIT_DIAG_QUERY_ZONES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "diag/record/log.h"

enum {
	ZONE_CALLS = 512,   /* numbers of calls that are distinguished; the last one: all others */
	ZONE_THREADS = 256, /* bits of a set of processes and threads */
};

/* A block of a log. */
struct zone {
	uint64_t offset;           /* in the log; the next zone begins where this block ends */
	uint64_t before;           /* records before it */
	int64_t first_ns, last_ns; /* start_ns of its records lies in between */
	uint32_t records;
	uint32_t types;  /* 1 << enum record_type, ORed */
	uint32_t failed; /* calls that failed */
	uint32_t reserved;
	uint64_t calls[ZONE_CALLS / 64];     /* set of the calls' numbers (zone_call) */
	uint64_t threads[ZONE_THREADS / 64]; /* zone_thread of processes and threads */
};

/* The state before zone 'zone': 'records' records at 'offset' of the index's own log, which has
 * 'before' records before them. */
struct zone_checkpoint {
	uint64_t zone, offset, before, records;
};

/* The file that an index is of. */
struct zones_file {
	uint64_t device, inode, size;
	int64_t changed_ns, touched_ns; /* st_mtim, st_ctim */
};

struct zones_head {
	char magic[8];
	uint32_t version, crc; /* of what follows up to the log */
	struct zones_file file;
	uint64_t n_zones, n_checkpoints;
	uint64_t end;   /* where the block behind the last zone begins, or would begin */
	uint64_t whole; /* 1: the log ends there, in order */
};

struct zones {
	struct zones_head head;
	struct zone *zone;
	struct zone_checkpoint *checkpoint;
	char *path;     /* of the index */
	uint64_t state; /* where its log begins in it */
};

static inline unsigned zone_call(uint32_t nr)
{
	return nr < ZONE_CALLS - 1 ? nr : ZONE_CALLS - 1;
}

static inline unsigned zone_thread(uint32_t id)
{
	return id * 0x9e3779b1u >> 24;
}

static inline bool zone_bit(const uint64_t *set, unsigned i)
{
	return set[i / 64] >> i % 64 & 1;
}

static inline void zone_set_bit(uint64_t *set, unsigned i)
{
	set[i / 64] |= 1ull << i % 64;
}

/* Asked now and then in long work; true: it ends with -EINTR, 'e' filled by the function. NULL:
 * nobody is asked. */
struct zones_stop {
	bool (*fn)(void *ctx, struct err *e);
	void *ctx;
};

/* Where the index of a log would be; the caller frees. -ENOENT: there is no cache ($HOME is not
 * set), or no such log. */
int zones_path(const char *log, char **path, struct err *e);

/* Reads the index 'path' of 'log'. -ENOENT: there is none; -ESTALE: it is of another file, or of
 * another version; -EBADMSG: it is damaged; -EPERM: others may write it. */
int zones_load(const char *path, const char *log, struct zones **out, struct err *e);
void zones_free(struct zones *z); /* NULL is fine */

/* Reads a log once and writes its index to 'path', whole or not at all; folders are made. A log
 * that is damaged or cut short is indexed up to there. 'spacing': bytes of log between two
 * checkpoints, at least; 0: ZONES_SPACING. */
int zones_make(const char *path, const char *log, uint64_t spacing, const struct zones_stop *stop,
	struct err *e);

/*
 * The index of a log that is being written, as it grows: zones_follow_step reads what has come, and
 * writes the index anew when the log has grown by a quarter, and when it has ended. Until then the
 * index is of the log's beginning, and zones_load takes it for that as long as the log grows.
 */
struct zones_follow;
int zones_follow_new(const char *path, const char *log, struct zones_follow **out, struct err *e);
int zones_follow_step(struct zones_follow *f, struct err *e);
uint64_t zones_follow_lost(const struct zones_follow *f); /* records, of LOST records so far */
void zones_follow_free(struct zones_follow *f);           /* NULL is fine */

/* The index of a log, from the cache or made now; NULL where that is not worth while, or not
 * possible: the log is shorter than 'least_bytes', is no file, grows without being indexed, or
 * there is no cache. -EINTR: stopped. */
int zones_get(const char *log, uint64_t least_bytes, const struct zones_stop *stop,
	struct zones **out, struct err *e);

/* What zones_get takes for 'least_bytes' where nothing else is asked: a log that is read in a few
 * hundredths of a second. */
enum { ZONES_LEAST = 1 << 20 };

/* So much is read in some milliseconds. */
enum { ZONES_SPACING = 4 << 20 };

#endif
