/* culprit doctor --learn-errnos: a run without a fault, a run with each fault once, and what
 * applications saw of them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/doctor.h"
#include "harness/store/store.h"

/* Failures end shortly after the fault: calls return, logs are read in pieces. */
#define AFTER_S 2.0

/* What failed in a cell: {"openat ENOTCONN": {call, error, count, first_s}}, times from onset. */
struct seen {
	json_t *app, *server;
	double lasted_s;  /* the fault */
	double longest_s; /* of an application's calls */
	bool waits;       /* one of them never returned */
};

static void seen_clear(struct seen *s)
{
	json_decref(s->app);
	json_decref(s->server);
}

static void doctor_errnos_add(json_t *table, const json_t *event, double onset_s)
{
	const json_t *d = jget(event, "detail");
	auto_free char *key = alloc_format("%s %s", jget_text(d, "call"), jget_text(d, "error"));
	json_t *old = jget(table, key);
	double first_s = jget_real(event, "time_s") - onset_s;

	if (!old) {
		json_object_set_new(table, key,
			json_pack("{s:O, s:O, s:O, s:f}", "call", jget(d, "call"), "error",
				jget(d, "error"), "count", jget(d, "count"), "first_s", first_s));
		return;
	}
	json_object_set_new(
		old, "count", json_integer(jget_int(old, "count") + jget_int(d, "count")));
	if (first_s < jget_real(old, "first_s"))
		json_object_set_new(old, "first_s", json_real(first_s));
}

static bool is(const json_t *event, const char *kind)
{
	return !strcmp(jget_text(event, "kind"), kind);
}

/* What happened between onset and the fault's end. 'victim' may be NULL: any server. */
static int doctor_errnos_look(
	struct store *s, const json_t *row, const char *victim, struct seen *out, struct err *e)
{
	const double start_s = (double)jget_int(row, "start_ns") / 1e9;
	const double onset_s = victim ? (double)jget_int(row, "onset_ns") / 1e9 - start_s : 0;
	const double end_s = victim ? (double)jget_int(row, "offset_ns") / 1e9 - start_s + AFTER_S
				    : 1e9;
	json_auto_t *events = NULL;
	json_t *ev;
	size_t i;
	int rc = store_rows(s, ROWS_EVENTS, jget_int(row, "attempt"), &events, e);

	*out = (struct seen){json_object(), json_object(), .lasted_s = end_s - AFTER_S - onset_s};
	json_array_foreach(events, i, ev) {
		const json_t *d = jget(ev, "detail");

		if (jget_real(d, "last_s") < onset_s || jget_real(ev, "time_s") > end_s)
			continue;
		if (is(ev, "app-error")) {
			doctor_errnos_add(out->app, ev, onset_s);
		} else if (is(ev, "server-error")) {
			if (!victim || !strcmp(jget_text(ev, "server"), victim))
				doctor_errnos_add(out->server, ev, onset_s);
		} else if (is(ev, "app-slow")) {
			out->waits |= jget_true(d, "open");
			if (jget_real(d, "longest_s") > out->longest_s)
				out->longest_s = jget_real(d, "longest_s");
		}
	}
	return rc;
}

/* Takes out what fails without a fault, too: of applications the same call with the same errno; of
 * servers any call with the same errno, as detectors do. */
static void subtract(struct seen *s, const struct seen *normal)
{
	const char *key;
	void *next;
	json_t *v, *known;
	const char *other;

	json_object_foreach((json_t *)normal->app, key, v)
		json_object_del(s->app, key);
	json_object_foreach_safe(s->server, next, key, v)
	{
		bool common = false;

		json_object_foreach((json_t *)normal->server, other, known)
			common |= !strcmp(jget_text(known, "error"), jget_text(v, "error"));
		if (common)
			json_object_del(s->server, key);
	}
}

static void print_table(const char *who, const json_t *table, bool when)
{
	const char *key;
	json_t *v;

	if (!json_object_size(table))
		printf("    %-12s no failure\n", who);
	json_object_foreach((json_t *)table, key, v) {
		printf("    %-12s %-28s %6lld times", who, key, (long long)jget_int(v, "count"));
		if (when)
			printf(", first %.1f s after the onset", jget_real(v, "first_s"));
		putchar('\n');
		who = "";
	}
}

/* Adds the errnos of a table to a set. */
static void doctor_errnos_collect(json_t *set, const json_t *table)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)table, key, v)
		json_object_set_new(set, jget_text(v, "error"), json_true());
}

/* Takes out errnos with which calls fail without a fault as well: they tell nothing. */
static void without_everyday(json_t *set, const struct seen *normal)
{
	json_auto_t *everyday = json_object();
	const char *error;
	json_t *v;

	doctor_errnos_collect(everyday, normal->app);
	json_object_foreach(everyday, error, v)
		json_object_del(set, error);
}

