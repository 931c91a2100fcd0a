/*
 * Gates on hosts that are their own machines. The lab's nodes are one machine, on which most
 * gates only record. Here the hosts are made up, and their agents' answers go through the real
 * gates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Only the nodes and their answers are made up. */
#define node_hello made_up_hello
#define cluster_ask made_up_ask
#define node_clock_offset made_up_clock_offset
#define node_events made_up_events
#define cluster_find_processes made_up_find_processes
#define cluster_lost made_up_lost
#define fingerprint_take made_up_fingerprint
#include "harness/run/gates.c"

enum { HOSTS = 3 };

/* What a host's agent would report for one second. */
static struct fake {
	const char *name, *boot_id;
	double busy_s, own_s, steal_s, memory_wait_s, io_wait_s; /* of 4 processors' 4 s */
	double available;                                        /* share of its memory */
	double process_s; /* of its heaviest process that is not ours */
	double offset_s, error_s;
	double room_bytes; /* free where its agent keeps files */
	const char *mount; /* in its fingerprint */
} fakes[HOSTS];

static json_t *hellos[HOSTS];
static struct host hosts[HOSTS];
static struct member members[HOSTS];
static struct cluster cluster = {.members = members, .n_members = HOSTS};
static struct gates limits;
static struct gate gate;
static volatile sig_atomic_t interrupted;
static json_t *report;
static struct err e;

static struct fake *fake_of(const struct node *n)
{
	return (struct fake *)n;
}

const json_t *made_up_hello(const struct node *n)
{
	size_t i = (size_t)(fake_of(n) - fakes);

	const char *told = json_string_value(json_object_get(hellos[i], "boot_id"));

	/* The hello is replaced only when it changes: callers borrow it. */
	if (!told || strcmp(told, fakes[i].boot_id))
		json_object_set_new(hellos[i], "boot_id", json_string(fakes[i].boot_id));
	return hellos[i];
}

int made_up_ask(struct cluster *c, const char *op, cluster_args_fn args, void *ctx,
	double timeout_s, json_t **results, struct err *err)
{
	(void)args, (void)ctx, (void)timeout_s, (void)err;
	assert_string_equal(op, "load");
	*results = json_object();
	for (size_t i = 0; i < c->n_members; i++) {
		const struct fake *f = fake_of(c->members[i].node);

		json_object_set_new(*results, f->name,
			json_pack(
				"{s:f, s:i, s:f, s:f, s:f, s:f, s:{s:f, s:f, s:n}, s:f, s:f, s:f, "
				"s:f, s:s, s:o}",
				"seconds", 1.0, "cpus", 4, "busy_s", f->busy_s, "own_s", f->own_s,
				"steal_s", f->steal_s, "iowait_s", 0.0, "pressure_s", "memory",
				f->memory_wait_s, "io", f->io_wait_s, "cpu", "load1", 0.5,
				"memory_bytes", 1e9, "available_bytes", 1e9 * f->available,
				"state_bytes", f->room_bytes, "state", "/var/lib/culprit", "heavy",
				f->process_s > 0
					? json_pack("[{s:i, s:s, s:f}]", "pid", 4711, "comm",
						  "updatedb", "cpu_s", f->process_s)
					: json_array()));
	}
	return 0;
}

int made_up_clock_offset(struct node *n, double *offset_s, double *error_s, struct err *err)
{
	(void)err;
	*offset_s = fake_of(n)->offset_s;
	*error_s = fake_of(n)->error_s;
	return 0;
}

int made_up_events(struct nodeset *set, double timeout_s, node_event_fn fn, void *ctx)
{
	(void)set, (void)timeout_s, (void)fn, (void)ctx;
	return 0;
}

