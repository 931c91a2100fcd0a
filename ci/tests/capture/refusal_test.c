/* Tests the message to users when the kernel does not load the tracer, from recorded warnings of
 * libbpf. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "diag/capture/ebpf/ebpf.h"

static void program_and_verifier(void **state)
{
	static const char *const warnings[] = {
		"libbpf: prog 'on_exit': BPF program load failed: Invalid argument\n",
		"libbpf: prog 'on_exit': -- BEGIN PROG LOAD LOG --\n"
		"0: R1=ctx(off=0,imm=0) R10=fp0\n"
		"; return e;\n"
		"1890: (95) exit\n"
		"Unreleased reference id=282 alloc_insn=1853\n"
		"processed 14802 insns (limit 1000000) max_states_per_insn 9\n"
		"-- END PROG LOAD LOG --\n",
		"libbpf: prog 'on_exit': failed to load: -22\n",
		"libbpf: failed to load object 'ebpf_bpf'\n"};
	struct refusal r = {0};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
		refusal_add(&r, warnings[i]);
	assert_int_equal(refusal_say(&r, -EINVAL, &e), -EOPNOTSUPP);
	assert_string_equal(e.text,
		"the kernel refuses the program 'on_exit' (Invalid argument; "
		"1890: (95) exit; Unreleased reference id=282 alloc_insn=1853)");
}

static void not_allowed(void **state)
{
	struct refusal r = {0};
	struct err e;

	(void)state;
	refusal_add(
		&r, "libbpf: Error in bpf_object__probe_loading():Operation not permitted(1).\n");
	refusal_add(&r, "libbpf: failed to load object 'ebpf_bpf'\n");
	assert_int_equal(refusal_say(&r, -EPERM, &e), -EOPNOTSUPP);
	assert_string_equal(e.text,
		"the kernel does not allow eBPF to this user (Operation not permitted; "
		"libbpf: Error in bpf_object__probe_loading():Operation not permitted(1).)");
}

static void other_reasons(void **state)
{
	struct refusal r = {0};
	struct err e;

	(void)state;
	assert_int_equal(refusal_say(&r, -ENOMEM, &e), -ENOMEM);
	assert_string_equal(e.text, "the kernel has no memory for the tracer's maps");
	refusal_add(&r, "libbpf: map 'rings': failed to create: Invalid argument(-22)\n");
	assert_int_equal(refusal_say(&r, -EINVAL, &e), -EOPNOTSUPP);
	assert_string_equal(e.text,
		"the kernel does not load the tracer (Invalid argument; libbpf: map 'rings': "
		"failed to create: Invalid argument(-22))");
}

static void an_endless_log(void **state)
{
	static char log[20000];
	struct refusal r = {0};
	struct err e;

	(void)state;
	memset(log, 'x', sizeof(log) - 1);
	memcpy(log, "libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n", 44);
	refusal_add(&r, "libbpf: prog 'a': BPF program load failed: Invalid argument\n");
	refusal_add(&r, log);
	assert_int_equal(refusal_say(&r, -EINVAL, &e), -EOPNOTSUPP);
	assert_true(strlen(r.verifier) == 160);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(program_and_verifier),
		cmocka_unit_test(not_allowed), cmocka_unit_test(other_reasons),
		cmocka_unit_test(an_endless_log)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
