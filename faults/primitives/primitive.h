/*
 * Primitives act on a node. Each act has an *inverse*: a JSON object with everything that undo
 * needs. It is written to the undo journal before the act, and may be read by another process,
 * after a crash, or twice.
 *
 * Undo touches only what the inverse names (a table, a tag) and is idempotent. Whether it worked is
 * verified by looking at the system, never taken from a return code.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_PRIMITIVE_H
#define CULPRIT_FAULTS_PRIMITIVES_PRIMITIVE_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct primitive {
	const char *name;
	/* A reboot undoes it. Afterwards, process numbers in the inverse mean other processes. */
	bool ends_with_boot;
	/* Its undo may take minutes (a file-system check): the node is quarantined meanwhile. */
	bool slow;
	/* '*was_there' (never NULL) becomes true if there was something to undo. -EBADMSG: the
	 * inverse is not one of this primitive's. */
	int (*undo)(const json_t *inverse, bool *was_there, struct err *e);
	/* 0 if nothing of the act is left; -EBUSY with a sentence that names what is. */
	int (*verify_undone)(const json_t *inverse, struct err *e);
};

/* NULL if there is none of this name. */
const struct primitive *primitive_find(const char *name);

/* Undoes and verifies. 'was_there' may be NULL. */
int primitive_revert(
	const struct primitive *p, const json_t *inverse, bool *was_there, struct err *e);

extern const struct primitive command_primitive;
extern const struct primitive process_primitive;
extern const struct primitive packets_primitive;
extern const struct primitive delay_primitive;
extern const struct primitive limits_primitive;
extern const struct primitive signal_primitive;
extern const struct primitive pauses_primitive;
extern const struct primitive group_primitive;
extern const struct primitive service_primitive;
extern const struct primitive readonly_primitive;
extern const struct primitive disk_primitive;
extern const struct primitive disk_errors_primitive;

#endif