int made_up_find_processes(struct cluster *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

bool made_up_lost(struct cluster *c, struct err *why)
{
	(void)c, (void)why;
	return false;
}

int made_up_fingerprint(struct cluster *of, json_t **out, struct err *err)
{
	(void)of, (void)err;
	*out = json_object();
	for (size_t i = 0; i < HOSTS; i++)
		json_object_set_new(
			*out, fakes[i].name, json_pack("{s:[s]}", "mounts", fakes[i].mount));
	return 0;
}

/* Three quiet hosts, each its own machine. */
static int set_up(void **state)
{
	static const char *const names[] = {"s1", "s2", "s3"};
	static const char *const boots[] = {"11111111-0000", "22222222-0000", "33333333-0000"};

	(void)state;
	for (size_t i = 0; i < HOSTS; i++) {
		fakes[i] = (struct fake){.name = names[i],
			.boot_id = boots[i],
			.busy_s = 0.1,
			.available = 0.5,
			.error_s = 0.0005,
			.room_bytes = 1e9,
			.mount = "/srv"};
		hosts[i] = (struct host){.ssh = {.name = names[i]}};
		hellos[i] = json_object();
		members[i] = (struct member){
			.host = &hosts[i], .name = names[i], .node = (struct node *)&fakes[i]};
	}
	gates_init(&limits);
	limits.window_s = 0;
	gate = (struct gate){.cluster = &cluster,
		.limits = &limits,
		.folder = "/tmp",
		.interrupted = &interrupted};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(report);
	report = NULL;
	json_decref(gate.clean);
	for (size_t i = 0; i < HOSTS; i++)
		json_decref(hellos[i]);
	return 0;
}

static int before(void)
{
	json_decref(report);
	report = NULL;
	return gates_before(&gate, &report, &e);
}

/* The error names 'host' with 'words', and no other host. */
static void names_only(const char *host, const char *words)
{
	if (strncmp(e.text, host, strlen(host)) || e.text[strlen(host)] != ':' ||
		!strstr(e.text, words))
		fail_msg("'%s: ... %s' expected, '%s' said", host, words, e.text);
	for (size_t i = 0; i < HOSTS; i++)
		if (strcmp(fakes[i].name, host) && strstr(e.text, fakes[i].name))
			fail_msg("%s is named, too: %s", fakes[i].name, e.text);
}

static void quiet_hosts_pass_and_are_recorded(void **state)
{
	(void)state;
	fakes[1].offset_s = 0.01;
	assert_int_equal(before(), 0);
	assert_int_equal(json_object_size(json_object_get(report, "before")), HOSTS);
	assert_float_equal(
		jget_real(json_object_get(json_object_get(report, "before"), "s1"), "others_pct"),
		2.5, 1e-9);
	assert_float_equal(members[1].offset_s, 0.01, 1e-9);
	assert_int_equal(gates_during(&gate, report, &e), 0);
	assert_int_equal(gates_after(&gate, report, 0, &e), 0);
}

static void others_work_quarantines_its_host_alone(void **state)
{
	(void)state;
	fakes[1].busy_s = 2; /* half of its processors */
	assert_int_equal(before(), -EAGAIN);
	names_only("s2", "others used 50 % of its processors; 30 % are allowed (gates: 'load')");
	fakes[1].busy_s = 0.1;
	assert_int_equal(before(), 0);
	fakes[2].process_s = 0.8;
	assert_int_equal(before(), -EAGAIN);
	names_only("s3", "process 4711 (updatedb) used 80 % of a processor");
	fakes[2].process_s = 0;
	fakes[0].steal_s = 1;
	assert_int_equal(before(), -EAGAIN);
	names_only("s1", "its hypervisor took 25 %");
	fakes[0].steal_s = 0;
	fakes[1].io_wait_s = 0.7;
	assert_int_equal(before(), -EAGAIN);
	names_only("s2", "something waited for io in 70 % of the time");
	fakes[1].io_wait_s = 0;
	fakes[1].available = 0.01;
	assert_int_equal(before(), -EAGAIN);
	names_only("s2", "1.0 % of its memory is available");
	fakes[1].available = 0.5;
	fakes[1].room_bytes = 4096;
	assert_int_equal(before(), -EAGAIN);
	names_only("s2", "'/var/lib/culprit' is kept on has 4 KiB left; 64 MiB must be");
	fakes[1].room_bytes = 1e9;
	fakes[2].mount = "/mnt";
	assert_int_equal(before(), -EAGAIN);
	names_only("s3", "mount '/srv' is missing");
	fakes[2].mount = "/srv";
	assert_int_equal(before(), 0);
}

/* What 'now' says of s2 when it was 'was'. */
static const char *compared(const char *key, const char *was, const char *is)
{
	json_auto_t *before = json_pack(
			    "{s:{s:o}}", "s2", key, was ? json_pack("[s]", was) : json_array()),
		    *after = json_pack(
			    "{s:{s:o}}", "s2", key, is ? json_pack("[s]", is) : json_array());

	assert_int_equal(fingerprint_compare(before, before, &e), 0);
	assert_int_equal(fingerprint_compare(before, after, &e), -EBUSY);
	assert_null(strpbrk(e.text, "{}\"\n"));
	return e.text;
}

#define SERVER(fsize, state)                                                                       \
	"/usr/sbin/glusterfsd -s 192.0.2.1 --volfile-id gv0.192.0.2.1.srv-brick -p "               \
	"/var/run/gluster/vols/gv0/192.0.2.1-srv-brick.pid -S /var/run/gluster/0123456789.socket " \
	"--brick-name /srv/brick -l /var/log/glusterfs/bricks/srv-brick.log --brick-port 49152 "   \
	"--xlator-option gv0-server.listen-port=49152 user=0 group=0 folder=/ "                    \
	"as=unlimited/unlimited fsize=" fsize "/unlimited nofile=1048576/1048576 state=" state

/* One sentence: the node, what differs in it, and what to do. */
static void a_node_that_differs_is_described_in_one_sentence(void **state)
{
	static const char
		restore[] = "; restore it, or end the run and resume it with the node as it is";
	char want[400];

	(void)state;
	snprintf(want, sizeof(want),
		"s2: file-system process '/usr/sbin/glusterfsd' has changed: "
		"fsize=65536/unlimited, was fsize=unlimited/unlimited%s",
		restore);
	assert_string_equal(
		compared("services", SERVER("unlimited", "running"), SERVER("65536", "running")),
		want);
	snprintf(want, sizeof(want),
		"s2: file-system process '/usr/sbin/glusterfsd' has changed: state=stopped, was "
		"state=running%s",
		restore);
	assert_string_equal(compared("services", SERVER("unlimited", "running"),
				    SERVER("unlimited", "stopped")),
		want);
	snprintf(want, sizeof(want), "s2: file-system process '/usr/sbin/glusterfsd' is missing%s",
		restore);
	assert_string_equal(compared("services", SERVER("unlimited", "running"), "gone"), want);
	snprintf(want, sizeof(want), "s2: mount '/srv' has changed: ro ro errors=1, was rw rw%s",
		restore);
	assert_string_equal(
		compared("mounts", "/srv ext4 /dev/sdb rw rw", "/srv ext4 /dev/sdb ro ro errors=1"),
		want);
	assert_string_equal(compared("processes", NULL, "4711 culprit-hog"),
		"s2: process of a fault '4711 culprit-hog' is new; 'culprit undo' removes what a "
		"fault left");
	assert_non_null(strstr(compared("mounts", "/srv ext4 /dev/sdb rw", "/srv ext4 /dev/sdb"),
		"has changed: /dev/sdb, was /dev/sdb rw;"));
}

/* Long differences are cut between words, and the remedy stays. */
static void a_long_difference_is_cut_between_words(void **state)
{
	char was[2048] = "/usr/sbin/server", is[2048] = "/usr/sbin/server";

	(void)state;
	for (size_t i = 0; i < 150; i++) {
		strcat(was, " --before=1");
		strcat(is, " --after=22");
	}
	assert_non_null(strstr(compared("services", was, is), "--after=22 ..., was --before=1 --"));
	assert_non_null(strstr(e.text, "--before=1 ...; restore it"));
	assert_true(strlen(e.text) < 600);
}

/* What a full disk makes fail may say nothing of it. */
static void a_full_disk_explains_a_failure(void **state)
{
	(void)state;
	err_set(&e, -EIO, "s1: the sampler ended by itself with 3");
	gates_explain(&gate, &e);
	assert_string_equal(e.text, "s1: the sampler ended by itself with 3");
	fakes[2].room_bytes = 0;
	gates_explain(&gate, &e);
	assert_string_equal(e.text,
		"s1: the sampler ended by itself with 3; s3: the disk that '/var/lib/culprit' is "
		"kept on has 0 B left; 64 MiB must be (gates: 'disk')");
}

/* The run's own work does not count. */
static void our_own_work_is_not_others(void **state)
{
	(void)state;
	fakes[0].busy_s = fakes[0].own_s = 3.5;
	assert_int_equal(before(), 0);
	fakes[0].own_s = 2;
	assert_int_equal(before(), -EAGAIN);
	names_only("s1", "others used 38 %");
	/* Two hosts that are one machine: each sees the other's work for this run. */
	fakes[1].boot_id = fakes[0].boot_id;
	fakes[1].busy_s = fakes[0].busy_s;
	fakes[1].own_s = 1.5;
	limits.load_pct = 30; /* given, so it holds on a shared machine as well */
	assert_int_equal(before(), 0);
	fakes[1].own_s = 0;
	assert_int_equal(before(), -EAGAIN);
}

static void what_contaminates_an_attempt_makes_it_invalid(void **state)
{
	(void)state;
	assert_int_equal(before(), 0);
	/* While the workload runs its load cannot be told from others' short work; a process
	 * can. */
	fakes[1].busy_s = 4;
	fakes[1].memory_wait_s = 1;
	assert_int_equal(gates_during(&gate, report, &e), 0);
	fakes[1].process_s = 0.9;
	assert_int_equal(gates_during(&gate, report, &e), -EBUSY);
	names_only("s2", "updatedb");
	fakes[1].process_s = 0;
	assert_int_equal(gates_after(&gate, report, 0, &e), -EBUSY);
	names_only("s2", "others used 100 %");
	assert_float_equal(
		jget_real(json_object_get(json_object_get(report, "after"), "s2"), "others_pct"),
		100, 1e-9);
}

static void clocks_that_differ_by_more_than_the_error_of_measuring_them_are_refused(void **state)
{
	(void)state;
	fakes[2].offset_s = 0.2;
	assert_int_equal(before(), -EAGAIN);
	assert_non_null(strstr(e.text, "s3: its clock is 0.200 s before s"));
	fakes[2].offset_s = -0.2;
	assert_int_equal(before(), -EAGAIN);
	assert_non_null(strstr(e.text, " before s3's"));
	/* The limit is 0.05 s plus the errors of measuring. */
	fakes[2].offset_s = 0.0505;
	assert_int_equal(before(), 0);
	fakes[2].offset_s = 0.0515;
	assert_int_equal(before(), -EAGAIN);
	fakes[2].error_s = 0.01;
	assert_int_equal(before(), 0);
	/* Clocks are compared with each other, so all may be wrong by the same offset. */
	for (size_t i = 0; i < HOSTS; i++)
		fakes[i].offset_s = 3600;
	assert_int_equal(before(), 0);
	limits.clock_s = 0.5;
	fakes[1].offset_s += 0.4;
	assert_int_equal(before(), 0);
}

static void a_clock_that_moves_makes_the_attempt_invalid(void **state)
{
	(void)state;
	assert_int_equal(before(), 0);
	fakes[0].offset_s = 0.0205;
	assert_int_equal(gates_after(&gate, report, 0, &e), 0);
	fakes[0].offset_s = -0.03;
	assert_int_equal(gates_after(&gate, report, 0, &e), -EBUSY);
	names_only("s1",
		"its clock moved by 0.030 s against ours; 0.020 s are allowed (gates: 'drift')");
	limits.drift_s = 0.1;
	assert_int_equal(gates_after(&gate, report, 0, &e), 0);
	/* The next attempt begins with the clocks as they are then. */
	assert_int_equal(before(), 0);
	assert_float_equal(members[0].offset_s, -0.03, 1e-9);
}

/* There each sees the work of all, so load, processes, steal and pressure are written down only;
 * memory is short for all. */
static void hosts_that_are_one_machine_are_told_by_their_boot(void **state)
{
	char *boot = NULL;

	(void)state;
	assert_int_equal(file_read("/proc/sys/kernel/random/boot_id", &boot, NULL, &e), 0);
	boot[strcspn(boot, "\n")] = 0;
	assert_false(is_shared(&cluster, &members[0]));
	fakes[1].boot_id = fakes[0].boot_id;
	assert_true(is_shared(&cluster, &members[0]) && is_shared(&cluster, &members[1]));
	assert_false(is_shared(&cluster, &members[2]));
	fakes[2].boot_id = boot; /* ours */
	assert_true(is_shared(&cluster, &members[2]));
	fakes[1].busy_s = fakes[2].busy_s = 4;
	fakes[2].process_s = fakes[2].steal_s = fakes[2].io_wait_s = 1;
	assert_int_equal(before(), 0);
	assert_float_equal(
		jget_real(json_object_get(json_object_get(report, "before"), "s3"), "others_pct"),
		100, 1e-9);
	limits.process_pct = 50;
	assert_int_equal(before(), -EAGAIN);
	names_only("s3", "updatedb");
	limits.process_pct = -1;
	fakes[2].available = 0.01;
	assert_int_equal(before(), -EAGAIN);
	names_only("s3", "memory");
	free(boot);
}

/* What the page of scenarios promises where a scenario gives no limit. */
static void limits_that_are_not_given_have_their_defaults(void **state)
{
	struct gates none;

	(void)state;
	assert_float_equal(gate_defaults.load_pct, 30, 0);
	assert_float_equal(gate_defaults.process_pct, 50, 0);
	assert_float_equal(gate_defaults.steal_pct, 10, 0);
	assert_float_equal(gate_defaults.pressure_pct, 50, 0);
	assert_float_equal(gate_defaults.memory_pct, 5, 0);
	assert_float_equal(gate_defaults.disk_bytes, 64 * 1024 * 1024, 0);
	assert_float_equal(gate_defaults.clock_s, 0.05, 0);
	assert_float_equal(gate_defaults.drift_s, 0.02, 0);
	assert_float_equal(gate_defaults.window_s, 0.5, 0);
	assert_float_equal(gate_defaults.wait_s, 300, 0);
	gates_init(&none);
	assert_float_equal(gates_onset_s(&none, 9), 5, 0);
	assert_float_equal(gates_onset_s(&none, 10), 5, 0);
	assert_float_equal(gates_onset_s(&none, 30), 15, 0);
	none.onset_s = 0;
	assert_float_equal(gates_onset_s(&none, 30), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			quiet_hosts_pass_and_are_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			others_work_quarantines_its_host_alone, set_up, tear_down),
		cmocka_unit_test(a_node_that_differs_is_described_in_one_sentence),
		cmocka_unit_test(a_long_difference_is_cut_between_words),
		cmocka_unit_test_setup_teardown(a_full_disk_explains_a_failure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(our_own_work_is_not_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_contaminates_an_attempt_makes_it_invalid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			clocks_that_differ_by_more_than_the_error_of_measuring_them_are_refused,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_clock_that_moves_makes_the_attempt_invalid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			hosts_that_are_one_machine_are_told_by_their_boot, set_up, tear_down),
		cmocka_unit_test(limits_that_are_not_given_have_their_defaults),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
