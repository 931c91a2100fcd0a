#include "diag/record/reading.h"

#include <string.h>

static const struct {
	const char *name, *unit, *definition;
	enum reading_kind kind;
} readings[READING_TOTAL] = {
#define READING_ROW(e, name, unit, kind, definition)                                               \
	[READING_##e] = {name, unit, definition, READING_##kind},
	READINGS(READING_ROW)
#undef READING_ROW
};

const char *reading_name(enum reading r)
{
	return readings[r].name;
}

const char *reading_unit(enum reading r)
{
	return readings[r].unit;
}

enum reading_kind reading_kind(enum reading r)
{
	return readings[r].kind;
}

const char *reading_definition(enum reading r)
{
	return readings[r].definition;
}

int reading_from_name(const char *name, enum reading *r)
{
	for (unsigned i = 0; i < READING_TOTAL; i++) {
		if (!strcmp(readings[i].name, name)) {
			*r = (enum reading)i;
			return 0;
		}
	}
	return -ENOENT;
}
