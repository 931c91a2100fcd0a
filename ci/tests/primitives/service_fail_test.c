/*
 * As primitives_fail_test, for servers that are killed, limited or restarted, and whose file system
 * turns read-only. A place is a chain of callers here, since this code polls. In three parts:
 *  - the description of the server fails, or is whole;
 *  - after an act that failed, undo makes the server as it was;
 *  - after an undo that failed, the next undo does.
 * In the last two every STEP-th place is tried, starting elsewhere for each kind; with CULPRIT_SOAK
 * all are. Each kind has its own server and namespaces, and all are tried at once: they wait for
 * servers most of the time.
 */
#ifdef __SANITIZE_ADDRESS__
#include <stdio.h>

int main(void)
{
	puts("1..0 # SKIP the sanitizer has taken over the same calls");
	return 0;
}
#else

#include "ci/tests/agent/failing.h"
#include "ci/tests/primitives/service_fixture.h"
#include "ci/tests/side_by_side.h"

#include <inttypes.h>
#include <sys/random.h>

#include "faults/primitives/readonly.h"
#include "faults/primitives/service.h"

#define PORT "4712"
#define STEP 36

static char name[48]; /* of device nodes in /dev, which is the whole machine's */
static bool soak;
static json_t *keep;

static int setup(void **unused)
{
	uint64_t session;
	char *path;

	if (plan_make() || storage_setup(unused, "16M") ||
		getrandom(&session, sizeof(session), 0) != sizeof(session))
		return -1;
	snprintf(name, sizeof(name), "culprit-%016" PRIx64 "-h1", session);
	path = strdup(getenv("PATH"));
	soak = getenv("CULPRIT_SOAK");
	keep = json_pack("[s]", "dir/file");
	clearenv();
	setenv("PATH", path, 1);
	setenv("CULPRIT_TEST", "of its own", 1);
	free(path);
	RUN("sh", "-c", "echo 100 >/proc/self/oom_score_adj; umask 27; trap '' XFSZ; exec \"$@\"",
		"sh", helper, PORT, storage);
	return server_pid() ? 0 : -1;
}

/* ---- what is compared ---- */

static void add_lines(FILE *to, const char *path, const char *with)
{
	char *text, *line, *save = NULL;

	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *point = strstr(line, with), *dash = strstr(line, " - ");

		/* Not the number of the mount, which is a new one. */
		if (point)
			fprintf(to, "%s%s; ", point, dash > point ? "" : dash ? dash : "");
	}
	free(text);
}

static void add_server(FILE *to)
{
	static const char *const files[] = {"environ", "limits", "oom_score_adj", "cgroup"};
	static const char *const links[] = {"cwd", "exe", "fd/0", "fd/1", "fd/2"};
	pid_t pid = server_pid();
	char path[64], link[PATH_MAX], *text;
	size_t size;

	fprintf(to, pid ? "server: " : "no server; ");
	for (size_t i = 0; pid && i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		assert_int_equal(file_read(path, &text, &size, NULL), 0);
		for (size_t k = 0; k < size; k++)
			fputc(text[k] ? text[k] : ' ', to);
		free(text);
	}
	for (size_t i = 0; pid && i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, links[i]);
		memset(link, 0, sizeof(link));
		readlink(path, link, sizeof(link) - 1);
		fprintf(to, "%s; ", link);
	}
	if (pid) {
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		add_lines(to, path, "Uid:");
		add_lines(to, path, "Umask:");
		add_lines(to, path, "SigIgn:");
	}
	/* What follows address, peer and state is a new server's own. */
	assert_int_equal(file_read("/proc/net/tcp", &text, NULL, NULL), 0);
	for (char *at = text; (at = strstr(at, ": 0100007F:")); at++)
		fprintf(to, "%.30s; ", at + 2);
	free(text);
}

