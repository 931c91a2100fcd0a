/*
 * Reduction: turns the traces in an attempt's folder into samples and events for the store. Each
 * trace is read once.
 *
 * It also needs the description of the cluster that is stored with the attempt (places.h), so
 * that a recorded run can be reduced again without the cluster (remeasure.h).
 */
#ifndef CULPRIT_HARNESS_JUDGING_REDUCE_H
#define CULPRIT_HARNESS_JUDGING_REDUCE_H

#include "harness/store/store.h"

struct reduction;

struct reduce_spec {
	const char *folder;    /* path of the attempt's folder */
	const json_t *cluster; /* see places.h; must outlive the reduction */
	int64_t start_ns;
	int32_t seconds;
	bool second; /* the second tracer's traces, not the first's */
};

/* -EBADMSG if a trace is damaged or lost records, -ENOENT if one is missing, -EINVAL for an
 * invalid description. */
int reduce_traces(const struct reduce_spec *spec, struct reduction **out, struct err *e);
void reduce_free(struct reduction *r);

/* Payload that the clients' file-system processes received from 'server' over TCP, according to
 * the clients' samplers; 0 without such readings (a client in the kernel, another network). */
double reduce_received_bytes(const struct reduction *r, const char *server);

/* Writes the samples and events of an attempt without any, inside the caller's transaction. */
int reduce_store(const struct reduction *r, struct store *s, int64_t attempt, struct err *e);

#endif
