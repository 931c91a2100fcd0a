/* Members of JSON objects by key; what is absent or of another type reads as 0 or NULL. */
#ifndef CULPRIT_BASE_JSON_GET_H
#define CULPRIT_BASE_JSON_GET_H

#include <jansson.h>

static inline json_int_t json_get_int(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static inline double json_get_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* Borrowed from 'object'. */
static inline const char *json_get_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

#endif
