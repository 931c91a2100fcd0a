/* The lab's options, nodes and addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/lab/lab_impl.h"

int lab_network(const struct lab_options *o, uint32_t *network, unsigned *prefix)
{
	char address[24], rest;
	struct in_addr in;

	if (sscanf(o->subnet, "%23[0-9.]/%u%c", address, prefix, &rest) != 2 ||
		inet_pton(AF_INET, address, &in) != 1 || *prefix < 8 || *prefix > 26)
		return -EINVAL;
	*network = ntohl(in.s_addr);
	return *network & (0xffffffffu >> *prefix) ? -EINVAL : 0;
}

int lab_options_check(const struct lab_options *o, struct err *e)
{
	uint32_t network;
	unsigned prefix;

	if (o->dir[0] != '/' || !o->dir[1] || strpbrk(o->dir, "\"\\\n"))
		return err_set(
			e, -EINVAL, "--dir '%s' must be an absolute path without quotes", o->dir);
	if (strlen(o->dir) > 200)
		return err_set(e, -EINVAL, "--dir '%s' is longer than 200 characters", o->dir);
	if (lab_network(o, &network, &prefix))
		return err_set(e, -EINVAL,
			"--subnet '%s' must be an IPv4 network of /8 to /26, as 10.77.0.0/24",
			o->subnet);
	if (fmod(o->storage_bytes, 4096) != 0 || fmod(o->spare_bytes, 4096) != 0)
		return err_set(e, -EINVAL, "--storage and --spare must be whole blocks of 4KiB");
	return 0;
}

void lab_address(const struct lab_options *o, unsigned offset, char address[INET_ADDRSTRLEN])
{
	uint32_t network = 0;
	unsigned prefix;
	struct in_addr in;

	lab_network(o, &network, &prefix);
	in.s_addr = htonl(network + offset);
	inet_ntop(AF_INET, &in, address, INET_ADDRSTRLEN);
}

unsigned lab_node_count(const struct lab_options *o)
{
	return o->servers + o->clients + o->outsiders + o->managers;
}

const char *lab_role_name(const struct lab_node *n)
{
	return n->manager ? "manager" : role_name(n->role);
}

struct lab_node lab_node_at(const struct lab_options *o, unsigned i)
{
	const unsigned counts[] = {o->servers, o->clients, o->outsiders};
	struct lab_node n = {.i = i};

	for (; n.role < ROLE_OUTSIDER && i >= counts[n.role]; n.role++)
		i -= counts[n.role];
	n.manager = n.role == ROLE_OUTSIDER && i >= o->outsiders;
	n.number = 1 + i - (n.manager ? o->outsiders : 0);
	snprintf(n.name, sizeof(n.name), "%c%u", lab_role_name(&n)[0], n.number);
	lab_address(o, n.manager ? 1 + n.number : 11 + LAB_MAX_OF_A_ROLE * n.role + i, n.address);
	return n;
}

int lab_node_find(const struct lab_options *o, const char *name, struct lab_node *n, struct err *e)
{
	for (*n = lab_node_at(o, 0); n->i < lab_node_count(o); *n = lab_node_at(o, n->i + 1))
		if (!strcmp(n->name, name))
			return 0;
	return err_set(e, -ENOENT, "the lab has no node '%s'", name);
}

void lab_host_link(const char *dir, char name[IFNAMSIZ])
{
	snprintf(name, IFNAMSIZ, "lab%010llx", (unsigned long long)(hash_text(dir) & 0xffffffffff));
}

json_t *lab_options_json(const struct lab_options *o)
{
	return json_pack("{ss ss si si si si ss ss ss sf sf sf sf sf sf sb sb sf sf}", "dir",
		o->dir, "subnet", o->subnet, "servers", (int)o->servers, "clients", (int)o->clients,
		"outsiders", (int)o->outsiders, "managers", (int)o->managers, "file_system", o->fs,
		"settings", o->settings, "layout", o->layout, "disk_rate", o->disk_rate,
		"disk_seek_s", o->disk_seek_s, "storage_bytes", o->storage_bytes, "spare_bytes",
		o->spare_bytes, "nic_rate", o->nic_rate, "nic_queue_s", o->nic_queue_s,
		"no_offload", o->no_offload, "tcp_2009", o->tcp_2009, "cpus", o->cpus,
		"memory_bytes", o->memory_bytes);
}

int lab_options_save(const struct lab_options *o, struct err *e)
{
	json_t *j = lab_options_json(o);
	char *text = json_dumps(j, JSON_INDENT(2));
	int rc = file_write_atomic(lab_path(o->dir, "options.json").s, 0644, text, strlen(text), e);

	free(text);
	json_decref(j);
	return rc;
}

int lab_options_load(const char *dir, struct lab_options *o, struct err *e)
{
	struct lab_path path = lab_path(dir, "options.json");
	const char *layout, *at, *subnet, *fs, *settings;
	struct lab_options got = LAB_DEFAULTS; /* of what an older lab does not say */
	int no_offload = 0, tcp_2009 = 0;
	json_error_t je;
	json_t *j = json_load_file(path.s, 0, &je);
	int rc;

	if (!j)
		return err_set(e, -ENOENT, "cannot read '%s': %s", path.s, je.text);
	rc = json_unpack_ex(j, &je, 0,
		"{ss ss si si si si ss ss ss sF sF sF sF sF s?F s?b s?b s?F s?F}", "dir", &at,
		"subnet", &subnet, "servers", &got.servers, "clients", &got.clients, "outsiders",
		&got.outsiders, "managers", &got.managers, "file_system", &fs, "settings",
		&settings, "layout", &layout, "disk_rate", &got.disk_rate, "disk_seek_s",
		&got.disk_seek_s, "storage_bytes", &got.storage_bytes, "spare_bytes",
		&got.spare_bytes, "nic_rate", &got.nic_rate, "nic_queue_s", &got.nic_queue_s,
		"no_offload", &no_offload, "tcp_2009", &tcp_2009, "cpus", &got.cpus, "memory_bytes",
		&got.memory_bytes);
	if (rc) {
		rc = err_set(e, -EINVAL, "'%s': %s", path.s, je.text);
	} else {
		snprintf(got.dir, sizeof(got.dir), "%s", at);
		snprintf(got.subnet, sizeof(got.subnet), "%s", subnet);
		snprintf(got.fs, sizeof(got.fs), "%s", fs);
		snprintf(got.settings, sizeof(got.settings), "%s", settings);
		snprintf(got.layout, sizeof(got.layout), "%s", layout);
		got.no_offload = no_offload;
		got.tcp_2009 = tcp_2009;
		*o = got;
	}
	json_decref(j);
	return rc;
}

bool lab_options_same(const struct lab_options *a, const struct lab_options *b)
{
	json_t *x = lab_options_json(a), *y = lab_options_json(b);
	bool same = json_equal(x, y);

	json_decref(x);
	json_decref(y);
	return same;
}
