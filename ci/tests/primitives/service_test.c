/* Servers that are killed, limited, restarted on small storage, and whose file system turns
 * read-only: the fault acts, and after it the server is as before. */
#include "ci/tests/primitives/service_fixture.h"

#include <sys/file.h>
#include <sys/xattr.h>

#define PORT "4711"
#define UNDO_S patient_s(60)

static char tools[64];

static const char *kept_path(void)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/.meta/aa/data.mdb", storage);
	return path;
}

static int setup(void **unused)
{
	if (storage_setup(unused, "32M"))
		return -1;
	snprintf(tools, sizeof(tools), "%s/tools", base);
	mkdir(tools, 0755);
	setxattr(storage, "trusted.culprit.test", "value", 5, 0);
	/* A database as large as the storage, most of it a hole. */
	RUN("sh", "-c",
		"cd $0/.meta/aa && truncate -s 20M data.mdb && echo first >db && "
		"dd if=db of=data.mdb bs=1M seek=13 conv=notrunc status=none && chown 7:8 data.mdb "
		"&& chmod 640 data.mdb && rm db && mkdir ../ab && echo 1 >../ab/log",
		storage);
	setxattr(kept_path(), "trusted.culprit.kept", "value", 5, 0);
	RUN(helper, PORT, storage);
	return server_pid() ? 0 : -1;
}

