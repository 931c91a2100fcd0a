/*
 * System calls by number: names, what kind of call it is, which argument is the
 * descriptor. Numbers come from the kernel's headers at build time.
 */
#ifndef CULPRIT_DIAG_LOG_CALLS_H
#define CULPRIT_DIAG_LOG_CALLS_H

#include <stdint.h>

enum call_class {
	CALL_OTHER,
	CALL_READ,  /* bytes come from 'fd': read pread64 readv recvfrom recvmsg ... */
	CALL_WRITE, /* bytes go to 'fd' */
	CALL_COPY,  /* bytes go from 'fd' to 'fd2' inside the kernel: sendfile splice ... */
	CALL_OPEN,  /* makes a descriptor: the result, or the pair that args point to */
	CALL_CLOSE,
	CALL_POLL, /* waits for descriptors */
	CALL_SYNC, /* brings 'fd' (or everything) to the disk */
	CALL_CLASS_COUNT,
};

struct call_info {
	const char *name;
	enum call_class class;
	int8_t fd, fd2; /* index of the argument that is a descriptor, or -1 */
	int8_t path,
		path2; /* of those that are paths (the second of rename, link, symlink ...), or -1 */
	int8_t offset; /* of the one that says where in the file a read or write begins, or -1 */
	int8_t n_args; /* -1: not known; all six registers are then of no known use */
	/* Arguments, "LETTER NAME" separated by commas; the letter says how it reads: f descriptor,
	 * F directory descriptor (may be AT_FDCWD), d decimal, x hex, o octal, O open's flags, p
	 * address, n address of a path, q position in the file, s signal. NULL if not known. */
	const char *args;
};

struct call_arch;

/* Table of an architecture ("x86_64", "aarch64"), or NULL if it is not known. */
const struct call_arch *call_arch(const char *arch);

/* What call 'nr' is, or NULL if there is no such call. O(1). */
const struct call_info *call_info(const struct call_arch *arch, uint32_t nr);

/* Shorthands. Name of a call, or NULL; number of a name, or -1; class, with '*fd' (may be NULL)
 * the index of the descriptor argument, or -1. */
const char *call_name(const char *arch, uint32_t nr);
int call_number(const char *arch, const char *name);
const char *call_class_name(enum call_class class); /* "read" */
enum call_class call_class(const char *arch, uint32_t nr, int *fd);

#endif
