/* Tests errno-propagation, errno-silent and crash-hang: planted faults are found, clean runs are
 * silent; on made-up events, on events of the lab, and on the lab's raw logs from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "diag/judge/detector.h"
#include "diag/record/log.h"
#include "diag/derive/derive.h"
#include "harness/base/home.h"

static const char *const names[] = {"s1", "s2", "s3", "s4"};
static const char
	lost[] = "{\"lost_errnos\": [\"ENOTCONN\"], \"errno_map\": {\"ENOMEM\": [\"EIO\"]}}";

/* Events in short form: "KIND WHO FIRST LAST [key=value ...]; ...", WHO a server, a client, or
 * "c1>s1". */
static json_t *events_of(const char *text)
{
	char *copy = strdup(text), *save = NULL, *inner = NULL;
	json_t *list = json_array();

	for (char *line = strtok_r(copy, ";", &save); line; line = strtok_r(NULL, ";", &save)) {
		char *kind = strtok_r(line, " ", &inner), *who = strtok_r(NULL, " ", &inner), *word,
		     *to;
		json_t *ev = json_object();

		assert_non_null(who);
		to = strchr(who, '>');
		if (to)
			*to++ = '\0';
		json_object_set_new(ev, "kind", json_string(kind));
		json_object_set_new(ev, *who == 's' ? "server" : "client", json_string(who));
		if (to)
			json_object_set_new(ev, "server", json_string(to));
		json_object_set_new(ev, "time_s", json_real(atof(strtok_r(NULL, " ", &inner))));
		json_object_set_new(ev, "last_s", json_real(atof(strtok_r(NULL, " ", &inner))));
		json_object_set_new(ev, "count", json_integer(1));
		json_object_set_new(ev, "call", json_string("openat"));
		json_object_set_new(ev, "open", json_false());
		while ((word = strtok_r(NULL, " ", &inner))) {
			char *value = strchr(word, '=');

			assert_non_null(value);
			*value++ = '\0';
			json_object_set_new(ev, word,
				!strcmp(value, "true")               ? json_true()
					: !strcmp(word, "longest_s") ? json_real(atof(value))
					: !strcmp(word, "count") || !strcmp(word, "bytes") ||
						!strcmp(word, "redone")
					? json_integer(atol(value))
					: json_string(value));
		}
		json_array_append_new(list, ev);
	}
	free(copy);
	return list;
}

/* The verdict of 'detector' on 'events', after training on 'training' (NULL: without training): "s1
 * s2", "" or "abstain". 'note' (may be NULL) gets its evidence, owned by the caller. Static. */
static const char *ask(
	const char *detector, const char *params, json_t *training, json_t *events, json_t **note)
{
	json_t *given = params ? json_loads(params, 0, NULL) : NULL,
	       *fs = json_loads(lost, 0, NULL), *model = NULL;
	struct detector_run run = {
		.id = "r", .seconds = 60, .servers = names, .n_servers = 4, .file_system = fs};
	json_t *verdicts = NULL, *v, *name;
	static char text[64];
	struct detector *d;
	struct err e;
	size_t i;

	if (detector_load(detector, given, &d, &e))
		fail_msg("%s", e.text);
	run.events = training;
	if (detector_train(d, &run, 1, &model, &e))
		fail_msg("%s", e.text);
	run.events = events;
	if (detector_diagnose(d, model, &run, &verdicts, &e))
		fail_msg("%s", e.text);
	v = json_array_get(verdicts, json_array_size(verdicts) - 1);
	assert_string_equal(json_string_value(json_object_get(v, "metric")), "any");
	strcpy(text, json_is_true(json_object_get(v, "abstain")) ? "abstain" : "");
	json_array_foreach(json_object_get(v, "indicted"), i, name) {
		strcat(text, i ? " " : "");
		strcat(text, json_string_value(name));
	}
	if (note)
		*note = json_incref(json_object_get(v, "evidence"));
	json_decref(verdicts);
	json_decref(model);
	json_decref(fs);
	json_decref(given);
	detector_free(d);
	return text;
}