/* What the agent says of the node and the server. The caller frees. */
static char *look(struct peer *p)
{
	json_t *all = peer_call(p, "fingerprint", json_pack("{s:[i]}", "pids", (int)server_pid()));
	char *text;

	/* Other people's loop devices come and go in the machine's /dev. */
	json_object_del(all, "block_devices");
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

static void assert_as_before(struct peer *p, char *before)
{
	char *now = look(p);

	assert_string_equal(now, before);
	free(now);
	free(before);
}

enum kind { KILL, LIMIT, STORAGE, READONLY, KINDS };

static int ask(struct peer *p, enum kind kind)
{
	int pid = (int)server_pid();

	switch (kind) {
	case KILL: return peer_ask(p, "service.kill", json_pack("{s:i}", "pid", pid));
	case LIMIT:
		return peer_ask(p, "service.limit",
			json_pack("{s:i, s:{s:i, s:I}}", "pid", pid, "limits", "nofile", 50,
				"fsize", (json_int_t)1 << 20));
	case STORAGE:
		return peer_ask(p, "service.restart",
			json_pack("{s:i, s:{s:i}, s:{s:s, s:i, s:i, s:s, s:[s, s]}}", "pid", pid,
				"limits", "nofile", 40, "storage", "path", storage, "size_bytes",
				8 << 20, "spare_inodes", 100, "prune", ".meta/*", "keep", "*.none",
				".meta/*/*.mdb"));
	default:
		return peer_ask(
			p, "fs.readonly", json_pack("{s:s, s:i}", "path", storage, "pid", pid));
	}
}

static char *act(struct peer *p, enum kind kind)
{
	json_t *answer = peer_answer(p, ask(p, kind)), *result = json_object_get(answer, "result");
	char *handle;

	if (!result)
		fail_msg("%s", json_string_value(json_object_get(answer, "error")));
	handle = strdup(json_string_value(json_object_get(result, "handle")));
	json_decref(answer);
	return handle;
}

static void undo(struct peer *p, char *handle)
{
	json_t *result = peer_call(p, "undo", handle_args(handle));

	assert_true(json_is_true(json_object_get(result, "undone")));
	json_decref(result);
	free(handle);
}

static bool exists(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", storage, name);
	return !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static json_int_t soft_limit(struct peer *p, const char *name)
{
	json_t *now = peer_call(p, "limits.get", json_pack("{s:i}", "pid", (int)server_pid()));
	json_int_t soft = json_integer_value(json_object_get(json_object_get(now, name), "soft"));

	json_decref(now);
	return soft;
}

/* A session of an agent, the node as it found it, and an act. */
struct acting {
	struct peer p;
	char *before, *handle;
};

static void begin(struct acting *t, enum kind kind)
{
	peer_start(&t->p, LONG_LEASE, NULL, NULL);
	t->before = look(&t->p);
	t->handle = act(&t->p, kind);
}

static void end(struct acting *t)
{
	undo(&t->p, t->handle);
	assert_as_before(&t->p, t->before);
	assert_int_equal(peer_end(&t->p), 0);
}

static void killed(void **unused)
{
	struct acting t;

	(void)unused;
	begin(&t, KILL);
	assert_int_equal(server_pid(), 0);
	end(&t);
}

static void limited(void **unused)
{
	pid_t pid = server_pid();
	struct acting t;

	(void)unused;
	begin(&t, LIMIT);
	assert_int_equal(server_pid(), pid);
	assert_int_equal(soft_limit(&t.p, "nofile"), 50);
	assert_int_equal(soft_limit(&t.p, "fsize"), 1 << 20);
	end(&t);
	/* It may remember the errors that it met under its limits. */
	assert_int_not_equal(server_pid(), pid);
}

/* On the small storage: content, holes, owner, mode and attributes. */
static void assert_kept(void)
{
	char value[8], text[8] = "";
	struct stat st;
	int fd = open(kept_path(), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 20 << 20);
	assert_in_range(st.st_blocks, 1, 64);
	assert_true(st.st_uid == 7 && st.st_gid == 8 && (st.st_mode & 07777) == 0640);
	assert_int_equal(pread(fd, text, 6, 13 << 20), 6);
	assert_string_equal(text, "first\n");
	assert_int_equal(fgetxattr(fd, "trusted.culprit.kept", value, sizeof(value)), 5);
	close(fd);
}

static void small_storage(void **unused)
{
	char value[8], path[300], *block;
	struct acting t;
	json_t *now;
	int fd;

	(void)unused;
	begin(&t, STORAGE);
	now = peer_call(&t.p, "fs.info", json_pack("{s:s}", "path", storage));
	assert_in_range(json_integer_value(json_object_get(now, "size_bytes")), 4 << 20, 8 << 20);
	assert_kept();
	/* The data file, and what mkfs rounds up. */
	assert_in_range(json_integer_value(json_object_get(now, "free_inodes")), 98, 120);
	json_decref(now);
	assert_int_equal(soft_limit(&t.p, "nofile"), 40);
	/* Folders, links and attributes, but no other files, and not what is pruned. */
	assert_true(exists("dir") && exists(".meta/link"));
	assert_false(exists("dir/file") || exists(".meta/ab"));
	assert_int_equal(getxattr(storage, "trusted.culprit.test", value, sizeof(value)), 5);
	snprintf(path, sizeof(path), "%s/direct", storage);
	assert_int_equal(posix_memalign((void **)&block, 4096, 4096), 0);
	memset(block, 1, 4096);
	fd = open(path, O_CREAT | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, block, 4096), 4096);
	close(fd);
	free(block);
	end(&t);
	assert_true(exists("dir/file"));
}

static void readonly(void **unused)
{
	struct acting t;

	(void)unused;
	if (access("/sys/fs/ext4", F_OK) < 0)
		skip();
	begin(&t, READONLY);
	assert_false(storage_writable());
	assert_int_equal(errno, EROFS);
	end(&t);
	assert_true(storage_writable() && exists("dir/file"));
}

static void user_changed(void **unused)
{
	struct peer p;
	char *before, *handle, path[64], *text;

	(void)unused;
	chmod(base, 0755);
	chmod(storage, 0777);
	snprintf(path, sizeof(path), "%s/data", storage);
	chmod(path, 0666);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	before = look(&p);
	json_t *result = peer_call(&p, "service.restart",
		json_pack("{s:i, s:s}", "pid", (int)server_pid(), "user", "nobody"));
	handle = strdup(json_string_value(json_object_get(result, "handle")));
	json_decref(result);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)server_pid());
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_non_null(strstr(text, "\nUid:\t65534\t65534\t65534"));
	free(text);
	undo(&p, handle);
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
}

