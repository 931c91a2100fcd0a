/* What sar, sadf and iostat have in common: a disk of a host with its metrics, and how they write
 * dates. */
#ifndef CULPRIT_DIAG_IMPORT_SYSSTAT_H
#define CULPRIT_DIAG_IMPORT_SYSSTAT_H

#include "diag/import/import.h"

#define IOSTAT_ADVICE "S_TIME_FORMAT=ISO iostat -x -t -o JSON 10"

/* A note. */
#define SYSSTAT_LOCAL                                                                              \
	"times without a zone are taken as UTC; sar and iostat write the host's local time"

enum { SYSSTAT_NAME_MAX = 256 };

struct sysstat;

struct sysstat *sysstat_new(
	const struct import_options *o, const struct import_sink *sink, struct import_said *said);
void sysstat_free(struct sysstat *x);

/* A host's recording begins: its times may be before those of the last one. */
void sysstat_begin(struct sysstat *x);

/* One value of a disk, at a line. Metrics are declared by their first value; "rkB" of sadf's JSON
 * is "rkB/s" of sar. A time outside of the options' range is skipped. Times of a host that go back,
 * or on by more than a day, are noted at the end, with the first one's line. */
int sysstat_sample(struct sysstat *x, const char *host, const char *disk, const char *metric,
	double time_s, unsigned long line, double value, struct err *e);

/* Notes, and said->form: "sar: 3 hosts, 24 disks". -EINVAL if there was no value at all: 'advice'
 * says how to make such a file. */
int sysstat_finish(
	struct sysstat *x, const char *source, const char *form, const char *advice, struct err *e);

/* "2026-11-22", "11/22/26", "11/22/2026" (month first) as days since the Unix epoch; what follows
 * is given by '*end' (may be NULL: nothing may follow). -EINVAL. */
int sysstat_date(const char *text, int *day, const char **end);

/* "14:19:40", or "02:19:40 PM", as seconds since midnight; what follows is given by '*end'. */
int sysstat_clock(const char *text, int *seconds, const char **end);

#endif
