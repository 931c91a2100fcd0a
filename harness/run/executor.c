/* Runs the plan's cells until each has a confirmed attempt. */
#include "harness/run/executor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/base/clock.h"
#include "harness/run/prepare.h"
#include "harness/run/signals.h"

/* Connects lost nodes again, with a new nodeset. -EAGAIN: that may succeed later. */
static int reconnect(struct executor *x, struct err *e)
{
	struct err ignored;
	int rc;

	if (x->cluster->set && !cluster_lost(x->cluster, &ignored))
		return 0;
	signals_interrupt(NULL);
	prepare_note(x, false, "being connected again");
	acts_forget(x->acts);
	cluster_disconnect(x->cluster);
	rc = signals_connect(x->cluster, e);
	/* Waiting does not mend a host key that has changed; resuming later may. */
	if (rc == -EKEYREJECTED)
		e->class = ERR_CLUSTER;
	if (rc)
		return rc == -EKEYREJECTED ? rc : -EAGAIN;
	return 0;
}

static int check_gates(struct executor *x, bool first, json_t **report, struct err *e)
{
	int rc = reconnect(x, e);

	if (rc)
		return rc;
	if (first)
		prepare_note(x, false, "being checked: processes, clocks, load");
	rc = gates_before(&x->gate, report, e);
	return rc && e->class == ERR_CLUSTER ? -EAGAIN : rc;
}

/* Waits until every host is as it was when the run began, and quiet. No cell is run before. */
static int wait_clean(struct executor *x, json_t **report, struct err *e)
{
	double given_s = x->gate.limits->wait_s,
	       wait_s = given_s < 0 ? gate_defaults.wait_s : given_s,
	       deadline = clock_mono_s() + wait_s;
	struct err why = {""};
	bool first = true;
	int rc;

	while ((rc = check_gates(x, first, report, &why)) == -EAGAIN && !*x->interrupted) {
		if (first)
			progress_say(x->progress, "quarantined: %.800s; waiting for up to %g s",
				why.text, wait_s);
		first = false;
		if (clock_mono_s() > deadline)
			return err_blame(e, ERR_CLUSTER,
				err_set(e, -EHOSTDOWN,
					"quarantined for more than %g s (gates: 'wait'): %.900s",
					wait_s, why.text));
		prepare_note(x, false, "waiting");
		progress_now(x->progress, 0, "quarantined: %s", why.text);
		signals_nap();
	}
	if (rc)
		*e = why;
	else if (!first)
		progress_say(x->progress, "quarantine is over");
	return rc;
}

/* Judges an attempt, and what the second tracer recorded of it. */
static int judge_both(
	struct executor *x, const struct attempt_result *r, char *text, size_t size, struct err *e)
{
	char ignored[160];
	int rc = x->judge ? judge_attempt(x->judge, r->id, text, size, e) : 0;

	return rc || !x->second_judge
		? rc
		: judge_attempt(x->second_judge, r->second_id, ignored, sizeof(ignored), e);
}

/* "ddw x disk-hog on s2" */
static void name_cell(const struct executor *x, const struct cell *c, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "%s x %s",
		x->scenario->workloads[c->workload].label, cell_treatment(x->scenario, c));

	for (size_t i = 0; i < c->n_victims && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "+" : " on ",
			x->server_names[c->victims[i]]);
}

/* A detector's failure ends no run: what was measured can be judged again. */
static void say_not_judged(struct executor *x, size_t cell, const struct err *why)
{
	x->judge_failed = true;
	progress_say(x->progress, "cell %zu: not judged: %s", cell, why->text);
}

