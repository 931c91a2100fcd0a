/*
 * System calls by number: name, class and arguments. The numbers come from the kernel's headers at
 * build time.
 */
#ifndef CULPRIT_DIAG_RECORD_CALLS_H
#define CULPRIT_DIAG_RECORD_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum call_class {
	CALL_OTHER,
	CALL_READ,  /* bytes come from 'fd': read pread64 readv recvfrom recvmsg ... */
	CALL_WRITE, /* bytes go to 'fd' */
	CALL_COPY,  /* bytes go from 'fd' to 'fd2' inside the kernel: sendfile splice ... */
	CALL_OPEN,  /* makes a descriptor: the result, or the pair that args point to */
	CALL_CLOSE,
	CALL_POLL, /* waits for descriptors */
	CALL_SYNC, /* writes 'fd' (or everything) to the disk */
	CALL_CLASS_COUNT,
};

struct call_info {
	const char *name;
	enum call_class class;
	/* Indexes of arguments, or -1: descriptors, paths (two of rename, link, symlink ...), and
	 * the file offset of a read or write. */
	int8_t fd, fd2, path, path2, offset;
	/* Of a receive: the argument with MSG_PEEK and MSG_TRUNC, or -1. */
	int8_t flags;
	bool messages; /* its result is a number of messages: sendmmsg recvmmsg */
	int8_t n_args; /* -1: unknown */
	/* Arguments, "LETTER NAME" separated by commas, or NULL if unknown. The letter is the type:
	 * f descriptor, F directory descriptor (may be AT_FDCWD), d decimal, x hex, o octal, O
	 * open's flags, p address, n address of a path, q position in the file, s signal. */
	const char *args;
};

struct call_arch;

/* Table of an architecture ("x86_64", "aarch64"), or NULL for others. */
const struct call_arch *call_arch(const char *arch);

/* Call 'nr', or NULL if unknown. O(1). */
const struct call_info *call_info(const struct call_arch *arch, uint32_t nr);

/* Shorthands: name of a number, or NULL; number of a name, or -1. */
const char *call_name(const char *arch, uint32_t nr);
int call_number(const char *arch, const char *name);

const char *call_class_name(enum call_class class); /* "read" */

#endif