static char *everything(void)
{
	json_t *files = json_array(), *nodes = json_array();
	char *text = NULL, *names;
	size_t size, i;
	json_t *value;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	fprintf(to, storage_writable() ? "writable; " : "not writable; ");
	add_lines(to, "/proc/self/mountinfo", base);
	add_server(to);
	list_folder(state_dir, files);
	list_folder(storage, files);
	list_folder("/proc/self/fd", nodes);
	names = json_dumps(files, JSON_COMPACT | JSON_SORT_KEYS);
	fprintf(to, "files %s; %zu descriptors", names, json_array_size(nodes));
	json_decref(files);
	json_decref(nodes);
	free(names);
	nodes = json_array();
	DIR *dir = opendir("/dev");
	struct dirent *d;

	while ((d = readdir(dir)))
		if (strstr(d->d_name, name))
			json_array_append_new(nodes, json_string(d->d_name));
	closedir(dir);
	json_array_foreach(nodes, i, value)
		fprintf(to, "; /dev/%s", json_string_value(value));
	json_decref(nodes);
	fclose(to);
	return text;
}

/* ---- the acts ---- */

enum kind { KILL, LIMIT, RESTART, STORAGE, READONLY };

static const char *const kinds[] = {"kill", "limit", "restart", "small storage", "read-only"};

static __attribute__((noipa)) int describe(
	enum kind kind, const struct service_spec *s, json_t **inverse, struct err *e)
{
	CHAINS_END_HERE();
	return kind == READONLY ? readonly_prepare(storage, s->pid, state_dir, inverse, e)
				: service_prepare(s, state_dir, name, inverse, e);
}

static void specify(enum kind kind, struct service_spec *s)
{
	pid_t pid = server_pid();

	*s = (struct service_spec){
		.pid = pid, .kill = kind == KILL, .restart = kind == RESTART || kind == STORAGE};
	if (kind == LIMIT || kind == RESTART)
		s->limits[SERVICE_NOFILE] = 50;
	if (kind == STORAGE)
		s->storage = (struct storage_spec){.path = storage,
			.prune = ".meta/*",
			.keep = keep,
			.size_bytes = 4 << 20,
			.spare = 100};
}

static int prepare(enum kind kind, struct service_spec *s, json_t **inverse, struct err *e)
{
	specify(kind, s);
	return describe(kind, s, inverse, e);
}

static __attribute__((noipa)) int act(
	enum kind kind, const struct service_spec *s, const json_t *inverse, struct err *e)
{
	pid_t pid;

	CHAINS_END_HERE();
	return kind == READONLY ? readonly_act(inverse, e) : service_act(s, inverse, &pid, e);
}

static const struct primitive *primitive_of(enum kind kind)
{
	return kind == READONLY ? &readonly_primitive : &service_primitive;
}

static __attribute__((noipa)) int revert(enum kind kind, const json_t *inverse, struct err *e)
{
	CHAINS_END_HERE();
	return primitive_revert(primitive_of(kind), inverse, NULL, e);
}

static void undo(enum kind kind, const json_t *inverse)
{
	struct err e = {""};

	if (primitive_revert(primitive_of(kind), inverse, NULL, &e))
		fail_msg("%s: undo after %s failed: %s", kinds[kind], plan->name, e.text);
}

static void same(const char *before, enum kind kind, const char *when)
{
	char *now = everything();

	size_t at = 0;

	while (now[at] && now[at] == before[at])
		at++;
	if (strcmp(now, before))
		fail_msg("%s: %s with %s failing: %.300s, not %.300s", kinds[kind], when,
			plan->name, now + at, before + at);
	free(now);
}

/* The chains found in the last run without failures; the caller frees. */
static uint64_t *take_chains(int *n)
{
	uint64_t *all;

	*n = atomic_load(&plan->chains);
	assert_in_range(*n, 1, MAX_CHAINS - 1);
	all = malloc((size_t)*n * sizeof(*all));
	memcpy(all, plan->chain, (size_t)*n * sizeof(*all));
	return all;
}

/* The first in what is not failed, with i = -1: one place of the call, so that the chains are the
 * same. */
static int try_prepare(enum kind kind)
{
	json_t *whole = NULL;
	uint64_t *chains = NULL;
	int n = 0;

	for (int i = -1; i < n; i++) {
		struct service_spec s;
		json_t *inverse = NULL;
		struct err e = {""};
		int rc;

		specify(kind, &s);
		arm_chain(i < 0 ? 0 : chains[i]);
		rc = describe(kind, &s, &inverse, &e);
		disarm();
		assert_true(i < 0 || atomic_load(&plan->met));
		if (i < 0) {
			assert_int_equal(rc, 0);
			chains = take_chains(&n);
			whole = json_incref(inverse);
		} else if (!rc && !json_equal(inverse, whole)) {
			char *is = json_dumps(inverse, JSON_COMPACT),
			     *was = json_dumps(whole, JSON_COMPACT);

			fail_msg("%s: description with %s failing: %s, not %s", kinds[kind],
				plan->name, is, was);
		}
		json_decref(inverse);
	}
	json_decref(whole);
	free(chains);
	return n;
}

