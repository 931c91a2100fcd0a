/*
 * Errors: a function that can fail returns 0 (or a count) or a negative errno
 * and, as its last parameter, fills one sentence of context: which node, fault
 * or path, what was being done, and what the user can do about it.
 *
 * The sentence is lower case, has no full stop, and quotes its subject:
 *     cannot open '/srv/brick': permission denied
 * Outputs are untouched on failure. Libraries never print; main does.
 */
#ifndef CULPRIT_BASE_ERR_H
#define CULPRIT_BASE_ERR_H

struct err {
	char text[1024];
};

/* Fills 'e' (may be NULL) and returns 'code', which must be a negative errno. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": strerror(-code)" appended. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the sentence already in 'e'; returns 'code'. */
int err_prefix(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
