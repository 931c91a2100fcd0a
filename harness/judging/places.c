/* Reads the description of the cluster that is stored with an attempt. */
#include "harness/judging/places.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/fs/bulk.h"

static int read_address(const json_t *v, struct sockaddr_storage *out, struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST},
			*list;
	const char *address = jget_text(v, "address");
	char port[16];

	snprintf(port, sizeof(port), "%lld", (long long)jget_int(v, "port"));
	if (!address || getaddrinfo(address, port, &hints, &list))
		return err_set(e, -EINVAL, "'%s' of a server is not an address",
			address ? address : "nothing");
	memcpy(out, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static int read_place(struct places *p, const json_t *v, struct err *e)
{
	struct place *one = &p->place[p->n];

	*one = (struct place){.name = jget_text(v, "name"),
		.mount = jget_text(v, "mount"),
		.offset_ns = jget_int(v, "clock_offset_ns"),
		.sampled = jget_true(v, "sampled")};
	p->names[p->n++] = (char *)one->name;
	return one->name ? 0 : err_set(e, -EINVAL, "a node has no name");
}

/* "7:5" as a device number; 0: none. */
static uint64_t read_device(const char *text)
{
	unsigned major, minor;

	return text && sscanf(text, "%u:%u", &major, &minor) == 2 ? makedev(major, minor) : 0;
}

static int read_server(struct places *p, const json_t *v, struct err *e)
{
	struct stream_server *server = &p->servers[p->n_servers++];
	int rc = read_place(p, v, e);

	server->name = p->names[p->n - 1];
	server->storage = jget_text(v, "storage");
	server->storage_device = read_device(jget_text(v, "storage_device"));
	return rc ? rc : read_address(v, &server->address, e);
}

int places_read(struct places *out, const json_t *cluster, struct err *e)
{
	json_t *servers = jget(cluster, "servers"), *clients = jget(cluster, "clients"), *v;
	size_t n = json_array_size(servers) + json_array_size(clients), i;
	int rc = 0;

	out->servers = alloc_zero(n, sizeof(*out->servers));
	out->place = alloc_zero(n, sizeof(*out->place));
	out->names = alloc_zero(n, sizeof(*out->names));
	json_array_foreach(servers, i, v)
		if (!rc)
			rc = read_server(out, v, e);
	json_array_foreach(clients, i, v)
		if (!rc)
			rc = read_place(out, v, e);
	return rc ?: bulk_from_json(jget(cluster, "bulk"), &out->bulk, e);
}

void places_clear(struct places *p)
{
	free(p->servers);
	free(p->place);
	free(p->names);
	*p = (struct places){0};
}

bool places_is_server(const struct places *p, const struct place *one)
{
	return one < p->place + p->n_servers;
}

const struct place *places_find(const struct places *p, const char *name)
{
	for (size_t i = 0; name && i < p->n; i++)
		if (!strcmp(p->names[i], name))
			return &p->place[i];
	return NULL;
}

const char *const place_log_names[PLACE_LOGS] = {[PLACE_FS] = "fs.trace",
	[PLACE_SECOND] = "fs.second.trace",
	[PLACE_APP] = "app.trace",
	[PLACE_SAMPLES] = "fs.samples"};

char *places_folder(const char *run, const json_t *row)
{
	return alloc_format("%s/cells/%04lld.%lld", run, (long long)jget_int(row, "cell"),
		(long long)jget_int(row, "number"));
}

struct stream_spec places_stream(
	const struct places *p, const struct place *one, enum place_log log)
{
	const bool server = places_is_server(p, one);
	const size_t i = (size_t)(one - p->place);

	return (struct stream_spec){.servers = p->servers,
		.n_servers = p->n_servers,
		.owner = log == PLACE_APP ? OWNER_APP
			: server          ? OWNER_SERVER
					  : OWNER_DAEMON,
		.index = (int32_t)(server ? i : i - p->n_servers),
		.mount = one->mount,
		.clock_offset_ns = one->offset_ns};
}
