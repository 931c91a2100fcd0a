/*
 * The selection of calls to record, made at the start or while a capture runs. In words, separated
 * by blanks, each at most once:
 *
 *   process=NAME|PID,...   threads of these processes; a name is that of the process's main thread
 *                          (/proc/PID/comm, 15 bytes)
 *   calls=KIND,...         network (on sockets), disk (reads, writes and syncs of files and block
 *                          devices), fuse (on /dev/fuse; requests to FUSE mounts), metadata (calls
 *                          that name a path, and others on files and folders), other
 *   client=ADDRESS,...     among calls on TCP and UDP sockets, only those connected to these IP
 *                          addresses; other calls are not affected
 *   path=PREFIX,...        only calls on files at or below, and calls that name one; absolute
 *                          (for a missing path, with --control-fd: only calls that name it)
 *   none                   everything, alone
 *
 * All words must hold, and any entry of a word's list. %XX is a byte of a path: blank, comma, %.
 */
#ifndef CULPRIT_DIAG_CAPTURE_CHOICE_H
#define CULPRIT_DIAG_CAPTURE_CHOICE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "harness/base/err.h"

enum {
	CHOICE_NAMES = 16,
	CHOICE_PIDS = 64,
	CHOICE_CLIENTS = 16,
	CHOICE_PATHS = 16,
	CHOICE_PATH = 256, /* bytes, with the NUL */
	CHOICE_NAME = 16,
};

enum choice_kind {
	CHOICE_NETWORK = 1,
	CHOICE_DISK = 2,
	CHOICE_FUSE = 4,
	CHOICE_METADATA = 8,
	CHOICE_OTHER = 16,
};

/* All zero: everything. */
struct choice {
	char names[CHOICE_NAMES][CHOICE_NAME];
	pid_t pids[CHOICE_PIDS]; /* numbered as this process sees them */
	size_t n_names, n_pids;
	unsigned calls;                          /* enum choice_kind; 0: all */
	struct in6_addr clients[CHOICE_CLIENTS]; /* IPv4 as ::ffff:a.b.c.d */
	size_t n_clients;
	char paths[CHOICE_PATHS][CHOICE_PATH];
	size_t n_paths;
};

/* Adds to one word: "process", "calls", "client" or "path", with its list. -EINVAL, or -ENOMEM. */
int choice_add(struct choice *c, const char *word, const char *list, struct err *e);

/* Reads all words of a line into '*c', which is unchanged after errors. -EINVAL, or -ENOMEM. */
int choice_parse(const char *line, struct choice *c, struct err *e);

/* Prints the line again; "none". The caller frees. NULL: out of memory. */
char *choice_text(const struct choice *c);

bool choice_is_all(const struct choice *c);

#endif
