/* File systems' descriptions of their messages: what is read, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diag/flow/protocol.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/fs/bulk.h"
#include "harness/fs/fs.h"

static void glusterfs_speaks_onc_rpc(void **state)
{
	static const uint8_t call[FLOW_HEADER] = {0x80, 0, 1, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2,
		0, 0x13, 0xd0, 5, 0, 0, 1, 0x90, 0, 0, 0, 13};
	static const uint8_t answer[FLOW_HEADER] = {0x80, 0, 0, 0x30, 0, 0, 0, 7, 0, 0, 0, 1};
	const struct flow_protocol *p;
	struct flow_header h;
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(fs_load("glusterfs", &fs, &e), 0);
	p = fs_protocol(fs);
	assert_int_equal(flow_header_read(p, call, (1ull << 28) - 1, false, &h), 1);
	assert_int_equal(h.bytes, 0x104);
	assert_int_equal(h.id, 7);
	assert_int_equal(h.kind, FLOW_CALL);
	assert_true(h.named && h.last);
	assert_string_equal(flow_protocol_name(p, h.program, h.procedure), "WRITE");
	assert_int_equal(flow_header_read(p, call, (1ull << 20) - 1, false, &h), 1);
	assert_false(h.named);
	assert_int_equal(flow_header_read(p, call, (1ull << 11) - 1, false, &h), 0);
	assert_int_equal(flow_header_read(p, answer, (1ull << 12) - 1, false, &h), 1);
	assert_int_equal(h.kind, FLOW_ANSWER);
	fs_free(fs);
}

static void orangefs_speaks_bmi(void **state)
{
	uint8_t m[FLOW_HEADER] = {0xbf, 0xca, 0, 0, 2, 0, 0, 0, 0x72, 0, 0, 0, 0, 0, 0, 0, 0x18, 1};
	const struct flow_protocol *p;
	struct flow_header h;
	struct fs *fs;
	struct err e;

	(void)state;
	m[32] = 3;
	assert_int_equal(fs_load("orangefs", &fs, &e), 0);
	p = fs_protocol(fs);
	assert_true(p->parts);
	assert_int_equal(flow_header_read(p, m, (1ull << 36) - 1, false, &h), 1);
	assert_int_equal(h.bytes, 0x118 + 24);
	assert_int_equal(h.id, 0x72);
	assert_int_equal(h.kind, FLOW_CALL);
	assert_string_equal(flow_protocol_name(p, 0, h.procedure), "IO");
	m[0] = 0;
	assert_int_equal(flow_header_read(p, m, (1ull << 36) - 1, false, &h), -1);
	m[0] = 0xbf;
	m[23] = 0xff; /* a length of many exabytes */
	assert_int_equal(flow_header_read(p, m, (1ull << 36) - 1, false, &h), -1);
	assert_string_equal(p->layers[0].name, "BMI");
	fs_free(fs);
}

static void moosefs_describes_none(void **state)
{
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(fs_load("moosefs", &fs, &e), 0);
	assert_null(fs_protocol(fs));
	fs_free(fs);
}

static const char good[] = "length = { offset = 0, size = 4 }, id = { offset = 4, size = 4 },\n"
			   "kind = { offset = 8, size = 1, call = 0, answer = { 1, 2 } },\n";

/* 'fields': further ones of the file system. */
static void refuse_with(
	const char *messages, const char *layers, const char *fields, const char *complaint)
{
	char path[64];
	struct fs *fs;
	struct err e;
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/messages_test.%d.lua", getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"return { summary = 'x', server_pids = function() return {} end,\n"
		"client_pids = function() return {} end, lost_errnos = {},\n"
		"messages = { %s },\nlayers = { %s }, %s }\n",
		messages, layers, fields);
	fclose(f);
	if (complaint) {
		assert_int_not_equal(fs_load(path, &fs, &e), 0);
		if (!strstr(e.text, complaint))
			fail_msg("'%s' is not in '%s'", complaint, e.text);
	} else {
		assert_int_equal(fs_load(path, &fs, &e), 0);
		fs_free(fs);
	}
	unlink(path);
}

