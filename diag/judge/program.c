/*
 * Runs detectors that are programs: JSON lines in, one JSON line out.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "diag/judge/confine.h"
#include "diag/judge/detector_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"

enum { ANSWER_MAX = 1 << 20, COMPLAINT_MAX = 4096, TIME_LIMIT_S = 30, AT_ONCE_MAX = 4 };

/* Digits of a number: below a nanosecond for service times of a second, half the length of 17
 * digits. */
enum { DIGITS = 9 };

static bool trusted;

void detector_trust_programs(bool yes)
{
	trusted = yes;
}

/* One question and its answer. */
struct talk {
	const char *path;
	char *question;
	size_t asked, length;
	char answer[ANSWER_MAX + 1], complaint[COMPLAINT_MAX + 1];
	size_t answered, complained;
	double limit_s, deadline;
};

static json_t *numbers(const double *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		bool whole = v[i] == floor(v[i]) && fabs(v[i]) < 1e15;

		json_array_append_new(list,
			!isfinite(v[i]) ? json_null()
				: whole ? json_integer((json_int_t)v[i])
					: json_real(v[i]));
	}
	return list;
}

static json_t *series_json(
	const struct detector_run *run, size_t metric, size_t server, double *buf)
{
	static const enum column columns[] = {COLUMN_MEAN, COLUMN_COUNT, COLUMN_MAX, COLUMN_BYTES};
	json_t *series = json_object();

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		columns_series(run->columns, metric, server, columns[i], buf);
		json_object_set_new(
			series, series_fields[columns[i] + 1], numbers(buf, (size_t)run->seconds));
	}
	return series;
}

static json_t *program_run(const struct detector_run *given)
{
	struct detector_run opened = run_open(given), *run = &opened;
	double *buf = alloc_zero((size_t)run->seconds, sizeof(*buf));
	json_t *servers = json_array(), *metrics = json_array(), *times = json_array(),
	       *units = json_object(), *series = json_object(), *top;

	for (size_t s = 0; s < run->n_servers; s++)
		json_array_append_new(servers, json_string(run->servers[s]));
	for (size_t m = 0; m < run_metrics(run); m++) {
		const char *metric = run_metric(run, m), *unit = run_unit(run, m);
		json_t *of;

		if (!run_lists(run, m))
			continue;
		of = json_object();
		for (size_t s = 0; s < run->n_servers; s++)
			json_object_set_new(of, run->servers[s], series_json(run, m, s, buf));
		json_object_set_new(series, metric, of);
		json_array_append_new(metrics, json_string(metric));
		if (run_is_service_time(run, m))
			json_array_append_new(times, json_string(metric));
		if (unit)
			json_object_set_new(units, metric, json_string(unit));
	}
	top = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "id", run->id, "seconds",
		(int)run->seconds, "servers", servers, "metrics", metrics, "service_times", times,
		"units", units, "series", series);
	json_object_set_new(
		top, "events", run->events ? json_deep_copy(run->events) : json_array());
	json_object_set_new(top, "file_system",
		run->file_system ? json_deep_copy(run->file_system) : json_object());
	run_close(given, run);
	free(buf);
	return top;
}

