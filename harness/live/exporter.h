/*
 * A page of metrics for Prometheus at http://ADDRESS/metrics, on a loopback address or on a Unix
 * socket that only its owner can open. A thread of libmicrohttpd serves the most recently
 * published text, so a scrape never waits for a judgement.
 */
#ifndef CULPRIT_HARNESS_LIVE_EXPORTER_H
#define CULPRIT_HARNESS_LIVE_EXPORTER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "harness/base/err.h"

enum { EXPORTER_CONNECTIONS_MAX = 16, EXPORTER_TIMEOUT_S = 10 };

/* "unix:/PATH", "127.0.0.1:PORT" or "[::1]:PORT"; port 0: any free port. -EINVAL with a sentence
 * for anything else, including addresses that other hosts can reach. */
int exporter_parse(const char *text, struct sockaddr_storage *to, socklen_t *size, struct err *e);

struct exporter;

/* Starts the server. Replaces the socket file of a process that has ended; -EADDRINUSE if a
 * process listens there, -EEXIST if the file is not a socket. */
int exporter_open(const char *address, struct exporter **x, struct err *e);
/* Stops the server and removes the socket file if it is still ours. NULL is fine. */
void exporter_close(struct exporter *x);

/* "unix:/PATH" or "127.0.0.1:PORT", with the port in use. */
const char *exporter_address(const struct exporter *x);
/* The socket file, or NULL. */
const char *exporter_path(const struct exporter *x);

/* Serves 'text' (allocated; ownership is taken) from now on. */
void exporter_publish(struct exporter *x, char *text);

#endif
