/* Connects and shapes the lab's network. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

/* As on most hosts: a machine whose default is BBR would hardly slow down under packet loss, and
 * delayed ACKs would stall requests and answers for tens of milliseconds. */
#define ROUTE "congctl cubic quickack 1"

/* Saves the commands as net/WHO.PROGRAM and runs them. */
static void network_run(const struct lab_text *commands, const struct lab_options *o,
	const char *who, const char *program)
{
	struct lab_path path = lab_path(o->dir, "net/%s.%s", who, program);

	lab_save(path, 0644, commands->s);
	child_must(proc_run_ok(
		(const char *const[]){program, "-batch", path.s, NULL}, 30, NULL, &child_err));
}

/* The bucket must hold the largest packet, and at least 2 ms of the rate. */
static void shape(struct lab_text *t, const struct lab_options *o, const char *link)
{
	double bucket = fmax(o->nic_rate / 500, o->no_offload ? 4096 : 65536);

	lab_put(t, "qdisc add dev %s root tbf rate %.0fbit burst %.0f limit %.0f\n", link,
		o->nic_rate * 8, bucket, bucket + o->nic_rate * o->nic_queue_s);
}

void network_links(const struct lab_options *o, pid_t switch_pid, const struct child *nodes)
{
	char host[IFNAMSIZ], address[INET_ADDRSTRLEN];
	struct lab_text ip = {0};

	lab_each(n, o, lab_node_count(o))
		lab_put(&ip, "link add name %s netns %d type veth peer name eth0 netns %d\n",
			n.name, (int)switch_pid, (int)nodes[n.i].pid);
	lab_host_link(o->dir, host);
	lab_address(o, 1, address);
	lab_put(&ip,
		"link add name %s type veth peer name host netns %d\n"
		"link set dev %s addrgenmode none up\n"
		"address add %s%s dev %s\n"
		"route replace %s dev %s src %s " ROUTE "\n",
		host, (int)switch_pid, host, address, strchr(o->subnet, '/'), host, o->subnet, host,
		address);
	network_run(&ip, o, "links", "ip");
}

void network_switch(const struct lab_options *o)
{
	struct lab_text ip = {0}, tc = {0};

	lab_put(&ip,
		"link add name bridge type bridge stp_state 0 mcast_snooping 0\n"
		"link set dev bridge addrgenmode none up\n"
		"link set dev host master bridge addrgenmode none up\n");
	lab_each(n, o, lab_node_count(o))
		lab_put(&ip, "link set dev %s master bridge addrgenmode none up\n", n.name);
	network_run(&ip, o, "switch", "ip");
	lab_each(n, o, o->servers + o->clients)
		shape(&tc, o, n.name);
	network_run(&tc, o, "switch", "tc");
}

/* As of Linux 2.6.18: a lost last packet is sent again after a retransmission timeout, and not by a
 * probe after two round trips. Of the network namespace that this process is in. */
static void recover_as_in_2009(void)
{
	static const char *const off[] = {"tcp_early_retrans", "tcp_recovery", "tcp_frto"};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		struct lab_path path = lab_path("/proc/sys/net/ipv4", "%s", off[i]);
		int fd = child_try(open(path.s, O_WRONLY | O_CLOEXEC), "cannot open '%s'", path.s);

		child_try((int)write(fd, "0", 1), "cannot write '%s'", path.s);
		close(fd);
	}
}

void network_node(const struct lab_options *o, const struct lab_node *n)
{
	struct lab_text ip = {0}, tc = {0};

	lab_put(&ip,
		"link set dev lo up\nlink set dev eth0 addrgenmode none up\n"
		"address add %s%s dev eth0\n"
		"route replace %s dev eth0 src %s " ROUTE "\n",
		n->address, strchr(o->subnet, '/'), o->subnet, n->address);
	if (o->no_offload)
		lab_put(&ip, "link set dev eth0 gso_max_segs 1\n");
	network_run(&ip, o, n->name, "ip");
	if (o->tcp_2009)
		recover_as_in_2009();
	if (n->role == ROLE_OUTSIDER)
		return;
	shape(&tc, o, "eth0");
	network_run(&tc, o, n->name, "tc");
}

static uint32_t host_order(const struct sockaddr *a)
{
	return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr);
}

int network_check(const struct lab_options *o, struct err *e)
{
	struct ifaddrs *list;
	uint32_t ours = 0;
	unsigned prefix = 0;
	int rc = 0;

	lab_network(o, &ours, &prefix);
	if (getifaddrs(&list) < 0)
		return err_errno(e, -errno, "cannot list this machine's addresses");
	for (struct ifaddrs *i = list; i && !rc; i = i->ifa_next) {
		uint32_t mask;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !i->ifa_netmask)
			continue;
		mask = host_order(i->ifa_netmask) & (0xffffffffu << (32 - prefix));
		if ((host_order(i->ifa_addr) & mask) == (ours & mask))
			rc = err_set(e, -EADDRINUSE,
				"subnet %s overlaps with this machine's interface '%s'; choose "
				"another with --subnet",
				o->subnet, i->ifa_name);
	}
	freeifaddrs(list);
	return rc;
}
