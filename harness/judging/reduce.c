#include "harness/judging/reduce.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/metrics.h"
#include "diag/derive/events.h"

/* A server or a client as the description has it. */
struct place {
	const char *name, *mount;
	int64_t offset_ns;
	bool sampled;
};

struct reduction {
	struct metrics_server *servers;
	struct place *places; /* servers, then clients */
	size_t n_servers, n_clients;
	char **names; /* of 'places'; borrowed */
	struct metrics *metrics;
	struct events *semantic;
};

static const char *text(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

static int read_address(const json_t *v, struct sockaddr_storage *out, struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST},
			*list;
	const char *address = text(v, "address");
	char port[16];

	snprintf(port, sizeof(port), "%lld",
		(long long)json_integer_value(json_object_get(v, "port")));
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

	r->places[i] = (struct place){.name = text(v, "name"),
		.mount = text(v, "mount"),
		.offset_ns = json_integer_value(json_object_get(v, "clock_offset_ns")),
		.sampled = json_is_true(json_object_get(v, "sampled"))};
	r->names[i] = (char *)r->places[i].name;
	return r->names[i] ? 0 : err_set(e, -EINVAL, "a node without a name");
}

static int read_cluster(struct reduction *r, const json_t *cluster, struct err *e)
{
	const json_t *servers = json_object_get(cluster, "servers"),
		     *clients = json_object_get(cluster, "clients");
	size_t n = json_array_size(servers) + json_array_size(clients), i;
	json_t *v;
	int rc = 0;

	r->servers = calloc(n + 1, sizeof(*r->servers));
	r->places = calloc(n + 1, sizeof(*r->places));
	r->names = calloc(n + 1, sizeof(*r->names));
	if (!r->servers || !r->places || !r->names)
		return err_errno(e, -ENOMEM, "cannot reduce the traces");
	json_array_foreach((json_t *)servers, i, v)
	{
		if (!rc)
			rc = read_place(r, v, e);
		if (!rc)
			rc = read_address(v, &r->servers[i].address, e);
		r->servers[i].name = r->places[i].name;
		r->servers[i].storage = text(v, "storage");
		r->n_servers++;
	}
	json_array_foreach((json_t *)clients, i, v)
	{
		if (!rc)
			rc = read_place(r, v, e);
		r->n_clients++;
	}
	return rc;
}

static char *path_of(const struct reduce_spec *spec, const struct place *p, const char *file)
{
	char *path;

	return asprintf(&path, "%s/%s.%s", spec->folder, p->name, file) < 0 ? NULL : path;
}

static int add_logs(struct reduction *r, const struct reduce_spec *spec, const char *file,
	bool samples, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->n_servers + r->n_clients && !rc; i++) {
		const struct place *p = &r->places[i];
		uint64_t lost = 0;
		char *path;

		if (samples && !p->sampled)
			continue;
		path = path_of(spec, p, file);
		rc = path ? metrics_node(
				    r->metrics, i < r->n_servers ? (int32_t)i : -1, p->offset_ns, e)
			  : err_errno(e, -ENOMEM, "cannot read a trace");
		if (!rc)
			rc = metrics_add_log(r->metrics, path, &lost, e);
		if (!rc && lost)
			rc = err_set(e, -EBADMSG, "'%s' lost %llu records", path,
				(unsigned long long)lost);
		free(path);
	}
	return rc;
}

/* Servers' logs, applications' and client daemons' as events. */
static int add_events(struct reduction *r, const struct reduce_spec *spec, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->n_servers + 2 * r->n_clients && !rc; i++) {
		bool server = i < r->n_servers, app = !server && (i - r->n_servers) % 2 == 0;
		size_t k = server ? i : (i - r->n_servers) / 2;
		const struct place *p = &r->places[server ? k : r->n_servers + k];
		char *path = path_of(spec, p, app ? "app.trace" : "fs.trace");

		if (!path)
			rc = err_errno(e, -ENOMEM, "cannot read a trace");
		else if (server)
			rc = events_add_server(r->semantic, (int32_t)k, p->offset_ns, path, e);
		else if (app)
			rc = events_add_app(
				r->semantic, (int32_t)k, p->offset_ns, p->mount, path, e);
		else
			rc = events_add_daemon(r->semantic, (int32_t)k, p->offset_ns, path, e);
		free(path);
	}
	return rc;
}

int reduce_traces(const struct reduce_spec *spec, struct reduction **out, struct err *e)
{
	struct reduction *r = calloc(1, sizeof(*r));
	int rc = r ? read_cluster(r, spec->cluster, e)
		   : err_errno(e, -ENOMEM, "cannot reduce the traces");

	if (!rc) {
		struct metrics_spec m = {.servers = r->servers,
			.n_servers = r->n_servers,
			.start_ns = spec->start_ns,
			.seconds = spec->seconds,
			.self = -1};

		rc = metrics_new(&m, &r->metrics, e);
	}
	if (!rc)
		rc = add_logs(r, spec, spec->second ? "fs.second.trace" : "fs.trace", false, e);
	if (!rc)
		rc = add_logs(r, spec, "fs.samples", true, e);
	if (!rc)
		rc = events_new(
			r->servers, r->n_servers, spec->start_ns, spec->seconds, &r->semantic, e);
	/* A second tracer does not see the application. */
	if (!rc && !spec->second)
		rc = add_events(r, spec, e);
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
	events_free(r->semantic);
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

	n = events_list(r->semantic, &events);
	return rc ? rc
		  : store_put_events(s, attempt, r->names, r->names + r->n_servers, events, n, e);
}
