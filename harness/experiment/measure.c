#include "harness/experiment/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"
#include "harness/fs/fs.h"

#define FETCH_TIMEOUT_S 120
#define CALL_TIMEOUT_S 30

/* The files that a member of each role leaves in its session's folder. */
static const char *const all_files[] = {
	"fs.trace", "fs.beside.trace", "fs.samples", "app.trace", "app.out", "app.times", NULL};
static const char *const server_files[] = {"fs.trace", "fs.samples", "fs.beside.trace", NULL};
static const char *const client_files[] = {
	"fs.trace", "fs.samples", "app.trace", "app.out", "fs.beside.trace", NULL};
static const char *const timed_files[] = {"app.out", "app.times", NULL};
static const char *const no_files[] = {NULL};

enum { MAX_FILES = 5 };

/* What is fetched from a member: a list ended by NULL. */
static const char *const *files_of(const struct executor *x, const struct member *m)
{
	if (x->scenario->measure == MEASURE_RUNTIME)
		return m->host->role == ROLE_CLIENT ? timed_files : no_files;
	return m->host->role == ROLE_SERVER    ? server_files
		: m->host->role == ROLE_CLIENT ? client_files
					       : no_files;
}

static bool is_fetched(const struct executor *x, const struct member *m, const char *file)
{
	if (!strcmp(file, "fs.samples"))
		return m->sampled;
	return x->scenario->beside.name || strcmp(file, "fs.beside.trace");
}

static char *local_path(
	struct executor *x, const char *folder, const struct member *m, const char *file)
{
	char *path;

	if (asprintf(&path, "%s/%s/%s.%s", store_folder(x->store), folder, m->host->ssh.name,
		    file) < 0)
		return NULL;
	return path;
}

static int remove_remote(struct cluster *c, struct err *e)
{
	struct node_request *requests = calloc(c->n_members, sizeof(*requests));
	int rc;

	if (!requests)
		return err_errno(e, -ENOMEM, "cannot remove files on the nodes");
	for (size_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		json_t *argv = json_pack("[s, s, s]", "rm", "-f", "--");

		for (const char *const *f = all_files; *f; f++)
			json_array_append_new(argv, json_sprintf("%s/%s", node_dir(m->node), *f));
		requests[i] = (struct node_request){
			.node = m->node, .op = "run", .args = json_pack("{s:o}", "argv", argv)};
	}
	rc = node_call_all(requests, c->n_members, CALL_TIMEOUT_S, e);
	for (size_t i = 0; i < c->n_members; i++)
		json_decref(requests[i].result);
	free(requests);
	return rc;
}

void measure_discard(struct cluster *c)
{
	remove_remote(c, NULL);
}

/* The workload's reading of its own output: {client: {bytes =, seconds =, ...}}. */
static int read_results(struct executor *x, const char *folder, const struct part *workload,
	bool may_fail, json_t *detail, struct err *e)
{
	lua_State *L = x->scenario->L;
	json_t *results = json_object();
	int top = lua_gettop(L), rc = 0;

	json_object_set_new(detail, "results", results);
	for (size_t i = 0; i < x->cluster->n_clients && !rc; i++) {
		struct member *m = x->cluster->clients[i];
		char *path = local_path(x, folder, m, "app.out"), *text = NULL;
		json_t *value = NULL;
		size_t size;

		lua_rawgeti(L, LUA_REGISTRYINDEX, workload->def_ref);
		lua_getfield(L, -1, "result");
		if (lua_isnil(L, -1)) {
			free(path);
			break;
		}
		rc = path ? file_read(path, &text, &size, e)
			  : err_errno(e, -ENOMEM, "cannot read a result");
		if (!rc) {
			lua_pushlstring(L, text, size);
			rc = luax_call(L, 1, 2, e);
		}
		if (!rc && lua_isnil(L, -2) && may_fail)
			lua_pushvalue(L, -1), lua_replace(L, -3);
		else if (!rc && lua_isnil(L, -2))
			rc = err_set(e, -EIO, "%s: %s: %s", m->host->ssh.name, workload->label,
				lua_isstring(L, -1) ? lua_tostring(L, -1)
						    : "it reported no result");
		if (!rc)
			rc = luajson_get(L, -2, &value, e);
		if (!rc)
			json_object_set_new(results, m->host->ssh.name, value);
		free(text);
		free(path);
		lua_settop(L, top);
	}
	lua_settop(L, top);
	return rc;
}

