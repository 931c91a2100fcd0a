/* JSON from text that may not be valid UTF-8. */
#ifndef CULPRIT_HARNESS_BASE_JSON_TEXT_H
#define CULPRIT_HARNESS_BASE_JSON_TEXT_H

#include <jansson.h>

/* A JSON string of a path. JSON requires UTF-8, but a path need not be UTF-8: invalid bytes are
 * converted from Latin-1. Returns a new reference. */
json_t *json_text(const char *s);

/* Prints 'v' to standard output on one line. On a terminal only ASCII is printed, because JSON
 * does not escape control characters beyond ASCII. */
void json_line(const json_t *value);

#endif
