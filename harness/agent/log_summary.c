#include <errno.h>
#include <sys/stat.h>

#include "diag/log/log.h"
#include "harness/agent/agent.h"

json_t *log_summary(const char *path)
{
	const struct record *rec;
	struct log_reader *r = NULL;
	json_int_t records = 0, lost = 0;
	struct stat st = {0};
	bool whole = false;
	struct err e;

	if (!stat(path, &st) && !log_reader_new(path, &r, &e)) {
		while (log_next(r, &rec, &e) > 0) {
			if (rec->type == RECORD_END) {
				whole = true;
				lost = (json_int_t)rec->end.lost;
			} else {
				records++;
				if (rec->type == RECORD_LOST)
					lost += (json_int_t)rec->lost.count;
			}
		}
	}
	log_reader_free(r);
	return json_pack("{s:I, s:I, s:I, s:b}", "records", records, "lost", lost, "bytes", (json_int_t)st.st_size, "whole",
			 whole);
}