static const char *made_up(
	const char *detector, const char *params, const char *events, json_t **note)
{
	json_t *training = events_of(
		"server-error s1 1 9 error=ENOENT;server-error s3 2 9 error=EAGAIN");
	json_t *given = events_of(events);
	const char *said = ask(detector, params, training, given, note);

	json_decref(training);
	json_decref(given);
	return said;
}

static const char *propagation(const char *events)
{
	return made_up("errno-propagation", NULL, events, NULL);
}

static void an_errno_that_reaches_an_application_indicts(void **state)
{
	(void)state;
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;app-error c1 10.1 10.1 error=EROFS"),
		"s2");
	/* The window is 3 s around the server's call: 1.5 s to either side. */
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;app-error c1 11.4 11.4 error=EROFS"),
		"s2");
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;app-error c1 11.6 11.6 error=EROFS"),
		"");
	assert_string_equal(
		propagation("app-error c1 8.4 8.4 error=EROFS;server-error s2 10 10 error=EROFS"),
		"");
	assert_string_equal(
		propagation("app-error c1 8.6 8.6 error=EROFS;server-error s2 10 10 error=EROFS"),
		"s2");
	/* A call of the application counts from its start. */
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;app-error c1 17 17 error=EROFS "
			    "longest_s=6"),
		"s2");
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;app-error c1 17 17 error=EROFS "
			    "longest_s=5"),
		"");
	/* Bursts reach from their first to their last failure. */
	assert_string_equal(
		propagation("app-error c1 8 20 error=EROFS;server-error s2 10 10 error=EROFS"),
		"s2");
	assert_string_equal(
		propagation("server-error s2 10 30 error=EROFS;app-error c1 25 25 error=EROFS"),
		"s2");
}

static void other_errnos_and_everyday_ones_do_not(void **state)
{
	(void)state;
	assert_string_equal(
		propagation("server-error s2 10 10 error=ENOENT;app-error c1 10 10 error=ENOENT"),
		"");
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;app-error c1 10 10 error=EIO"), "");
	assert_string_equal(
		propagation("app-error c1 10 10 error=EIO;app-error c1 10 10 error=EROFS"), "");
	assert_string_equal(propagation(""), "");
	/* The errno translations of the adapter. */
	assert_string_equal(
		propagation("server-error s2 10 10 error=ENOMEM;app-error c1 10 10 error=EIO"),
		"s2");
	assert_string_equal(
		propagation("server-error s2 10 10 error=ENOMEM;app-error c1 10 10 error=ENOMEM"),
		"");
}

static void two_servers_are_both_found_but_not_most_of_them(void **state)
{
	json_t *note;

	(void)state;
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;server-error s4 10 10 error=EMFILE;"
			    "app-error c1 10 10 error=EROFS;app-error c2 11 11 error=EMFILE"),
		"s2 s4");
	assert_string_equal(
		propagation("server-error s2 10 10 error=EROFS;server-error s4 10 10 error=EROFS;"
			    "app-error c1 10 10 error=EROFS"),
		"s2 s4");
	assert_string_equal(
		made_up("errno-propagation", NULL,
			"server-error s2 10 10 error=EEXIST;server-error s4 10 10 error=EEXIST;"
			"server-error s1 20 20 error=EEXIST;app-error c1 10 10 error=EEXIST",
			&note),
		"");
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(note, "on_most_servers"), "EEXIST")),
		3);
	json_decref(note);
}

static void errors_that_no_application_saw_are_named(void **state)
{
	static const char silent[] =
		"server-error s3 10 12 error=EROFS call=pwrite64;app-error c1 10 10 error=ENOENT";
	json_t *note, *first;

	(void)state;
	assert_string_equal(made_up("errno-propagation", NULL, silent, &note), "");
	first = json_array_get(json_object_get(note, "silent"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "server")), "s3");
	assert_string_equal(json_string_value(json_object_get(first, "error")), "EROFS");
	assert_non_null(json_object_get(note, "note"));
	json_decref(note);
	assert_string_equal(made_up("errno-propagation", "{\"silent\": true}", silent, NULL), "s3");
}