static bool taken(enum kind kind, int i)
{
	return i < 0 || soak || i % STEP == (int)kind * 5 % STEP;
}

static int try_act(enum kind kind, const char *before, int *tried)
{
	uint64_t *chains = NULL;
	int n = 0;

	for (int i = -1; i < n; i++) {
		struct service_spec s;
		json_t *inverse = NULL;
		struct err e = {""};
		double begin = clock_mono_s();
		int rc;

		if (!taken(kind, i))
			continue;
		assert_int_equal(prepare(kind, &s, &inverse, &e), 0);
		arm_chain(i < 0 ? 0 : chains[i]);
		rc = act(kind, &s, inverse, &e);
		disarm();
		if (i < 0) {
			if (rc)
				fail_msg("%s: with nothing failing: %s", kinds[kind], e.text);
			chains = take_chains(&n);
		}
		*tried += i >= 0;
		undo(kind, inverse);
		json_decref(inverse);
		same(before, kind, "act");
		if (clock_mono_s() - begin > 5)
			printf("# %s: act with %s failing: %.1f s, %d %s\n", kinds[kind],
				plan->name, clock_mono_s() - begin, rc, e.text);
	}
	free(chains);
	return n;
}

static int try_undo(enum kind kind, const char *before, int *tried)
{
	uint64_t *chains = NULL;
	int n = 0;

	for (int i = -1; i < n; i++) {
		struct service_spec s;
		json_t *inverse = NULL;
		struct err e = {""};
		double begin = clock_mono_s();
		int rc;

		if (!taken(kind, i))
			continue;
		assert_int_equal(prepare(kind, &s, &inverse, &e), 0);
		assert_int_equal(act(kind, &s, inverse, &e), 0);
		arm_chain(i < 0 ? 0 : chains[i]);
		rc = revert(kind, inverse, &e);
		disarm();
		if (i < 0)
			chains = take_chains(&n);
		*tried += i >= 0;
		if (rc)
			undo(kind, inverse);
		json_decref(inverse);
		same(before, kind, rc ? "undo, tried again," : "undo");
		if (clock_mono_s() - begin > 5)
			printf("# %s: undo with %s failing: %.1f s, %d %s\n", kinds[kind],
				plan->name, clock_mono_s() - begin, rc, e.text);
	}
	free(chains);
	return n;
}

static void try_all(enum kind kind)
{
	int tried = 0, prepares, acts, undos;
	struct service_spec s;
	json_t *inverse;
	char *before;

	/* Once before we look: the lock's file stays, and what is loaded or looked up but once. */
	assert_int_equal(prepare(kind, &s, &inverse, NULL), 0);
	assert_int_equal(act(kind, &s, inverse, NULL), 0);
	undo(kind, inverse);
	json_decref(inverse);
	before = everything();
	prepares = try_prepare(kind);
	same(before, kind, "description");
	acts = try_act(kind, before, &tried);
	undos = try_undo(kind, before, &tried);
	printf("# %s: %d places in the description, all tried; %d in the act and %d in the undo, "
	       "%d of them tried\n",
		kinds[kind], prepares, acts, undos, tried);
	free(before);
}

static void killed(void **unused)
{
	(void)unused;
	try_all(KILL);
}

static void limited(void **unused)
{
	(void)unused;
	try_all(LIMIT);
}

static void restarted(void **unused)
{
	(void)unused;
	try_all(RESTART);
}

static void small_storage(void **unused)
{
	(void)unused;
	try_all(STORAGE);
}

static void readonly(void **unused)
{
	(void)unused;
	if (access("/sys/fs/ext4", F_OK) < 0)
		skip();
	try_all(READONLY);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(killed),
		cmocka_unit_test(limited),
		cmocka_unit_test(restarted),
		cmocka_unit_test(small_storage),
		cmocka_unit_test(readonly),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return run_side_by_side(
		list, sizeof(list) / sizeof(list[0]), setup, service_teardown, in_own_namespaces);
}

#endif
