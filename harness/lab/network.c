#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

/* Hosts' TCP today is cubic or the like; a machine whose default is BBR would shrug packet loss
 * off, and delayed ACKs would stall requests and answers for tens of milliseconds. */
#define ROUTE "congctl cubic quickack 1"

struct batch {
	char path[PATH_MAX + 32];
	FILE *f;
};

static int batch_open(struct batch *b, const struct lab_options *o, const char *name, struct err *e)
{
	snprintf(b->path, sizeof(b->path), "%s/net/%s", o->dir, name);
	b->f = fopen(b->path, "we");
	return b->f ? 0 : err_errno(e, -errno, "cannot write '%s'", b->path);
}

static int batch_run(struct batch *b, const char *program, struct err *e)
{
	const char *const argv[] = {program, "-batch", b->path, NULL};

	if (fclose(b->f))
		return err_errno(e, -errno, "cannot write '%s'", b->path);
	return proc_run_ok(argv, 30, NULL, e);
}

/* The bucket must hold the largest packet that offloading makes, and at least 2 ms of the rate. */
static void shape(struct batch *b, const struct lab_options *o, const char *link)
{
	double burst = o->nic_rate / 500 > 65536 ? o->nic_rate / 500 : 65536;

	fprintf(b->f, "qdisc add dev %s root tbf rate %.0fbit burst %.0f latency 50ms\n", link,
		o->nic_rate * 8, burst);
}

int network_links(
	const struct lab_options *o, pid_t switch_pid, const struct child *nodes, struct err *e)
{
	char host[IFNAMSIZ], address[INET_ADDRSTRLEN];
	struct batch b;
	unsigned prefix;
	int rc = batch_open(&b, o, "links.ip", e);

	if (rc)
		return rc;
	for (unsigned i = 0; i < lab_node_count(o); i++)
		fprintf(b.f, "link add name %s netns %d type veth peer name eth0 netns %d\n",
			lab_node_at(o, i).name, (int)switch_pid, (int)nodes[i].pid);
	lab_host_link(o->dir, host);
	lab_host_address(o, address, &prefix);
	fprintf(b.f, "link add name %s type veth peer name host netns %d\n", host, (int)switch_pid);
	fprintf(b.f, "link set dev %s addrgenmode none up\n", host);
	fprintf(b.f, "address add %s/%u dev %s\n", address, prefix, host);
	fprintf(b.f, "route replace %s dev %s src %s " ROUTE "\n", o->subnet, host, address);
	return batch_run(&b, "ip", e);
}

int network_switch(const struct lab_options *o, struct err *e)
{
	struct batch b;
	int rc = batch_open(&b, o, "switch.ip", e);

	if (rc)
		return rc;
	fputs("link add name bridge type bridge stp_state 0 mcast_snooping 0\n"
	      "link set dev bridge addrgenmode none up\n"
	      "link set dev host master bridge addrgenmode none up\n",
		b.f);
	for (unsigned i = 0; i < lab_node_count(o); i++)
		fprintf(b.f, "link set dev %s master bridge addrgenmode none up\n",
			lab_node_at(o, i).name);
	rc = batch_run(&b, "ip", e);
	if (rc)
		return rc;
	rc = batch_open(&b, o, "switch.tc", e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < o->servers + o->clients; i++)
		shape(&b, o, lab_node_at(o, i).name);
	return batch_run(&b, "tc", e);
}

int network_node(const struct lab_options *o, const struct lab_node *n, struct err *e)
{
	char name[32], host[INET_ADDRSTRLEN];
	struct batch b;
	unsigned prefix;
	int rc;

	snprintf(name, sizeof(name), "%s.ip", n->name);
	rc = batch_open(&b, o, name, e);
	if (rc)
		return rc;
	lab_host_address(o, host, &prefix);
	fprintf(b.f, "link set dev lo up\nlink set dev eth0 addrgenmode none up\n");
	fprintf(b.f, "address add %s/%u dev eth0\n", n->address, prefix);
	fprintf(b.f, "route replace %s dev eth0 src %s " ROUTE "\n", o->subnet, n->address);
	rc = batch_run(&b, "ip", e);
	if (rc || n->role == ROLE_OUTSIDER)
		return rc;
	snprintf(name, sizeof(name), "%s.tc", n->name);
	rc = batch_open(&b, o, name, e);
	if (rc)
		return rc;
	shape(&b, o, "eth0");
	return batch_run(&b, "tc", e);
}

int network_check(const struct lab_options *o, struct err *e)
{
	struct ifaddrs *list, *i;
	char own[INET_ADDRSTRLEN];
	struct in_addr in;
	unsigned prefix;
	int rc = 0;

	lab_host_address(o, own, &prefix);
	inet_pton(AF_INET, own, &in);
	if (getifaddrs(&list) < 0)
		return err_errno(e, -errno, "cannot list this machine's addresses");
	for (i = list; i && !rc; i = i->ifa_next) {
		uint32_t theirs, mask;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !i->ifa_netmask)
			continue;
		theirs = ntohl(((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr);
		mask = ntohl(((struct sockaddr_in *)(void *)i->ifa_netmask)->sin_addr.s_addr) &
			(0xffffffffu << (32 - prefix));
		if ((theirs & mask) == (ntohl(in.s_addr) & mask))
			rc = err_set(e, -EADDRINUSE,
				"subnet %s overlaps with this machine's interface '%s'; choose "
				"another with --subnet",
				o->subnet, i->ifa_name);
	}
	freeifaddrs(list);
	return rc;
}
