/* Text from elsewhere as JSON. */
#ifndef CULPRIT_HARNESS_BASE_JSON_TEXT_H
#define CULPRIT_HARNESS_BASE_JSON_TEXT_H

#include <jansson.h>

/* A path need not be UTF-8; JSON must. The bytes of one that is not go as Latin-1 would. New
 * reference. */
json_t *json_text(const char *s);

/* Prints it on standard output, on one line; on a terminal in ASCII alone, since JSON leaves
 * control characters beyond ASCII as they are. */
void json_line(const json_t *value);

#endif