static char *quoted(const json_t *set)
{
	char *text = alloc_copy(""), *longer;
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)set, name, v) {
		longer = alloc_format("%s%s\"%s\"", text, *text ? ", " : "", name);
		free(text);
		text = longer;
	}
	return text;
}

/* What a server's errno became: errnos of applications that no call of the server failed with, and
 * that do not tell of a lost server. */
static void map(
	json_t *errno_map, const struct seen *s, const struct seen *normal, const json_t *lost)
{
	json_auto_t *app = json_object(), *server = json_object(), *unchanged = json_object();
	const char *error, *other;
	json_t *v, *known;

	doctor_errnos_collect(app, s->app);
	without_everyday(app, normal);
	doctor_errnos_collect(server, s->server);
	json_object_foreach((json_t *)lost, error, v)
		json_object_del(app, error);
	json_object_foreach(server, error, v) {
		if (!json_object_del(app, error))
			json_object_set_new(unchanged, error, json_true());
	}
	json_object_foreach(server, error, v) {
		json_t *into = jget(errno_map, error);

		if (jget(unchanged, error) || !json_object_size(app))
			continue; /* passed on, or unheard */
		if (!into) {
			into = json_object();
			json_object_set_new(errno_map, error, into);
		}
		json_object_foreach(app, other, known)
			json_object_set_new(into, other, json_true());
	}
}

static bool loses_server(const char *fault)
{
	return !strcmp(fault, "kill") || !strcmp(fault, "hang");
}

static void print_one(const char *fault, const char *victim, const struct seen *s)
{
	printf("\n%s of %s\n", fault, victim);
	print_table("applications", s->app, true);
	if (s->longest_s > 0)
		printf("    %-12s the longest call took %.1f s%s; the fault lasted %.1f s\n", "",
			s->longest_s, s->waits ? ", and one never returned" : "", s->lasted_s);
	if (!loses_server(fault))
		print_table("server", s->server, false);
	if (!loses_server(fault) && json_object_size(s->server) && !json_object_size(s->app))
		printf("    %-12s applications never heard of it: see errno-silent\n", "");
}

static void print_lines(const json_t *lost, const json_t *errno_map)
{
	auto_free char *names = quoted(lost);
	const char *error;
	json_t *into;

	printf("\nlines for the file system's Lua file, from what was seen here\n"
	       "    lost_errnos = { %s },\n    errno_map = {\n",
		names);
	json_object_foreach((json_t *)errno_map, error, into) {
		auto_free char *text = quoted(into);

		printf("        %s = { %s },\n", error, text);
	}
	puts("    },");
}

static const json_t *row_of(const json_t *rows, const char *fault)
{
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		if (!strcmp(jget_text(row, "fault"), fault))
			return row;
	}
	return NULL;
}

/* "err-files" of "err-files(limit=50)". */
static void bare(const char *label, char name[64])
{
	snprintf(name, 64, "%.*s", (int)strcspn(label, "("), label);
}

/* Twice over the faults: first the lost errnos, which the map must know. */
static int show_faults(struct store *s, const json_t *rows, const struct seen *normal, json_t *lost,
	json_t *errno_map, struct err *e)
{
	int rc = 0;

	for (int round = 0; round < 2 && !rc; round++) {
		json_t *row;
		size_t i;

		json_array_foreach((json_t *)rows, i, row) {
			const char *victim = json_string_value(
				json_array_get(jget(row, "victims"), 0));
			struct seen seen;
			char fault[64];

			bare(jget_text(row, "fault"), fault);
			if (!victim || rc)
				continue;
			rc = doctor_errnos_look(s, row, victim, &seen, e);
			subtract(&seen, normal);
			if (!rc && !round && loses_server(fault))
				doctor_errnos_collect(lost, seen.app);
			without_everyday(lost, normal);
			if (!rc && round && !loses_server(fault))
				map(errno_map, &seen, normal, lost);
			if (!rc && round)
				print_one(fault, victim, &seen);
			seen_clear(&seen);
		}
	}
	return rc;
}

static void show_skipped(struct store *s)
{
	json_auto_t *tally = NULL;
	struct err ignored;
	json_t *row;
	size_t i;

	if (store_tally(s, &tally, &ignored))
		return;
	json_array_foreach(jget(tally, "skipped"), i, row)
		printf("\n%s: skipped: %s\n", jget_text(row, "fault"), jget_text(row, "reason"));
	json_array_foreach(jget(tally, "missing"), i, row)
		printf("\n%s: no attempt counts\n", jget_text(row, "fault"));
}

