/* Looks up members of a JSON object by name; the object (NULL) and the member may be missing.
 * Results are borrowed references. */
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

/* The member's text, or NULL if it is missing or not a string. */
static inline const char *jget_text(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

/* The member as an integer, or 0. */
static inline int64_t jget_int(const json_t *v, const char *key)
{
	return json_integer_value(json_object_get(v, key));
}

/* The member as a number, or 0. */
static inline double jget_real(const json_t *v, const char *key)
{
	return json_number_value(json_object_get(v, key));
}

/* Is the member present and true? */
static inline bool jget_true(const json_t *v, const char *key)
{
	return json_is_true(json_object_get(v, key));
}

#endif
