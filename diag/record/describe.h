/*
 * The meaning of numbers in records, in words: errors, files, addresses, descriptors.
 */
#ifndef CULPRIT_DIAG_RECORD_DESCRIBE_H
#define CULPRIT_DIAG_RECORD_DESCRIBE_H

#include "diag/record/stream.h"

enum { ADDRESS_TEXT = 160, OPEN_FLAGS_TEXT = 256 };

bool call_failed(const struct record_call *c);
const char *call_error_name(int64_t result); /* NULL: no name */

/* The file of a call: its first or second path argument, made absolute if its folder is known, or
 * its descriptor's path. NULL: no file. In 'out', or valid until the next record. */
const char *call_file(struct stream_item *item, bool second, char *out, size_t size);

/* Bytes that a call of the classes READ, WRITE and COPY asked to move; -1: unknown. */
int64_t call_asked(const struct call_info *info, const struct record_call *c);

/* Bytes that such a call moved; -1: unknown, another class, or a receive that only peeks. The
 * result is no byte count for sendmmsg and recvmmsg, which return a number of messages, and for a
 * receive with MSG_TRUNC, which returns the datagram's full length. Needs the arguments of calls
 * whose call_info has 'messages' or 'flags'. */
int64_t call_moved(const struct call_info *info, const struct record_call *c);

/* Is it a receive that leaves its data in the socket (MSG_PEEK)? */
bool call_peeks(const struct call_info *info, const struct record_call *c);

/* "O_WRONLY|O_CREAT" in 'out', which is returned; NULL: the log is of another architecture, whose
 * flags have other numbers. */
const char *open_flags_text(const struct stream *s, uint64_t flags, char out[OPEN_FLAGS_TEXT]);

/* Likewise the flags of a call that opens a file; NULL: no such call, or without flags. */
const char *call_open_flags(const struct stream_item *item, char out[OPEN_FLAGS_TEXT]);

/* "10.0.0.1:24007", "[::1]:80", "/run/x.sock", "@abstract", or "" without an address; returns
 * 'out'. */
const char *address_text(const struct sockaddr_storage *a, char out[ADDRESS_TEXT]);

const char *fd_class_name(unsigned class); /* "server" */
const char *fd_kind_name(unsigned kind);   /* "socket" */

const char *unseen_name(unsigned what); /* "mappings" */
const char *unseen_text(unsigned what); /* a phrase to put after a number */

#endif
