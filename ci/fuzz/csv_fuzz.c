/* libFuzzer entry of the reader of CSV time series: make fuzz, then out/fuzz/csv_fuzz CORPUS. What
 * it accepts must have finite times in range and indexes of existing names; what it refuses must
 * be refused with a line number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct series_names names = {0};
	struct series s = {0};
	struct sample *samples;
	struct err e;
	size_t n;
	FILE *f = size ? fmemopen((void *)data, size, "r") : NULL;

	if (!f)
		return 0;
	if (series_read(f, "x.csv", &names, &s, &e) == 0) {
		for (size_t i = 0; i < s.n; i++)
			if (!isfinite(s.points[i].time_s) || !isfinite(s.points[i].value) ||
				s.points[i].server >= names.n_servers ||
				s.points[i].metric >= names.n_metrics ||
				s.points[i].time_s < s.from_s || s.points[i].time_s > s.to_s)
				abort();
		samples = series_samples(&s, s.from_s, s.to_s, 1, &n);
		if (n > s.n)
			abort();
		free(samples);
		series_clear(&s);
	} else if (strncmp(e.text, "x.csv:", 6)) {
		abort();
	}
	series_names_clear(&names);
	fclose(f);
	return 0;
}
