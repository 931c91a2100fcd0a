/*
 * Metrics: from a trace log to one number a second (001, sections 4 and 6).
 *
 *   dread   service time of reads on a server's file objects
 *   dwrite  service time of writes on a server's file objects
 *   nsread  time that a server takes to read one whole request from a client
 *   ncread  time that a client daemon takes to read one whole response from a server
 *
 * dread, dwrite, nsread belong to the server whose log it is; ncread to the server
 * at the other end of the socket. All are kept as sums (count, total, maximum), so that
 * seconds can be averaged and logs added without loss.
 */
#ifndef CULPRIT_DIAG_METRICS_H
#define CULPRIT_DIAG_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "harness/base/err.h"

enum metric { METRIC_DREAD, METRIC_DWRITE, METRIC_NSREAD, METRIC_NCREAD, METRIC_COUNT };

const char *metric_name(enum metric m);        /* "dread" */
const char *metric_unit(enum metric m);        /* "s" */
const char *metric_definition(enum metric m);  /* one sentence */
int metric_from_name(const char *name, enum metric *m);

struct sample {
	enum metric metric;
	uint32_t server;     /* index into metrics_spec.servers */
	int32_t second;      /* since metrics_spec.start_ns; the second in which the event ended */
	uint64_t count;
	double sum_s, max_s; /* service time in seconds */
	uint64_t bytes;
};

struct metrics_server {
	const char *name;
	struct sockaddr_storage address; /* of its service: address and port */
	const char *storage;             /* path prefix of its file objects */
};

struct metrics_spec {
	const struct metrics_server *servers;
	size_t n_servers;
	int64_t start_ns;      /* second 0 begins here, CLOCK_REALTIME of the orchestrator */
	int32_t seconds;       /* events outside 0 .. seconds-1 are left out */
	int32_t self;          /* index of the server whose log this is, or -1 for a client daemon's */
	int64_t clock_offset_ns; /* this node's clock minus the orchestrator's; subtracted */
};

struct metrics;

int metrics_new(const struct metrics_spec *spec, struct metrics **out, struct err *e);

/* Reads a whole log and adds it. Memory grows with seconds and servers, not with the log.
 * '*lost' gets the log's count of lost records. -EBADMSG: damaged or cut short. */
int metrics_add_log(struct metrics *m, const char *path, uint64_t *lost, struct err *e);

/* The samples with count > 0, ordered by metric, server, second; owned by 'm'. */
size_t metrics_samples(struct metrics *m, const struct sample **out);
void metrics_free(struct metrics *m);

#endif
