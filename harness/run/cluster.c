/* Connects the inventory's hosts and asks all of them at once. */
#include "harness/run/cluster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/clock.h"
#include "harness/base/home.h"
#include "harness/fs/bulk.h"
#include "harness/fs/fs.h"

#define CALL_TIMEOUT_S 20

static int load_facts(struct cluster *c, struct err *e)
{
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e);

	if (rc)
		return rc == -ENOENT ? -EINVAL : rc; /* the inventory is there */
	c->file_system = fs_facts(fs);
	c->bulk = bulk_to_json(fs_bulk(fs));
	if (c->inv->layout)
		json_object_set_new(c->file_system, "layout", json_string(c->inv->layout));
	fs_free(fs);
	return 0;
}

int cluster_load(const char *path, struct cluster **out, struct err *e)
{
	struct cluster *c = alloc_zero(1, sizeof(*c));
	int rc = inventory_load(path, &c->inv, e);
	size_t n = rc ? 0 : c->inv->n_hosts;

	c->members = alloc_zero(n, sizeof(*c->members));
	c->servers = alloc_zero(n, sizeof(*c->servers));
	c->clients = alloc_zero(n, sizeof(*c->clients));
	c->outsiders = alloc_zero(n, sizeof(*c->outsiders));
	for (size_t i = 0; i < n; i++) {
		struct member *m = &c->members[i];

		m->host = &c->inv->hosts[i];
		m->name = m->host->ssh.name;
		switch (m->host->role) {
		case ROLE_SERVER: c->servers[c->n_servers++] = m; break;
		case ROLE_CLIENT: c->clients[c->n_clients++] = m; break;
		default: c->outsiders[c->n_outsiders++] = m;
		}
	}
	c->n_members = n;
	if (!rc && (!c->n_servers || !c->n_clients))
		rc = err_set(
			e, -EINVAL, "%s: a cluster needs at least one server and one client", path);
	rc = rc ?: load_facts(c, e);
	if (rc)
		cluster_free(c);
	else
		*out = c;
	return rc;
}

int cluster_protect(struct cluster *c, const char *const names[], size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct member *m = cluster_member(c, names[i]);

		if (!m)
			return err_set(e, -ENOENT,
				"--never: there is no node '%s' in the inventory '%s'", names[i],
				c->inv->path);
		m->never = true;
	}
	return 0;
}

static int connect_all(struct cluster *c, struct err *e)
{
	struct node_options opts = {0};
	struct node_spec *specs = alloc_zero(c->n_members, sizeof(*specs));
	char *agent_dir = NULL;
	int rc = home_agent_dir(&agent_dir, e);

	if (!rc) {
		for (size_t i = 0; i < c->n_members; i++)
			specs[i] = c->members[i].host->ssh;
		opts.agent_dir = agent_dir;
		opts.lease_s = c->lease_s;
		opts.interrupt_fd = c->interrupt_fd;
		rc = node_connect_all(specs, c->n_members, &opts, &c->set, e);
	}
	for (size_t i = 0; !rc && i < c->n_members; i++)
		c->members[i].node = nodeset_at(c->set, i);
	free(agent_dir);
	free(specs);
	return rc;
}

int cluster_blame(int rc, struct err *e)
{
	return rc ? err_blame(e, rc == -EINVAL ? ERR_SCENARIO : ERR_CLUSTER, rc) : 0;
}

int cluster_ask(struct cluster *c, const char *op, cluster_args_fn args, void *ctx,
	double timeout_s, json_t **results, struct err *e)
{
	struct node_request *requests = alloc_zero(c->n_members, sizeof(*requests));
	json_t *all = json_object();
	size_t n = 0;
	int rc = 0;

	cluster_each(m, c) {
		json_t *own = NULL;

		if (rc >= 0)
			rc = args ? args(ctx, m, &own, e) : 0;
		if (!rc)
			requests[n++] = (struct node_request){
				.node = m->node, .op = op, .args = own};
	}
	if (rc >= 0)
		rc = cluster_blame(node_call_all(requests, n, timeout_s, e), e);
	else
		for (size_t i = 0; i < n; i++)
			json_decref(requests[i].args);
	for (size_t i = 0; i < n; i++)
		if (requests[i].result)
			json_object_set_new(all, node_name(requests[i].node), requests[i].result);
	free(requests);
	if (results)
		*results = all;
	else
		json_decref(all);
	return rc;
}

