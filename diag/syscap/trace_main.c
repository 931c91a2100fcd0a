#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/syscap/syscap.h"
#include "diag/syscap/tracer.h"

enum { EXIT_USAGE = 2, EXIT_NOT_WHOLE = 3, MAX_PIDS = 1024 };

struct options {
	const char *out;
	int ready_fd;
	pid_t pids[MAX_PIDS];
	size_t n_pids;
	char **command;
};

static volatile sig_atomic_t stop_signal, ticked;

static void on_stop(int signo, siginfo_t *info, void *context)
{
	(void)context;
	/* A terminal's signals reach the command by themselves. */
	if (info->si_code != SI_KERNEL)
		stop_signal = signo;
	else if (!stop_signal)
		stop_signal = -signo;
}

static void on_tick(int signo)
{
	(void)signo;
	ticked = 1;
}

static int complain(int code, const char *sentence)
{
	fprintf(stderr, "culprit-agent trace: %s\n", sentence);
	return code;
}

static void usage(FILE *f)
{
	fputs("usage: culprit-agent trace [--tracer ptrace] --out FILE [--ready-fd N] (-p PID ... | -- COMMAND ...)\n"
	      "\n"
	      "Writes every system call, signal and descriptor of the processes (and of all that they\n"
	      "start) to FILE, which may not exist yet. 'culprit log FILE' prints it.\n"
	      "\n"
	      "  -p, --pid PID     attach; may be repeated. SIGTERM or SIGINT detaches\n"
	      "  -o, --out FILE    the log\n"
	      "  --ready-fd N      write the line ready to descriptor N once everything is attached\n"
	      "  --tracer NAME     only 'ptrace' is known here\n",
	      f);
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"out", required_argument, NULL, 'o'}, {"ready-fd", required_argument, NULL, 'r'},
		{"pid", required_argument, NULL, 'p'}, {"tracer", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'}, {0},
	};
	char text[256], *end;
	long n;
	int c;

	o->ready_fd = -1;
	while ((c = getopt_long(argc, argv, "+o:p:h", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			o->out = optarg;
			break;
		case 'r':
			o->ready_fd = (int)strtol(optarg, &end, 10);
			if (*end || end == optarg || o->ready_fd < 0)
				return complain(EXIT_USAGE, "--ready-fd takes the number of a descriptor");
			break;
		case 'p':
			n = strtol(optarg, &end, 10);
			if (*end || end == optarg || n <= 0 || n >= MAX_PID) {
				snprintf(text, sizeof(text), "'%s' is no process number", optarg);
				return complain(EXIT_USAGE, text);
			}
			if (o->n_pids == MAX_PIDS)
				return complain(EXIT_USAGE, "more processes than can be traced at once");
			o->pids[o->n_pids++] = (pid_t)n;
			break;
		case 't':
			if (strcmp(optarg, "ptrace")) {
				snprintf(text, sizeof(text), "there is no tracer '%s', only 'ptrace'", optarg);
				return complain(EXIT_USAGE, text);
			}
			break;
		case 'h':
			usage(stdout);
			return -1;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		o->command = argv + optind;
	if (!o->out)
		return complain(EXIT_USAGE, "say where the log goes: --out FILE");
	if (!o->n_pids == !o->command)
		return complain(EXIT_USAGE, "give processes (-p PID) or a command (-- COMMAND ...), not both");
	return 0;
}

static void signals(void)
{
	const int stops[] = {SIGTERM, SIGINT, SIGHUP};
	struct sigaction stop = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO};
	struct sigaction tick = {.sa_handler = on_tick};
	/* Flushes the log when it is quiet, and looks again at a stop signal that
	 * came just before the wait began. */
	struct itimerval every = {{0, 250000}, {0, 250000}};

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		sigaction(stops[i], &stop, NULL);
	sigaction(SIGALRM, &tick, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	setitimer(ITIMER_REAL, &every, NULL);
}

static int start(struct tracer *t, const struct options *o, struct err *e)
{
	int rc;

	if (o->command)
		return tracer_launch(t, o->command, e);
	for (size_t i = 0; i < o->n_pids; i++) {
		rc = tracer_attach(t, o->pids[i], e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Until all have ended, a signal says stop, or the log fails (-errno). */
static int run(struct tracer *t, const struct options *o, struct err *e)
{
	bool ready = false;
	int rc = 1;

	while (rc > 0) {
		if (!ready && tracer_ready(t)) {
			ready = true;
			if (o->ready_fd >= 0 && write(o->ready_fd, "ready\n", 6) == 6)
				close(o->ready_fd);
		}
		rc = tracer_step(t, e);
		if (stop_signal && !o->command)
			break;
		if (stop_signal > 0) {
			kill(t->child, stop_signal);
			stop_signal = 0;
		}
		if (ticked && rc > 0) {
			ticked = 0;
			rc = log_flush(t->log, e);
			rc = rc < 0 ? rc : 1;
		}
	}
	return rc < 0 ? rc : 0;
}

static int exit_code(const struct tracer *t, const struct options *o)
{
	if (!o->command)
		return 0;
	return WIFSIGNALED(t->child_status) ? 128 + WTERMSIG(t->child_status) : WEXITSTATUS(t->child_status);
}

int trace_main(int argc, char **argv)
{
	static struct options o;
	struct log_writer *log = NULL;
	struct tracer *t = NULL;
	struct err e;
	int rc, code;

	code = parse(argc, argv, &o);
	if (code)
		return code < 0 ? 0 : code;
	rc = log_writer_new(o.out, "ptrace", &log, &e);
	if (rc < 0)
		return complain(EXIT_USAGE, e.text);
	log_writer_bias(log, bias_measure_ns());
	rc = log_flush(log, &e); /* the head: a log from now on, whatever becomes of us */
	if (rc == 0)
		rc = tracer_new(log, &t, &e);
	if (rc < 0) {
		code = complain(EXIT_NOT_WHOLE, e.text);
		goto out;
	}
	signals();
	rc = start(t, &o, &e);
	if (rc < 0) {
		tracer_detach(t);
		unlink(o.out);
		code = complain(o.command ? 127 : EXIT_USAGE, e.text);
		goto out;
	}
	rc = run(t, &o, &e);
	tracer_detach(t);
	code = exit_code(t, &o);
	if (rc == 0 && t->failed) {
		rc = t->failed;
		e = t->err;
	}
	if (rc == 0) {
		rc = log_writer_end(log, 0, &e);
		log = NULL;
	}
	if (rc < 0)
		code = complain(EXIT_NOT_WHOLE, e.text);
out:
	if (rc < 0 && !code)
		code = EXIT_NOT_WHOLE;
	log_writer_free(log);
	tracer_free(t);
	return code;
}
