#include "harness/judging/reduce.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/derive.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"

/* A server or a client as the description has it. */
struct place {
	const char *name, *mount;
	int64_t offset_ns;
	bool sampled;
};

struct reduction {
	struct stream_server *servers;
	struct place *places; /* servers, then clients */
	size_t n_servers, n_clients;
	char **names; /* of 'places'; borrowed */
	struct metrics *metrics;
	struct events *events;
};

static int read_address(const json_t *v, struct sockaddr_storage *out, struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST},
			*list;
	const char *address = jget_text(v, "address");
	char port[16];

	snprintf(port, sizeof(port), "%lld", (long long)jget_int(v, "port"));
	if (!address || getaddrinfo(address, port, &hints, &list))
		return err_set(e, -EINVAL, "'%s' of a server is no address",
			address ? address : "nothing");
	memcpy(out, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static int read_place(struct reduction *r, const json_t *v, struct err *e)
{
	size_t i = r->n_servers + r->n_clients;

	r->places[i] = (struct place){.name = jget_text(v, "name"),
		.mount = jget_text(v, "mount"),
		.offset_ns = jget_int(v, "clock_offset_ns"),
		.sampled = jget_true(v, "sampled")};
	r->names[i] = (char *)r->places[i].name;
	return r->names[i] ? 0 : err_set(e, -EINVAL, "a node without a name");
}

static int read_cluster(struct reduction *r, const json_t *cluster, struct err *e)
{
	json_t *servers = jget(cluster, "servers"), *clients = jget(cluster, "clients"), *v;
	size_t n = json_array_size(servers) + json_array_size(clients), i;
	int rc = 0;

	r->servers = alloc_zero(n, sizeof(*r->servers));
	r->places = alloc_zero(n, sizeof(*r->places));
	r->names = alloc_zero(n, sizeof(*r->names));
	json_array_foreach(servers, i, v) {
		if (!rc)
			rc = read_place(r, v, e);
		if (!rc)
			rc = read_address(v, &r->servers[i].address, e);
		r->servers[i].name = r->places[i].name;
		r->servers[i].storage = jget_text(v, "storage");
		r->n_servers++;
	}
	json_array_foreach(clients, i, v) {
		if (!rc)
			rc = read_place(r, v, e);
		r->n_clients++;
	}
	return rc;
}

/* Reads one file of a node once, for the metrics and (where asked) the events. */
static int add_log(struct reduction *r, const struct reduce_spec *spec, const struct place *p,
	enum stream_owner owner, const char *file, bool metrics, bool events, struct err *e)
{
	const size_t i = (size_t)(p - r->places);
	const struct stream_spec stream = {.servers = r->servers,
		.n_servers = r->n_servers,
		.owner = owner,
		.index = (int32_t)(i < r->n_servers ? i : i - r->n_servers),
		.mount = p->mount,
		.clock_offset_ns = p->offset_ns};
	uint64_t lost = 0;
	auto_free char *path = alloc_format("%s/%s.%s", spec->folder, p->name, file);
	int rc = derive_log(
		path, &stream, metrics ? r->metrics : NULL, events ? r->events : NULL, &lost, e);
	if (!rc && metrics && lost)
		rc = err_set(e, -EBADMSG, "'%s' lost %llu records", path, (unsigned long long)lost);
	return rc;
}

/* All logs of one node. A second tracer does not see the application, and gives metrics only. */
static int add_node(
	struct reduction *r, const struct reduce_spec *spec, const struct place *p, struct err *e)
{
	const bool server = p < r->places + r->n_servers, events = !spec->second;
	const enum stream_owner owner = server ? OWNER_SERVER : OWNER_DAEMON;
	int rc = 0;

	if (!server && events)
		rc = add_log(r, spec, p, OWNER_APP, "app.trace", false, true, e);
	if (!rc)
		rc = add_log(r, spec, p, owner, spec->second ? "fs.second.trace" : "fs.trace", true,
			events, e);
	if (!rc && p->sampled)
		rc = add_log(r, spec, p, owner, "fs.samples", true, false, e);
	return rc;
}

int reduce_traces(const struct reduce_spec *spec, struct reduction **out, struct err *e)
{
	struct reduction *r = alloc_zero(1, sizeof(*r));
	int rc = read_cluster(r, spec->cluster, e);

	if (!rc)
		rc = metrics_new(r->n_servers, spec->start_ns, spec->seconds, &r->metrics, e);
	if (!rc)
		rc = events_new(r->n_servers, spec->start_ns, spec->seconds, &r->events, e);
	for (size_t i = 0; !rc && i < r->n_servers + r->n_clients; i++)
		rc = add_node(r, spec, &r->places[i], e);
	if (rc)
		reduce_free(r);
	else
		*out = r;
	return rc;
}

void reduce_free(struct reduction *r)
{
	if (!r)
		return;
	metrics_free(r->metrics);
	events_free(r->events);
	free(r->servers);
	free(r->places);
	free(r->names);
	free(r);
}

int reduce_store(const struct reduction *r, struct store *s, int64_t attempt, struct err *e)
{
	const struct sample *samples;
	const struct event *events;
	size_t n = metrics_samples(r->metrics, &samples);
	int rc = n ? store_put_samples(s, attempt, r->names, samples, n, e) : 0;

	n = events_list(r->events, &events);
	return rc ? rc
		  : store_put_events(s, attempt, r->names, r->names + r->n_servers, events, n, e);
}
