/*
 * Compares addresses with services, and paths with folders.
 */
#ifndef CULPRIT_DIAG_RECORD_ADDRESS_H
#define CULPRIT_DIAG_RECORD_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Same host and port? Port 0 of 'service' matches any port, and an IPv4 address its IPv6 form
 * (::ffff:1.2.3.4). Other families never match. */
bool address_is_service(
	const struct sockaddr_storage *socket, const struct sockaddr_storage *service);

/* Same host, with any ports? */
bool address_is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* The port in host order; 0: no port, or another family. */
unsigned address_port(const struct sockaddr_storage *a);

/* Is 'path' (may be NULL) below 'folder', which has no slash at its end? No path is below "". */
bool path_is_below(const char *path, const char *folder);

#endif
