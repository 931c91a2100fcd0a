/* Feeds series to the detector 'fleet' and judges them as they come. */
#include "harness/base/outfile.h"
#include "harness/live/watch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/units.h"
#include "harness/live/orders.h"
#include "harness/live/exposition.h"
#include "harness/live/horizons.h"
#include "harness/live/life.h"
#include "harness/live/lines.h"
#include "harness/live/stop.h"

/* Keeps samples for this multiple of the longest horizon; minimum time between publications. */
static const double kept = 1.0 + 1.0 / HORIZON_LOOKS, publish_s = 0.5, ahead_max_s = 86400;
/* Age beyond which a flight recorder no longer holds the samples' time; minimum time between
 * alarms. */
static const double alarm_late_s = 120, alarm_pause_s = 60;
enum { CELL_BYTES = 2 }; /* diag/fleet/panel.h */

struct watch {
	struct watch_options o;
	struct fleet *fleet;
	struct import_sink to_fleet;
	struct pace pace;
	struct horizons horizons;
	double step_s;
	uint32_t last_id; /* id of the last series */
	char **declared;  /* NULL-terminated: every piece repeats the head's declarations */
	size_t n_declared;
	struct lives lives;
	bool live, failed;
	double first_s, now_s;  /* range of all samples; NAN: no samples */
	double check_s;         /* no horizon is due before this */
	double drop_s;          /* older samples are no longer needed */
	char *unjudged, *saved; /* saved: the state file's text */
	uint64_t ahead;
	double partial_s;   /* samples up to this time may be incomplete; -INFINITY: none */
	double published_s; /* CLOCK_MONOTONIC */
	char *alarm;        /* members of new findings since the last look, or NULL */
	double alarmed_s;   /* CLOCK_MONOTONIC */
	struct exposition numbers;
};

/* --- state and output --- */

static int restore(struct watch *w, struct err *e)
{
	auto_free char *text = NULL;
	auto_json json_t *state = NULL;
	int rc;

	if (!w->o.state)
		return 0;
	rc = file_read(w->o.state, &text, NULL, e);
	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	state = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	rc = lives_restore(&w->lives, state, e);
	return rc ? err_prefix(e, rc, "%s: remove the file to start over", w->o.state) : 0;
}

static int save(struct watch *w, struct err *e)
{
	auto_json json_t *state = NULL;
	auto_free char *text = NULL;

	if (!w->o.state)
		return 0;
	state = lives_json(&w->lives);
	text = json_dumps(state, JSON_INDENT(1));
	if (!text)
		alloc_end();
	if (w->saved && !strcmp(text, w->saved))
		return 0;
	free(w->saved);
	w->saved = alloc_copy(text);
	return file_write_atomic(w->o.state, 0644, text, strlen(text), e);
}

static bool is_partial(const struct watch *w, double now_s)
{
	return w->horizons.n && w->partial_s > now_s - w->horizons.v[w->horizons.n - 1].length_s;
}

static void told(void *ctx, enum life_event event, const struct life *life, double now_s)
{
	struct watch *w = ctx;

	(w->o.json ? line_json : line_text)(w->o.out, event, life, now_s, is_partial(w, now_s));
	if (event == LIFE_BEGIN && w->o.on_alarm && !w->alarm)
		w->alarm = alloc_copy(*life->member ? life->member : life->group);
}

/* Turns a reason, which can be any text, into one line. */
static void clean_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

/* Makes the flight recorder write. A failure is reported and ignored. */
static void sound_alarm(struct watch *w, double now_s)
{
	auto_free char *who = AUTO_TAKE(w->alarm);
	auto_free char *line = who ? alloc_format("write watch found %.200s", who) : NULL;
	const double late_s = (double)clock_real_ns() / 1e9 - now_s;
	struct err e = {""};

	if (!who || fabs(late_s) > alarm_late_s ||
		(w->alarmed_s > 0 && clock_mono_s() - w->alarmed_s < alarm_pause_s))
		return;
	clean_line(line);
	w->alarmed_s = clock_mono_s();
	if (order_send(w->o.on_alarm, line, 2, NULL, &e)) {
		w->o.tell(e.text);
	} else {
		auto_free char *text = alloc_format(
			"the capture of '%s' is writing its records", w->o.on_alarm);

		w->o.tell(text);
	}
}

