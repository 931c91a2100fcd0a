/* Tests the formats except CSV on recorded files (ci/tests/data/import) and on malformed texts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ci/tests/import/noting.h"
#include "diag/import/formats.h"

static struct noting out;
static struct import_said said;
static struct err e;

static int tear_down(void **state)
{
	(void)state;
	noting_close(&out);
	import_said_clear(&said);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	noting_open(&out);
	return 0;
}

static struct import_sink sink(void)
{
	return (struct import_sink){&out, noting_series, noting_sample, noting_metric};
}

static int read_file(const char *name, const struct import_options *o)
{
	char path[200];
	struct import_sink s = sink();
	int rc;

	snprintf(path, sizeof(path), "ci/tests/data/import/%s", name);
	rc = import_file(path, o, &s, &said, &e);
	fflush(out.f);
	if (rc)
		print_message("%s\n", e.text);
	return rc;
}

/* Reads a text by the reader of a format. */
static int read_text(const char *format, const char *text)
{
	const struct import_format *f = import_formats;
	struct import_options o = {0};
	struct import_sink s = sink();
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int rc;

	while (strcmp(f->name, format))
		f++;
	e.text[0] = '\0';
	rc = f->read(file, "x", &o, &s, &said, &e);
	fclose(file);
	fflush(out.f);
	return rc;
}

static bool has(const char *line)
{
	bool there = strstr(out.text, line) != NULL;

	if (!there)
		print_message("no '%s' in:\n%s", line, out.text);
	return there;
}

static bool said_of(const char *words)
{
	for (size_t i = 0; i < said.n_notes; i++)
		if (strstr(said.notes[i], words))
			return true;
	return false;
}

static void test_sar(void **state)
{
	(void)state;
	assert_int_equal(read_file("sar.txt", NULL), 0);
	assert_true(has("declared await unit=ms worse=more kind=gauge zero=missing\n"));
	assert_true(has("tps host1/vda 1795357180 3\n"));
	assert_true(has("await host1/vda 1795357182 0.05\n"));
	assert_int_equal(said.samples, 3 * 8);
	assert_null(strstr(out.text, "1024.33"));
}

/* Two recordings of a host 'h' with a disk, 'n' samples each, the second one 'shift_s' later and,
 * unless they alternate, after 'between'. */
static void two_of_one_name(char *text, bool alternate, int n, int shift_s, const char *between)
{
	size_t at = (size_t)sprintf(text, "# hostname;interval;timestamp;DEV;tps;await\n");

	for (int i = 0; i < 2 * n; i++) {
		int host = alternate ? i % 2 : i / n, k = alternate ? i / 2 : i % n;

		if (!alternate && i == n)
			at += (size_t)sprintf(text + at, "%s", between);
		at += (size_t)sprintf(text + at, "h;60;2026-11-22 %02d:%02d:%02d UTC;sda;1;%d.5\n",
			10 + k / 60, k % 60, host * shift_s, 3 + 6 * host);
	}
}