int cluster_find_processes(struct cluster *c, struct err *e)
{
	json_auto_t *found = NULL;
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e)
		?: cluster_ask(c, "processes", NULL, NULL, CALL_TIMEOUT_S, &found, e);

	cluster_each(m, c) {
		if (rc)
			break;
		json_decref(m->pids);
		m->pids = NULL;
		rc = fs_pids(fs, m->host, jget(found, m->name), &m->pids, e);
		if (!rc && m->host->role != ROLE_OUTSIDER && !json_array_size(m->pids))
			rc = err_set(e, -ENOENT,
				"%s: no %s process of the %s is running there; start the file "
				"system first",
				m->name, c->inv->fs_type, role_name(m->host->role));
	}
	fs_free(fs);
	return rc == -ENOENT ? err_blame(e, ERR_CLUSTER, rc) : rc;
}

static int probe_args(void *fs, const struct member *m, json_t **args, struct err *e)
{
	json_t *argv = NULL;
	int rc = m->host->role == ROLE_CLIENT ? fs_probe(fs, m->host, &argv, e) : 0;

	if (argv)
		*args = json_pack("{s:o, s:i}", "argv", argv, "timeout_s", CLUSTER_PROBE_S);
	return rc || argv ? rc : 1;
}

/* Runs every client's probe once. -EAGAIN with the output of one that failed. */
static int probe_clients(struct cluster *c, struct fs *fs, struct err *e)
{
	json_auto_t *results = NULL;
	json_t *result;
	const char *name;
	int rc = cluster_ask(c, "run", probe_args, fs, CLUSTER_PROBE_S + 10, &results, e);

	json_object_foreach(results, name, result) {
		if (!rc && jget_int(result, "exit"))
			rc = err_set(e, -EAGAIN, "%s: the file system is not whole: %.200s", name,
				jget_text(result, "output"));
	}
	return rc == -ETIMEDOUT ? err_prefix(e, -EAGAIN, "the file system's probe") : rc;
}

int cluster_wait_healthy(struct cluster *c, double patience_s, struct err *e)
{
	double deadline = clock_mono_s() + patience_s;
	struct timespec nap = {.tv_nsec = 200000000};
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e);

	while (!rc) {
		rc = probe_clients(c, fs, e);
		if (rc != -EAGAIN)
			break;
		if (clock_mono_s() > deadline) {
			rc = err_blame(e, ERR_CLUSTER, -ETIMEDOUT);
			break;
		}
		rc = 0;
		nanosleep(&nap, NULL);
	}
	fs_free(fs);
	return rc;
}

/* Makes the host's address numeric: packets carry numbers. Another host of the cluster resolves the
 * name, or else this machine. */
static int number_address(struct cluster *c, size_t i, struct err *e)
{
	struct host *h = &c->inv->hosts[i];
	json_t *result = NULL;
	unsigned char bytes[16];
	char number[64] = "";
	struct addrinfo *list = NULL;
	int rc;

	if (inet_pton(AF_INET, h->address, bytes) == 1 ||
		inet_pton(AF_INET6, h->address, bytes) == 1)
		return 0;
	rc = node_call(c->members[(i + 1) % c->n_members].node, "run",
		json_pack("{s:[s, s, s]}", "argv", "getent", "ahosts", h->address), 40, &result, e);
	if (rc)
		return cluster_blame(rc, e);
	if (!jget_int(result, "exit"))
		sscanf(jget_text(result, "output"), "%63s", number);
	json_decref(result);
	if (!*number && !getaddrinfo(h->address, NULL, NULL, &list)) {
		getnameinfo(list->ai_addr, list->ai_addrlen, number, sizeof(number), NULL, 0,
			NI_NUMERICHOST);
		freeaddrinfo(list);
	}
	if (!*number)
		return err_set(e, -EINVAL,
			"%s: its peers cannot resolve '%s': give 'address' in the inventory",
			h->ssh.name, h->address);
	free(h->address);
	h->address = alloc_copy(number);
	return 0;
}

