/* The ptrace tracer: syscap of Kasick et al. 2009, section 4. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diag/capture/ptrace/tracer.h"
#include "diag/capture/capture.h"

static int ptrace_start(struct tracer *t, const struct trace_request *r, struct err *e)
{
	size_t n = 0;
	int rc;

	if (r->command)
		return tracer_launch(t, r->command, e);
	for (size_t i = 0; i < r->n_pids; i++) {
		rc = tracer_attach(t, r->pids[i], e);
		if (rc < 0 && (rc != -ESRCH || !r->skip_ended || (i + 1 == r->n_pids && !n)))
			return rc;
		n += rc == 0;
	}
	return r->no_descendants ? 0 : tracer_attach_descendants(t, r->pids, r->n_pids, e);
}

/* Runs until all processes have ended, a signal says stop, or the log fails (-errno). */
static int ptrace_run(struct tracer *t, const struct trace_request *r, struct err *e)
{
	bool ready = false;
	int rc = 1, stop;

	while (rc > 0) {
		if (!ready && tracer_ready(t)) {
			ready = true;
			trace_ready(r);
		}
		rc = tracer_step(t, e);
		stop = trace_take_stop();
		if (stop == TRACE_LEAVE || (stop && !r->command))
			break;
		if (stop > 0)
			trace_pass_stop(t->child, stop, true);
		if (rc > 0 && trace_take_tick()) {
			rc = log_unseen(t->log, t->unseen, e);
			if (rc == 0)
				rc = log_flush(t->log, e);
			rc = rc < 0 ? rc : 1;
		}
	}
	return rc < 0 ? rc : 0;
}

int ptrace_trace(const struct trace_request *r, struct err *why)
{
	struct log_writer *log = NULL;
	struct tracer *t = NULL;
	struct err e;
	int rc, code = 0;

	(void)why;
	rc = log_writer_new(r->out, "ptrace", &log, &e);
	if (rc < 0)
		return trace_complain(TRACE_EXIT_USAGE, e.text);
	log_writer_bound(log, r->bound_bytes);
	log_writer_bias(log, bias_measure_ns());
	log_writer_how(log, LOG_EVENTS);
	rc = log_flush(log, &e); /* writes the head, so the file is a log even if the tracer dies */
	if (rc == 0)
		rc = tracer_new(log, &t, &e);
	if (rc < 0) {
		code = trace_complain(TRACE_EXIT_NOT_WHOLE, e.text);
		goto out;
	}
	t->filter = r->filter;
	trace_signals();
	rc = ptrace_start(t, r, &e);
	if (rc < 0) {
		tracer_detach(t);
		unlink(r->out);
		code = trace_complain(
			r->command ? TRACE_EXIT_NO_PROGRAM : TRACE_EXIT_USAGE, e.text);
		goto out;
	}
	rc = ptrace_run(t, r, &e);
	tracer_detach(t);
	code = r->command ? trace_exit_code(t->child_status) : 0;
	if (t->unseen[UNSEEN_RINGS])
		fprintf(stderr,
			"culprit-agent trace: %llu calls of io_uring: ptrace does not show "
			"the reads and writes of io_uring; ebpf does\n",
			(unsigned long long)t->unseen[UNSEEN_RINGS]);
	if (rc == 0 && t->failed) {
		rc = t->failed;
		e = t->err;
	}
	if (rc == 0)
		rc = log_unseen(log, t->unseen, &e);
	if (rc == 0) {
		rc = log_writer_end(log, t->lost, &e);
		log = NULL;
	}
	if (rc < 0)
		code = trace_complain(TRACE_EXIT_NOT_WHOLE, e.text);
out:
	log_writer_free(log);
	tracer_free(t);
	return code;
}