static void publish_now(struct watch *w)
{
	char *text = NULL;
	size_t size;
	FILE *f;

	w->published_s = clock_mono_s();
	if (!w->o.exporter)
		return;
	f = alloc_text(&text, &size);
	exposition_write(f, &w->numbers);
	fclose(f);
	exporter_publish(w->o.exporter, text);
}

void watch_publish(struct watch *w)
{
	if (w->o.exporter && clock_mono_s() - w->published_s >= publish_s)
		publish_now(w);
}

void watch_source(struct watch *w, bool up, uint64_t skipped)
{
	w->numbers.failures += !up;
	w->numbers.up = up;
	w->numbers.skipped = skipped;
}

void watch_partial(struct watch *w, bool partial, double to_s)
{
	w->numbers.partial = partial;
	if (partial)
		w->partial_s = fmax(w->partial_s, to_s);
}

/* --- judging --- */

static void tell_horizons(const struct watch *w)
{
	char text[400] = "horizons:", one[40];
	size_t n = strlen(text);

	for (size_t i = 0; i < w->horizons.n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s", i ? "," : "",
			line_duration(w->horizons.v[i].length_s, one, sizeof(one)));
	n += (size_t)snprintf(text + n, sizeof(text) - n,
		"; each is judged again when a %dth has passed", HORIZON_LOOKS);
	w->o.tell(text);
}

/* Sets the horizons once the interval of samples is known; returns false before. */
static bool know_horizons(struct watch *w, unsigned least)
{
	double cells = 0;

	if (w->horizons.n)
		return true;
	w->step_s = w->o.step_s > 0 ? w->o.step_s : pace_step(&w->pace, least);
	if (w->step_s <= 0)
		return false;
	if (w->o.n_horizons) {
		for (size_t i = 0; i < w->o.n_horizons; i++)
			horizons_add(&w->horizons, w->o.horizon_s[i]);
	} else {
		cells = (double)w->o.fleet.memory_bytes / CELL_BYTES / (double)(w->last_id + 1);
		horizons_default(&w->horizons, w->step_s, cells);
	}
	pace_clear(&w->pace);
	tell_horizons(w);
	return true;
}

static void watch_forget(struct watch *w, double now_s)
{
	double before_s = now_s - kept * w->horizons.v[w->horizons.n - 1].length_s;

	/* In steps, because the detector forgets whole blocks of time. */
	if (before_s - w->drop_s < w->horizons.v[0].length_s)
		return;
	w->drop_s = before_s;
	fleet_forget(w->fleet, before_s);
}

static void take_result(struct watch *w, size_t i, const struct fleet_result *r, double now_s)
{
	w->numbers.members = r->n_members;
	w->numbers.judged = 0;
	for (size_t k = 0; k < r->n_members; k++)
		w->numbers.judged += r->members[k].judged;
	lives_look(&w->lives, i, r, now_s, told, w);
}

static int live_watch_judge(struct watch *w, size_t i, double to_s, struct err *e)
{
	double from_s = fmax(to_s - w->horizons.v[i].length_s, w->first_s), begun;
	struct fleet_result *r = NULL;
	int rc;

	fleet_allow(w->fleet, horizons_alarms(&w->horizons, i, w->o.fleet.alarms));
	begun = clock_mono_s();
	stop_at_once(true);
	rc = fleet_judge(w->fleet, from_s, to_s, &r, e);
	stop_at_once(false);
	w->numbers.judge_s += clock_mono_s() - begun;
	w->numbers.looks++;
	horizons_judged(&w->horizons, i, to_s);
	if (rc == -EINVAL) {
		if (!w->numbers.members) {
			free(w->unjudged);
			w->unjudged = alloc_copy(e->text);
		}
		return 0;
	}
	if (!rc)
		take_result(w, i, r, to_s);
	fleet_result_free(r);
	return rc;
}

/* Print lines before saving the state: after a crash in between, lines are repeated, not lost. */
static int after_looks(struct watch *w, double now_s, struct err *e)
{
	int rc;

	lives_end(&w->lives, now_s, told, w);
	rc = outfile_flush(w->o.out, e) ?: save(w, e);
	sound_alarm(w, now_s);
	publish_now(w);
	watch_forget(w, now_s);
	return rc;
}

