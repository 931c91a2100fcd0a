#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

/* As on most hosts: a machine whose default is BBR would hardly slow down under packet loss, and
 * delayed ACKs would stall requests and answers for tens of milliseconds. */
#define ROUTE "congctl cubic quickack 1"

/* Commands for ip(8) or tc(8): about 100 bytes per node. */
struct batch {
	char text[16384];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) put(struct batch *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (b->n < sizeof(b->text))
		b->n += (size_t)vsnprintf(b->text + b->n, sizeof(b->text) - b->n, fmt, ap);
	va_end(ap);
}

/* Saves the batch as net/WHO.PROGRAM, runs and empties it. */
static int batch_run(struct batch *b, const struct lab_options *o, const char *who,
	const char *program, struct err *e)
{
	char name[64], path[PATH_MAX + 64];
	const char *const argv[] = {program, "-batch", path, NULL};
	int rc;

	snprintf(name, sizeof(name), "net/%s.%s", who, program);
	snprintf(path, sizeof(path), "%s/%s", o->dir, name);
	if (b->n >= sizeof(b->text))
		return err_set(e, -E2BIG, "too many nodes for '%s'", path);
	rc = lab_save(o->dir, name, false, b->text, e);
	b->n = 0;
	return rc ? rc : proc_run_ok(argv, 30, NULL, e);
}

/* The bucket must hold the largest packet that offloading makes, and at least 2 ms of the rate. */
static void shape(struct batch *b, const struct lab_options *o, const char *link)
{
	double burst = o->nic_rate / 500 > 65536 ? o->nic_rate / 500 : 65536;

	put(b, "qdisc add dev %s root tbf rate %.0fbit burst %.0f latency 50ms\n", link,
		o->nic_rate * 8, burst);
}

int network_links(
	const struct lab_options *o, pid_t switch_pid, const struct child *nodes, struct err *e)
{
	char host[IFNAMSIZ], address[INET_ADDRSTRLEN];
	struct batch b = {.n = 0};
	unsigned prefix;

	for (unsigned i = 0; i < lab_node_count(o); i++)
		put(&b, "link add name %s netns %d type veth peer name eth0 netns %d\n",
			lab_node_at(o, i).name, (int)switch_pid, (int)nodes[i].pid);
	lab_host_link(o->dir, host);
	lab_host_address(o, address, &prefix);
	put(&b,
		"link add name %s type veth peer name host netns %d\n"
		"link set dev %s addrgenmode none up\n"
		"address add %s/%u dev %s\n"
		"route replace %s dev %s src %s " ROUTE "\n",
		host, (int)switch_pid, host, address, prefix, host, o->subnet, host, address);
	return batch_run(&b, o, "links", "ip", e);
}

int network_switch(const struct lab_options *o, struct err *e)
{
	struct batch b = {.n = 0};
	int rc;

	put(&b,
		"link add name bridge type bridge stp_state 0 mcast_snooping 0\n"
		"link set dev bridge addrgenmode none up\n"
		"link set dev host master bridge addrgenmode none up\n");
	for (unsigned i = 0; i < lab_node_count(o); i++)
		put(&b, "link set dev %s master bridge addrgenmode none up\n",
			lab_node_at(o, i).name);
	rc = batch_run(&b, o, "switch", "ip", e);
	for (unsigned i = 0; i < o->servers + o->clients; i++)
		shape(&b, o, lab_node_at(o, i).name);
	return rc ? rc : batch_run(&b, o, "switch", "tc", e);
}

int network_node(const struct lab_options *o, const struct lab_node *n, struct err *e)
{
	char host[INET_ADDRSTRLEN];
	struct batch b = {.n = 0};
	unsigned prefix;
	int rc;

	lab_host_address(o, host, &prefix);
	put(&b,
		"link set dev lo up\nlink set dev eth0 addrgenmode none up\n"
		"address add %s/%u dev eth0\n"
		"route replace %s dev eth0 src %s " ROUTE "\n",
		n->address, prefix, o->subnet, n->address);
	rc = batch_run(&b, o, n->name, "ip", e);
	if (rc || n->role == ROLE_OUTSIDER)
		return rc;
	shape(&b, o, "eth0");
	return batch_run(&b, o, n->name, "tc", e);
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
