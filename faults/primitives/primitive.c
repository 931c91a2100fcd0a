/* The table of primitives. */
#include "faults/primitives/primitive.h"

#include <string.h>

static const struct primitive *const primitives[] = {
	&command_primitive,
	&disk_primitive,
	&disk_errors_primitive,
	&limits_primitive,
	&packets_primitive,
	&delay_primitive,
	&process_primitive,
	&signal_primitive,
	&pauses_primitive,
	&group_primitive,
	&readonly_primitive,
	&service_primitive,
};

const struct primitive *primitive_find(const char *name)
{
	for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++)
		if (!strcmp(primitives[i]->name, name))
			return primitives[i];
	return NULL;
}

int primitive_revert(
	const struct primitive *p, const json_t *inverse, bool *was_there, struct err *e)
{
	bool was = false;
	int rc = p->undo(inverse, &was, e);

	if (!rc)
		rc = p->verify_undone(inverse, e);
	if (!rc && was_there)
		*was_there = was;
	return rc;
}
