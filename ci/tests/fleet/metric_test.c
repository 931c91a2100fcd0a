/* Declarations of metrics: every key, what is refused and how it is said; and guesses by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ci/tests/scratch.h"
#include "diag/fleet/metric.h"

static void every_key_is_taken(void **state)
{
	struct metric_models m = {0};
	const struct metric_model *d;
	struct err e;

	(void)state;
	assert_int_equal(
		metric_declare(&m, "read_time unit=ms worse=more per=reads counter=yes", &e), 0);
	assert_int_equal(metric_declare(&m, " h\tkind=bucket  quantile=0.5 zero=value\n", &e), 0);
	assert_int_equal(metric_declare(&m, "a worse=less kind=gauge zero=missing", &e), 0);
	assert_int_equal(metric_declare(&m, "b worse=load kind=counter", &e), 0);
	assert_int_equal(metric_declare(&m, "c worse=none", &e), 0);
	assert_int_equal(metric_declare(&m, "bare", &e), 0);
	assert_int_equal(m.n, 6);
	d = metric_find(&m, "read_time");
	assert_string_equal(d->unit, "ms");
	assert_string_equal(d->per, "reads");
	assert_int_equal(d->worse, WORSE_MORE);
	assert_int_equal(d->kind, KIND_AMOUNT); /* follows from per= */
	assert_true(d->counter);
	d = metric_find(&m, "h");
	assert_int_equal(d->kind, KIND_BUCKET);
	assert_true(d->quantile == 0.5);
	assert_int_equal(d->zero, ZERO_VALUE);
	assert_int_equal(metric_find(&m, "a")->worse, WORSE_LESS);
	assert_int_equal(metric_find(&m, "a")->kind, KIND_GAUGE);
	assert_int_equal(metric_find(&m, "a")->zero, ZERO_MISSING);
	assert_int_equal(metric_find(&m, "b")->worse, WORSE_LOAD);
	assert_int_equal(metric_find(&m, "b")->kind, KIND_COUNTER);
	assert_int_equal(metric_find(&m, "c")->worse, WORSE_NONE);
	assert_true(metric_find(&m, "bare")->quantile == 0.99);
	assert_null(metric_find(&m, "read"));
	assert_null(metric_find(NULL, "read"));
	metric_models_clear(&m);
	assert_int_equal(m.n, 0);
}

static void refused(const char *declaration, const char *why)
{
	struct metric_models m = {0};
	struct err e = {.text = ""};

	assert_int_equal(metric_declare(&m, declaration, &e), -EINVAL);
	if (!strstr(e.text, why))
		fail_msg("'%s': '%s' does not say '%s'", declaration, e.text, why);
	assert_int_equal(err_exit_code(&e), 2);
	assert_int_equal(m.n, 0);
	metric_models_clear(&m);
}

static void unknown_words_are_refused_with_the_near_one(void **state)
{
	(void)state;
	refused("x wors=more", "there is no key 'wors'; did you mean 'worse'?");
	refused("x worse=mor", "there is no direction 'mor'; did you mean 'more'?");
	refused("x kind=guage", "there is no kind 'guage'; did you mean 'gauge'?");
	refused("x zero=mising", "there is no zero 'mising'; did you mean 'missing'?");
	refused("x per=y counter=yess", "did you mean 'yes'?");
	refused("x worse", "'worse' is not of the form KEY=VALUE");
	refused("x worse=", "'worse=' is not of the form KEY=VALUE");
	refused("x =more", "there is no key ''");
	refused("", "begins with a metric's name");
	refused(" \t\n", "begins with a metric's name");
}

static void contradictions_are_refused(void **state)
{
	(void)state;
	refused("x kind=amount", "needs per=METRIC");
	refused("x kind=gauge per=y", "per= is for kind=amount only");
	refused("x kind=bucket per=y", "per= is for kind=amount only");
	refused("x per=x", "cannot be per itself");
	refused("x kind=gauge counter=yes", "kind=counter");
	refused("x counter=yes", "kind=counter");
	refused("x quantile=0.5", "quantile= is for kind=bucket only");
	refused("x kind=bucket quantile=0", "between 0 and 1, not '0'");
	refused("x kind=bucket quantile=1", "between 0 and 1");
	refused("x kind=bucket quantile=nan", "between 0 and 1");
	refused("x kind=bucket quantile=0.5x", "between 0 and 1");
	for (const char *const *k = (const char *const[]){"unit=a unit=b", "worse=more worse=less",
		     "kind=gauge kind=counter", "per=a per=b", "zero=value zero=missing", NULL};
		*k; k++) {
		char text[64];

		snprintf(text, sizeof(text), "x %s", *k);
		refused(text, "stands twice");
	}
}

