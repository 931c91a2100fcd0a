/* The cluster as it is kept with what was recorded on it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

#include "harness/run/cluster.h"
#include "harness/fs/bulk.h"
#include "harness/fs/fs.h"

/* Adds the address and port at which clients reach the server, as numbers, to 'v'. */
static int add_service(struct fs *fs, const struct host *h, json_t *v, struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list;
	char text[INET6_ADDRSTRLEN + 20], *address;
	uint16_t port;
	int rc = fs_service(fs, h, &address, &port, e);

	if (rc)
		return rc;
	rc = getaddrinfo(address, NULL, &hints, &list);
	if (!rc) {
		rc = getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(text), NULL, 0,
			NI_NUMERICHOST);
		freeaddrinfo(list);
	}
	if (rc)
		rc = err_set(e, -ENOENT, "%s: cannot resolve '%s': %s", h->ssh.name, address,
			gai_strerror(rc));
	free(address);
	if (!rc) {
		json_object_set_new(v, "address", json_string(text));
		json_object_set_new(v, "port", json_integer(port));
	}
	return rc;
}

int cluster_describe(const struct cluster *c, json_t **out, struct err *e)
{
	json_t *servers = json_array(), *clients = json_array();
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e);

	for (size_t i = 0; i < c->n_servers + c->n_clients && !rc; i++) {
		bool server = i < c->n_servers;
		const struct member *m = server ? c->servers[i] : c->clients[i - c->n_servers];
		json_t *v = json_pack("{s:s, s:I, s:b}", "name", m->name, "clock_offset_ns",
			(json_int_t)(m->offset_s * 1e9), "sampled", m->sampled);

		json_object_set_new(v, server ? "storage" : "mount",
			json_pack("s?", server ? m->host->storage : m->host->mount));
		if (server && *m->storage_device)
			json_object_set_new(v, "storage_device", json_string(m->storage_device));
		if (server)
			rc = add_service(fs, m->host, v, e);
		json_array_append_new(server ? servers : clients, v);
	}
	if (rc) {
		json_decref(servers);
		json_decref(clients);
	} else {
		*out = json_pack("{s:o, s:o, s:o}", "servers", servers, "clients", clients, "bulk",
			bulk_to_json(fs_bulk(fs)));
	}
	fs_free(fs);
	return rc;
}