static void training_without_events_is_no_training(void **state)
{
	json_t *events = events_of(
		       "server-error s2 10 10 error=EROFS;app-error c1 10 10 error=EROFS"),
	       *none = json_array();

	(void)state;
	assert_string_equal(ask("errno-propagation", NULL, none, events, NULL), "abstain");
	assert_string_equal(ask("crash-hang", NULL, none, none, NULL), "abstain");
	json_decref(events);
	json_decref(none);
}

/* Failed writes of s3 from 10 s on, and the results that applications saw. */
#define FAILED(call, error)                                                                        \
	"server-error s3 10 22 place=storage call=" call " error=" error                           \
	" count=240 bytes=31457280;"
#define WROTE(c) "app-done " c " 1 59 call=write place=mount;"

static const char *silence(const char *events)
{
	return made_up("errno-silent", NULL, events, NULL);
}

static void silently_lost_data_indicts(void **state)
{
	json_t *note, *first;

	(void)state;
	assert_string_equal(made_up("errno-silent", NULL,
				    FAILED("pwrite64", "EFBIG") WROTE("c1") WROTE("c2"), &note),
		"s3");
	first = json_array_get(json_object_get(note, "silent"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "error")), "EFBIG");
	assert_int_equal(json_integer_value(json_object_get(first, "calls")), 240);
	assert_int_equal(json_integer_value(json_object_get(first, "bytes")), 31457280);
	assert_int_equal(json_integer_value(json_object_get(first, "clients_told_success")), 2);
	assert_true(json_number_value(json_object_get(first, "listened_s")) == 50);
	json_decref(note);
	assert_string_equal(silence(FAILED("fdatasync", "EIO") WROTE("c1")), "s3");
	assert_string_equal(silence(FAILED("fallocate", "ENOSPC") WROTE("c1")), "s3");
	/* The write was acknowledged earlier, from a cache, or the application has ended. */
	assert_string_equal(
		silence(FAILED("fsync", "EIO") "app-done c1 1 2 call=write place=mount"), "s3");
	/* An everyday failure of an application's other calls is no report of the loss. */
	assert_string_equal(
		silence(FAILED("pwrite64", "EFBIG") WROTE("c1") "app-error c1 12 12 error=ENOENT"),
		"s3");
	/* A full storage on all servers is a loss on all of them. */
	assert_string_equal(
		silence("server-error s1 9 9 place=storage call=write error=ENOSPC;server-error s2 "
			"9 9 place=storage call=write error=ENOSPC;server-error s4 9 9 "
			"place=storage call=write error=ENOSPC;" FAILED("write", "ENOSPC")
				WROTE("c1")),
		"s1 s2 s3 s4");
}

