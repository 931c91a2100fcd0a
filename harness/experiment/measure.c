#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/file.h"
#include "harness/experiment/trial_impl.h"
#include "harness/fs/fs.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define FETCH_TIMEOUT_S 120

typedef int (*file_fn)(void *ctx, const struct member *m, const char *file, struct err *e);

/* Calls 'fn' for every file that the attempt's jobs leave and its measure needs, until it fails. */
static int each_file(const struct trial *t, file_fn fn, void *ctx, struct err *e)
{
	unsigned measure = 1u << t->x->scenario->measure;
	int rc = 0;

	for (size_t i = 0; i < t->n_jobs; i++)
		for (const struct job_file *f = job_kinds[t->jobs[i].kind].files; f->name; f++)
			if (!rc && (f->measures & measure))
				rc = fn(ctx, t->jobs[i].member, f->name, e);
	return rc;
}

/* Paths of a member's file, below the run's folder and on this machine. The caller frees. */
static char *file_path(const struct trial *t, const struct member *m, const char *file)
{
	return alloc_format("%s/%s.%s", t->folder, m->name, file);
}

static char *local_path(const struct trial *t, const struct member *m, const char *file)
{
	return alloc_format("%s/%s/%s.%s", store_folder(t->x->store), t->folder, m->name, file);
}

static int remove_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	json_t *argv = json_pack("[s, s, s]", "rm", "-f", "--");

	(void)ctx, (void)e;
	for (size_t k = 0; k < JOB_KINDS; k++)
		for (const struct job_file *f = job_kinds[k].files; f->name; f++)
			json_array_append_new(
				argv, json_sprintf("%s/%s", node_dir(m->node), f->name));
	*args = json_pack("{s:o}", "argv", argv);
	return 0;
}

static int remove_remote(struct cluster *c, struct err *e)
{
	return cluster_ask(c, "run", remove_args, NULL, CALL_TIMEOUT_S, NULL, e);
}

void measure_discard(struct cluster *c)
{
	remove_remote(c, NULL);
}

/* One client's result: {bytes =, seconds =, ...} as the workload reads its output. */
static int read_result(struct trial *t, const struct member *m, json_t **value, struct err *e)
{
	lua_State *L = t->x->scenario->L;
	char *path = local_path(t, m, "app.out"), *text = NULL;
	int top = lua_gettop(L), given;
	size_t size;
	int rc = file_read(path, &text, &size, e);

	if (!rc) {
		bind_push_function(L, t->workload, "result");
		lua_pushlstring(L, text, size);
		rc = luax_call(L, 1, 2, e);
	}
	if (!rc) {
		/* nil and a reason: the reason stands for the result where a failure is allowed. */
		given = lua_isnil(L, -2) && t->may_fail ? -1 : -2;
		if (lua_isnil(L, given) && !t->may_fail)
			rc = err_set(e, -EIO, "%s: %s: %s", m->name, t->workload->label,
				lua_isstring(L, -1) ? lua_tostring(L, -1)
						    : "it reported no result");
		else
			rc = luajson_get(L, given, value, e);
	}
	free(text);
	free(path);
	lua_settop(L, top);
	return rc;
}

static int read_results(struct trial *t, struct err *e)
{
	const struct cluster *c = t->x->cluster;
	json_t *results = json_object();
	int rc = 0;

	json_object_set_new(t->detail, "results", results);
	if (!trial_has(t, t->workload, "result"))
		return 0;
	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		json_t *value = NULL;

		rc = read_result(t, c->clients[i], &value, e);
		if (!rc)
			json_object_set_new(results, c->clients[i]->name, value);
	}
	return rc;
}

struct transfers {
	const struct trial *t;
	struct node_transfer *list;
	size_t n;
};

static int add_transfer(void *ctx, const struct member *m, const char *file, struct err *e)
{
	struct transfers *all = ctx;

	(void)e;
	all->list = alloc_resize(all->list, all->n + 1, sizeof(*all->list));
	all->list[all->n++] = (struct node_transfer){
		.node = m->node, .remote = file, .local = local_path(all->t, m, file)};
	return 0;
}

int measure_fetch(struct trial *t, struct err *e)
{
	struct transfers all = {.t = t};
	int rc = each_file(t, add_transfer, &all, e)
		?: node_fetch_all(all.list, all.n, FETCH_TIMEOUT_S, e)
		?: remove_remote(t->x->cluster, e)
		?: read_results(t, e);

	while (all.n)
		free((char *)all.list[--all.n].local);
	free(all.list);
	return rc;
}

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

int measure_describe(struct trial *t, json_t **out, struct err *e)
{
	struct cluster *c = t->x->cluster;
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

int measure_reduce(
	struct trial *t, const json_t *cluster, bool second, struct reduction **out, struct err *e)
{
	char *full = alloc_format("%s/%s", store_folder(t->x->store), t->folder);
	struct reduce_spec spec = {.folder = full,
		.cluster = cluster,
		.start_ns = t->row.start_ns,
		.seconds = t->row.seconds,
		.second = second};
	int rc = reduce_traces(&spec, out, e);

	free(full);
	return rc;
}

static int store_file(void *ctx, const struct member *m, const char *file, struct err *e)
{
	struct trial *t = ctx;
	char *path = file_path(t, m, file);
	int rc = store_put_file(t->x->store, t->row.id, path, e);

	free(path);
	return rc;
}

int measure_store(struct trial *t, struct store *s, const struct reduction *r, struct err *e)
{
	int rc = r ? reduce_store(r, s, t->row.id, e) : 0;

	/* All files lie in the run's own folder. */
	return rc || s != t->x->store ? rc : each_file(t, store_file, t, e);
}

int measure_runtime(struct trial *t, struct err *e)
{
	struct cluster *c = t->x->cluster;
	json_t *times = json_object();
	double sum = 0;
	int rc = 0;

	json_object_set_new(t->detail, "times", times);
	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		const char *name = c->clients[i]->name;
		char *path = local_path(t, c->clients[i], "app.times");
		json_error_t why;
		json_t *line = json_load_file(path, 0, &why);
		double seconds = jget_real(line, "seconds");

		if (!line || seconds <= 0)
			rc = err_set(e, -EBADMSG, "%s: no run time in '%s': %s", name, path,
				line ? "not a positive number" : why.text);
		else
			json_object_set(times, name, line);
		sum += seconds;
		json_decref(line);
		free(path);
	}
	if (!rc)
		json_object_set_new(t->detail, "runtime_s", json_real(sum / (double)c->n_clients));
	return rc;
}
