/* Servers that are killed, limited, restarted on small storage, and whose file system turns
 * read-only: on, and as before. */
#include "ci/tests/agent/agent_peer.h"

#include <sys/xattr.h>

#define PORT "4711"
#define UNDO_S 40

static char base[] = "/tmp/culprit-service-test-XXXXXX";
static char helper[PATH_MAX], storage[64], image[64], tools[64];

static void run_ok(const char *const *argv)
{
	struct err e;

	if (proc_run_ok(argv, 30, NULL, &e))
		fail_msg("%s", e.text);
}

#define RUN(...) run_ok((const char *[]){__VA_ARGS__, NULL})

/* The server's pid, 0 if it does not run; fails if there are two. */
static pid_t server_pid(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	pid_t found = 0;

	while ((d = readdir(dir))) {
		char path[300], *text;
		uint64_t ticks;
		pid_t pid = atoi(d->d_name);

		snprintf(path, sizeof(path), "/proc/%s/cmdline", d->d_name);
		if (pid <= 0 || file_read(path, &text, NULL, NULL))
			continue;
		if (!strcmp(text, helper) && !proc_start_time(pid, &ticks)) {
			assert_int_equal(found, 0);
			found = pid;
		}
		free(text);
	}
	closedir(dir);
	return found;
}

static int setup(void **unused)
{
	char exe[PATH_MAX], *at;

	if (peer_setup(unused) || !realpath(agent_path_, exe) ||
		!(at = strstr(exe, "/agent/culprit-agent")))
		return -1;
	*at = '\0';
	if (snprintf(helper, sizeof(helper), "%s/helpers/server", exe) >= (int)sizeof(helper))
		return -1;
	strcpy(base + strlen(base) - 6, "XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(storage, sizeof(storage), "%s/storage", base);
	snprintf(image, sizeof(image), "%s/image", base);
	snprintf(tools, sizeof(tools), "%s/tools", base);
	mkdir(storage, 0755);
	mkdir(tools, 0755);
	RUN("truncate", "-s", "32M", image);
	RUN("mkfs.ext4", "-q", "-F", image);
	RUN("mount", "-o", "loop,noatime,errors=remount-ro", image, storage);
	RUN("sh", "-c",
		"mkdir -p $0/.meta/aa $0/dir && ln -s ../dir $0/.meta/link && echo 1 >$0/dir/file",
		storage);
	setxattr(storage, "trusted.culprit.test", "value", 5, 0);
	RUN(helper, PORT, storage);
	return server_pid() ? 0 : -1;
}

static int teardown(void **unused)
{
	pid_t pid = server_pid();
	uint64_t ticks;

	if (pid)
		kill(pid, SIGKILL);
	while (pid && !proc_start_time(pid, &ticks))
		;
	for (int i = 0; i < 200 && umount(storage) < 0 && errno == EBUSY; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	file_remove_tree(base, NULL);
	return peer_teardown(unused);
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
			json_pack("{s:i, s:{s:i}, s:{s:s, s:i, s:i, s:s}}", "pid", pid, "limits",
				"nofile", 40, "storage", "path", storage, "size_bytes", 8 << 20,
				"spare_inodes", 100, "prune", ".meta/*"));
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
	json_t *result = peer_call(p, "undo", json_pack("{s:s}", "handle", handle));

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

static void killed(void **unused)
{
	struct peer p;
	char *before, *handle;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	before = look(&p);
	handle = act(&p, KILL);
	assert_int_equal(server_pid(), 0);
	undo(&p, handle);
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
}

static void limited(void **unused)
{
	pid_t pid = server_pid();
	struct peer p;
	char *before, *handle;
	json_t *now;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	before = look(&p);
	handle = act(&p, LIMIT);
	assert_int_equal(server_pid(), pid);
	now = peer_call(&p, "limits.get", json_pack("{s:i}", "pid", (int)pid));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(now, "nofile"), "soft")), 50);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(now, "fsize"), "soft")),
		1 << 20);
	json_decref(now);
	undo(&p, handle);
	/* It may remember what it met under its limits. */
	assert_int_not_equal(server_pid(), pid);
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
}

static void small_storage(void **unused)
{
	char *before, *handle, value[8], path[300], *block;
	struct peer p;
	json_t *now;
	int fd;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	before = look(&p);
	handle = act(&p, STORAGE);
	now = peer_call(&p, "fs.info", json_pack("{s:s}", "path", storage));
	assert_in_range(json_integer_value(json_object_get(now, "size_bytes")), 4 << 20, 8 << 20);
	/* The data file, and what mkfs rounds up. */
	assert_in_range(json_integer_value(json_object_get(now, "free_inodes")), 98, 120);
	json_decref(now);
	now = peer_call(&p, "limits.get", json_pack("{s:i}", "pid", (int)server_pid()));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(now, "nofile"), "soft")), 40);
	json_decref(now);
	/* Folders, links and attributes, but no files, and not what is pruned. */
	assert_true(exists("dir") && exists(".meta/link"));
	assert_false(exists("dir/file") || exists(".meta/aa"));
	assert_int_equal(getxattr(storage, "trusted.culprit.test", value, sizeof(value)), 5);
	snprintf(path, sizeof(path), "%s/direct", storage);
	assert_int_equal(posix_memalign((void **)&block, 4096, 4096), 0);
	memset(block, 1, 4096);
	fd = open(path, O_CREAT | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, block, 4096), 4096);
	close(fd);
	free(block);
	undo(&p, handle);
	assert_true(exists("dir/file"));
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
}

