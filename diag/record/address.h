/*
 * What a descriptor leads to: is a socket's address a server's service, does a path lie below a
 * folder.
 */
#ifndef CULPRIT_DIAG_LOG_ADDRESS_H
#define CULPRIT_DIAG_LOG_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Same host and port; port 0 of 'service' is any. An IPv4 address is the same as its IPv6 form
 * (::ffff:1.2.3.4). */
bool address_is_service(
	const struct sockaddr_storage *socket, const struct sockaddr_storage *service);

/* 'path' (may be NULL) lies below 'folder', which has no slash at its end. Nothing lies below
 * "". */
bool path_is_below(const char *path, const char *folder);

#endif
