/* overhead_log FILE ...: how many calls the logs hold (of sums: their counts), how many were lost,
 * and bytes. */
#include <stdio.h>
#include <sys/stat.h>

#include "diag/record/log.h"

int main(int argc, char **argv)
{
	unsigned long long calls = 0, lost = 0, bytes = 0;

	for (int i = 1; i < argc; i++) {
		const struct record *rec;
		struct log_reader *r;
		struct stat st;
		struct err e;
		int rc;

		if (log_reader_new(argv[i], &r, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
		while ((rc = log_next(r, &rec, &e)) > 0) {
			if (rec->type == RECORD_CALL)
				calls++;
			else if (rec->type == RECORD_SUM)
				calls += rec->sum.count;
			else if (rec->type == RECORD_END)
				lost += rec->end.lost;
		}
		log_reader_free(r);
		if (rc < 0) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
		if (!stat(argv[i], &st))
			bytes += (unsigned long long)st.st_size;
	}
	printf("%llu %llu %llu\n", calls, lost, bytes);
	return 0;
}
