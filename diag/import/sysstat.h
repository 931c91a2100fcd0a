/* Shared by sar, sadf and iostat: a disk of a host with its metrics, and their dates. */
#ifndef CULPRIT_DIAG_IMPORT_SYSSTAT_H
#define CULPRIT_DIAG_IMPORT_SYSSTAT_H

#include "diag/import/import.h"

#define IOSTAT_ADVICE "S_TIME_FORMAT=ISO iostat -x -t -o JSON 10"

#define SYSSTAT_LOCAL                                                                              \
	"times without a zone are taken as UTC; sar and iostat write the host's local time"

enum { SYSSTAT_NAME_MAX = 256 };

struct sysstat;

struct sysstat *sysstat_new(
	const struct import_options *o, const struct import_sink *sink, struct import_said *said);
void sysstat_free(struct sysstat *x);

/* A host's recording begins: its times may be earlier than those of the last one. */
void sysstat_begin(struct sysstat *x);

/* One value of a disk, at a line. The first value of a metric declares it; "rkB" of sadf's JSON is
 * "rkB/s" of sar. Skips times outside the options' range. Places where a host's time goes back, or
 * has a gap of more than a day, are noted at the end, with the first line. */
int sysstat_sample(struct sysstat *x, const char *host, const char *disk, const char *metric,
	double time_s, unsigned long line, double value, struct err *e);

/* Adds notes and said->form: "sar: 3 hosts, 24 disks". -EINVAL if there was no value: 'advice' says
 * how to make such a file. */
int sysstat_finish(
	struct sysstat *x, const char *source, const char *form, const char *advice, struct err *e);

/* Reads "2026-11-22", "11/22/26", "11/22/2026" (month first) as days since the Unix epoch; '*end'
 * gets the rest of the text (NULL: there must be no rest). -EINVAL. */
int sysstat_date(const char *text, int *day, const char **end);

/* Reads "14:19:40", or "02:19:40 PM", as seconds since midnight; '*end' gets the rest of the
 * text. */
int sysstat_clock(const char *text, int *seconds, const char **end);

#endif