static void reported_or_repeated_failures_do_not_indict(void **state)
{
	static const char *const twins[] = {
		/* Reported to applications: the errno; a translation; a lost server; late, at
		 * close; another errno of a write; by a write that began in time. */
		FAILED("pwrite64", "EFBIG")
			WROTE("c1") "app-error c2 10.1 10.1 call=write error=EFBIG",
		FAILED("pwrite64", "ENOMEM") WROTE("c1") "app-error c1 11 11 call=openat error=EIO",
		FAILED("pwrite64", "EIO") WROTE("c1") "app-error c1 30 30 call=read error=ENOTCONN",
		FAILED("pwrite64", "EFBIG") WROTE("c1") "app-error c1 58 58 call=close error=EFBIG",
		FAILED("pwrite64", "EFBIG") WROTE("c1") "app-error c1 31 31 call=fsync error=EIO",
		FAILED("pwrite64", "EFBIG") WROTE("c1") "app-error c1 9 9 call=write error=EFBIG",
		/* Repeated by the server. */
		"server-error s3 10 22 place=storage call=pwrite64 error=EINVAL count=240 "
		"redone=240;" WROTE("c1"),
		/* Everyday errors, or no loss of data, or not on storage. */
		FAILED("pwrite64", "EAGAIN") WROTE("c1"),
		FAILED("fallocate", "EOPNOTSUPP") WROTE("c1"),
		FAILED("fsync", "EINVAL") WROTE("c1"),
		"server-error s3 10 22 place=path call=openat error=EROFS;" WROTE("c1"),
		"server-error s3 10 22 place=storage call=fsetxattr error=ENOSPC;" WROTE("c1"),
		"server-error s3 10 22 place=other call=write error=ENOSPC;" WROTE("c1"),
		/* The server's program tries what this storage does not support. */
		"server-error s1 9 9 place=storage call=pwrite64 error=EINVAL;server-error s2 9 9 "
		"place=storage call=pwrite64 error=EINVAL;" FAILED("pwrite64", "EINVAL")
			WROTE("c1"),
		/* The server ended at once; no application saw success; no call failed. */
		FAILED("pwrite64", "EIO") WROTE("c1") "server-end s3 10.5 10.5 signal=ABRT",
		FAILED("pwrite64", "EIO") "app-done c1 1 59 call=close place=mount",
		WROTE("c1"),
		"",
	};
	json_t *everyday = events_of("server-error s1 5 5 place=storage call=pwrite64 error=EFBIG"),
	       *planted = events_of(FAILED("pwrite64", "EFBIG") WROTE("c1"));

	(void)state;
	for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); i++) {
		const char *said = silence(twins[i]);

		if (*said)
			fail_msg("'%s' gives '%s'", twins[i], said);
	}
	/* In training such a call failed with this errno. */
	assert_string_equal(ask("errno-silent", NULL, everyday, planted, NULL), "");
	json_decref(everyday);
	json_decref(planted);
}

static void silence_is_judged_only_after_some_time(void **state)
{
	static const char late[] = "server-error s3 40 59 place=storage call=write error=EFBIG;";
	char events[256];

	(void)state;
	snprintf(events, sizeof(events), "%s%s", late, WROTE("c1"));
	assert_string_equal(silence(events), "abstain");
	assert_string_equal(made_up("errno-silent", "{\"listen\": \"20s\"}", events, NULL), "s3");
	assert_string_equal(
		made_up("errno-silent", "{\"listen\": \"21s\"}", events, NULL), "abstain");
	/* An application still waits for a possible answer to this write. */
	assert_string_equal(
		silence(FAILED("pwrite64", "EFBIG") WROTE("c1") "app-slow c2 9 60 open=true"),
		"abstain");
	assert_string_equal(
		silence(FAILED("pwrite64", "EFBIG") WROTE("c1") "app-slow c2 55 60 open=true"),
		"s3");
	/* Successes were not recorded. */
	assert_string_equal(silence(FAILED("pwrite64", "EFBIG")), "abstain");
}

static const char *hang(const char *events)
{
	return made_up("crash-hang", NULL, events, NULL);
}

#define ANSWERED(c, s) "link-quiet " c ">" s " 1 60 state=answered open=true;"
#define WAITING(c, s) "link-quiet " c ">" s " 8 60 state=waiting open=true;"
#define ENDED(c, s) "link-quiet " c ">" s " 8 60 state=ended open=true;"

static void a_lost_server_is_indicted_by_its_ended_link(void **state)
{
	(void)state;
	assert_string_equal(hang("app-error c1 9 9 error=ENOTCONN;" ANSWERED("c1", "s1")
					    ENDED("c1", "s3") ANSWERED("c1", "s4")),
		"s3");
	/* Without a failure the links do not matter: no crash. */
	assert_string_equal(hang("app-error c1 9 9 error=EIO;" ENDED("c1", "s3")), "");
	assert_string_equal(hang(ENDED("c1", "s3")), "");
	/* The failure came before the link ended, or on another client. */
	assert_string_equal(hang("app-error c1 7 7 error=ENOTCONN;" ENDED("c1", "s3")), "");
	assert_string_equal(hang("app-error c2 9 9 error=ENOTCONN;" ENDED("c1", "s3")), "");
	/* The client daemon itself has ended: no server differs. */
	assert_string_equal(hang("app-error c1 9 9 error=ENOTCONN;" ENDED("c1", "s1")
					    ENDED("c1", "s2") ENDED("c1", "s3") ENDED("c1", "s4")),
		"");
}

