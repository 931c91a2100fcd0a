/* Reads fields from the header of a message. */
#include "diag/derive/header.h"

bool flow_field_known(const struct flow_field *f, uint64_t known)
{
	uint64_t ones = f->size < 64 ? (1ull << f->size) - 1 : UINT64_MAX;
	uint64_t wanted = f->offset < 64 ? ones << f->offset : 0;

	return (known & wanted) == wanted;
}

uint64_t flow_field_get(const struct flow_field *f, const uint8_t *header)
{
	const uint8_t *p = header + f->offset;
	uint64_t v = 0;

	for (unsigned i = 0; i < f->size; i++)
		v = v << 8 | p[f->big ? i : f->size - 1u - i];
	return (v & f->mask) + (uint64_t)f->addend;
}

bool flow_values_have(const struct flow_values *v, const uint8_t *header)
{
	uint64_t value = flow_field_get(&v->field, header);

	for (unsigned i = 0; i < v->n; i++)
		if (v->values[i] == value)
			return true;
	return false;
}
