/* What the nodes of a replay print, merged into one result: two outputs, split at the first zero
 * byte. For any input there is a result or an error with a message. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/replay/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *first = calloc(1, size + 2), *outputs[2];
	json_t *result = json_object();
	struct err e = {""};
	int rc;

	memcpy(first, data, size);
	outputs[0] = first;
	outputs[1] = first + strlen(first) + 1;
	rc = replay_merge(outputs, 2, result, &e);
	if (rc > 0 || (rc && !*e.text) ||
		(!rc && !json_is_array(json_object_get(result, "passes"))))
		abort();
	json_decref(result);
	free(first);
	return 0;
}