/* Until no journal is left, so that everything has been undone. */
static void wait_undone(void)
{
	double deadline = clock_mono_s() + UNDO_S;
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/undo", state_dir);
	for (;;) {
		json_t *files = json_array();
		size_t n;

		list_folder(path, files);
		n = json_array_size(files);
		json_decref(files);
		if (!n)
			return;
		if (clock_mono_s() > deadline)
			fail_msg("a journal is still there after %g s", UNDO_S);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

/* The agent is killed at various moments of the act; its guard repairs. */
static void agent_killed_within(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < KINDS; kind++) {
		for (int moment = 0; moment < 4; moment++) {
			struct timespec wait = {
				.tv_nsec = moment * (kind == STORAGE ? 60 : 10) * 1000000};
			struct peer p;
			char *before;

			peer_start(&p, LONG_LEASE, NULL, NULL);
			before = look(&p);
			if (moment == 3)
				free(act(&p, kind));
			else
				ask(&p, kind);
			nanosleep(&wait, NULL);
			kill(p.pid, SIGKILL);
			peer_end(&p);
			wait_undone();
			peer_start(&p, LONG_LEASE, NULL, NULL);
			assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 0);
			assert_as_before(&p, before);
			assert_int_equal(peer_end(&p), 0);
		}
	}
}

/* The session ends while an act waits for the server's lock: what acts is killed before the undo,
 * and the server continues. An act that came after its undo left the server stopped. */
static void an_act_does_not_follow_its_undo(void **unused)
{
	(void)unused;
	for (int kind = KILL; kind <= STORAGE; kind += STORAGE - KILL) {
		const pid_t server = server_pid();
		char path[PATH_MAX + 64];
		double deadline;
		struct peer p;
		uint64_t ticks;
		pid_t child;
		int lock;

		peer_start(&p, LONG_LEASE, NULL, NULL);
		snprintf(path, sizeof(path), "%s/%s/server.lock", state_dir, p.session);
		lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		assert_int_equal(flock(lock, LOCK_EX), 0);
		ask(&p, kind);
		while (!(child = child_of(p.pid, "culprit-agent")))
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		close(p.in);
		p.in = -1;
		/* By itself it would wait for a minute. */
		for (deadline = clock_mono_s() + 30; !proc_start_time(child, &ticks);) {
			assert_true(clock_mono_s() < deadline);
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		}
		close(lock);
		assert_int_equal(peer_end(&p), 0);
		assert_int_equal(server_pid(), server);
	}
}

/* Agent, guard and standby are dead: the next agent repairs before its hello. */
static void all_killed(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < KINDS; kind++) {
		struct acting t;

		begin(&t, kind);
		peer_kill_all(&t.p, true);
		peer_end(&t.p);
		free(t.handle);
		peer_start(&t.p, LONG_LEASE, NULL, NULL);
		assert_int_equal(json_array_size(json_object_get(t.p.hello, "cleaned")), 1);
		assert_int_equal(json_array_size(json_object_get(t.p.hello, "quarantined")), 0);
		assert_as_before(&t.p, t.before);
		assert_int_equal(peer_end(&t.p), 0);
	}
}

/* The check takes longer than a hello waits: the node says so, until it has ended. */
static void quarantined(void **unused)
{
	char *path = strdup(getenv("PATH")), *before, *with, script[128], go[80];
	struct peer p;
	json_t *now;
	bool working = true;

	(void)unused;
	if (access("/sys/fs/ext4", F_OK) < 0)
		skip();
	snprintf(script, sizeof(script), "%s/e2fsck", tools);
	snprintf(go, sizeof(go), "%s/go", base);
	RUN("sh", "-c",
		"printf '#!/bin/sh\\nwhile [ ! -e %s ]; do sleep 0.02; done\\nPATH=%s exec e2fsck "
		"\"$@\"\\n' $1 $2 >$0; chmod 755 $0",
		script, go, "/usr/sbin:/sbin:/usr/bin:/bin");
	assert_true(asprintf(&with, "%s:%s:/usr/sbin:/sbin", tools, path) > 0);
	setenv("PATH", with, 1);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	setenv("PATH", path, 1);
	before = look(&p);
	free(act(&p, READONLY));
	kill(p.pid, SIGKILL);
	peer_end(&p);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(p.hello, "quarantined")), 1);
	RUN("touch", go);
	while (working) {
		now = peer_call(&p, "quarantine", NULL);
		working = json_array_size(json_object_get(now, "quarantined"));
		json_decref(now);
	}
	/* The guard has removed its journal a moment later. */
	for (double end = clock_mono_s() + UNDO_S; clock_mono_s() < end && !working;) {
		char *is = look(&p);

		working = !strcmp(is, before);
		free(is);
	}
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
	free(with);
	free(path);
}