int measure_fetch(struct executor *x, const char *folder, const struct part *workload,
	bool may_fail, json_t *detail, struct err *e)
{
	struct cluster *c = x->cluster;
	struct node_transfer *transfers = calloc(c->n_members * MAX_FILES, sizeof(*transfers));
	size_t n = 0;
	int rc = transfers ? 0 : err_errno(e, -ENOMEM, "cannot fetch files");

	for (size_t i = 0; i < c->n_members && !rc; i++) {
		for (const char *const *f = files_of(x, &c->members[i]); *f && !rc; f++) {
			if (!is_fetched(x, &c->members[i], *f))
				continue;
			transfers[n] = (struct node_transfer){.node = c->members[i].node,
				.remote = *f,
				.local = local_path(x, folder, &c->members[i], *f)};
			if (!transfers[n++].local)
				rc = err_errno(e, -ENOMEM, "cannot fetch files");
		}
	}
	if (!rc)
		rc = node_fetch_all(transfers, n, FETCH_TIMEOUT_S, e);
	if (!rc)
		rc = remove_remote(c, e);
	if (!rc)
		rc = read_results(x, folder, workload, may_fail, detail, e);
	for (size_t i = 0; i < n; i++)
		free((char *)transfers[i].local);
	free(transfers);
	return rc;
}

/* Where its clients reach the server, as numbers: {address, port}, added to 'v'. */
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

int measure_describe(struct executor *x, json_t **out, struct err *e)
{
	struct cluster *c = x->cluster;
	json_t *servers = json_array(), *clients = json_array();
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e);

	for (size_t i = 0; i < c->n_servers + c->n_clients && !rc; i++) {
		bool server = i < c->n_servers;
		const struct member *m = server ? c->servers[i] : c->clients[i - c->n_servers];
		json_t *v = json_pack("{s:s, s:I, s:b}", "name", m->host->ssh.name,
			"clock_offset_ns", (json_int_t)(m->offset_s * 1e9), "sampled", m->sampled);

		json_object_set_new(v, server ? "storage" : "mount",
			json_pack("s?", server ? m->host->storage : m->host->mount));
		if (server)
			rc = add_service(fs, m->host, v, e);
		json_array_append_new(server ? servers : clients, v);
	}
	fs_free(fs);
	if (rc) {
		json_decref(servers);
		json_decref(clients);
	} else {
		*out = json_pack("{s:o, s:o}", "servers", servers, "clients", clients);
	}
	return rc;
}

int measure_reduce(struct executor *x, const char *folder, const json_t *cluster, int64_t start_ns,
	int32_t seconds, bool beside, struct reduction **out, struct err *e)
{
	struct reduce_spec spec = {
		.cluster = cluster, .start_ns = start_ns, .seconds = seconds, .beside = beside};
	char *full;
	int rc;

	if (asprintf(&full, "%s/%s", store_folder(x->store), folder) < 0)
		return err_errno(e, -ENOMEM, "cannot reduce the traces");
	spec.folder = full;
	rc = reduce_traces(&spec, out, e);
	free(full);
	return rc;
}

static int store_files(
	struct executor *x, struct store *s, const char *folder, int64_t attempt, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < x->cluster->n_members && !rc; i++) {
		const struct member *member = &x->cluster->members[i];

		for (const char *const *f = files_of(x, member); *f && !rc; f++) {
			char *path;

			if (!is_fetched(x, member, *f))
				continue;
			if (asprintf(&path, "%s/%s.%s", folder, member->host->ssh.name, *f) < 0)
				return err_errno(e, -ENOMEM, "cannot list the files");
			rc = store_put_file(s, attempt, path, e);
			free(path);
		}
	}
	return rc;
}

int measure_store(struct executor *x, struct store *s, const char *folder, int64_t attempt,
	const struct reduction *r, struct err *e)
{
	int rc = r ? reduce_store(r, s, attempt, e) : 0;

	/* The files lie in the run's own folder. */
	return rc || s != x->store ? rc : store_files(x, s, folder, attempt, e);
}

int measure_runtime(struct executor *x, const char *folder, json_t *detail, struct err *e)
{
	struct cluster *c = x->cluster;
	json_t *times = json_object();
	double sum = 0;
	int rc = 0;

	json_object_set_new(detail, "times", times);
	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		char *path = local_path(x, folder, c->clients[i], "app.times");
		json_error_t why;
		json_t *line = path ? json_load_file(path, 0, &why) : NULL;
		double seconds = json_number_value(json_object_get(line, "seconds"));

		if (!line || seconds <= 0)
			rc = err_set(e, -EBADMSG, "%s: no run time in '%s': %s",
				c->clients[i]->host->ssh.name, path,
				line ? "not a positive number" : why.text);
		else
			json_object_set(times, c->clients[i]->host->ssh.name, line);
		sum += seconds;
		json_decref(line);
		free(path);
	}
	if (!rc)
		json_object_set_new(detail, "runtime_s", json_real(sum / (double)c->n_clients));
	return rc;
}
