/* Names, units and kinds of the sampler's readings. */
#include "diag/record/reading.h"

static const struct {
	const char *name, *unit;
	enum reading_kind kind;
} readings[READING_TOTAL] = {
#define READING_ROW(e, name, unit, kind, definition) [READING_##e] = {name, unit, READING_##kind},
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
