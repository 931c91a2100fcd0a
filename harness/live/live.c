/*
 * A live capture: fetches the tracers' logs from the nodes while they grow, part by part over the
 * agents' channels, and appends them to files of the same names here. A node holds at most
 * 'bound_bytes' of a log that were not fetched; its tracer drops and counts records beyond that,
 * so a slow link or a slow local disk affects neither the node's disk nor the applications.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/query/zones.h"
#include "diag/record/growing.h"
#include "harness/base/alloc.h"
#include "harness/base/base64.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/live/recording_impl.h"

/* A tracer writes buffered records four times a second. */
#define ASK_EVERY_S 0.2

enum { PART_BYTES = 256 << 10, LEAST_BYTES = 4096 };

static int local_error(const struct tail *t, const char *what, struct err *e)
{
	return err_blame(e, ERR_HARNESS, err_errno(e, -errno, "cannot %s '%s'", what, t->local));
}

/* Without a cache, queries read the whole log. */
static void begin_index(struct tail *t)
{
	char *path;
	struct err e;

	if (zones_path(t->local, &path, &e))
		return;
	zones_follow_new(path, t->local, &t->index, &e);
	free(path);
}

/* The index is optional: ignore its failure. */
static void go_on_with_index(struct tail *t)
{
	struct err e;

	if (!t->index || !zones_follow_step(t->index, &e))
		return;
	zones_follow_free(t->index);
	t->index = NULL;
}

