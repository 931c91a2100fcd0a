/* Members of a JSON object by name, for objects and names that may be missing. Borrowed; 'v' may be
 * NULL. */
#ifndef CULPRIT_HARNESS_BASE_JGET_H
#define CULPRIT_HARNESS_BASE_JGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The member, or NULL. */
static inline json_t *jget(const json_t *v, const char *key)
{
	return json_object_get(v, key);
}

/* Its text, or NULL where it is missing or no string. */
static inline const char *jget_text(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

/* Its whole number, or 0. */
static inline int64_t jget_int(const json_t *v, const char *key)
{
	return json_integer_value(json_object_get(v, key));
}

/* Its number, or 0. */
static inline double jget_real(const json_t *v, const char *key)
{
	return json_number_value(json_object_get(v, key));
}

/* Is it there and true? */
static inline bool jget_true(const json_t *v, const char *key)
{
	return json_is_true(json_object_get(v, key));
}

#endif
