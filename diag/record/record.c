/* Gives access to fields common to all record types: times, process, thread. */
#include "diag/record/record.h"

#include <stddef.h>
#include <string.h>
#include <sys/un.h>

/* Offsets of start, process and thread in each type; 0: no such field. */
static const struct {
	uint8_t start, pid, tid;
} places[] = {
#define AT(member) offsetof(struct record, member)
	[RECORD_CALL] = {AT(call.start_ns), AT(call.pid), AT(call.tid)},
	[RECORD_SIGNAL] = {AT(signal.start_ns), AT(signal.pid), AT(signal.tid)},
	[RECORD_FD] = {AT(fd.start_ns), AT(fd.pid)},
	[RECORD_PROCESS] = {AT(process.start_ns), AT(process.pid), AT(process.tid)},
	[RECORD_LOST] = {AT(lost.start_ns)},
	[RECORD_END] = {AT(end.start_ns)},
	[RECORD_SUM] = {AT(sum.start_ns), AT(sum.pid)},
	[RECORD_READING] = {AT(reading.start_ns)},
	[RECORD_FUSE] = {AT(fuse.start_ns), AT(fuse.pid), AT(fuse.tid)},
	[RECORD_MARK] = {AT(mark.start_ns)},
	[RECORD_UNSEEN] = {AT(unseen.start_ns)},
#undef AT
};

static uint32_t number_at(const struct record *rec, uint8_t offset)
{
	uint32_t value = 0;

	if (offset)
		memcpy(&value, (const char *)rec + offset, sizeof(value));
	return value;
}

int64_t record_start_ns(const struct record *rec)
{
	int64_t ns;

	memcpy(&ns, (const char *)rec + places[rec->type].start, sizeof(ns));
	return ns;
}

int64_t record_end_ns(const struct record *rec)
{
	if (rec->type == RECORD_CALL)
		return (int64_t)((uint64_t)rec->call.start_ns + (uint64_t)rec->call.service_ns);
	return record_start_ns(rec);
}

uint32_t record_pid(const struct record *rec)
{
	return number_at(rec, places[rec->type].pid);
}

uint32_t record_tid(const struct record *rec)
{
	return number_at(rec, places[rec->type].tid);
}

const char *record_reading_thing(const struct record_reading *r)
{
	const struct sockaddr_un *un = (const void *)&r->peer;

	if (r->peer.ss_family != AF_UNIX)
		return NULL;
	return memchr(un->sun_path, '\0', sizeof(un->sun_path)) ? un->sun_path : "";
}
