/* Compares socket addresses with services, and paths with folders. */
#include "diag/record/address.h"

#include <netinet/in.h>
#include <string.h>

static bool plain_address(const struct sockaddr_storage *a, struct in6_addr *ip, in_port_t *port)
{
	if (a->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)a;

		memset(ip, 0, sizeof(*ip));
		ip->s6_addr[10] = ip->s6_addr[11] = 0xff;
		memcpy(&ip->s6_addr[12], &in->sin_addr, 4);
		*port = in->sin_port;
		return true;
	}
	if (a->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;

		*ip = in6->sin6_addr;
		*port = in6->sin6_port;
		return true;
	}
	return false;
}

bool address_is_service(
	const struct sockaddr_storage *socket, const struct sockaddr_storage *service)
{
	struct in6_addr a, b;
	in_port_t ap, bp;

	return plain_address(socket, &a, &ap) && plain_address(service, &b, &bp) &&
		(!bp || ap == bp) && !memcmp(&a, &b, sizeof(a));
}

bool address_is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct in6_addr x, y;
	in_port_t ignored;

	return plain_address(a, &x, &ignored) && plain_address(b, &y, &ignored) &&
		!memcmp(&x, &y, sizeof(x));
}

unsigned address_port(const struct sockaddr_storage *a)
{
	struct in6_addr ignored;
	in_port_t port;

	return plain_address(a, &ignored, &port) ? ntohs(port) : 0;
}

bool path_is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return n && path && !strncmp(path, folder, n) && path[n] == '/';
}
