/*
 * Series that are distinguished by labels, as in Prometheus: chooses the member and the groups
 * among the labels. Labels that the user does not name are guessed from those that differ between
 * series:
 *
 *     member   a label known to name a device (device, disk, osd ...), or else a host
 *              (instance, host ...), or else the label with the most values
 *     groups   the other labels that differ, the one with the fewest values first. Left out: a
 *     label
 *              that says the same as another, and one that would leave every member alone in its
 *              group (a serial number)
 *
 * The labels le and quantile belong to the metric: 'latency{le="0.1"}', of latency_bucket.
 *
 * Several sets of labels can become one series (a version that changed), one at a time. If they
 * have samples at the same time, a label that separates them becomes one more group, also if the
 * user names groups. Sets that are seen too late for that are left out and counted.
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

/* Finds or adds the series with these labels; sorts 'v', and does not keep it. 'metric' is its
 * name, or NULL: how.only_metric or "value". 0; 1 if it is new; -ENOENT without a sentence if its
 * metric is not requested. */
int labels_add(struct labels *l, const char *metric, struct label *v, size_t n, uint32_t *series);
size_t labels_count(const struct labels *l);
/* The metric of a series as the sink sees it. */
const char *labels_metric(const struct labels *l, uint32_t series);

/* Notes that the series has a sample at this time. Series with samples at the same time become
 * different ones for the sink, if necessary by another label. Call it before labels_decide;
 * optional. */
void labels_seen(struct labels *l, uint32_t series, double time_s);

/* Chooses the member and the groups from the series added so far; later calls do nothing. '*said'
 * (may be NULL) gets notes of guesses and additions. -EINVAL: a label does not exist, or the user
 * has to choose. */
int labels_decide(struct labels *l, struct import_said *said, struct err *e);
bool labels_decided(const struct labels *l);
/* "member in label 'device', groups in 'instance'"; the caller frees. */
char *labels_describe(const struct labels *l);

/* Declares NAME of series NAME_bucket with a label le: such counts run since the server's start,
 * because rate() and similar functions remove the name. */
int labels_declare_buckets(const struct labels *l, const struct import_sink *sink, struct err *e);

/* From now on notices samples that repeat a time of their series; labels_finish refuses them with
 * 'remedy'. 'local': times are a host's, with its summer time. */
void labels_watch_repeats(struct labels *l, bool local, const char *remedy);
/* Sets the line of the next samples. */
void labels_line(struct labels *l, unsigned long line);
/* Another text begins: its times may be earlier than those of the last one. */
void labels_text(struct labels *l);

/* Gives one sample to the sink. Call it after labels_decide. */
int labels_sample(struct labels *l, uint32_t series, double time_s, double value,
	const struct import_sink *sink, struct import_said *said, struct err *e);

/* Notes samples left out or repeated since the last call. -EINVAL if more samples were left out
 * than given, or if repeated samples are an error. */
int labels_finish(struct labels *l, struct import_said *said, struct err *e);

#endif
