/*
 * Fields of a message's header, as a file system's Lua file describes them.
 */
#ifndef CULPRIT_DIAG_DERIVE_HEADER_H
#define CULPRIT_DIAG_DERIVE_HEADER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FLOW_HEADER = 64, /* fields lie within these bytes */
	FLOW_VALUES = 8,
};

/* A number in the header: 'size' bytes (1, 2, 4, 8; 0: no such field) at 'offset', ANDed with
 * 'mask', plus 'addend'. */
struct flow_field {
	uint8_t offset, size;
	bool big; /* big-endian */
	uint64_t mask;
	int64_t addend;
};

/* A field that must have one of these values; 'n' 0: no such check. */
struct flow_values {
	struct flow_field field;
	uint64_t values[FLOW_VALUES];
	uint8_t n;
};

/* Are all bytes of the field known? Bit i of 'known' stands for header[i]. */
bool flow_field_known(const struct flow_field *f, uint64_t known);

/* The field's value; all its bytes must be known. */
uint64_t flow_field_get(const struct flow_field *f, const uint8_t *header);

/* Has the field one of the values? All its bytes must be known. */
bool flow_values_have(const struct flow_values *v, const uint8_t *header);

#endif
