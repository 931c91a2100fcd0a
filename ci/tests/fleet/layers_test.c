/* Block devices of several layers: which are compared, and what is said of the others. */
#include "ci/tests/fleet/fed.h"

enum { SAMPLES = 288 };

/* A host with these devices, of which "slow" ones (by their first letters) take three times as
 * long. */
static void put_host(struct fed *x, const char *host, const char *const names[], const char *slow)
{
	for (unsigned m = 0; names[m]; m++) {
		uint32_t s = fed_series(x, "await", host, names[m]);
		bool ill = slow && !strncmp(names[m], slow, strlen(slow));

		for (unsigned t = 0; t < SAMPLES; t++)
			fed_put(x, s, t * 300.0,
				8 * exp(0.05 * normal(m + 1, *names[m], t)) *
					(ill && t > 90 ? 3 : 1));
	}
}

static bool said(const struct fleet_result *r, const char *words)
{
	for (size_t i = 0; i < r->n_notes; i++)
		if (strstr(r->notes[i], words))
			return true;
	return false;
}

static size_t count_judged(const struct fleet_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_members; i++) {
		n += r->members[i].judged;
		assert_false(r->members[i].judged && r->members[i].left_out);
	}
	return n;
}

/* Four volumes on a slow disk are as slow as it is, and would be most of its peers. */
static void volumes_do_not_hide_their_disk(void **state)
{
	static const char *const disks[] = {"sda", "sdb", "sdc", NULL};
	static const char *const volumes[] = {"dm-0", "dm-1", "dm-2", "dm-3", NULL};
	struct fed x = fed_new("await worse=more unit=ms", NULL);
	const struct fleet_result *r;

	(void)state;
	put_host(&x, "host", disks, "sda");
	put_host(&x, "host", volumes, "dm");
	for (int again = 0; again < 2; again++) {
		r = fed_judge(&x, 0, 0);
		assert_int_equal(r->n_findings, 1);
		assert_string_equal(r->members[r->findings[0].member].path, "host/sda");
		assert_int_equal(r->findings[0].kind, FINDING_SHIFT);
		assert_int_equal(count_judged(r), 3);
		assert_true(said(r, "only disks are compared; left out are 4 of device-mapper"));
		assert_false(said(r, "fewer than two peers"));
	}
	fed_free(&x);
}

static void kinds_are_known_by_their_names(void **state)
{
	/* Disks first, then each other kind, then names of no kind. */
	static const char *const names[] = {"sda", "sdab", "vdc", "nvme0n1", "nvme10n12", "mmcblk0",
		"dasda", "rbd3", "xvdf", "host9/sdx", "/dev/hdb", "cciss!c0d1", "/dev/cciss/c1d0",
		"sda1", "nvme0n1p2", "mmcblk0p1", "mmcblk0boot0", "/dev/vdb3", "cciss!c0d1p2",
		"dm-12", "md127", "md0p1", "mpatha", "mpathbp2", "emcpowera", "nvme0c0n1",
		"bcache0", "drbd1", "zd16", "zd16p1", "loop7", "zram0", "ram1", "sr0", "fd0",
		"vg0-root", "backup", "ALL", "sd", "nvme0", "sda1x", "c0d0", NULL};
	enum { KEPT = 13 };
	struct fed x = fed_new("await worse=more unit=ms", NULL);
	const struct fleet_result *r;

	(void)state;
	put_host(&x, "host", names, NULL);
	r = fed_judge(&x, 0, 0);
	for (size_t i = 0; i < r->n_members; i++)
		if (r->members[i].left_out != (i >= KEPT))
			fail_msg("%s", r->members[i].name);
	assert_int_equal(count_judged(r), KEPT);
	assert_true(said(r,
		"left out are 7 of an unknown kind, 2 of multipath, 1 of paths to NVMe disks, "
		"1 of md, 1 of device-mapper, 1 of bcache, 1 of DRBD, 1 of ZFS volumes, "
		"9 of partitions, 1 of loop, 1 of zram, 1 of ram, 2 of removable: "));
	fed_free(&x);
}

/* Where no disk is among them, the kind of most is compared; one kind alone is a fleet as any. */
static void without_disks_most_count(void **state)
{
	static const char *const mixed[] = {
		"md0", "md1", "dm-0", "dm-1", "dm-2", "dm-3", "dm-4", NULL};
	struct fed x = fed_new("await worse=more unit=ms", NULL);
	const struct fleet_result *r;

	(void)state;
	put_host(&x, "host", mixed, "dm-3");
	r = fed_judge(&x, 0, 0);
	assert_int_equal(r->n_findings, 1);
	assert_string_equal(r->members[r->findings[0].member].name, "dm-3");
	assert_int_equal(count_judged(r), 5);
	assert_true(said(r, "only device-mapper are compared; left out are 2 of md: "));
	fed_free(&x);
	x = fed_new("await worse=more unit=ms", NULL);
	put_host(&x, "host", mixed + 2, "dm-3");
	r = fed_judge(&x, 0, 0);
	assert_int_equal(r->n_findings, 1);
	assert_int_equal(count_judged(r), 5);
	assert_false(said(r, "left out"));
	fed_free(&x);
}

/* A total is no peer of disks. Where most names are of no kind, all are members. */
static void names_of_no_kind(void **state)
{
	static const char *const disks[] = {"sda", "sdb", "sdc", "sdd", NULL};
	static const char *const given[] = {"data", "logs", "total", NULL};
	static const char *const others[] = {"osd.1", "osd.2", "osd.3", "osd.4", "sda", NULL};
	struct fed x = fed_new("await worse=more unit=ms", NULL);
	const struct fleet_result *r;

	(void)state;
	put_host(&x, "host", disks, "sda");
	put_host(&x, "host", given, "data");
	r = fed_judge(&x, 0, 0);
	assert_int_equal(r->n_findings, 1);
	assert_string_equal(r->members[r->findings[0].member].path, "host/sda");
	assert_int_equal(count_judged(r), 4);
	assert_true(said(r, "left out are 3 of an unknown kind: "));
	fed_free(&x);
	x = fed_new("await worse=more unit=ms", NULL);
	put_host(&x, "host", others, NULL);
	r = fed_judge(&x, 0, 0);
	assert_int_equal(count_judged(r), 5);
	assert_false(said(r, "left out"));
	fed_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(volumes_do_not_hide_their_disk),
		cmocka_unit_test(kinds_are_known_by_their_names),
		cmocka_unit_test(without_disks_most_count), cmocka_unit_test(names_of_no_kind)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
