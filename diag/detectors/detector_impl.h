/* What the two halves of the detector runtime share; not for others. */
#ifndef CULPRIT_DIAG_DETECTOR_IMPL_H
#define CULPRIT_DIAG_DETECTOR_IMPL_H

#include "diag/detectors/detector.h"
#include "harness/base/lua/luax.h"

struct detector {
	lua_State *L;           /* its definition is the only thing on the stack, at 1 */
	struct luax_source src;
	char *name, *summary;
	json_t *params;
	bool trains;

	/* The sandbox's account. */
	lua_Alloc alloc;
	void *alloc_ud;
	size_t memory;          /* bytes in use */
	bool limited;           /* user code runs: limits apply */
	bool out_of_memory, out_of_time;
	unsigned long steps;    /* thousands of instructions in this call */
	unsigned refusals;      /* of memory, one after the other */
};

/* Calls the function 'name' of the definition with the 'nargs' values on top of the stack, within the
 * limits; leaves one result. -E2BIG when a limit was reached. */
int detector_call(struct detector *d, const char *name, int nargs, struct err *e);

#endif
