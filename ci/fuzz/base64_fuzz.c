/* libFuzzer entry of base64, as nodes send parts of logs: make fuzz, then out/fuzz/base64_fuzz
 * CORPUS. What is taken is what base64_encode makes of its bytes. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size / 4 * 3 + 1);
	char *text = malloc(size + 1);
	int64_t n;

	if (!bytes || !text)
		abort();
	n = base64_decode((const char *)data, size, bytes);
	if (n >= 0) {
		if (base64_length((size_t)n) != size)
			abort();
		base64_encode(bytes, (size_t)n, text);
		if (memcmp(text, data, size))
			abort();
	}
	free(bytes);
	free(text);
	return 0;
}