/* What fails without a fault, by the only cell of the run in 'folder'. */
static int look_at_control(const char *folder, struct seen *normal, struct err *e)
{
	json_auto_t *rows = NULL;
	struct store *s = NULL;
	const json_t *control;
	int rc = store_open(folder, &s, e) ?: store_rows(s, ROWS_CONFIRMED, 0, &rows, e);

	if (!rc) {
		control = row_of(rows, "none");
		rc = control
			? doctor_errnos_look(s, control, NULL, normal, e)
			: err_set(e, -ENOENT,
				  "no attempt without a fault counts: what is normal is not known");
	}
	store_close(s);
	return rc;
}

static bool has_fault(const json_t *rows)
{
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		if (json_array_size(jget(row, "victims")))
			return true;
	}
	return false;
}

int doctor_show_errnos(const char *control, const char *faults, struct err *e)
{
	json_auto_t *rows = NULL, *lost = json_object(), *errno_map = json_object();
	struct seen normal = {0};
	struct store *s = NULL;
	int rc = look_at_control(control, &normal, e)
		?: store_open(faults, &s, e)
		?: store_rows(s, ROWS_CONFIRMED, 0, &rows, e);

	if (!rc && !has_fault(rows))
		rc = err_set(e, -ENOENT,
			"no attempt with a fault counts: there is nothing to learn from");
	if (!rc) {
		puts("without a fault");
		print_table("applications", normal.app, false);
		rc = show_faults(s, rows, &normal, lost, errno_map, e);
	}
	if (!rc) {
		show_skipped(s);
		print_lines(lost, errno_map);
	}
	seen_clear(&normal);
	store_close(s);
	return rc;
}

static volatile sig_atomic_t running_pid;

/* The run undoes its faults first; then this program removes its files. What a terminal sends, the
 * run has got itself: twice the signal would hurry it. */
static void doctor_errnos_pass_on(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (running_pid && info->si_code != SI_KERNEL)
		kill(running_pid, signal);
}

/* Runs this program with other words; its results go to /dev/null, its progress is shown. Returns
 * its exit code. */
static int run_self(const char *const words[], struct err *e)
{
	posix_spawn_file_actions_t files;
	char self[PATH_MAX] = "";
	pid_t pid;
	int status, rc;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return err_errno(e, -errno, "cannot find this program");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	rc = -posix_spawn(&pid, self, &files, NULL, (char *const *)words, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		return err_errno(e, rc, "cannot start '%s'", self);
	running_pid = pid;
	while ((rc = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	running_pid = 0;
	if (rc < 0)
		return err_errno(e, -errno, "cannot wait for '%s'", self);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* One of the two runs, its results in 'folder'. Returns its exit code. */
static int run_scenario(
	const char *scenario, const char *inventory, const char *folder, struct err *e)
{
	auto_free char *sub = alloc_format("harness/fs/learn/%s.lua", scenario);
	auto_free char *path = NULL;
	int rc = home_path(sub, &path, e);
	const char *const words[] = {"culprit", "run", path, "-o", folder,
		inventory ? "--inventory" : NULL, inventory, NULL};

	return rc ? rc : run_self(words, e);
}

/* Returns an exit code, and leaves 'folder' to the caller. */
static int doctor_errnos_learn(const char *inventory, const char *folder)
{
	auto_free char *control = alloc_format("%s/control", folder);
	auto_free char *faults = alloc_format("%s/faults", folder);
	struct err e;
	int rc = run_scenario("control", inventory, control, &e);

	if (rc > 0)
		return cmd_fail("doctor", rc,
			"given up, since the run without a fault failed, as said above; its files "
			"are removed, so it cannot be resumed; no fault was tried");
	rc = rc < 0 ? rc : run_scenario("scenario", inventory, faults, &e);
	if (rc < 0)
		return cmd_error("doctor", &e, ERR_HARNESS);
	/* A fault that could not be tried is no reason to throw away what the others showed. */
	if (rc && rc != CULPRIT_EXIT_INVALID)
		return cmd_fail("doctor", rc,
			"given up, since the run with faults failed, as said above; its files are "
			"removed, so it cannot be resumed");
	return doctor_show_errnos(control, faults, &e) ? cmd_error("doctor", &e, ERR_HARNESS)
						       : CULPRIT_EXIT_OK;
}

int doctor_learn_errnos(const char *inventory)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
	const struct sigaction passed = {
		.sa_sigaction = doctor_errnos_pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
	const char *tmp = getenv("TMPDIR");
	auto_free char *folder = alloc_format(
		"%s/culprit-learn-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	struct err e;
	int code;

	if (!mkdtemp(folder)) {
		err_errno(&e, -errno, "cannot make the folder '%s'", folder);
		return cmd_error("doctor", &e, ERR_HARNESS);
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &passed, NULL);
	code = doctor_errnos_learn(inventory, folder);
	if (file_remove_tree(folder, &e))
		cmd_error("doctor", &e, ERR_HARNESS);
	return code;
}
