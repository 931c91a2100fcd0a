/* libFuzzer entry of what a store answers: make fuzz, then out/fuzz/rowbinary_fuzz CORPUS. The
 * first bytes choose the columns. Whatever is read can be read to its end. */
#include <stdlib.h>
#include <string.h>

#include "diag/ship/rowbinary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rowbinary rows = {.n = 0};
	struct err e;
	size_t sum = 0, columns;
	FILE *f;
	int rc;

	if (size < 6)
		return 0;
	columns = 1 + data[0] % 5;
	for (size_t i = 0; i < columns; i++) {
		rows.column[i].type = (enum column_type)(data[1 + i] % 3);
		rows.column[i].nullable = data[1 + i] & 128;
	}
	rows.n = columns;
	f = size > 6 ? fmemopen((void *)(data + 6), size - 6, "r") : fopen("/dev/null", "r");
	if (!f)
		abort();
	while ((rc = rowbinary_next(&rows, f, &e)) == 1)
		for (size_t i = 0; i < rows.n; i++)
			if (rows.value[i].type == VALUE_TEXT)
				sum += strlen(rows.value[i].text);
	fclose(f);
	rowbinary_clear(&rows);
	return sum == SIZE_MAX || rc > 0;
}