#define CLOSED(c, s) "link-quiet " c ">" s " 5 60 state=ended open=true call=close;"

static void a_connection_closed_by_the_client_indicts_no_server(void **state)
{
	(void)state;
	/* Idle connections were closed; the server that died was in use. */
	assert_string_equal(hang("app-error c1 9 9 error=ENOTCONN;" CLOSED("c1", "s1") CLOSED(
				    "c1", "s2") ENDED("c1", "s3") CLOSED("c1", "s4")),
		"s3");
	assert_string_equal(hang("app-error c1 9 9 error=ENOTCONN;" CLOSED("c1", "s1")), "");
	/* The client gave up an open request. */
	assert_string_equal(
		hang("app-error c1 9 9 error=ENOTCONN;link-quiet c1>s2 1 5 state=waiting;" CLOSED(
			"c1", "s2")),
		"s2");
	/* An earlier open request was answered. */
	assert_string_equal(
		hang("app-error c1 9 9 error=ENOTCONN;link-quiet c1>s2 1 2 state=waiting;" CLOSED(
			"c1", "s2")),
		"");
	/* A close that fails is a failure. */
	assert_string_equal(hang("app-error c1 9 9 error=ENOTCONN;link-quiet c1>s1 5 60 "
				 "state=ended call=close error=EIO;"),
		"s1");
}

static void a_hung_server_is_indicted_by_its_missing_answer(void **state)
{
	(void)state;
	assert_string_equal(hang("app-slow c1 8 50;" ANSWERED("c1", "s1") WAITING("c1", "s2")
					    ANSWERED("c1", "s4")),
		"s2");
	assert_string_equal(hang("app-slow c1 8 55 open=true;" WAITING("c1", "s2")), "s2");
	assert_string_equal(hang("app-slow c1 8 37.9;" WAITING("c1", "s2")), "");
	assert_string_equal(made_up("crash-hang", "{\"timeout\": \"5s\"}",
				    "app-slow c1 8 14;" WAITING("c1", "s2"), NULL),
		"s2");
	/* The link was busy, not silent: it moved data less than a second before. */
	assert_string_equal(hang("app-slow c1 8 40;link-quiet c1>s2 37.5 39 state=waiting;"), "");
	/* The server hung in the middle of a long call: seen a timeout later. */
	assert_string_equal(made_up("crash-hang", "{\"timeout\": \"20s\"}",
				    "app-slow c1 8 55;link-quiet c1>s2 35 60 state=waiting;", NULL),
		"s2");
	/* All servers wait: the network or the client is the cause. */
	assert_string_equal(hang("app-slow c1 8 50;" WAITING("c1", "s1") WAITING("c1", "s2")
					    WAITING("c1", "s3") WAITING("c1", "s4")),
		"");
	assert_string_equal(hang("app-slow c1 8 50;" WAITING("c1", "s1") WAITING("c1", "s2")), "");
}

static void clients_vote(void **state)
{
	(void)state;
	/* Two of three clients blame s2; the third has trouble with s4. */
	assert_string_equal(
		hang("app-error c1 9 9 error=ENOTCONN;app-error c2 9 9 error=ENOTCONN;app-error "
		     "c3 9 9 error=ENOTCONN;" ENDED("c1", "s2") ENDED("c2", "s2")
				ENDED("c3", "s4")),
		"s2");
	/* A client that does not need the dead server, or waits for no server, has no vote. */
	assert_string_equal(
		hang("app-error c1 9 9 error=ENOTCONN;app-slow c2 8 50;app-slow c3 8 50;" ENDED(
			"c1", "s2") ANSWERED("c2", "s2") ANSWERED("c3", "s2")),
		"s2");
	/* An equal number of votes: no server has more than half. */
	assert_string_equal(
		hang("app-error c1 9 9 error=ENOTCONN;app-error c2 9 9 error=ENOTCONN;" ENDED(
			"c1", "s2") ENDED("c2", "s4")),
		"");
	/* Many moments of one client are one vote, and a single deviating moment does not count. */
	assert_string_equal(
		hang("app-error c1 9 9 error=ENOTCONN;app-error c1 12 12 error=ENOTCONN;app-error "
		     "c1 20 20 error=ENOTCONN;" ENDED(
			     "c1", "s2") "link-quiet c1>s3 19.9 20.1 state=ended;"),
		"s2");
}

