/* Packet loss and slow links between two namespaces: the share, the counters, the direction, the
 * addresses, the time, the undo. */
#include "ci/tests/agent/agent_peer.h"

#include <arpa/inet.h>
#include <gsl/gsl_cdf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define PORT 7777
#define BURST 50

/* Sockets at the two ends of a wire; theirs keeps the other namespace. */
static int ours, theirs;

static void ip(const char *line)
{
	const char *argv[32] = {"ip"};
	char copy[256], *save = NULL, *word, *output = NULL;
	struct err e;
	size_t n = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	if (proc_run_ok(argv, patient_s(60), &output, &e))
		fail_msg("%s", e.text);
	free(output);
}

static int udp(const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = 64 << 20;

	assert_return_code(fd, errno);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	inet_pton(AF_INET, address, &at.sin_addr);
	assert_return_code(bind(fd, (struct sockaddr *)&at, sizeof(at)), errno);
	return fd;
}

static int wires_setup(void **unused)
{
	int other, here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	char line[128];
	pid_t holder;

	if (peer_setup(unused))
		return -1;
	/* A child that holds the other namespace while the wire is laid. */
	int p[2];

	assert_return_code(pipe(p), errno);
	holder = fork();
	if (holder == 0) {
		if (unshare(CLONE_NEWNET) == 0 && write(p[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(p[0], line, 1), 1);
	snprintf(line, sizeof(line), "/proc/%d/ns/net", (int)holder);
	other = open(line, O_RDONLY | O_CLOEXEC);
	snprintf(line, sizeof(line), "link add w0 type veth peer name w1 netns %d", (int)holder);
	ip("link set lo up");
	ip(line);
	ip("addr add 10.9.0.1/24 dev w0");
	ip("addr add 10.9.0.3/24 dev w0");
	ip("link set w0 up");
	assert_return_code(setns(other, CLONE_NEWNET), errno);
	ip("addr add 10.9.0.2/24 dev w1");
	ip("addr add 10.9.0.4/24 dev w1");
	ip("link set w1 up");
	theirs = udp("0.0.0.0");
	assert_return_code(setns(here, CLONE_NEWNET), errno);
	ours = udp("0.0.0.0");
	/* Nothing holds it now but the socket. */
	close(other);
	close(here);
	close(p[0]);
	close(p[1]);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	return 0;
}

static int wires_teardown(void **unused)
{
	/* First the wire: without a socket the other namespace goes, and takes the wire along, some
	 * time. */
	ip("link del w0");
	close(ours);
	close(theirs);
	return peer_teardown(unused);
}

static void send_one(int from, const char *to)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	inet_pton(AF_INET, to, &at.sin_addr);
	/* Dropped on its way out, it says EPERM. */
	if (sendto(from, "x", 1, 0, (struct sockaddr *)&at, sizeof(at)) < 0)
		assert_int_equal(errno, EPERM);
}

static unsigned drain(int fd)
{
	unsigned n = 0;
	char byte;

	while (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
		n++;
	return n;
}

/* So that the first packet of a count waits for no address resolution. */
static void resolve(void)
{
	char byte;

	send_one(ours, "10.9.0.2");
	assert_int_equal(recv(theirs, &byte, 1, 0), 1);
	send_one(theirs, "10.9.0.1");
	assert_int_equal(recv(ours, &byte, 1, 0), 1);
}

static struct packets_counters counters(struct peer *p, const char *handle)
{
	json_t *r = peer_call(p, "packets.counters", json_pack("{s:s}", "handle", handle));
	struct packets_counters c = {
		.seen = (uint64_t)json_integer_value(json_object_get(r, "seen")),
		.dropped = (uint64_t)json_integer_value(json_object_get(r, "dropped")),
		.seen_bytes = (uint64_t)json_integer_value(json_object_get(r, "seen_bytes"))};

	json_decref(r);
	return c;
}

/* Fails in one of 10^9 runs if the share is what it should be. */
static void assert_share(uint64_t dropped, uint64_t seen, double percent)
{
	double below = gsl_cdf_binomial_P((unsigned)dropped, percent / 100, (unsigned)seen);
	double above = gsl_cdf_binomial_Q(
		dropped ? (unsigned)dropped - 1 : 0, percent / 100, (unsigned)seen);

	if (below < 5e-10 || above < 5e-10)
		fail_msg("%llu of %llu dropped is not %g %%", (unsigned long long)dropped,
			(unsigned long long)seen, percent);
}

static void drops_its_share(const char *backend, double percent, unsigned packets)
{
	unsigned arrived = 0;
	struct packets_counters c;
	struct peer p;
	json_t *r;

	peer_start(&p, LONG_LEASE, "--packets", backend);
	resolve();
	/* Not neighbour discovery, which would be counted too. */
	r = peer_call(&p, "packets.drop",
		json_pack("{s:f, s:[s]}", "percent", percent, "from", "10.9.0.2"));
	assert_string_equal(json_string_value(json_object_get(r, "backend")), backend);
	assert_string_equal(take_text(r, "handle"), "d1");
	for (unsigned i = 0; i < packets; i++) {
		send_one(theirs, "10.9.0.1");
		if (i % BURST == 0)
			arrived += drain(ours);
	}
	c = counters(&p, "d1");
	arrived += drain(ours);
	printf("# %s: %llu of %llu packets dropped, %g %% asked for\n", backend,
		(unsigned long long)c.dropped, (unsigned long long)c.seen, percent);
	assert_int_equal(c.seen, packets);
	assert_int_equal(c.seen_bytes, packets * 29);
	assert_int_equal(arrived, packets - c.dropped);
	if (percent < 100)
		assert_share(c.dropped, c.seen, percent);
	else
		assert_int_equal(c.dropped, packets);
	assert_int_equal(peer_end(&p), 0);
	resolve();
}

static void nftables_drops_its_share(void **unused)
{
	(void)unused;
	drops_its_share("nftables", 5, 20000);
	drops_its_share("nftables", 0.1, 20000);
	drops_its_share("nftables", 100, 1000);
}

static void iptables_drops_its_share(void **unused)
{
	const char *const argv[] = {"iptables", "-w", "-S", NULL};

	(void)unused;
	if (proc_run_ok(argv, patient_s(60), NULL, NULL)) {
		print_message("skipped: no iptables\n");
		skip();
	}
	drops_its_share("iptables", 5, 20000);
	drops_its_share("iptables", 100, 1000);
}

static void only_what_matches(void **unused)
{
	struct packets_counters in, out;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	resolve();
	json_decref(peer_call(&p, "packets.drop",
		json_pack("{s:i, s:[s,s], s:[s]}", "percent", 100, "from", "10.9.0.4", "fe80::4",
			"to", "10.9.0.3")));
	json_decref(peer_call(&p, "packets.drop",
		json_pack("{s:i, s:s, s:[s]}", "percent", 100, "direction", "out", "to",
			"10.9.0.4")));
	/* Source 10.9.0.2 and the address that is not listed: both pass. */
	for (int i = 0; i < 10; i++) {
		send_one(theirs, "10.9.0.1");
		send_one(theirs, "10.9.0.3");
		send_one(ours, "10.9.0.2");
		send_one(ours, "10.9.0.4");
	}
	in = counters(&p, "d1");
	out = counters(&p, "d2");
	assert_int_equal(in.seen, 0);
	assert_int_equal(out.seen, 10);
	assert_int_equal(out.dropped, 10);
	assert_int_equal(drain(ours), 20);
	assert_int_equal(drain(theirs), 10);
	assert_int_equal(peer_end(&p), 0);
	resolve();
}

static void loopback_is_left_alone(void **unused)
{
	struct packets_counters c;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	json_decref(peer_call(&p, "packets.drop", json_pack("{s:i}", "percent", 100)));
	json_decref(peer_call(
		&p, "packets.drop", json_pack("{s:i, s:s}", "percent", 100, "direction", "out")));
	for (int i = 0; i < 10; i++) {
		send_one(ours, "127.0.0.1");
		send_one(ours, "10.9.0.1");
	}
	c = counters(&p, "d1");
	assert_int_equal(c.dropped, c.seen);
	assert_int_equal(drain(ours), 20);
	assert_int_equal(peer_end(&p), 0);
}

static json_t *all_packets(const char *direction, const char *side, const char *address)
{
	return json_pack("{s:i, s:s, s:[s,s]}", "percent", 100, "direction", direction, side,
		"10.9.0.9", address);
}

/* All packets of the host that the session's SSH connection comes from are not dropped. */
static void the_session_is_not_cut_off(void **unused)
{
	json_t *able, *some;
	struct peer p;

	(void)unused;
	setenv("SSH_CONNECTION", "10.9.0.2 40000 10.9.0.1 22", 1);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	peer_refused(&p, "packets.drop", all_packets("in", "from", "10.9.0.2"),
		"SSH session comes from 10.9.0.2", -EADDRINUSE);
	peer_refused(&p, "packets.drop", all_packets("out", "to", "10.9.0.2"),
		"SSH session comes from 10.9.0.2", -EADDRINUSE);
	able = peer_call(&p, "check",
		json_pack("{s:s, s:o}", "what", "packets.drop", "with",
			all_packets("in", "from", "10.9.0.2")));
	assert_true(json_is_false(json_object_get(able, "able")));
	assert_non_null(strstr(json_string_value(json_object_get(able, "reason")), "10.9.0.2"));
	json_decref(able);
	json_decref(peer_call(&p, "packets.drop", all_packets("in", "from", "10.9.0.4")));
	some = all_packets("in", "from", "10.9.0.2");
	json_object_set_new(some, "percent", json_integer(50));
	json_decref(peer_call(&p, "packets.drop", some));
	assert_int_equal(peer_end(&p), 0);
	setenv("SSH_CONNECTION", "fe80::2%w0 40000 fe80::1%w0 22", 1);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	peer_refused(
		&p, "packets.drop", all_packets("in", "from", "fe80::2"), "fe80::2", -EADDRINUSE);
	json_decref(peer_call(&p, "packets.drop", all_packets("in", "from", "fe80::3")));
	assert_int_equal(peer_end(&p), 0);
	unsetenv("SSH_CONNECTION");
}

/* Rules of others, also of the same kind, are there after as before. */
static void others_rules_stay(void **unused)
{
	const char *const add[] = {"nft",
		"add table inet culprit_of_somebody ; add chain inet culprit_of_somebody x", NULL};
	const char *const list[] = {"nft", "list", "ruleset", NULL};
	char *before, *after;
	struct peer p;

	(void)unused;
	if (proc_run_ok(add, 10, NULL, NULL)) {
		print_message("skipped: no nft program\n");
		skip();
	}
	assert_int_equal(proc_run_ok(list, 10, &before, NULL), 0);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	for (int i = 0; i < 5; i++)
		json_decref(peer_call(&p, "packets.drop", json_pack("{s:i}", "percent", 10)));
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(proc_run_ok(list, 10, &after, NULL), 0);
	assert_string_equal(after, before);
	free(before);
	free(after);
}

/* With iptables an act has many steps: whichever is the last before the agent dies, undo removes
 * it. */
static void undo_of_half_an_act(void **unused)
{
	static const char *const steps[] = {"-N culprit_half_d1", "-A culprit_half_d1 -j DROP",
		"-I INPUT -j culprit_half_d1", "-I OUTPUT -o w0 -j culprit_half_d1"};
	const char *const argv[] = {"iptables", "-w", "-S", NULL};
	json_t *inverse = packets_inverse(packets_backend_find("iptables"), "half", "d1");
	char *before, *after;

	(void)unused;
	if (proc_run_ok(argv, patient_s(60), &before, NULL)) {
		print_message("skipped: no iptables\n");
		skip();
	}
	for (size_t n = 0; n <= sizeof(steps) / sizeof(steps[0]); n++) {
		bool was_there;
		struct err e;

		for (size_t i = 0; i < n; i++) {
			const char *words[16] = {"iptables"};
			char copy[128], *save = NULL, *word;
			size_t w = 1;

			snprintf(copy, sizeof(copy), "%s", steps[i]);
			for (word = strtok_r(copy, " ", &save); word;
				word = strtok_r(NULL, " ", &save))
				words[w++] = word;
			assert_int_equal(proc_run_ok(words, 10, NULL, &e), 0);
		}
		assert_int_equal(primitive_revert(&packets_primitive, inverse, &was_there, &e), 0);
		assert_int_equal(was_there, n > 0);
		assert_int_equal(proc_run_ok(argv, patient_s(60), &after, NULL), 0);
		assert_string_equal(after, before);
		free(after);
	}
	free(before);
	json_decref(inverse);
}

/* ---- slow links ---- */

#define COUNTED 50

struct delays {
	long long packets, bytes, dropped;
	double waited_s;
	bool running;
};

static struct delays delays(struct peer *p, const char *handle)
{
	json_t *r = peer_call(p, "packets.delays", handle_args(handle));
	struct delays d = {json_integer_value(json_object_get(r, "packets")),
		json_integer_value(json_object_get(r, "bytes")),
		json_integer_value(json_object_get(r, "dropped")),
		json_number_value(json_object_get(r, "waited_s")),
		json_is_true(json_object_get(r, "running"))};

	json_decref(r);
	return d;
}

/* Until the program has written down so many, which takes a tenth of a second. */
static struct delays counted(
	struct peer *p, const char *handle, long long passed, long long dropped)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;
	struct delays d = delays(p, handle);

	while ((d.packets < passed || d.dropped < dropped) && clock_mono_s() < deadline) {
		usleep(10000);
		d = delays(p, handle);
	}
	return d;
}

/* What passes between here and 10.9.0.2 is slow; 'how' is stolen. */
static const char *slow(struct peer *p, const char *direction, json_t *how)
{
	json_object_set_new(how, "direction", json_string(direction));
	json_object_set_new(
		how, strcmp(direction, "in") ? "to" : "from", json_pack("[s]", "10.9.0.2"));
	return take_text(peer_call(p, "packets.delay", how), "handle");
}

/* Sends numbered packets of 'size' bytes at once from 'from' to 'to'. They arrive in order, the
 * first after 'first_s' and the last after 'last_s' seconds or more. Returns how many came. */
static unsigned arrive(
	int from, int to, const char *address, size_t size, double first_s, double last_s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct pollfd f = {.fd = to, .events = POLLIN};
	unsigned char packet[1400] = {0}, came = 0;
	double began = clock_mono_s(), now = began;
	unsigned n = 0;

	inet_pton(AF_INET, address, &at.sin_addr);
	for (unsigned char i = 1; i <= COUNTED; i++) {
		packet[0] = i;
		assert_int_equal(
			sendto(from, packet, size, 0, (struct sockaddr *)&at, sizeof(at)), size);
	}
	/* After the last one none comes for a second. */
	while (n < COUNTED && poll(&f, 1, 1000 + (int)(1000 * last_s)) > 0) {
		assert_int_equal(recv(to, packet, sizeof(packet), 0), size);
		now = clock_mono_s();
		assert_true(n++ > 0 || now - began >= first_s);
		assert_true(packet[0] > came);
		came = packet[0];
	}
	assert_true(now - began >= last_s);
	return n;
}

static void a_link_is_slow(const char *backend)
{
	char *clean, *after;
	const char *handle;
	struct delays d;
	struct peer p;
	json_t *able;

	peer_start(&p, LONG_LEASE, "--packets", backend);
	able = peer_call(&p, "check", json_pack("{s:s}", "what", "packets.delay"));
	if (!json_is_true(json_object_get(able, "able"))) {
		print_message("skipped: %s\n", json_string_value(json_object_get(able, "reason")));
		peer_end(&p);
		skip();
	}
	json_decref(able);
	resolve();
	clean = agent_fingerprint(&p, 1);
	handle = slow(&p, "out", json_pack("{s:f, s:f}", "latency_s", .2, "jitter_s", .02));
	assert_int_equal(arrive(ours, theirs, "10.9.0.2", 100, .18, .18), COUNTED);
	d = counted(&p, handle, COUNTED, 0);
	assert_int_equal(d.packets, COUNTED);
	assert_int_equal(d.bytes, COUNTED * 128);
	assert_int_equal(d.dropped, 0);
	assert_true(d.running && d.waited_s / COUNTED >= .18);
	/* Neither the other direction nor another address is slow. */
	assert_int_equal(arrive(theirs, ours, "10.9.0.1", 100, 0, 0), COUNTED);
	assert_int_equal(arrive(ours, theirs, "10.9.0.4", 100, 0, 0), COUNTED);
	assert_int_equal(delays(&p, handle).packets, COUNTED);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_int_equal(arrive(ours, theirs, "10.9.0.2", 100, 0, 0), COUNTED);
	after = agent_fingerprint(&p, 1);
	if (strcmp(backend, "iptables")) /* whose program leaves its tables */
		assert_string_equal(after, clean);
	free(after);
	free(clean);
	assert_int_equal(peer_end(&p), 0);
}

static void nftables_makes_a_link_slow(void **unused)
{
	(void)unused;
	a_link_is_slow("nftables");
}

static void iptables_makes_a_link_slow(void **unused)
{
	(void)unused;
	a_link_is_slow("iptables");
}

/* 50 packets of 1028 bytes at 100 kB/s take half a second, and do not fit into a queue of 200 ms.
 * Each direction has a queue of its own. */
static void a_link_has_a_rate(void **unused)
{
	const char *out, *in;
	struct delays d;
	struct peer p;
	unsigned came;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	resolve();
	out = slow(&p, "out", json_pack("{s:f, s:f}", "rate", 1e5, "buffer_s", 10.));
	in = slow(&p, "in", json_pack("{s:f, s:f}", "rate", 1e5, "buffer_s", .2));
	assert_int_equal(arrive(ours, theirs, "10.9.0.2", 1000, .01, .5), COUNTED);
	d = counted(&p, out, COUNTED, 0);
	assert_int_equal(d.bytes, COUNTED * 1028);
	/* The k-th waits for k of them: 25.5 on average. */
	assert_true(d.waited_s / COUNTED >= .9 * 25.5 * 1028 / 1e5);
	came = arrive(theirs, ours, "10.9.0.1", 1000, .01, .2);
	print_message("%u of %d packets went through a queue of twenty\n", came, COUNTED);
	/* More of them if this program was held up while it sent. */
	assert_true(came >= 20 && came < COUNTED);
	d = counted(&p, in, came, COUNTED - came);
	assert_int_equal(d.packets, came);
	assert_int_equal(d.dropped, COUNTED - came);
	assert_int_equal(peer_end(&p), 0);
}

/* A program that dies leaves a fast link, and is noticed; what waits at the undo passes. */
static void a_killed_delay_lets_packets_pass(void **unused)
{
	const char *handle;
	pid_t program;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	resolve();
	handle = slow(&p, "out", json_pack("{s:f}", "latency_s", 2.));
	assert_int_equal(arrive(ours, theirs, "10.9.0.2", 100, 2, 2), COUNTED);
	program = child_of(p.pid, "culprit-agent");
	kill(program, SIGKILL);
	json_decref(peer_event(&p, "exit"));
	assert_false(delays(&p, handle).running);
	assert_int_equal(arrive(ours, theirs, "10.9.0.2", 100, 0, 0), COUNTED);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	handle = slow(&p, "out", json_pack("{s:f}", "latency_s", 10.));
	send_one(ours, "10.9.0.2");
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_int_equal(drain(theirs), 1);
	assert_int_equal(peer_end(&p), 0);
}

/* The rule and the program go with the agent, with agent and guard together, and when the time is
 * up. */
static void a_delay_ends_with_those_who_began_it(void **unused)
{
	char *clean = fingerprint();
	enum { AGENT, BOTH, MAX_S, DEATHS };

	(void)unused;
	for (int death = 0; death < DEATHS; death++) {
		json_t *how = json_pack("{s:f}", "latency_s", 1.);
		struct peer p;

		if (death == MAX_S)
			json_object_set_new(how, "max_s", json_real(0.5));
		peer_start(&p, LONG_LEASE, NULL, NULL);
		slow(&p, "out", how);
		if (death == AGENT)
			kill(p.pid, SIGKILL);
		else if (death == BOTH)
			peer_kill_all(&p, false);
		else
			json_decref(peer_event(&p, "undone"));
		if (death != MAX_S)
			until_clean(clean, 30);
		assert_int_equal(arrive(ours, theirs, "10.9.0.2", 100, 0, 0), COUNTED);
		peer_end(&p);
	}
	free(clean);
}

static void delays_refuse(void **unused)
{
	static const struct {
		const char *args, *why;
		int code;
	} cases[] = {
		{"{}", "needs 'latency_s' or 'rate'", -EINVAL},
		{"{\"latency_s\": 0.1, \"jitter_s\": 0.2}",
			"jitter_s must be at most latency_s, 0.1 s, not 0.2 s", -EINVAL},
		{"{\"rate\": 1000}", "rate must be above 63999", 0},
		{"{\"latency_s\": 20}", "at most 10", 0},
		{"{\"latency_s\": 1, \"to\": [\"10.9.0.2\"], \"direction\": \"out\"}",
			"SSH session comes from 10.9.0.2", -EADDRINUSE},
	};
	struct peer p;

	(void)unused;
	setenv("SSH_CONNECTION", "10.9.0.2 40000 10.9.0.1 22", 1);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		peer_refused(&p, "packets.delay", json_loads(cases[i].args, 0, NULL), cases[i].why,
			cases[i].code);
	assert_int_equal(peer_end(&p), 0);
	unsetenv("SSH_CONNECTION");
}

#define WIRED(name) cmocka_unit_test_setup_teardown(name, wires_setup, wires_teardown)

static int tests(void)
{
	const struct CMUnitTest all[] = {
		WIRED(nftables_drops_its_share),
		WIRED(iptables_drops_its_share),
		WIRED(only_what_matches),
		WIRED(loopback_is_left_alone),
		WIRED(the_session_is_not_cut_off),
		WIRED(others_rules_stay),
		WIRED(undo_of_half_an_act),
		WIRED(nftables_makes_a_link_slow),
		WIRED(iptables_makes_a_link_slow),
		WIRED(a_link_has_a_rate),
		WIRED(a_killed_delay_lets_packets_pass),
		WIRED(a_delay_ends_with_those_who_began_it),
		WIRED(delays_refuse),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("packets", all, NULL, NULL);
}

int main(void)
{
	return in_own_namespaces(tests);
}