static void test_sadf_one_name(void **state)
{
	static const char head[] = "# hostname;interval;timestamp;DEV;tps;await\n";
	char text[20000];

	(void)state;
	two_of_one_name(text, true, 20, 0, "");
	assert_int_equal(read_text("sadf", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:3: 40 of 80 samples repeat a time of their series"));
	assert_non_null(strstr(e.text, "host=\"h\""));
	/* One after the other, for just an hour: not the end of summer time. */
	two_of_one_name(text, false, 60, 0, "");
	assert_int_equal(read_text("sadf", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:62: 120 of 240 samples repeat"));
	/* Their clocks differ. */
	two_of_one_name(text, false, 60, 7, head);
	assert_int_equal(read_text("sadf", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:63: 118 of 240 samples repeat"));
}

static void test_sadf_summer_time_ends(void **state)
{
	char text[20000];
	size_t at = (size_t)sprintf(text, "# hostname;interval;timestamp;DEV;await\n");

	(void)state;
	for (int i = 0; i < 240; i++) {
		int minute = i < 120 ? i : i - 60;

		at += (size_t)sprintf(text + at, "h;60;2026-10-25 %02d:%02d:00;sda;3\n",
			1 + minute / 60, minute % 60);
	}
	assert_int_equal(read_text("sadf", text), 0);
	assert_true(said_of("time goes back: 1, the first at line 122"));
}

static void test_sar_one_name(void **state)
{
	char text[8000], *p = text;

	(void)state;
	for (int host = 0; host < 2; host++) {
		p += sprintf(p,
			"Linux 6.1.0 (h) \t11/22/26 \t_x86_64_\t(%d CPU)\n\n"
			"10:00:00 DEV tps await\n",
			2 + host);
		for (int i = 1; i <= 20; i++)
			p += sprintf(p, "10:%02d:00 sda 1.0 %d.0\n", i, 3 + host);
		p += sprintf(p, "\n");
	}
	assert_int_equal(read_text("sar", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:28: 40 of 80 samples repeat"));
}

/* Days in the wrong order, or one sample that two files share, do not mean another host. */
static void test_sar_days(void **state)
{
	static const int days[] = {24, 22, 23};
	char text[8000], *p = text;

	(void)state;
	for (int d = 0; d < 3; d++) {
		p += sprintf(p,
			"Linux 6.1.0 (h) \t11/%d/26 \t_x86_64_\t(2 CPU)\n\n"
			"10:00:00 DEV tps await\n",
			days[d]);
		for (int i = 1; i <= 20; i++)
			p += sprintf(p, "10:%02d:00 sda 1.0 3.0\n", i);
		p += sprintf(p, "\n");
	}
	assert_int_equal(read_text("sar", text), 0);
	assert_false(said_of("repeat"));
}

static void test_ceph_two_clusters(void **state)
{
	char text[8000], *p = text;

	(void)state;
	for (int i = 0; i < 40; i++)
		p += sprintf(p,
			"%d\n{\"osd_perf_infos\": [{\"id\": 0, \"perf_stats\": "
			"{\"commit_latency_ms\": %d}}]}\n",
			1795357180 + i / 2, 3 + i % 2);
	assert_int_equal(read_text("ceph", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:4: 20 of 40 samples repeat"));
	assert_non_null(strstr(e.text, "two clusters"));
}

static void test_scrapes_of_two_servers(void **state)
{
	char text[4000], *p = text;

	(void)state;
	for (int i = 0; i < 40; i++)
		p += sprintf(p, "# time %d\nx_ms{disk=\"a\"} %d\n", 1795357180 + i / 2, 3 + i % 2);
	assert_int_equal(read_text("prometheus-text", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:4: 20 of 40 samples repeat"));
}

static void test_answers_with_one_time(void **state)
{
	(void)state;
	assert_int_equal(
		read_text("prometheus-json",
			"[{\"metric\":{\"disk\":\"a\"},\"values\":[[1795357180,\"3\"]]}]\n"
			"[{\"metric\":{\"disk\":\"a\"},\"values\":[[1795357180,\"9\"]]}]\n"),
		-EINVAL);
	assert_non_null(strstr(e.text, "comes twice for one time"));
}

/* Each reader takes the complete part, and reports where the rest is missing. */
static void test_cut_off(void **state)
{
	static const struct {
		const char *format, *text, *partial;
	} cases[] = {
		{"sar",
			"Linux 6.1.0 (h) \t11/22/26 \t_x86_64_\t(2 CPU)\n\n10:00:00 DEV tps await\n"
			"10:01:00 sda 1.0 3.0\n10:02:00 sda 1.0 3",
			"the file ends in the middle of line 5"},
		{"sadf", "# hostname;interval;timestamp;DEV;tps\nh;60;1795357180;sda;1\nh;60;17953",
			"the file ends in the middle of line 3"},
		{"iostat",
			"{\"sysstat\": {\"hosts\": [{\"nodename\": \"h\", \"statistics\": [\n"
			"{\"timestamp\":"
			" {\"date\": \"2026-11-22\", \"time\": \"14:00:00\", \"utc\": 1},"
			" \"disk\": [{\"disk_device\": \"sda\", \"r/s\": 1},\n{\"disk_dev",
			"a text ends in the middle, at line 3"},
		{"ceph",
			"1795357180\n{\"osd_perf_infos\": [{\"id\": 0, \"perf_stats\": "
			"{\"commit_latency_ms\": 3}}]}\n1795357190\n{\"osd_perf_inf",
			"the file ends in the middle of a dump, at line 4"},
		{"csv", "time,disk,read_ms\n0,a,1\n0,b,1\n1,a",
			"the file ends in the middle of line 4"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		import_said_clear(&said);
		assert_int_equal(read_text(cases[i].format, cases[i].text), 0);
		assert_non_null(said.partial);
		assert_non_null(strstr(said.partial, cases[i].partial));
		assert_true(said.samples > 0);
	}
}

static void test_sar_device_last(void **state)
{
	(void)state;
	assert_int_equal(read_file("sar-pretty.txt", NULL), 0);
	assert_true(has("%util host1/vda 1795357182 8.8\n"));
	assert_int_equal(said.samples, 3 * 8);
}

static void test_sar_12_hours(void **state)
{
	(void)state;
	/* The recording passes midnight. */
	assert_int_equal(read_file("sar-12h.txt", NULL), 0);
	assert_true(has("tps host1/vda 1795391999 3\n"));
	assert_true(has("tps host1/vda 1795392000 1027\n"));
	assert_true(has("tps host1/vda 1795392001 2043\n"));
}

static void test_sar_wrong(void **state)
{
	static const char head[] = "Linux 6.1.0 (h) \t11/22/26 \t_x86_64_\t(2 CPU)\n\n"
				   "10:00:00 DEV tps await\n";
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), "%s10:00:10 sda 1,5 2,0\n", head);
	assert_int_equal(read_text("sar", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:4: "));
	assert_non_null(strstr(e.text, "LC_ALL=C sar -d"));
	snprintf(text, sizeof(text), "%s10:00:10 sda 1.5\n", head);
	assert_int_equal(read_text("sar", text), -EINVAL);
	assert_int_equal(read_text("sar", "Linux 6.1 (h) 22.11.2026 _x86_64_ (2 CPU)\n"), -EINVAL);
	assert_non_null(strstr(e.text, "x:1: "));
	assert_int_equal(read_text("sar", "10:00:00 DEV tps\n"), -EINVAL);
	assert_int_equal(read_text("sar", head), -EINVAL);
	assert_non_null(strstr(e.text, "no disk"));
}

#define HEAD "Linux 6.1.0 (h) \t2026-11-22 \t_x86_64_\t(2 CPU)\n\n"
#define DISKS " DEV tps await\n"

/* 'sar -A': every table begins at the file's beginning. */
static void test_sar_many_tables(void **state)
{
	(void)state;
	assert_int_equal(
		read_text("sar",
			HEAD "00:00:01 CPU %user\n00:10:01 all 1.0\n23:50:01 all 1.0\n"
			     "Average: all 1.0\n\n"
			     "00:00:01 proc/s cswch/s\n00:10:01 1.0 2.0\n23:50:01 1.0 2.0\n"
			     "Average: 1.0 2.0\n\n"
			     "00:00:01" DISKS "00:10:01 sda 5.0 1.0\n23:50:01 sda 6.0 1.0\n"
			     "Average: sda 5.5 1.0\n"),
		0);
	assert_true(has("tps h/sda 1795306201 5\n"));
	assert_true(has("tps h/sda 1795391401 6\n"));
	assert_int_equal(said.samples, 4);
	assert_true(said_of("times without a zone are taken as UTC"));
}

/* Tables past midnight, of a file that begins at noon and continues after a restart. */
static void test_sar_restart(void **state)
{
	(void)state;
	assert_int_equal(
		read_text("sar",
			HEAD "12:00:01 CPU %user\n18:00:01 all 1.0\n02:00:01 all 1.0\n"
			     "Average: all 1.0\n\n"
			     "12:00:01" DISKS "18:00:01 sda 1.0 1.0\n02:00:01 sda 2.0 1.0\n"
			     "02:10:01 COM a comment of three words\n"
			     "Average: sda 1.5 1.0\n\n"
			     "03:00:00 LINUX RESTART\t(2 CPU)\n\n"
			     "03:10:01 CPU %user\n20:00:01 all 1.0\n01:00:01 all 1.0\n"
			     "Average: all 1.0\n\n"
			     "03:10:01" DISKS "20:00:01 sda 3.0 1.0\n01:00:01 sda 4.0 1.0\n"),
		0);
	assert_true(has("tps h/sda 1795370401 1\n"));
	assert_true(has("tps h/sda 1795399201 2\n"));
	assert_true(has("tps h/sda 1795464001 3\n"));
	assert_true(has("tps h/sda 1795482001 4\n"));
}

/* 'sar -u -d 7200' in a terminal: the names of both tables are repeated for two days. */
static void test_sar_live(void **state)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	fputs(HEAD, f);
	for (int i = 0, h = 22; i < 24; i++, h = (h + 2) % 24)
		fprintf(f,
			"\n%02d:00:00 CPU %%user\n%02d:00:00 all 1.0\n\n%02d:00:00" DISKS
			"%02d:00:00 sda %d.0 1.0\n",
			h, (h + 2) % 24, h, (h + 2) % 24, i);
	fclose(f);
	assert_int_equal(read_text("sar", text), 0);
	assert_true(has("tps h/sda 1795392000 0\n"));
	assert_true(has("tps h/sda 1795478400 12\n"));
	assert_true(has("tps h/sda 1795557600 23\n"));
	free(text);
}

static void test_times_that_jump(void **state)
{
	(void)state;
	assert_int_equal(
		read_text("sar",
			HEAD "00:00:01" DISKS "00:10:01 sda 1.0 1.0\n03:10:01 sda 1.0 1.0\n"
			     "02:20:01 sda 1.0 1.0\n02:30:01 sda 1.0 1.0\n"
			     "Linux 6.1.0 (h) \t2026-11-25 \t_x86_64_\t(2 CPU)\n\n"
			     "00:00:01" DISKS "00:10:01 sda 1.0 1.0\n"
			     "Linux 6.1.0 (g) \t2026-11-22 \t_x86_64_\t(2 CPU)\n\n"
			     "00:00:01" DISKS "00:10:01 sda 1.0 1.0\n"),
		0);
	assert_true(said_of("time goes back: 1, the first at line 6"));
	assert_true(said_of("more than a day in a host's times: 1, the first at line 11"));
}

static void test_sar_is_iostat(void **state)
{
	(void)state;
	assert_int_equal(read_text("sar",
				 "Linux 6.1.0 (h) \t11/22/26 \t_x86_64_\t(2 CPU)\n\n"
				 "11/22/26 14:00:00\nDevice r/s w/s\nsda 1.0 2.0\n"),
		-EINVAL);
	assert_non_null(strstr(e.text, "this is iostat's text"));
	assert_non_null(strstr(e.text, "-o JSON"));
}

static void test_sadf_zones(void **state)
{
	static const char head[] = "# hostname;interval;timestamp;DEV;tps;await\n";
	char text[400];

	snprintf(text, sizeof(text), "%sh;10;2026-11-22 14:00:00 CET;sda;1.0;2.0\n", head);
	assert_int_equal(read_text("sadf", text), 0);
	assert_true(has("tps h/sda 1795352400 1\n"));
	assert_int_equal(said.n_notes, 0);
	tear_down(state);
	set_up(state);
	snprintf(text, sizeof(text), "%sh;10;2026-11-22 14:00:00;sda;1.0;2.0\n", head);
	assert_int_equal(read_text("sadf", text), 0);
	assert_true(said_of("times without a zone are taken as UTC"));
	snprintf(text, sizeof(text), "%sh;10;2026-11-22 14:00:00 IST;sda;1.0;2.0\n", head);
	assert_int_equal(read_text("sadf", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:2: the time zone of '2026-11-22 14:00:00 IST'"));
	snprintf(text, sizeof(text), "%sh;10;soon;sda;1.0;2.0\n", head);
	assert_int_equal(read_text("sadf", text), -EINVAL);
	assert_non_null(strstr(e.text, "x:2: this is not a time: 'soon'"));
}

static void test_sadf(void **state)
{
	(void)state;
	assert_int_equal(read_file("sadf.txt", NULL), 0);
	assert_true(has("wkB/s host1/vda 1795357182 11512\n"));
	assert_int_equal(said.samples, 3 * 8);
}

static void test_sadf_json(void **state)
{
	const char *only[] = {"rkB/s", "%util"};
	struct import_options o = {.metrics = only, .n_metrics = 2};

	(void)state;
	assert_int_equal(read_file("sadf.json", &o), 0);
	assert_true(has("rkB/s host1/vda 1795357181 19400\n"));
	assert_true(has("%util host1/vda 1795357182 8.8\n"));
	assert_int_equal(said.samples, 3 * 2);
}

static void test_iostat(void **state)
{
	(void)state;
	/* Two recordings of 3 and 2 reports; the first report of each is a mean since boot. */
	assert_int_equal(read_file("iostat.json", NULL), 0);
	assert_true(has("declared r_await unit=ms worse=more kind=gauge zero=missing\n"));
	assert_int_equal(said.samples, 3 * 22);
	assert_true(has("r_await host1/vda 17953"));
}

static void test_iostat_wrong(void **state)
{
	(void)state;
	assert_int_equal(read_text("iostat",
				 "{\"sysstat\": {\"hosts\": [{\"nodename\": \"h\", "
				 "\"statistics\": [{\"disk\": [{\"disk_device\": "
				 "\"sda\", \"util\": 1}]}]}]}}"),
		-EINVAL);
	assert_non_null(strstr(e.text, "-t"));
	assert_int_equal(read_text("iostat", "{\"sysstat\": 5}"), -EINVAL);
	assert_int_equal(read_text("iostat", "{}"), -EINVAL);
	/* Killed in the middle: the complete part counts. */
	assert_int_equal(read_text("iostat",
				 "{\"sysstat\": {\"hosts\": [{\"nodename\": \"h\", "
				 "\"statistics\": [{\"timestamp\": {\"date\": "
				 "\"2026-11-22\", \"time\": \"14:00:00\", \"utc\": 1}, "
				 "\"disk\": [{\"disk-device\": \"sda\", \"await\": 1}]}, {"),
		0);
	assert_true(has("await h/sda 1795356000 1\n"));
	assert_int_equal(said.n_notes, 1);
}

#define REPORT(host, more, stamp)                                                                  \
	"{\"sysstat\": {\"hosts\": [{\"nodename\": \"" host "\", " more                            \
	"\"statistics\": [{\"timestamp\": {\"date\": \"2026-11-22\", \"time\": \"14:00:00\"" stamp \
	"}, \"disk\": [{\"disk-device\": \"sda\", \"await\": 1}]}"
#define END "]}]}}\n"

/* A kill truncates at any byte, and the next file follows in the same line. */
static void test_json_cut_and_more(void **state)
{
	static const char *const ends[] = {
		"", ", {", ", {\"timestamp\": \"2026", "]", "]}]}}", ", {\"ti"};
	char text[1000];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(text, sizeof(text), "%s%s%s%s%s", REPORT("h1", "", ", \"utc\": 1"),
			ends[i], REPORT("h2", "", ", \"utc\": 1"), ends[i],
			REPORT("h3", "", ", \"utc\": 1") END);
		assert_int_equal(read_text("iostat", text), 0);
		assert_true(has("await h1/sda 1795356000 1\n"));
		assert_true(has("await h2/sda 1795356000 1\n"));
		assert_true(has("await h3/sda 1795356000 1\n"));
		assert_int_equal(said.n_notes, i == 4 ? 0 : 1);
		assert_true(i == 4 || said_of("2 texts end in the middle, the first at line 1"));
		tear_down(state);
		set_up(state);
	}
	/* A mistake in the middle of a text does not end it. */
	snprintf(text, sizeof(text), "%s, 5 6]}]}}\n%s", REPORT("h1", "", ""),
		REPORT("h2", "", "") END);
	assert_int_equal(read_text("iostat", text), -EINVAL);
}

/* sadf -j -t: "tz", or before sysstat 12.6 "utc" and the host's "timezone". */
static void test_json_zones(void **state)
{
	static const struct {
		const char *text, *line, *note;
	} cases[] = {
		{REPORT("h", "", ", \"utc\": 1") END, "await h/sda 1795356000 1\n", NULL},
		{REPORT("h", "", ", \"tz\": \"UTC\"") END, "await h/sda 1795356000 1\n", NULL},
		{REPORT("h", "", ", \"tz\": \"CET\"") END, "await h/sda 1795352400 1\n", NULL},
		{REPORT("h", "", ", \"tz\": \"BST\"") END, "await h/sda 1795352400 1\n", NULL},
		{REPORT("h", "", ", \"tz\": \"EST\"") END, "await h/sda 1795374000 1\n", NULL},
		{REPORT("h", "", ", \"tz\": \"+0530\"") END, "await h/sda 1795336200 1\n", NULL},
		{REPORT("h", "\"timezone\": \"CEST\", ", ", \"utc\": 0") END,
			"await h/sda 1795348800 1\n", NULL},
		{REPORT("h", "\"timezone\": \"CEST\", ", ", \"utc\": 1") END,
			"await h/sda 1795356000 1\n", NULL},
		{REPORT("h", "", ", \"utc\": 0") END, "await h/sda 1795356000 1\n",
			"times without a zone are taken as UTC"},
		{REPORT("h", "", ", \"tz\": \"CST\"") END, "await h/sda 1795356000 1\n",
			"the time zone 'CST' is unknown or ambiguous"},
		{REPORT("h", "", ", \"tz\": \"PST\"") END, "await h/sda 1795356000 1\n",
			"the time zone 'PST' is unknown or ambiguous"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_text("iostat", cases[i].text), 0);
		assert_true(has(cases[i].line));
		assert_int_equal(said.n_notes, cases[i].note != NULL);
		assert_true(!cases[i].note || said_of(cases[i].note));
		tear_down(state);
		set_up(state);
	}
}

static void test_ceph(void **state)
{
	(void)state;
	assert_int_equal(read_file("ceph.txt", NULL), 0);
	assert_string_equal(out.text,
		"declared commit_latency_ms unit=ms worse=more kind=gauge zero=missing\n"
		"declared apply_latency_ms unit=ms worse=more kind=gauge zero=missing\n"
		"commit_latency_ms osd.1 1795357180 3.117\n"
		"apply_latency_ms osd.1 1795357180 3.117\n"
		"commit_latency_ms osd.0 1795357180 0.412\n"
		"apply_latency_ms osd.0 1795357180 0.412\n"
		"commit_latency_ms osd.1 1795357190 5\n"
		"apply_latency_ms osd.1 1795357190 4\n"
		"commit_latency_ms osd.0 1795357200 7\n"
		"apply_latency_ms osd.0 1795357200 8\n"
		"apply_latency_ms osd.0 1795357210 9\n");
}

/* Lines with a time, as people and scripts write them. */
static void test_ceph_times(void **state)
{
	static const char *const times[] = {"1795357180", "1795357180 ", "1795357180\t",
		"1795357180\r", "# 1795357180 \t\r", "\t1795357180", "2026-11-22T14:19:40Z"};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			"%s\n{\"osd_perf_infos\":[{\"id\":3,"
			"\"perf_stats\":{\"commit_latency_ms\":7}}]}",
			times[i]);
		if (read_text("ceph", text))
			fail_msg("'%s': %s", times[i], e.text);
		assert_true(has("commit_latency_ms osd.3 1795357180 7\n"));
	}
}

/* Nanoseconds are more precise than milliseconds. */
static void test_ceph_units(void **state)
{
	(void)state;
	assert_int_equal(
		read_text("ceph",
			"1\n{\"osd_perf_infos\":[{\"id\":3,\"perf_stats\":{\"commit_latency_ms\":7,"
			"\"commit_latency_ns\":7250000,\"apply_latency_ns\":1500000,"
			"\"apply_latency_ms\":1,\"commit_latency_s\":9,\"x\":[1]}}]}"),
		0);
	assert_true(has("commit_latency_ms osd.3 1 7.25\n"));
	assert_true(has("apply_latency_ms osd.3 1 1.5\n"));
}

static void test_ceph_wrong(void **state)
{
	(void)state;
	assert_int_equal(read_text("ceph", "{\"osd_perf_infos\": []}"), -EINVAL);
	assert_non_null(strstr(e.text, "has no time"));
	assert_non_null(strstr(e.text, "date +%s"));
	assert_int_equal(read_text("ceph", "soon\n{\"osd_perf_infos\": []}"), -EINVAL);
	assert_int_equal(read_text("ceph", "1\n{\"osd_perf_infos\": [{\"id\": -1}]}"), -EINVAL);
	assert_int_equal(read_text("ceph", "1\n{\"osd_perf_infos\": [{\"id\": 1}"), -EINVAL);
	assert_int_equal(read_text("ceph", "1\n{\"a\": 1}"), -EINVAL);
	assert_int_equal(read_text("ceph", ""), -EINVAL);
}

static void test_prometheus_text(void **state)
{
	(void)state;
	assert_int_equal(read_file("scrapes.prom", NULL), 0);
	assert_true(has("declared disk_read_seconds_total kind=counter\n"));
	assert_true(has("declared request_seconds kind=bucket unit=seconds\n"));
	assert_true(has("declared request_seconds_sum kind=amount per=request_seconds_count "
			"counter=yes unit=seconds\n"));
	assert_true(has("disk_read_seconds_total h1:9100/sda 1795357180 10.5\n"));
	assert_true(has("disk_read_seconds_total h2:9100/sdb 1795357180 9.5\n"));
	assert_true(has("request_seconds{le=\"+Inf\"} h1:9100/sda 1795357180 5\n"));
	assert_true(has("disk_read_seconds_total h1:9100/sda 1795357195 nan\n"));
	assert_true(has("disk_read_seconds_total h1:9100/sdb 1795357196 12\n"));
	assert_true(has("disk_read_seconds_total h2:9100/sda 1795357196.5 9.25\n"));
	assert_int_equal(said.samples, 11);
	assert_int_equal(said.missing, 1);
	assert_int_equal(said.n_notes, 1);
	assert_string_equal(said.notes[0],
		"member in label 'device', groups in 'instance' (guessed from the labels that "
		"differ; set them with --member and --group)");
}

/* A truncated download. */
static void test_prometheus_text_cut(void **state)
{
	static const char *const ends[] = {"x{a=\"3\"} 12", "x{a=\"3\"} 12 170", "x{a=", "x"};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(text, sizeof(text), "# time 5\nx{a=\"1\"} 1\nx{a=\"2\"} 2\n%s", ends[i]);
		assert_int_equal(read_text("prometheus-text", text), 0);
		assert_string_equal(out.text, "x 1 5 1\nx 2 5 2\n");
		assert_string_equal(
			said.partial, "the file ends in the middle of line 4, which is left out");
		tear_down(NULL);
		said = (struct import_said){0};
		set_up(NULL);
	}
	assert_int_equal(read_text("prometheus-text", "# time 5\nx{a=\"1\"} 1\n# EOF"), 0);
	assert_null(said.partial);
}

static void test_prometheus_text_wrong(void **state)
{
	static const char *const wrong[] = {"a 1\n", "a{b=\"c\"} 1\n", "a{b=c} 1 1\n",
		"a{b=\"c} 1 1\n", "a{b} 1 1\n", "a x 1\n", "a 1 x\n", "a 1 1 1\n",
		"a{b=\"c\"d=\"e\"} 1 1\n", "a\n", "{} 1 1\n", "# time soon\n", "# time 5\n", "",
		NULL};

	(void)state;
	assert_int_equal(read_text("prometheus-text", wrong[0]), -EINVAL);
	assert_non_null(strstr(e.text, "x:1: the sample has no time; put a line '# time "));
	for (size_t i = 0; wrong[i]; i++)
		if (read_text("prometheus-text", *wrong[i] ? wrong[i] : "\n") != -EINVAL)
			fail_msg("'%s' is taken", wrong[i]);
}

#define SERIES(disk, points)                                                                       \
	"{\"metric\":{\"__name__\":\"lat\",\"disk\":\"" disk                                       \
	"\",\"host\":\"h1\"},\"values\":[" points "]}"
#define RESULT "[" SERIES("sda", "[60,\"1.5\"],[120,\"NaN\"]") "," SERIES("sdb", "[60.5,\"2\"]") "]"

/* The answer as saved by curl and promtool, and as changed by jq. */
static void test_prometheus_json(void **state)
{
	static const char *const texts[] = {
		"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":" RESULT
		"}}",
		"\n{ \"data\" : {\n\"result\" : " RESULT ",\n\"resultType\":\"matrix\"\n},\n"
		"\"isPartial\":false,\"status\" :\"success\"}\n",
		RESULT,
		"{\"resultType\":\"matrix\",\"result\":" RESULT "}",
		SERIES("sda", "[60,\"1.5\"]") "\n" SERIES("sdb", "[60.5,\"2\"]") "\n" SERIES(
			"sda", "[60,\"1.5\"],[120,\"NaN\"]"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_true(prometheus_json_looks(texts[i], strlen(texts[i])));
		assert_int_equal(read_text("prometheus-json", texts[i]), 0);
		assert_true(has("lat sda 60 1.5\n"));
		assert_true(has("lat sda 120 nan\n"));
		assert_true(has("lat sdb 60.5 2\n"));
		assert_int_equal(said.samples, 3);
		assert_string_equal(said.form,
			"saved answer of Prometheus: 2 series, member in label 'disk', no groups");
		tear_down(NULL);
		said = (struct import_said){0};
		set_up(NULL);
	}
}

/* Partial data, buckets, names, a range, and series that begin after a million samples. */
static void test_prometheus_json_more(void **state)
{
	struct import_options o = {.from_s = 60, .to_s = 120, .only_metric = "read_ms"};
	struct import_sink s = sink();
	static const char text[] =
		"{\"status\":\"success\",\"isPartial\":true,\"data\":{\"result\":["
		"{\"metric\":{\"__name__\":\"l_bucket\",\"le\":\"1\",\"osd\":\"1\"},"
		"\"values\":[[60,\"3\"]]},"
		"{\"metric\":{\"osd\":\"3\"},\"values\":null},"
		"{\"metric\":{\"osd\":\"2\"},\"values\":[[59,\"0\"],[60,\"4\"],[120,\"5\"]]}]}}";
	FILE *f = fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r");

	(void)state;
	assert_int_equal(prometheus_json_read(f, "x", &o, &s, &said, &e), 0);
	fclose(f);
	fflush(out.f);
	assert_string_equal(
		out.text, "declared l kind=bucket\nl{le=\"1\"} 1 60 3\nread_ms 2 60 4\n");
	assert_string_equal(said.partial, "the server says that its answer is partial (isPartial)");
	assert_string_equal(said.notes[1],
		"native histograms are left out; ask for histogram_quantile() of them");
}

static void test_prometheus_json_wrong(void **state)
{
#define OK "{\"status\":\"success\",\"data\":"
	static const struct {
		const char *text, *said;
	} wrong[] = {
		{OK "{\"resultType\":\"vector\",\"result\":[{\"metric\":{},\"value\":[1,\"2\"]}]}}",
			"x:1: this is the answer of an instant query, with one sample for each "},
		{"[{\"metric\":{\"a\":\"b\"},\"value\":[1,\"2\"]}]",
			"x:1: this is the answer of an instant query"},
		{OK "{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}",
			"x:1: this is the answer of an instant query"},
		{OK "{\"resultType\":\"streams\",\"result\":[]}}", "lines of logs (Loki)"},
		{OK "{\"groups\":[]}}", "x:1: this is a list of rules"},
		{OK "{\"alerts\":[]}}", "x:1: this is a list of alerts"},
		{OK "{\"activeTargets\":[]}}", "x:1: this is a list of targets"},
		{OK "[\"up\"]}", "x:1: \"data\" is a list of names"},
		{OK "{\"resultType\":\"matrix\",\"result\":[]}}", "x: there is no sample"},
		{"{\"status\":\"error\",\"error\":\"no \\u001b such\"}",
			"x: the server answered with an error: no \\x1b such"},
		{"{\"metric\":{\"a\":\"b\"},\"values\":[1,2],\"timestamps\":[1000,2000]}",
			"VictoriaMetrics's /api/v1/export"},
		{RESULT "\nx\n", "x:2: the JSON is not well-formed"},
		{"[" SERIES("sda", "[60,\"1\"],[120,\"1\"]") "," SERIES("sda", "[60,\"2\"]") "]",
			"x:1: series 'lat' comes twice for one time"},
		{RESULT "\n" RESULT, "x:2: series 'lat' comes twice for one time"},
	};
	static const char whole[] = OK "{\"resultType\":\"matrix\",\"result\":" RESULT "}}";

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(read_text("prometheus-json", wrong[i].text), -EINVAL);
		if (!strstr(e.text, wrong[i].said))
			fail_msg("'%s': '%s'", wrong[i].text, e.text);
	}
	/* Truncated at every byte. */
	for (size_t i = 1; i + 1 < sizeof(whole); i++) {
		char text[sizeof(whole)];

		snprintf(text, i + 1, "%s", whole);
		assert_int_equal(read_text("prometheus-json", text), -EINVAL);
		assert_string_equal(e.text,
			"x:1: the file ends in the middle of an answer: save it again, whole");
	}
	assert_int_equal(out.samples, 0);
}

/* Telegraf's labels: 'name' is a disk of the host. */
static void test_labels_usual_names(void **state)
{
	char text[2000] = "";
	size_t n = 0;

	(void)state;
	for (int host = 0; host < 3; host++)
		for (int disk = 0; disk < 3; disk++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"x{host=\"h%d\",name=\"sd%c\"} 1 5\n", host, 'a' + disk);
	assert_int_equal(read_text("prometheus-text", text), 0);
	assert_true(has("x h0/sda 5 1\n"));
	assert_true(has("x h2/sdc 5 1\n"));
}

/* Labels: a serial number does not group; a host under another name adds nothing; a rack is wider
 * than a host. */
static void test_labels_guess(void **state)
{
	char text[4000] = "";
	size_t n = 0;

	(void)state;
	for (int host = 0; host < 4; host++)
		for (int disk = 0; disk < 3; disk++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"x{instance=\"h%d\",nodename=\"n%d\",rack=\"r%d\",job=\"node\","
				"device=\"sd%c\",serial=\"S%d%d\"} 1 5\n",
				host, host, host / 2, 'a' + disk, host, disk);
	assert_int_equal(read_text("prometheus-text", text), 0);
	assert_true(has("x r0/h0/sda 5 1\n"));
	assert_true(has("x r1/h3/sdc 5 1\n"));
}

static int read_text_with(const char *text, const struct import_options *o)
{
	struct import_sink s = sink();
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int rc = prometheus_text_read(f, "x", o, &s, &said, &e);

	fclose(f);
	fflush(out.f);
	return rc;
}

/* A label that changes for one disk does not make a second disk; two disks stay separate. */
static void test_labels_same_key(void **state)
{
	struct import_options o = {.member = "device"};
	struct import_sink s = sink();
	FILE *f;
	static const char
		same[] = "x{device=\"sda\",instance=\"a\"} 1 5\nx{device=\"sda\",instance="
			 "\"b\"} 2 5\nx{device=\"sda\",instance=\"c\"} 2 5\n";
	static const char changed[] = "x{device=\"sda\",version=\"1\"} 1 5\n"
				      "x{device=\"sdb\",version=\"1\"} 1 5\n"
				      "x{device=\"sda\",version=\"2\"} 2 6\n"
				      "x{device=\"sdb\",version=\"2\"} 2 6\n";

	(void)state;
	o.group[0] = "device";
	assert_int_equal(read_text_with(same, &o), 0);
	assert_true(has("x sda/a/sda 5 1\n"));
	assert_true(has("x sda/c/sda 5 2\n"));
	assert_int_equal(said.n_notes, 1);
	assert_string_equal(said.notes[0],
		"label 'instance' is added as a group: without it, series of one member have "
		"samples at the same time, such as x{device=\"sda\",instance=\"b\"}");
	f = fmemopen((void *)(uintptr_t)changed, sizeof(changed) - 1, "r");
	assert_int_equal(prometheus_text_read(f, "x", &o, &s, NULL, &e), 0);
	fclose(f);
	fflush(out.f);
	assert_true(has("x sda/sda 5 1\n"));
	assert_true(has("x sda/sda 6 2\n"));
	o.group[0] = NULL;
	o.member = "disc";
	f = fmemopen((void *)(uintptr_t)changed, sizeof(changed) - 1, "r");
	assert_int_equal(prometheus_text_read(f, "x", &o, &s, NULL, &e), -EINVAL);
	assert_string_equal(e.text, "x: no series has a label 'disc'; there are device, version");
	fclose(f);
}

/* A pod that replaces another one is no second disk, although Prometheus repeats samples for a
 * while. Writes, which the user's labels do not distinguish from reads, are separate series. */
static void test_labels_apart(void **state)
{
	struct import_options o = {.member = "disk", .group = {"host"}};
	char text[20000] = "";
	size_t n = 0;

	(void)state;
	for (int t = 0; t < 40; t++)
		for (int host = 0; host < 2; host++)
			for (int pod = 0; pod < 2; pod++)
				if (pod ? t >= 18 : t <= 20)
					n += (size_t)snprintf(text + n, sizeof(text) - n,
						"x{disk=\"a\",host=\"h%d\",pod=\"p%d%d\"} 1 %d\n",
						host, host, pod, t);
	assert_int_equal(read_text_with(text, &o), 0);
	assert_true(has("x h0/a 39 1\n"));
	assert_int_equal(said.n_notes, 1);
	assert_string_equal(said.notes[0],
		"6 samples are left out: another series with the same member and groups has one "
		"at that time, such as x{disk=\"a\",host=\"h0\",pod=\"p01\"}; --group pod "
		"separates them");
	for (int t = 0; t < 40; t++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"x{disk=\"a\",host=\"h0\",pod=\"p00\",op=\"write\"} 7 %d\n", t);
	assert_int_equal(read_text_with(text, &o), 0);
	assert_true(has("x h0/write/a 39 7\n"));
	assert_true(has("x h0/(none)/a 39 1\n"));
	assert_non_null(strstr(said.notes[1], "label 'op' is added as a group: "));
}

static void test_labels_too_many(void **state)
{
	struct import_options o = {.member = "m", .group = {"a", "b", "c", "d"}};

	(void)state;
	assert_int_equal(read_text_with("x{m=\"1\",a=\"1\",b=\"1\",c=\"1\",d=\"1\",op=\"r\"} 1 5\n"
					"x{m=\"1\",a=\"1\",b=\"1\",c=\"1\",d=\"1\",op=\"w\"} 2 5\n",
				 &o),
		-EINVAL);
	assert_non_null(strstr(e.text, "x: series of one member have samples at the same time"));
	assert_non_null(strstr(e.text, "name the label 'op' with --member or --group"));
}

static void test_sink_refuses(void **state)
{
	struct import_sink s = sink();

	(void)state;
	out.until = 2;
	assert_int_equal(import_file("ci/tests/data/import/sar.txt", NULL, &s, NULL, &e), -E2BIG);
	assert_string_equal(e.text, "ci/tests/data/import/sar.txt:4: no more");
	assert_int_equal(import_file("ci/tests/data/import/ceph.txt", NULL, &s, NULL, &e), -E2BIG);
	assert_int_equal(
		import_file("ci/tests/data/import/iostat.json", NULL, &s, NULL, &e), -E2BIG);
	assert_int_equal(
		import_file("ci/tests/data/import/scrapes.prom", NULL, &s, NULL, &e), -E2BIG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_cut_off), TEST(test_sadf_one_name),
		TEST(test_sadf_summer_time_ends), TEST(test_sar_one_name), TEST(test_sar_days),
		TEST(test_ceph_two_clusters), TEST(test_scrapes_of_two_servers),
		TEST(test_answers_with_one_time), TEST(test_sar), TEST(test_sar_device_last),
		TEST(test_sar_12_hours), TEST(test_sar_many_tables), TEST(test_sar_restart),
		TEST(test_sar_live), TEST(test_times_that_jump), TEST(test_sar_is_iostat),
		TEST(test_sar_wrong), TEST(test_sadf), TEST(test_sadf_zones),
		TEST(test_json_cut_and_more), TEST(test_json_zones), TEST(test_sadf_json),
		TEST(test_iostat), TEST(test_iostat_wrong), TEST(test_ceph), TEST(test_ceph_times),
		TEST(test_ceph_units), TEST(test_ceph_wrong), TEST(test_prometheus_text),
		TEST(test_prometheus_text_wrong), TEST(test_labels_guess),
		TEST(test_prometheus_json), TEST(test_prometheus_json_more),
		TEST(test_prometheus_json_wrong), TEST(test_labels_same_key),
		TEST(test_labels_apart), TEST(test_labels_too_many), TEST(test_sink_refuses),
		TEST(test_prometheus_text_cut), TEST(test_labels_usual_names)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