static char *data_path(const char *name)
{
	char sub[96], *path;
	struct err e;

	snprintf(sub, sizeof(sub), "ci/tests/data/%s", name);
	assert_int_equal(home_path(sub, &path, &e), 0);
	return path;
}

/* Recorded runs: events kept by the harness or left by hand-made failures. */
static void recorded_faults_are_found_and_clean_runs_silent(void **state)
{
	char *path = data_path("lab-events.json.gz"), *text = calloc(1, 8 << 20);
	gzFile in = gzopen(path, "rb");
	json_t *all, *runs, *training, *run;
	json_error_t why;
	size_t i, faulty = 0, clean = 0;
	int n;

	(void)state;
	assert_non_null(in);
	n = gzread(in, text, (8 << 20) - 1);
	assert_true(n > 0 && n < (8 << 20) - 1);
	gzclose(in);
	all = json_loads(text, 0, &why);
	if (!all)
		fail_msg("%s: %s", path, why.text);
	training = json_object_get(json_object_get(all, "training"), "events");
	runs = json_object_get(all, "runs");
	json_array_foreach(runs, i, run) {
		const char *name = json_string_value(json_object_get(run, "name")), *said;
		const char *errno_says = json_string_value(
			json_object_get(run, "errno-propagation"));
		const char *hang_says = json_string_value(json_object_get(run, "crash-hang"));

		said = ask(
			"errno-propagation", NULL, training, json_object_get(run, "events"), NULL);
		if (strcmp(said, errno_says))
			fail_msg("%s: errno-propagation gives '%s', not '%s'", name, said,
				errno_says);
		said = ask("crash-hang", "{\"timeout\": \"5s\"}", training,
			json_object_get(run, "events"), NULL);
		if (strcmp(said, hang_says))
			fail_msg("%s: crash-hang gives '%s', not '%s'", name, said, hang_says);
		said = ask("errno-silent", "{\"listen\": \"1s\"}", training,
			json_object_get(run, "events"), NULL);
		if (*said && strcmp(said, "abstain") != 0)
			fail_msg("%s: errno-silent gives '%s'", name, said);
		if (*errno_says || *hang_says)
			faulty++;
		else
			clean++;
	}
	assert_true(faulty >= 8 && clean >= 3);
	json_decref(all);
	free(text);
	free(path);
}

static void unpack(const char *name, const char *to)
{
	char *path = data_path(name), buf[65536];
	gzFile in = gzopen(path, "rb");
	FILE *out = fopen(to, "w");
	int n;

	if (!in)
		fail_msg("cannot open '%s'", path);
	assert_non_null(out);
	while ((n = gzread(in, buf, sizeof(buf))) > 0)
		assert_int_equal(fwrite(buf, 1, (size_t)n, out), n);
	gzclose(in);
	fclose(out);
	free(path);
}

static json_t *as_json(const struct event *ev)
{
	json_t *v = json_pack("{s:s, s:f, s:f, s:I, s:b}", "kind", event_kind_name(ev->kind),
		"time_s", ev->first_s, "last_s", ev->last_s, "count", (json_int_t)ev->count, "open",
		ev->open);
	const struct {
		const char *key, *value;
	} texts[] = {
		{"call", ev->call}, {"error", ev->error}, {"state", link_state_name(ev->state)}};

	if (ev->place)
		json_object_set_new(v, "longest_s", json_real(ev->longest_s));
	for (size_t i = 0; i < 3; i++)
		if (texts[i].value)
			json_object_set_new(v, texts[i].key, json_string(texts[i].value));
	if (ev->server >= 0)
		json_object_set_new(v, "server", json_string(names[ev->server]));
	if (ev->client >= 0)
		json_object_set_new(v, "client", json_string(ev->client ? "c2" : "c1"));
	return v;
}