static void a_metric_is_declared_once(void **state)
{
	struct metric_models m = {0};
	struct err e;

	(void)state;
	assert_int_equal(metric_declare(&m, "x worse=more", &e), 0);
	assert_int_equal(metric_declare(&m, "x worse=less", &e), -EINVAL);
	assert_non_null(strstr(e.text, "'x' is declared twice"));
	assert_int_equal(err_exit_code(&e), 2);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.v[0].worse, WORSE_MORE);
	metric_models_clear(&m);
}

static void put(const char *path, const char *text)
{
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), NULL), 0);
}

static void files_are_read_line_by_line(void **state)
{
	struct metric_models m = {0};
	char path[128], want[160];
	struct err e;

	(void)state;
	snprintf(path, sizeof(path), "%s/metrics", dir);
	put(path, "# all\n\n  \t\r\nx worse=more # why\r\n#y\nz kind=counter");
	assert_int_equal(metric_declare_file(&m, path, &e), 0);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.v[0].name, "x");
	assert_int_equal(m.v[1].kind, KIND_COUNTER);
	metric_models_clear(&m);

	put(path, "x\n# a\ny worse=les\nz\n");
	assert_int_equal(metric_declare_file(&m, path, &e), -EINVAL);
	snprintf(want, sizeof(want), "%s:3: metric 'y worse=les': there is no", path);
	assert_memory_equal(e.text, want, strlen(want));
	assert_null(strchr(e.text, '\n'));
	assert_int_equal(err_exit_code(&e), 2);
	metric_models_clear(&m);

	snprintf(path, sizeof(path), "%s/none", dir);
	assert_true(metric_declare_file(&m, path, &e) < 0);
	assert_non_null(strstr(e.text, "none': "));
	assert_int_equal(err_exit_code(&e), 2);
	assert_true(metric_declare_file(&m, dir, &e) < 0);
	assert_int_equal(err_exit_code(&e), 2);
}

