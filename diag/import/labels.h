/*
 * Series that are told apart by labels, as Prometheus's: which label is the member, and which are
 * groups. Labels that the user does not name are guessed from those that differ between series:
 *
 *     member   a label that is known to name a device (device, disk, osd ...), or else a host
 *              (instance, host ...), or else the label with the most values
 *     groups   the others that differ, the one with the fewest values first. A label that says the
 *              same as another, or that would leave every member alone in its group (a serial
 *              number), is none
 *
 * The labels le and quantile belong to the metric: 'latency{le="0.1"}', of latency_bucket.
 *
 * Several sets of labels can become one series (a version that changed): then it is the one or the
 * other at a time. If they have samples at the same time, a label that keeps them apart is one more
 * group, also where the user names groups. What is seen too late is left out and counted.
 */
#ifndef CULPRIT_DIAG_IMPORT_LABELS_H
#define CULPRIT_DIAG_IMPORT_LABELS_H

#include "diag/import/import.h"

enum { LABELS_MAX = 64 }; /* of one series */

struct label {
	const char *name, *value;
};

/* 'how' is borrowed: its member, group, metrics, n_metrics and only_metric. */
struct labels *labels_new(const struct import_options *how);
void labels_free(struct labels *l);

/* The number of the series with these labels; 'v' gets sorted, and is not kept. 'metric' is its
 * name, or NULL: how.only_metric or "value". 0; 1 if it is new; -ENOENT without a sentence if its
 * metric is not wanted. */
int labels_add(struct labels *l, const char *metric, struct label *v, size_t n, uint32_t *series);
size_t labels_count(const struct labels *l);
/* The metric of a series as the sink sees it. */
const char *labels_metric(const struct labels *l, uint32_t series);

/* The series has a sample at this time. Series that have samples at the same time become different
 * ones for the sink, by another label if need be. Before labels_decide; may be left out. */
void labels_seen(struct labels *l, uint32_t series, double time_s);

/* Finds out what is the member and what are the groups, from the series that have been added;
 * later calls do nothing. '*said' (may be NULL) gets notes of what was guessed or added. -EINVAL: a
 * label does not exist, or the user has to choose. */
int labels_decide(struct labels *l, struct import_said *said, struct err *e);
bool labels_decided(const struct labels *l);
/* "member in label 'device', groups in 'instance'"; the caller frees. */
char *labels_describe(const struct labels *l);

/* Declares NAME of series NAME_bucket with a label le: such counts are since the server's start, as
 * rate() and its like remove the name. */
int labels_declare_buckets(const struct labels *l, const struct import_sink *sink, struct err *e);

/* Watches from now on for samples that repeat a time of their series; labels_finish refuses them
 * with 'remedy'. 'local': times are a host's, with its summer time. */
void labels_watch_repeats(struct labels *l, bool local, const char *remedy);
/* The line of the samples that come now. */
void labels_line(struct labels *l, unsigned long line);
/* Another text begins: its times may be before those of the last one. */
void labels_text(struct labels *l);

/* Gives one sample to the sink. After labels_decide. */
int labels_sample(struct labels *l, uint32_t series, double time_s, double value,
	const struct import_sink *sink, struct import_said *said, struct err *e);

/* Notes on what was left out or repeated since the last time. -EINVAL if this is more than what was
 * given, or if repeated samples are no mishap. */
int labels_finish(struct labels *l, struct import_said *said, struct err *e);

#endif