/* The raw logs of one failure: bricks s1 and s2, both applications, both client daemons. */
static json_t *events_of_logs(const char *name)
{
	static const char *const files[] = {"s1.fs", "s2.fs", "c1.app", "c1.fs", "c2.app", "c2.fs"};
	struct stream_server servers[4] = {0};
	struct events *s = NULL;
	struct log_reader *r;
	const struct event *ev;
	json_t *list = json_array();
	char sub[96], log[64];
	struct err e;
	size_t n;

	for (int i = 0; i < 4; i++) {
		struct sockaddr_in *in = (struct sockaddr_in *)&servers[i].address;

		in->sin_family = AF_INET;
		in->sin_port = htons(24007);
		in->sin_addr.s_addr = htonl(0x0a3f000bu + (unsigned)i);
		servers[i].storage = "/srv/brick";
	}
	snprintf(log, sizeof(log), "/tmp/events_detector_test.%d", getpid());
	for (int i = 0; i < 6; i++) {
		struct stream_spec spec = {.servers = servers,
			.n_servers = 4,
			.owner = i < 2       ? OWNER_SERVER
				: i % 2 == 0 ? OWNER_APP
					     : OWNER_DAEMON,
			.index = i < 2 ? i : i / 4,
			.mount = "/mnt/fs"};

		snprintf(sub, sizeof(sub), "lab-%s.%s.log.gz", name, files[i]);
		unpack(sub, log);
		if (!s) {
			assert_int_equal(log_reader_new(log, &r, &e), 0);
			assert_int_equal(
				events_new(4, log_reader_head(r)->start_ns, 60, &s, &e), 0);
			log_reader_free(r);
		}
		if (derive_log(log, &spec, NULL, s, NULL, &e))
			fail_msg("%s", e.text);
	}
	unlink(log);
	n = events_list(s, &ev);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, as_json(&ev[i]));
	events_free(s);
	return list;
}

static void raw_logs_of_the_lab_indict_the_failed_brick(void **state)
{
	static const struct {
		const char *name, *errno_says, *hang_says;
	} cases[] = {
		{"none", "", ""}, {"readonly", "s2", ""}, {"kill", "", "s2"}, {"stop", "", "s2"}};
	json_t *training = events_of_logs("none");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *events = events_of_logs(cases[i].name);

		assert_string_equal(ask("errno-propagation", NULL, training, events, NULL),
			cases[i].errno_says);
		assert_string_equal(
			ask("crash-hang", "{\"timeout\": \"5s\"}", training, events, NULL),
			cases[i].hang_says);
		assert_string_equal(
			ask("errno-silent", "{\"listen\": \"1s\"}", training, events, NULL), "");
		json_decref(events);
	}
	json_decref(training);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_errno_that_reaches_an_application_indicts),
		cmocka_unit_test(other_errnos_and_everyday_ones_do_not),
		cmocka_unit_test(two_servers_are_both_found_but_not_most_of_them),
		cmocka_unit_test(errors_that_no_application_saw_are_named),
		cmocka_unit_test(training_without_events_is_no_training),
		cmocka_unit_test(silently_lost_data_indicts),
		cmocka_unit_test(reported_or_repeated_failures_do_not_indict),
		cmocka_unit_test(silence_is_judged_only_after_some_time),
		cmocka_unit_test(a_lost_server_is_indicted_by_its_ended_link),
		cmocka_unit_test(a_connection_closed_by_the_client_indicts_no_server),
		cmocka_unit_test(a_hung_server_is_indicted_by_its_missing_answer),
		cmocka_unit_test(clients_vote),
		cmocka_unit_test(recorded_faults_are_found_and_clean_runs_silent),
		cmocka_unit_test(raw_logs_of_the_lab_indict_the_failed_brick),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