/* What a name must be taken for. 'unit' NULL: none. */
static const struct guess {
	const char *name;
	enum metric_worse worse;
	enum metric_kind kind;
	enum metric_zero zero;
	const char *unit;
} guesses[] = {
	/* plain */
	{"latency", WORSE_MORE, KIND_GAUGE, ZERO_MISSING, NULL},
	{"readLatency_ms", WORSE_MORE, KIND_GAUGE, ZERO_MISSING, "ms"},
	{"p99_us", WORSE_MORE, KIND_GAUGE, ZERO_MISSING, "us"},
	{"throughput", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"iops", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"reads", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"ops_per_second", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"util", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, "%"},
	{"busy", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"queue_depth", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"read_errors", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"error_rate", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"cache_hit_rate", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	{"cache_miss_rate", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"free_bytes", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, "bytes"},
	{"temperature_celsius", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, "C"},
	{"reallocated_sectors", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"wear_leveling_count", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"replication_lag_seconds", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, "s"},
	{"speed", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	{"something", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	/* node_exporter, smartctl_exporter */
	{"node_disk_read_time_seconds_total", WORSE_MORE, KIND_COUNTER, ZERO_VALUE, "s"},
	{"node_disk_reads_completed_total", WORSE_LOAD, KIND_COUNTER, ZERO_VALUE, NULL},
	{"node_disk_written_bytes_total", WORSE_LOAD, KIND_COUNTER, ZERO_VALUE, "bytes"},
	{"node_disk_io_now", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"node_network_receive_errs_total", WORSE_MORE, KIND_COUNTER, ZERO_VALUE, NULL},
	{"node_network_transmit_packets_total", WORSE_LOAD, KIND_COUNTER, ZERO_VALUE, NULL},
	{"node_load1", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"node_memory_MemAvailable_bytes", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, "bytes"},
	{"node_boot_time_seconds", WORSE_NONE, KIND_GAUGE, ZERO_VALUE, "s"},
	{"node_uname_info", WORSE_NONE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"smartctl_device_temperature", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"smartctl_device_power_on_hours", WORSE_NONE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"smartctl_device_available_spare", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	{"http_request_duration_seconds_sum", WORSE_MORE, KIND_COUNTER, ZERO_VALUE, "s"},
	{"http_request_duration_seconds_count", WORSE_LOAD, KIND_COUNTER, ZERO_VALUE, NULL},
	{"http_requests_failed_total", WORSE_MORE, KIND_COUNTER, ZERO_VALUE, NULL},
	/* iostat, sar */
	{"r/s", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"wkB/s", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"rd_sec/s", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"rxerr/s", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"tps", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"r_await", WORSE_MORE, KIND_GAUGE, ZERO_MISSING, NULL},
	{"aqu-sz", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"wareq-sz", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"%util", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, "%"},
	{"%idle", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, "%"},
	/* Ceph */
	{"commit_latency_ms", WORSE_MORE, KIND_GAUGE, ZERO_MISSING, "ms"},
	{"ceph_osd_op_r_latency_sum", WORSE_MORE, KIND_COUNTER, ZERO_VALUE, NULL},
	{"ceph_osd_op_r_latency_count", WORSE_LOAD, KIND_COUNTER, ZERO_VALUE, NULL},
	{"ceph_osd_up", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	/* names of clouds */
	{"VolumeTotalReadTime", WORSE_MORE, KIND_GAUGE, ZERO_MISSING, NULL},
	{"VolumeReadOps", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
	{"VolumeQueueLength", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"VolumeIdleTime", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	{"BurstBalance", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	{"CPUUtilization", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, "%"},
	{"FreeableMemory", WORSE_LESS, KIND_GAUGE, ZERO_VALUE, NULL},
	{"StatusCheckFailed", WORSE_MORE, KIND_GAUGE, ZERO_VALUE, NULL},
	{"Disk Read Operations/Sec", WORSE_LOAD, KIND_GAUGE, ZERO_VALUE, NULL},
};

static void names_are_understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(guesses) / sizeof(*guesses); i++) {
		const struct guess *g = &guesses[i];
		struct metric_model m = {.name = (char *)g->name};
		const char *unit;

		metric_guess(&m);
		unit = m.unit ? m.unit : "none";
		if (m.worse != g->worse || m.kind != g->kind || m.zero != g->zero ||
			strcmp(unit, g->unit ? g->unit : "none"))
			fail_msg("%s: worse %d, kind %d, zero %d, unit %s", g->name, m.worse,
				m.kind, m.zero, unit);
		assert_true(m.guessed && m.kind_guessed);
		free(m.unit);
	}
}

static void what_was_declared_is_not_guessed(void **state)
{
	struct metric_model m = {.name = (char *)"reads_total", .worse = WORSE_MORE};
	char *text;

	(void)state;
	metric_guess(&m);
	assert_int_equal(m.worse, WORSE_MORE);
	assert_int_equal(m.kind, KIND_COUNTER);
	assert_false(m.guessed);
	assert_true(m.kind_guessed);
	text = metric_describe(&m);
	assert_string_equal(text,
		"reads_total: more is worse; counter (kind guessed from its "
		"name)");
	free(text);
	m = (struct metric_model){.name = (char *)"x_ms",
		.unit = (char *)"h",
		.kind = KIND_GAUGE,
		.zero = ZERO_VALUE};
	metric_guess(&m);
	assert_true(m.guessed);
	assert_false(m.kind_guessed);
	text = metric_describe(&m);
	assert_string_equal(
		text, "x_ms: more is worse; gauge, in h (direction guessed from its name)");
	free(text);
	m.worse = WORSE_LESS;
	metric_guess(&m);
	text = metric_describe(&m);
	assert_string_equal(text, "x_ms: less is worse; gauge, in h");
	free(text);
}

static void long_and_odd_names_do_no_harm(void **state)
{
	char name[2000];

	(void)state;
	for (int c = 1; c < 256; c++) {
		struct metric_model m = {.name = name};
		char *text;

		memset(name, c, sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		metric_guess(&m);
		text = metric_describe(&m);
		assert_true(m.worse && m.kind && m.zero && text);
		free(text);
		free(m.unit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(unknown_words_are_refused_with_the_near_one),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(a_metric_is_declared_once),
		cmocka_unit_test(files_are_read_line_by_line),
		cmocka_unit_test(names_are_understood),
		cmocka_unit_test(what_was_declared_is_not_guessed),
		cmocka_unit_test(long_and_odd_names_do_no_harm),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