/* Appends the data of an answer. */
static int live_take(struct recording *r, struct tail *t, const json_t *answer, struct err *e)
{
	const char *text = jget_text(answer, "data");
	const size_t length = text ? strlen(text) : 0;
	uint8_t *data = alloc_zero(length + 1, 1);
	const int64_t n = base64_decode(text ? text : "", length, data);
	int rc = 0;

	t->size = (uint64_t)jget_int(answer, "size");
	if (!text || n < 0)
		rc = err_blame(e, ERR_CLUSTER,
			err_set(e, -EPROTO, "the answer for '%s' is invalid", t->remote));
	if (!rc && n && t->fd < 0) {
		t->fd = open(t->local, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (t->fd < 0)
			rc = local_error(t, "make", e);
		else
			log_hold(t->fd);
	}
	if (!rc && n) {
		errno = -fd_write_all(t->fd, data, (size_t)n);
		rc = errno ? local_error(t, "write", e) : 0;
	}
	free(data);
	if (rc)
		return rc;
	if (!t->got && n)
		begin_index(t);
	if (n)
		go_on_with_index(t);
	t->got += (uint64_t)n;
	t->next_s = clock_mono_s() + (t->got < t->size ? 0 : ASK_EVERY_S);
	if (r->o->bandwidth > 0 && !r->over)
		t->next_s = clock_mono_s() + (double)n / r->o->bandwidth;
	return 0;
}

static int live_ask(struct recording *r, struct recording_tracer *t, struct err *e)
{
	double most = PART_BYTES;

	if (r->o->bandwidth > 0 && most > r->o->bandwidth * ASK_EVERY_S)
		most = r->o->bandwidth * ASK_EVERY_S;
	return node_ask(t->member->node, "file.read",
		json_pack("{s:s, s:I, s:I, s:b}", "path", t->tail.remote, "offset",
			(json_int_t)t->tail.got, "most",
			(json_int_t)(most < LEAST_BYTES ? LEAST_BYTES : most), "release", 1),
		&t->tail.asked, e);
}

/* One step for one log: processes an answer if it has arrived, otherwise sends a request. */
static int turn(struct recording *r, struct recording_tracer *t, struct err *e)
{
	struct tail *tail = &t->tail;
	json_t *answer = NULL;
	int rc;

	if (!tail->asked)
		return clock_mono_s() < tail->next_s ? 0 : live_ask(r, t, e);
	rc = node_answered(tail->asked, &answer, e);
	if (!rc)
		return 0;
	node_asked_free(tail->asked);
	tail->asked = NULL;
	rc = rc < 0 ? cluster_blame(rc, e) : live_take(r, tail, answer, e);
	json_decref(answer);
	return rc;
}

int live_step(struct recording *r, double *wait_s, struct err *e)
{
	double now, soon_s = ASK_EVERY_S;
	int rc = 0;

	for (size_t i = 0; i < r->n_tracers && !rc; i++) {
		struct recording_tracer *t = &r->tracers[i];

		/* Another check notices the lost node and ends the capture. */
		if (node_lost(t->member->node, NULL))
			continue;
		rc = turn(r, t, e);
		if (rc == -ENOTCONN || rc == -EINTR)
			rc = 0;
	}
	now = clock_mono_s();
	for (size_t i = 0; i < r->n_tracers; i++) {
		const struct tail *t = &r->tracers[i].tail;
		const double left_s = t->asked ? 0.02 : t->next_s - now;

		soon_s = left_s < soon_s ? left_s : soon_s;
	}
	*wait_s = soon_s > 0.005 ? soon_s : 0.005;
	return rc;
}

/* Has any data of the log arrived? Its tracer writes the head first. */
static bool has_begun(const struct recording_tracer *t)
{
	return t->tail.got;
}

/* Has the whole log been fetched? */
static bool is_done(const struct recording_tracer *t)
{
	return !t->tail.asked && t->tail.got && t->tail.got >= t->tail.size;
}

/* Only for nodes that are not lost. */
static bool all(const struct recording *r, bool (*check)(const struct recording_tracer *))
{
	for (size_t i = 0; i < r->n_tracers; i++)
		if (!node_lost(r->tracers[i].member->node, NULL) && !check(&r->tracers[i]))
			return false;
	return true;
}

static int take_until(struct recording *r, bool (*check)(const struct recording_tracer *),
	double limit_s, struct err *e)
{
	const double until_s = clock_mono_s() + limit_s;
	double wait_s;
	int rc = 0;

	while (!rc && !all(r, check)) {
		rc = live_step(r, &wait_s, e);
		if (!rc && clock_mono_s() > until_s)
			rc = err_blame(e, ERR_CLUSTER,
				err_set(e, -ETIMEDOUT, "the logs did not arrive within %g s",
					limit_s));
		if (!rc && !all(r, check))
			usleep((useconds_t)(wait_s * 1e6));
	}
	return rc;
}

static int put_first_row(struct recording *r, struct err *e)
{
	json_t *cluster = NULL, *detail;
	int rc = recording_look_at_clocks(r, e) ?: cluster_describe(r->cluster, &cluster, e);

	if (rc)
		return rc;
	detail = json_pack("{s:{s:s, s:O}, s:o}", "recording", "why", "it is in progress",
		"tracing", r->o->tracing, "reduction", cluster);
	rc = recording_put_live(r, detail, e);
	json_decref(detail);
	return rc;
}

int live_begin(struct recording *r, struct err *e)
{
	int rc = recording_make_cell(r, "cells/0001.1", e);

	for (size_t i = 0; i < r->n_tracers && !rc; i++) {
		struct recording_tracer *t = &r->tracers[i];

		t->tail.remote = recording_files[t->kind];
		t->tail.local = alloc_format("%s/cells/0001.1/%s.%s", store_folder(r->store),
			t->member->name, recording_files[t->kind]);
	}
	/* From then on the folder has all its files. */
	rc = rc ?: take_until(r, has_begun, RECORDING_CALL_S, e) ?: put_first_row(r, e);
	if (!rc)
		file_give_to_sudo_user(store_folder(r->store));
	return rc;
}

/* The END record of the node's log also ends ours. */
static int check_end(const struct recording_tracer *t, struct err *e)
{
	struct record_end end;
	int rc = node_lost(t->member->node, NULL) ? 0 : log_read_end(t->tail.local, &end, NULL, e);

	return rc ? err_blame(e, ERR_CLUSTER, rc) : 0;
}

int live_finish(struct recording *r, struct err *e)
{
	int rc;

	r->over = true;
	for (size_t i = 0; i < r->n_tracers; i++) {
		struct tail *t = &r->tracers[i].tail;

		/* A pending answer dates from before the tracer's end, and has the log's size at
		 * that time. */
		node_asked_free(t->asked);
		t->asked = NULL;
		t->size = t->got + 1;
		t->next_s = 0;
	}
	rc = take_until(r, is_done, RECORDING_FETCH_S, e);
	for (size_t i = 0; i < r->n_tracers && !rc; i++)
		rc = check_end(&r->tracers[i], e);
	return rc;
}

void live_clear(struct recording *r)
{
	for (size_t i = 0; i < r->n_tracers; i++) {
		struct tail *t = &r->tracers[i].tail;

		node_asked_free(t->asked);
		zones_follow_free(t->index);
		if (t->fd >= 0)
			close(t->fd);
		free(t->local);
		*t = (struct tail){.fd = -1};
	}
}
