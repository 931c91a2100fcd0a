/*
 * The tree of a server's storage, copied without its data: directories and symbolic links, and the
 * files without which the server does not start. Owner, mode, extended attributes and times of
 * change are kept; a file's holes stay holes.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_TREE_H
#define CULPRIT_FAULTS_PRIMITIVES_TREE_H

#include <jansson.h>

#include "harness/base/err.h"

/* Patterns of paths below the storage, as fnmatch takes them; a star does not match a slash. */
struct tree_rule {
	const char *prune;  /* folders that are left out unless a link or a kept file lies in
				them; "": none */
	const json_t *keep; /* files that are copied: a list of strings; NULL: none */
};

struct tree_size {
	json_int_t inodes, kept_bytes; /* kept_bytes: on the disk, without holes */
};

/* What a copy of the open folder 'from' would take. -ETIME: that is not known after 'patience_s'
 * (0: no limit). */
int tree_measure(int from, const struct tree_rule *rule, double patience_s, struct tree_size *size,
	struct err *e);

/* Copies what is below the open folder 'from' to below the open folder 'to', which is empty, and
 * never crosses into another file system. -ENOSPC with what does not fit. */
int tree_copy(int from, int to, const struct tree_rule *rule, struct err *e);

#endif