/* mkfs.ext4 hangs: whoever asked is told where, and the server comes back. */
static void overdue(void **unused)
{
	char *path = strdup(getenv("PATH")), *before, *with, script[128];
	const char *error;
	json_t *answer;
	struct peer p;

	(void)unused;
	snprintf(script, sizeof(script), "%s/mkfs.ext4", tools);
	RUN("sh", "-c",
		"printf '#!/bin/sh\n[ \"$1\" != -V ] || exit 0\nexec sleep 999\n' >$0; chmod +x $0",
		script);
	assert_true(asprintf(&with, "%s:%s:/usr/sbin:/sbin", tools, path) > 0);
	setenv("PATH", with, 1);
	peer_start(&p, LONG_LEASE, "--act-limit", "3s");
	setenv("PATH", path, 1);
	before = look(&p);
	answer = peer_answer(&p, ask(&p, STORAGE));
	error = json_string_value(json_object_get(answer, "error"));
	assert_non_null(error);
	if (!strstr(error, "not done after 3 s (sleep"))
		fail_msg("%s", error);
	json_decref(answer);
	unlink(script);
	json_decref(peer_event(&p, "undone"));
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
	free(with);
	free(path);
}

static void refusals(void **unused)
{
	struct peer p;
	char *before;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	before = look(&p);
	peer_refused(&p, "fs.readonly", json_pack("{s:s}", "path", "/"), "", -EPERM);
	peer_refused(&p, "fs.readonly", json_pack("{s:s}", "path", "/nowhere"), "", -ENOENT);
	peer_refused(&p, "service.kill", json_pack("{s:i}", "pid", 999999), "", -ESRCH);
	peer_refused(&p, "service.limit",
		json_pack("{s:i, s:{s:i}}", "pid", (int)server_pid(), "limits", "cpu", 5), "",
		-EINVAL);
	peer_refused(&p, "service.restart",
		json_pack("{s:i, s:s}", "pid", (int)server_pid(), "user", "no-such-user"), "",
		-ENOENT);
	peer_refused(&p, "service.limit",
		json_pack("{s:i, s:{s:I}}", "pid", (int)server_pid(), "limits", "nofile",
			(json_int_t)1 << 40),
		"above the server's hard limit", -EINVAL);
	RUN("sh", "-c", "seq -f \"$0/dir/%.0f\" 1 3000 | xargs mkdir", storage);
	peer_refused(&p, "service.restart",
		json_pack("{s:i, s:{s:s, s:i, s:i}}", "pid", (int)server_pid(), "storage", "path",
			storage, "size_bytes", 2 << 20, "inodes", 64),
		"not fit on a s", -ENOSPC); /* counted before, or found while copying */
	/* There are inodes for the folders, but no blocks: undone before it is answered. */
	peer_refused(&p, "service.restart",
		json_pack("{s:i, s:{s:s, s:i, s:i}}", "pid", (int)server_pid(), "storage", "path",
			storage, "size_bytes", 2 << 20, "spare_inodes", 1),
		"does not fit on a small storage", -ENOSPC);
	RUN("sh", "-c", "rm -r $0/dir/[0-9]*", storage);
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(killed),
		cmocka_unit_test(limited),
		cmocka_unit_test(small_storage),
		cmocka_unit_test(readonly),
		cmocka_unit_test(user_changed),
		cmocka_unit_test(overdue),
		cmocka_unit_test(refusals),
		cmocka_unit_test(all_killed),
		cmocka_unit_test(quarantined),
		cmocka_unit_test(agent_killed_within),
		cmocka_unit_test(an_act_does_not_follow_its_undo),
	};

	return cmocka_run_group_tests_name("service", all, setup, service_teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