static bool writable(void)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/probe", storage);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0) {
		assert_int_equal(errno, EROFS);
		return false;
	}
	close(fd);
	unlink(path);
	return true;
}

static void readonly(void **unused)
{
	struct peer p;
	char *before, *handle;

	(void)unused;
	if (access("/sys/fs/ext4", F_OK) < 0)
		skip();
	peer_start(&p, "10s", NULL, NULL);
	before = look(&p);
	handle = act(&p, READONLY);
	assert_false(writable());
	undo(&p, handle);
	assert_true(writable() && exists("dir/file"));
	assert_as_before(&p, before);
	assert_int_equal(peer_end(&p), 0);
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
	peer_start(&p, "10s", NULL, NULL);
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

/* Until no journal is left: everything has been undone. */
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
			fail_msg("a journal is still there after %d s", UNDO_S);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

/* The agent dies at moments that move through the act; its guard repairs. */
static void agent_killed_within(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < KINDS; kind++) {
		for (int moment = 0; moment < 4; moment++) {
			struct timespec wait = {
				.tv_nsec = moment * (kind == STORAGE ? 60 : 10) * 1000000};
			struct peer p;
			char *before;

			peer_start(&p, "10s", NULL, NULL);
			before = look(&p);
			if (moment == 3)
				free(act(&p, kind));
			else
				ask(&p, kind);
			nanosleep(&wait, NULL);
			kill(p.pid, SIGKILL);
			peer_end(&p);
			wait_undone();
			peer_start(&p, "10s", NULL, NULL);
			assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 0);
			assert_as_before(&p, before);
			assert_int_equal(peer_end(&p), 0);
		}
	}
}

static void stop_guards(int signo)
{
	char *text;
	DIR *dir = opendir("/proc");
	struct dirent *d;

	while ((d = readdir(dir))) {
		char path[300];

		snprintf(path, sizeof(path), "/proc/%s/comm", d->d_name);
		if (atoi(d->d_name) <= 0 || file_read(path, &text, NULL, NULL))
			continue;
		if (!strcmp(text, "culprit-guard\n"))
			kill(atoi(d->d_name), signo);
		free(text);
	}
	closedir(dir);
}

/* Agent and guard are dead: the next agent repairs before its hello. In a PID namespace of our own
 * all guards are ours. */
static void both_killed(void **unused)
{
	(void)unused;
	for (int kind = 0; kind < KINDS; kind++) {
		struct peer p;
		char *before;

		peer_start(&p, "10s", NULL, NULL);
		before = look(&p);
		free(act(&p, kind));
		stop_guards(SIGSTOP);
		kill(p.pid, SIGKILL);
		stop_guards(SIGKILL);
		peer_end(&p);
		peer_start(&p, "10s", NULL, NULL);
		assert_int_equal(json_array_size(json_object_get(p.hello, "cleaned")), 1);
		assert_int_equal(json_array_size(json_object_get(p.hello, "quarantined")), 0);
		assert_as_before(&p, before);
		assert_int_equal(peer_end(&p), 0);
	}
}

/* The check takes longer than a hello waits: the node says so, until it is over. */
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
		"printf '#!/bin/sh\\nwhile [ ! -e %s ]; do sleep 0.02; done\\nPATH=%s exec e2fsck \"$@\"\\n' $1 $2 >$0; chmod 755 $0",
		script, go, "/usr/sbin:/sbin:/usr/bin:/bin");
	assert_true(asprintf(&with, "%s:%s:/usr/sbin:/sbin", tools, path) > 0);
	setenv("PATH", with, 1);
	peer_start(&p, "10s", NULL, NULL);
	setenv("PATH", path, 1);
	before = look(&p);
	free(act(&p, READONLY));
	kill(p.pid, SIGKILL);
	peer_end(&p);
	peer_start(&p, "10s", NULL, NULL);
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

static void refused(struct peer *p, const char *op, json_t *args, int code)
{
	json_t *answer = peer_answer(p, peer_ask(p, op, args));

	assert_int_equal(json_integer_value(json_object_get(answer, "code")), code);
	json_decref(answer);
}

static void refusals(void **unused)
{
	struct peer p;
	char *before;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	before = look(&p);
	refused(&p, "fs.readonly", json_pack("{s:s}", "path", "/"), -EPERM);
	refused(&p, "fs.readonly", json_pack("{s:s}", "path", "/nowhere"), -ENOENT);
	refused(&p, "service.kill", json_pack("{s:i}", "pid", 999999), -ESRCH);
	refused(&p, "service.limit",
		json_pack("{s:i, s:{s:i}}", "pid", (int)server_pid(), "limits", "cpu", 5), -EINVAL);
	refused(&p, "service.restart",
		json_pack("{s:i, s:s}", "pid", (int)server_pid(), "user", "no-such-user"), -ENOENT);
	/* The folders do not fit: undone before it is answered. */
	RUN("sh", "-c", "for i in $(seq 1 200); do mkdir $0/dir/$i; done", storage);
	refused(&p, "service.restart",
		json_pack("{s:i, s:{s:s, s:i, s:i}}", "pid", (int)server_pid(), "storage", "path",
			storage, "size_bytes", 2 << 20, "inodes", 64),
		-ENOSPC);
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
		cmocka_unit_test(refusals),
		cmocka_unit_test(both_killed),
		cmocka_unit_test(quarantined),
		cmocka_unit_test(agent_killed_within),
	};

	return cmocka_run_group_tests_name("service", all, setup, teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