static int live_watch_look(struct watch *w, double to_s, bool all, struct err *e)
{
	bool looked = false;
	int rc = 0;

	if (!know_horizons(w, all ? 1 : PACE_ENOUGH))
		return 0;
	for (size_t i = 0; i < w->horizons.n && !rc; i++) {
		if (all)
			w->horizons.v[i].next_s = -INFINITY;
		if (to_s < horizons_due(&w->horizons, i, w->first_s))
			continue;
		rc = live_watch_judge(w, i, to_s, e);
		looked = true;
	}
	rc = rc ?: looked ? after_looks(w, to_s, e) : 0;
	w->check_s = horizons_next(&w->horizons, w->first_s);
	w->failed |= rc != 0;
	return rc;
}

int watch_look(struct watch *w, bool all, struct err *e)
{
	/* Includes the newest sample. */
	double to_s = w->now_s + (w->step_s > 0 ? w->step_s / 2 : 1e-3);

	return isnan(w->now_s) ? 0 : live_watch_look(w, to_s, all, e);
}

/* --- the sink --- */

static int watch_take_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct watch *w = ctx;
	int rc = w->to_fleet.series(w->to_fleet.ctx, key, id, e);

	if (!rc && *id > w->last_id)
		w->last_id = *id;
	return rc;
}

static int take_metric(void *ctx, const char *declaration, struct err *e)
{
	struct watch *w = ctx;

	int rc;

	for (size_t i = 0; i < w->n_declared; i++)
		if (!strcmp(w->declared[i], declaration))
			return 0;
	rc = w->to_fleet.metric ? w->to_fleet.metric(w->to_fleet.ctx, declaration, e) : 0;
	if (rc)
		return rc;
	w->declared = alloc_resize(w->declared, w->n_declared + 2, sizeof(*w->declared));
	w->declared[w->n_declared++] = alloc_copy(declaration);
	w->declared[w->n_declared] = NULL;
	return 0;
}

/* A wrong clock must not make all other samples old. */
static bool is_ahead(struct watch *w, double time_s)
{
	char at[40];

	if (time_s < (double)clock_real_ns() / 1e9 + ahead_max_s)
		return false;
	if (!w->ahead++) {
		auto_free char *text = alloc_format(
			"samples later than this machine's clock are dropped: the first "
			"is of %s",
			line_time(time_s, at, sizeof(at)));

		w->o.tell(text);
	}
	return true;
}

static int watch_take_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct watch *w = ctx;
	int rc = 0;

	if (!(time_s <= w->now_s)) {
		if (is_ahead(w, time_s))
			return 0;
		if (w->live && time_s >= w->check_s)
			rc = live_watch_look(w, time_s, false, e);
		else if (!w->live && know_horizons(w, PACE_ENOUGH))
			watch_forget(w, time_s);
		if (rc)
			return rc;
		w->now_s = w->numbers.last_sample_s = time_s;
	}
	if (time_s < w->drop_s)
		return 0;
	if (!(time_s >= w->first_s))
		w->first_s = time_s;
	w->numbers.samples++;
	if (!w->horizons.n)
		pace_sample(&w->pace, id, time_s);
	return w->to_fleet.sample(w->to_fleet.ctx, id, time_s, value, e);
}

struct import_sink watch_sink(struct watch *w)
{
	return (struct import_sink){w, watch_take_series, watch_take_sample, take_metric};
}

void watch_live(struct watch *w, bool live)
{
	w->live = live;
}

int watch_new(const struct watch_options *o, struct watch **out, struct err *e)
{
	struct watch *w = alloc_zero(1, sizeof(*w));
	int rc;

	w->o = *o;
	w->first_s = w->now_s = w->numbers.last_sample_s = NAN;
	w->check_s = w->drop_s = w->partial_s = -INFINITY;
	w->numbers.lives = &w->lives;
	w->numbers.up = true;
	rc = restore(w, e);
	if (rc) {
		watch_free(w);
		return rc;
	}
	w->fleet = fleet_new(&o->fleet);
	w->to_fleet = fleet_sink(w->fleet);
	publish_now(w);
	*out = w;
	return 0;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	if (w->fleet)
		fleet_free(w->fleet);
	lives_clear(&w->lives);
	pace_clear(&w->pace);
	alloc_free_list(w->declared);
	free(w->unjudged);
	free(w->saved);
	free(w->alarm);
	free(w);
}

size_t watch_findings(const struct watch *w)
{
	return w->lives.n;
}

const char *watch_unjudged(const struct watch *w)
{
	if (w->numbers.members)
		return NULL;
	return w->unjudged ? w->unjudged : "too few samples";
}

const bool *watch_failed(const struct watch *w)
{
	return &w->failed;
}
