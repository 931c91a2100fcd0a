/*
 * Errors: a function that can fail returns 0 (or a count) or a negative errno
 * and, as its last parameter, fills one sentence of context: which node, fault
 * or path, what was being done, and what the user can do about it.
 *
 * The sentence is lower case, has no full stop, and quotes its subject:
 *     cannot open '/srv/brick': permission denied
 * Outputs are untouched on failure. Libraries never print; main does.
 */
#ifndef CULPRIT_HARNESS_BASE_ERR_H
#define CULPRIT_HARNESS_BASE_ERR_H

/* Who can fix the problem. The class determines the exit code (err_exit_code) and the attempt's
 * outcome (attempt_outcome). */
enum err_class {
	ERR_UNCLASSED,   /* not set yet; the attempt is retried */
	ERR_USAGE,       /* the command line */
	ERR_SCENARIO,    /* a file of the user: scenario, inventory, fault, workload, detector */
	ERR_CLUSTER,     /* a node or the network; a retry may help */
	ERR_DAMAGED,     /* a run, trace or corpus is corrupt */
	ERR_INTERRUPTED, /* the user asked to stop */
	ERR_UNSAFE,      /* the scenario's safety condition held (abort_if) */
	ERR_HARNESS,     /* this program or this machine: no memory, a full disk */
};

struct err {
	char text[1024];
	enum err_class class;
};

/* Fills 'e' (may be NULL) and returns 'code', which must be a negative errno. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": strerror(-code)" appended. -ENOMEM is of the class ERR_HARNESS. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the sentence already in 'e'; returns 'code'. */
int err_prefix(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Sets the error class of 'e' (may be NULL) unless a callee has already set one; returns 'code'. */
int err_blame(struct err *e, enum err_class class, int code);

/* The program's exit code for an error: 2 for usage, scenario and damaged input, else 3. */
int err_exit_code(const struct err *e);

#endif