static void put_line(FILE *f, json_t *line)
{
	json_dumpf(line, f, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
	fputc('\n', f);
	json_decref(line);
}

/* Makes the training lines once, since they are the same for all runs. */
static char *training_text(const json_t *training)
{
	size_t length, i;
	char *text;
	FILE *f = alloc_text(&text, &length);
	json_t *one;

	json_array_foreach((json_t *)training, i, one)
		put_line(f, json_pack("{s:s, s:O}", "type", "train", "run", one));
	fclose(f);
	return text;
}

/* Without 'run': asks for a model of the training runs. With it: asks about the run, after the
 * training runs or with the program's model of them. */
static void write_question(const struct detector *d, const char *training, const json_t *model,
	const struct detector_run *run, struct talk *t)
{
	FILE *f = alloc_text(&t->question, &t->length);
	json_t *last = json_pack(
		"{s:s, s:o}", "type", run ? "judge" : "model", "params", json_deep_copy(d->params));

	if (model)
		json_object_set_new(last, "model", json_deep_copy(model));
	else
		fputs(training, f);
	if (run)
		json_object_set_new(last, "run", program_run(run));
	put_line(f, last);
	fclose(f);
}

/* Reads available bytes, up to 'max' in total; 0 at the end. More bytes are -EMSGSIZE, or
 * dropped. */
static ssize_t program_take(int fd, char *into, size_t *n, size_t max, bool drop)
{
	char spare[4096];
	ssize_t got = read(fd, spare, sizeof(spare));
	size_t kept = got > 0 && (size_t)got > max - *n ? max - *n : (size_t)got;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	if (kept < (size_t)got && !drop)
		return -EMSGSIZE;
	memcpy(into + *n, spare, kept);
	*n += kept;
	return got;
}

static int too_late(const struct talk *t, struct err *e)
{
	return err_set(
		e, -ETIMEDOUT, "%s: the detector did not end within %g s", t->path, t->limit_s);
}

/* Writes the question and reads the answer at the same time, until the program closes its
 * output. */
static int converse(struct talk *t, int *in, int out, int error, struct err *e)
{
	struct pollfd fds[] = {{.fd = *in, .events = POLLOUT}, {.fd = out, .events = POLLIN},
		{.fd = error, .events = POLLIN}};

	while (fds[1].fd >= 0 || fds[2].fd >= 0) {
		double left = t->deadline - clock_mono_s();
		ssize_t n;

		if (left <= 0)
			return too_late(t, e);
		if (poll(fds, 3, (int)(left * 1000) + 1) < 0 && errno != EINTR)
			return err_errno(
				e, -errno, "%s: cannot exchange data with the detector", t->path);
		if (fds[0].revents) {
			n = write(*in, t->question + t->asked, t->length - t->asked);
			t->asked += n > 0 ? (size_t)n : 0;
			/* A program may answer before it has read all input. */
			if ((n < 0 && errno != EAGAIN && errno != EINTR) || t->asked == t->length) {
				close(*in);
				fds[0].fd = *in = -1;
			}
		}
		if (fds[1].revents) {
			n = program_take(out, t->answer, &t->answered, ANSWER_MAX, false);
			if (n == -EMSGSIZE)
				return err_set(e, -EMSGSIZE,
					"%s: the detector printed more than %d KiB", t->path,
					ANSWER_MAX >> 10);
			if (n <= 0)
				fds[1].fd = -1;
		}
		if (fds[2].revents &&
			program_take(error, t->complaint, &t->complained, COMPLAINT_MAX, true) <= 0)
			fds[2].fd = -1;
		for (int i = 0; i < 3; i++)
			fds[i].revents = 0;
	}
	return 0;
}

/* A program may close its output and keep running. */
static int await_end(const struct talk *t, pid_t pid, struct err *e)
{
	double left = t->deadline - clock_mono_s();
	struct pollfd fd = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int n;

	if (fd.fd < 0)
		return err_errno(e, -errno, "%s: cannot wait for the detector", t->path);
	n = poll(&fd, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
	close(fd.fd);
	return n > 0 ? 0 : too_late(t, e);
}

/* The last line that the program wrote to standard error, without control characters. */
static const char *last_words(struct talk *t)
{
	char *line;

	while (t->complained && strchr("\n\r ", t->complaint[t->complained - 1]))
		t->complained--;
	t->complaint[t->complained] = 0;
	for (char *p = t->complaint; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\n')
			*p = ' ';
	line = strrchr(t->complaint, '\n');
	return line ? line + 1 : t->complaint;
}

static int read_answer(struct talk *t, int status, json_t **said, struct err *e)
{
	const char *words = last_words(t), *colon = *words ? ": " : "";
	json_error_t bad;
	json_t *v;

	t->answer[t->answered] = 0;
	/* Codes above those of signals are the program's: perl's die ends with 255. */
	if (status > 128 && status <= 128 + SIGRTMAX)
		return err_set(e, -EPROTO, "%s: the detector was ended by signal %d (%s)%s%.200s",
			t->path, status - 128, strsignal(status - 128), colon, words);
	if (status)
		return err_set(e, -EPROTO, "%s: the detector ended with exit code %d%s%.200s",
			t->path, status, colon, words);
	if (!t->answered)
		return err_set(e, -EPROTO, "%s: the detector printed nothing%s%.200s", t->path,
			colon, words);
	v = json_loadb(t->answer, t->answered, JSON_REJECT_DUPLICATES, &bad);
	if (!v)
		return err_set(e, -EPROTO,
			"%s: the detector's answer is not one line of JSON: line %d, column %d: "
			"%.200s",
			t->path, bad.line, bad.column, bad.text);
	if (json_is_object(v))
		v = json_pack("[o]", v);
	*said = v;
	return 0;
}

static int make_pipes(int fds[3][2])
{
	for (int i = 0; i < 3; i++) {
		int mine = i == 0 ? 1 : 0;

		if (pipe2(fds[i], O_CLOEXEC) < 0)
			return -errno;
		fcntl(fds[i][mine], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void program_close_all(int fds[3][2], int side)
{
	for (int i = 0; i < 3; i++) {
		int k = i == 0 ? side : !side;

		if (fds[i][k] >= 0)
			close(fds[i][k]);
		fds[i][k] = -1;
	}
}

/* One question, one process. Runs in several threads, which only read shared data. */
static int judge_program_ask(const struct detector *d, const char *training, const json_t *model,
	const struct detector_run *run, json_t **said, struct err *e)
{
	struct talk *t = alloc_zero(1, sizeof(*t));
	int fds[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, rc = 0, status;
	const json_t *limit = jget(d->params, "time_limit_s");
	struct confined c;

	t->path = d->path;
	t->limit_s = json_is_number(limit) ? json_number_value(limit) : TIME_LIMIT_S;
	write_question(d, training, model, run, t);
	if (make_pipes(fds))
		rc = err_errno(e, -errno, "cannot ask '%s'", d->path);
	if (!rc)
		rc = confine_start(d->path, fds[0][0], fds[1][1], fds[2][1], trusted, &c, e);
	if (!rc) {
		program_close_all(fds, 0);
		t->deadline = clock_mono_s() + t->limit_s;
		rc = converse(t, &fds[0][1], fds[1][0], fds[2][0], e);
		if (!rc)
			rc = await_end(t, c.pid, e);
		status = confine_end(&c, rc != 0);
		if (!rc)
			rc = read_answer(t, status, said, e);
	}
	program_close_all(fds, 0);
	program_close_all(fds, 1);
	free(t->question);
	free(t);
	return rc;
}

/* Runs that are judged in parallel. */
struct round {
	const struct detector *d;
	const char *training;
	const json_t *model; /* the program's own, or NULL */
	const struct detector_run *const *runs;
	struct detector_answer *answers;
	size_t n;
	atomic_size_t next;
};

static void *work(void *arg)
{
	struct round *r = arg;

	for (size_t i; (i = atomic_fetch_add(&r->next, 1)) < r->n;)
		r->answers[i].rc = judge_program_ask(r->d, r->training, r->model, r->runs[i],
			&r->answers[i].verdicts, &r->answers[i].why);
	return NULL;
}

static size_t at_once(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return n < 1 ? 1 : n > AT_ONCE_MAX ? AT_ONCE_MAX : (size_t)n;
}

/* A program that ends without reading its input must not end this process. */
static void ignore_pipes(struct sigaction *before)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGPIPE, &ignore, before);
}

int program_train(const struct detector *d, const struct detector_run *runs, size_t n,
	json_t **model, struct err *e)
{
	json_t *list = json_array(), *said = NULL, *own = NULL;
	struct sigaction before;
	char *text;
	int rc;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, program_run(&runs[i]));
	text = training_text(list);
	ignore_pipes(&before);
	/* A program with any other answer gets the training runs with each run; one that hangs here
	 * would hang again. */
	rc = n ? judge_program_ask(d, text, NULL, NULL, &said, e) : 0;
	if (!rc && json_array_size(said) == 1 && json_object_size(json_array_get(said, 0)) == 1)
		own = jget(json_array_get(said, 0), "model");
	sigaction(SIGPIPE, &before, NULL);
	if (rc != -ETIMEDOUT)
		*model = json_is_object(own) ? json_pack("{s:O}", "model", own)
					     : json_pack("{s:O}", "training", list);
	json_decref(said);
	json_decref(list);
	free(text);
	return rc == -ETIMEDOUT ? rc : 0;
}

void program_ask(const struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n)
{
	char *text = training_text(jget(model, "training"));
	struct round r = {.d = d,
		.training = text,
		.runs = runs,
		.answers = answers,
		.n = n,
		.model = jget(model, "model")};
	struct sigaction before;
	size_t wanted = n < at_once() ? n : at_once(), started = 0;
	pthread_t threads[AT_ONCE_MAX];

	ignore_pipes(&before);
	/* The caller also works, alone if no thread can be started. */
	while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, &r))
		started++;
	work(&r);
	while (started)
		pthread_join(threads[--started], NULL);
	sigaction(SIGPIPE, &before, NULL);
	free(text);
}