static void refuse(const char *messages, const char *layers, const char *complaint)
{
	refuse_with(messages, layers, "", complaint);
}

/* What OrangeFS calls a flow, and how a run keeps that. */
static void bulk_data_is_described(void **state)
{
	const struct bulk_rule *rule;
	struct bulk_rule again;
	auto_json json_t *kept = NULL;
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(fs_load("orangefs", &fs, &e), 0);
	rule = fs_bulk(fs);
	assert_int_equal(rule->above, 16384 + 24);
	assert_int_equal(rule->header, 24);
	assert_int_equal(rule->kind.values[0], 8);
	kept = bulk_to_json(rule);
	assert_int_equal(bulk_from_json(kept, &again, &e), 0);
	assert_memory_equal(rule, &again, sizeof(again));
	fs_free(fs);

	assert_int_equal(bulk_from_json(NULL, &again, &e), 0);
	assert_int_equal(again.above, 0);
	json_object_set_new(jget(kept, "kind"), "offset", json_integer(62));
	assert_int_equal(bulk_from_json(kept, &again, &e), -EINVAL);

	assert_int_equal(fs_load("glusterfs", &fs, &e), 0);
	assert_int_equal(fs_bulk(fs)->above, 0);
	fs_free(fs);
}

static void what_is_wrong_about_bulk_data_is_refused(void **state)
{
	char checked[512];

	(void)state;
	snprintf(checked, sizeof(checked), "%s check = { offset = 2, size = 4, value = 7 }", good);
	refuse_with(checked, "", "bulk = { above = '16KiB', header = 24, kind = 3 }", NULL);
	refuse_with(good, "", "bulk = { above = '16KiB' }", NULL);
	refuse_with(good, "", "bulk = { header = 24 }", "'above' is missing");
	refuse_with(good, "", "bulk = { above = 16408 }", "has no unit");
	refuse_with(good, "", "bulk = { above = '16B', header = 24 }", "must not be larger than");
	refuse_with(good, "", "bulk = { above = '1KiB', header = 65 }", "'header'");
	refuse_with(good, "", "bulk = { above = '16KiB', kind = 3 }", "messages.check");
	refuse_with(checked, "", "bulk = { above = '16KiB', knd = 3 }", "did you mean 'kind'");
}

static void what_is_wrong_is_refused(void **state)
{
	char text[512];

	(void)state;
	refuse(good, "", NULL);
	refuse("", "", "'length' is missing");
	snprintf(text, sizeof(text), "%s lenght = {}", good);
	refuse(text, "", "did you mean 'length'");
	snprintf(text, sizeof(text), "%s procedure = { offset = 62, size = 4 }", good);
	refuse(text, "", "ends at byte 66");
	snprintf(text, sizeof(text), "%s procedure = { offset = 2, size = 3 }", good);
	refuse(text, "", "must be 1, 2, 4 or 8");
	snprintf(text, sizeof(text), "%s procedure = { offset = 2, size = 4, bgi = true }", good);
	refuse(text, "", "did you mean 'big'");
	snprintf(text, sizeof(text), "%s check = { offset = 2, size = 4 }", good);
	refuse(text, "", "'value' must be a whole number");
	snprintf(text, sizeof(text), "%s names = { 'A', { 'B' } }", good);
	refuse(text, "", "'names' must map");
	refuse(good, "{ name = 'x', from = 'dsk' }", "did you mean 'disk'");
	refuse(good, "{ name = 'x' }", "'from' is missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glusterfs_speaks_onc_rpc),
		cmocka_unit_test(orangefs_speaks_bmi),
		cmocka_unit_test(moosefs_describes_none),
		cmocka_unit_test(bulk_data_is_described),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(what_is_wrong_about_bulk_data_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
