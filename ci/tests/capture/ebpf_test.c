/* Tests the in-kernel tracer: the properties of every tracer, and its memory in the kernel. */
#include "ci/tests/capture/tracing_shared.h"

/* Memory in addition to the buffers that --memory limits: descriptors, files, threads
 * (capture.h). */
#define FIXED_MAPS (3u << 20)

/* Bytes in the kernel of a process's maps, from their descriptors ("memlock:"). */
static uint64_t map_bytes(pid_t pid)
{
	uint64_t sum = 0;
	char path[64], *text, *at;

	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
		if (file_read(path, &text, NULL, NULL) < 0)
			continue;
		at = strstr(text, "map_type:") ? strstr(text, "memlock:") : NULL;
		if (at)
			sum += strtoull(at + 8, NULL, 10);
		free(text);
	}
	return sum;
}

static void test_memory_is_bounded(void **state)
{
	static const struct {
		const char *mode, *memory;
		uint64_t bytes;
	} cases[] = {{"events", "64MiB", 64 << 20}, {"sums", "64MiB", 64 << 20},
		{"flow", "64MiB", 64 << 20}, {"events", "8MiB", 8 << 20}, {"sums", "8MiB", 8 << 20},
		{"flow", "8MiB", 8 << 20}, {"events", "1MiB", 1 << 20}, {"sums", "1MiB", 1 << 20},
		{"flow", "1MiB", 1 << 20}};
	char number[16];
	pid_t pid, tracer;
	int in;

	(void)state;
	pid = start_busy(&in);
	snprintf(number, sizeof(number), "%d", pid);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t held;

		tracer = trace((const char *const[]){"--mode", cases[i].mode, "--memory",
				       cases[i].memory, "-p", number, NULL},
			NULL);
		wait_progress();
		held = map_bytes(tracer);
		print_message("# %s within %s: maps of %llu KiB\n", cases[i].mode, cases[i].memory,
			(unsigned long long)held / 1024);
		assert_true(held > 0);
		assert_true(held <= cases[i].bytes + FIXED_MAPS);
		kill(tracer, SIGTERM);
		assert_int_equal(wait_exit(tracer), 0);
		unlink(log_path);
	}
	end_busy(pid, in);
}

int main(void)
{
	struct err why;
	const struct CMUnitTest tests[] = {
		SHARED_TESTS,
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, fresh, kill_busy),
	};

	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	/* each kind twice: each loads its programs again, which alone takes most of a second */
	come_and_go = 8;
	/* each tracer loads its programs, which alone takes most of a second */
	patient_alarm(1500);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
