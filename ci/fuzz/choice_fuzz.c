/* Words of a filter: what is read is written again as words that mean the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diag/capture/choice.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *line = alloc_zero(1, size + 1);
	static struct choice once, twice;
	struct err e;

	memcpy(line, data, size);
	memset(&once, 0, sizeof(once));
	memset(&twice, 0, sizeof(twice));
	if (choice_parse(line, &once, &e) == 0) {
		auto_free char *text = choice_text(&once);

		if (choice_parse(text, &twice, &e) || memcmp(&once, &twice, sizeof(once)))
			abort();
	}
	return 0;
}
