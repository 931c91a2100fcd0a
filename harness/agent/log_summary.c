/* Sums up a trace log on the node: records, calls and losses. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "diag/record/log.h"
#include "harness/agent/child.h"
#include "harness/base/auto.h"

/* strace's lines begin with a process number, sadc's file with its magic number (sysstat 9 and
 * later). */
static bool is_foreign(const char *path, bool *complete)
{
	unsigned char head[2] = {0}, last = 0;
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool text;

	if (fd < 0 || read(fd, head, sizeof(head)) != sizeof(head))
		return false;
	text = head[0] >= '0' && head[0] <= '9';
	*complete = !text ||
		(lseek(fd, -1, SEEK_END) >= 0 && read(fd, &last, 1) == 1 && last == '\n');
	return text || (head[0] == 0x96 && head[1] == 0xd5);
}

json_t *log_summary(const char *path, bool ended_in_order)
{
	const struct record *rec;
	struct log_reader *r = NULL;
	json_int_t records = 0, calls = 0, lost = 0;
	struct stat st = {0};
	bool whole = false, complete;
	struct err e;

	if (!stat(path, &st) && is_foreign(path, &complete))
		return json_pack("{s:n, s:n, s:n, s:I, s:b}", "records", "calls", "lost", "bytes",
			(json_int_t)st.st_size, "whole", complete && ended_in_order);
	if (!stat(path, &st) && !log_reader_new(path, &r, &e)) {
		while (log_next(r, &rec, &e) > 0) {
			if (rec->type == RECORD_END) {
				whole = true;
				lost = (json_int_t)rec->end.lost;
			} else {
				records++;
				calls += rec->type == RECORD_CALL &&
					!(rec->call.nr & RECORD_ASYNC_NR);
				if (rec->type == RECORD_SUM && !rec->sum.messages)
					calls += (json_int_t)rec->sum.count;
				if (rec->type == RECORD_LOST)
					lost += (json_int_t)rec->lost.count;
			}
		}
	}
	log_reader_free(r);
	return json_pack("{s:I, s:I, s:I, s:I, s:b}", "records", records, "calls", calls, "lost",
		lost, "bytes", (json_int_t)st.st_size, "whole", whole);
}

json_t *log_end_summary(const char *path)
{
	struct record_end end = {0};
	struct stat st = {0};
	const bool whole = !stat(path, &st) && !log_read_end(path, &end, NULL, NULL);

	return json_pack("{s:I, s:n, s:I, s:I, s:b}", "records", (json_int_t)end.records, "calls",
		"lost", (json_int_t)end.lost, "bytes", (json_int_t)st.st_size, "whole", whole);
}