/* Finds on the hosts what the inventory leaves out. */
static int complete_hosts(struct cluster *c, struct err *e)
{
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e);

	for (size_t i = 0; i < c->n_members && !rc; i++) {
		struct host *h = &c->inv->hosts[i];
		json_t *found = NULL;

		rc = number_address(c, i, e);
		if (rc || fs_complete_already(fs, h))
			continue;
		rc = cluster_blame(fs_look(fs, h, c->members[i].node, &found, e), e)
			?: fs_complete(fs, h, c->inv->volume, found, e);
		json_decref(found);
	}
	fs_free(fs);
	return rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
}

/* Without a port only the address tells whose a connection is. */
static int check_addresses(struct cluster *c, struct err *e)
{
	struct fs *fs = NULL;
	int rc = fs_load(c->inv->fs_type, &fs, e);

	for (size_t i = 0; i < c->n_servers && !rc; i++) {
		const struct host *h = c->servers[i]->host;
		auto_free char *address = NULL;
		uint16_t port = 1;

		rc = fs_service(fs, h, &address, &port, e);
		for (size_t k = 0; k < c->n_servers && !rc && !port; k++)
			if (k != i && !strcmp(c->servers[k]->host->address, h->address))
				rc = err_set(e, -EINVAL,
					"'%s' and '%s' have the same address, %s: servers of '%s' "
					"are told by it, because their ports change",
					h->ssh.name, c->servers[k]->name, h->address,
					c->inv->fs_type);
	}
	fs_free(fs);
	return rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
}

static int storage_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	(void)ctx, (void)e;
	if (m->host->role != ROLE_SERVER || !m->host->storage)
		return 1;
	*args = json_pack("{s:s}", "path", m->host->storage);
	return 0;
}

/* Calls on a device are told by its number: it has many names. Where it cannot be asked for, the
 * paths must do. */
static void find_devices(struct cluster *c)
{
	json_auto_t *found = NULL;
	struct err ignored;

	cluster_ask(c, "fs.info", storage_args, NULL, CALL_TIMEOUT_S, &found, &ignored);
	cluster_each(m, c) {
		const json_t *info = jget(found, m->name);
		const char *type = jget_text(info, "type"), *device = jget_text(info, "device");
		bool block = type && device && !strcmp(type, "block device");

		snprintf(m->storage_device, sizeof(m->storage_device), "%s", block ? device : "");
	}
}

/* Refuses a node where an earlier fault's undo (a file-system check, say) is still under way. */
static int refuse_quarantined(struct cluster *c, struct err *e)
{
	cluster_each(m, c) {
		const json_t *list = jget(node_hello(m->node), "quarantined");

		if (json_array_size(list))
			return err_set(e, -EBUSY,
				"%s is quarantined: %s; 'culprit undo' waits until it is over",
				node_name(m->node), json_string_value(json_array_get(list, 0)));
	}
	return 0;
}

int cluster_connect(struct cluster *c, struct err *e)
{
	int rc = connect_all(c, e);

	rc = rc ?: refuse_quarantined(c, e);
	cluster_each(m, c) {
		rc = rc ?: node_clock_offset(m->node, &m->offset_s, &m->offset_error_s, e);
	}
	rc = rc ?: complete_hosts(c, e) ?: check_addresses(c, e) ?: cluster_find_processes(c, e);
	if (rc)
		cluster_disconnect(c);
	else
		find_devices(c);
	return rc ? err_blame(e, ERR_CLUSTER, rc) : 0;
}

void cluster_disconnect(struct cluster *c)
{
	nodeset_free(c->set);
	c->set = NULL;
	cluster_each(m, c) {
		m->node = NULL;
		json_decref(m->pids);
		m->pids = NULL;
	}
}

void cluster_free(struct cluster *c)
{
	if (!c)
		return;
	cluster_disconnect(c);
	json_decref(c->file_system);
	json_decref(c->bulk);
	free(c->members);
	free(c->servers);
	free(c->clients);
	free(c->outsiders);
	inventory_free(c->inv);
	free(c);
}

struct member *cluster_member(struct cluster *c, const char *name)
{
	cluster_each(m, c) {
		if (!strcmp(m->name, name))
			return m;
	}
	return NULL;
}

bool cluster_lost(struct cluster *c, struct err *why)
{
	cluster_each(m, c) {
		if (node_lost(m->node, why)) {
			err_blame(why, ERR_CLUSTER, 0);
			return true;
		}
	}
	return false;
}