static int run_cell(struct executor *x, size_t place, const struct cell *c, struct err *e)
{
	double begin = clock_mono_s();
	struct attempt_result r = {.outcome = OUTCOME_INVALID};
	char title[512], text[160] = "";
	int rc;

	name_cell(x, c, title, sizeof(title));
	/* An error does not go away by trying again. */
	for (long n = 1; n <= x->scenario->attempts && r.outcome == OUTCOME_INVALID; n++) {
		struct attempt_request request = {.cell = c, .number = c->attempts + n};

		progress_attempt(x->progress, c->number, n, title);
		rc = wait_clean(x, &request.gates, e) ?: attempt_run(x, &request, &r, e);
		json_decref(request.gates);
		if (rc)
			return rc;
		if (r.outcome == OUTCOME_CONFIRMED)
			break;
		if (r.outcome != OUTCOME_ABORTED)
			progress_invalid(x->progress);
		progress_say(x->progress, "cell %zu %s: attempt %ld %s: %s", c->number, title,
			request.number, outcome_name(r.outcome), r.why.text);
	}
	progress_cell_done(x->progress, r.outcome == OUTCOME_CONFIRMED, clock_mono_s() - begin);
	if (r.outcome == OUTCOME_ABORTED && x->scenario->stop_on_abort)
		return err_blame(e, ERR_CLUSTER,
			err_set(e, -ECANCELED, "cell %zu was aborted (on_abort = \"stop\"): %.700s",
				c->number, r.why.text));
	if (r.outcome != OUTCOME_CONFIRMED) {
		if (!c->training)
			return 0;
		err_set(e, -EIO,
			"training cell %zu has no confirmed attempt: nothing could be judged",
			c->number);
		return err_blame(e, r.why.class, -EIO);
	}
	if (!c->training && (rc = judge_both(x, &r, text, sizeof(text), &r.why))) {
		/* A full disk is no detector's failure. A resumed run judges the attempt. */
		if (rc == -ENOSPC) {
			*e = r.why;
			return rc;
		}
		say_not_judged(x, c->number, &r.why);
	}
	progress_say(x->progress, "[%zu/%zu] cell %zu %s: %sconfirmed%s (%.1f s)", place,
		x->plan->n, c->number, title, c->training ? "training, " : "", text,
		clock_mono_s() - begin);
	return 0;
}

static int run_cells(struct executor *x, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < x->plan->n && !rc; i++)
		if (!x->plan->cells[i].done && !x->plan->cells[i].aborted)
			rc = run_cell(x, i + 1, &x->plan->cells[i], e);
	return rc;
}

/* Judges attempts without verdicts: the run was killed before them, or a model or detector has
 * changed since. */
static int judge_rest_of(struct executor *x, struct judge *j, struct store *s, struct err *e)
{
	json_auto_t *rows = NULL;
	json_t *row;
	char ignored[160];
	struct err why;
	size_t i;
	int rc = j ? store_rows(s, ROWS_UNJUDGED, 0, &rows, e) : 0;

	json_array_foreach(rows, i, row) {
		if (*x->interrupted)
			break;
		progress_now(x->progress, 0, "judging what was measured before");
		rc = judge_attempt(j, jget_int(row, "attempt"), ignored, sizeof(ignored), &why);
		if (rc == -ENOSPC) {
			*e = why;
			return rc;
		}
		if (rc)
			say_not_judged(x, (size_t)jget_int(row, "cell"), &why);
		rc = 0;
	}
	return rc;
}

int exec_judge_rest(struct executor *x, struct err *e)
{
	int rc = x->resumed ? judge_rest_of(x, x->judge, x->store, e) : 0;

	return rc || !x->resumed || !x->second_store
		? rc
		: judge_rest_of(x, x->second_judge, x->second_store, e);
}

static void still_waiting(void *progress)
{
	progress_refresh(progress);
}

int exec_run(struct executor *x, struct err *e)
{
	static int (*const steps[])(struct executor *, struct err *) = {
		prepare_run, run_cells, exec_judge_rest};
	int rc;

	luax_advise("; the nodes' guards undo what is left, and 'culprit resume' goes on");
	x->gate = (struct gate){.cluster = x->cluster,
		.limits = &x->scenario->gates,
		.folder = store_folder(x->store),
		.interrupted = x->interrupted};
	prepare_note(x, false, "being connected, and given the agent");
	progress_now(x->progress, 0, "connecting to %zu nodes", x->cluster->n_members);
	rc = signals_connect(x->cluster, e);
	if (!rc)
		nodeset_on_wait(x->cluster->set, still_waiting, x->progress);
	x->acts = bind_open(x->scenario->L);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !rc; i++)
		rc = steps[i](x, e);
	if (x->cluster->set) {
		nodeset_resume(x->cluster->set);
		prepare_remove_data(x);
	}
	signals_interrupt(NULL);
	bind_close(x->acts);
	x->acts = NULL;
	cluster_disconnect(x->cluster);
	json_decref(x->gate.clean);
	return *x->interrupted ? signals_interrupted(e) : rc;
}
