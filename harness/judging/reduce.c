/* Reduces an attempt's traces to samples and events. */
#include "harness/judging/reduce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/derive.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/judging/places.h"

struct reduction {
	struct places places;
	struct metrics *metrics;
	struct events *events;
};

/* Reads one file of a node once, for the metrics and, if requested, the events. */
static int reduce_add_log(struct reduction *r, const struct reduce_spec *spec,
	const struct place *p, enum place_log log, bool metrics, bool events, struct err *e)
{
	const struct stream_spec stream = places_stream(&r->places, p, log);
	uint64_t lost = 0;
	auto_free char *path = alloc_format(
		"%s/%s.%s", spec->folder, p->name, place_log_names[log]);
	int rc = derive_log(
		path, &stream, metrics ? r->metrics : NULL, events ? r->events : NULL, &lost, e);
	if (!rc && metrics && lost)
		rc = err_set(e, -EBADMSG, "'%s' lost %llu records", path, (unsigned long long)lost);
	return rc;
}

/* All logs of one node. A second tracer does not see the application and gives only metrics. */
static int add_node(
	struct reduction *r, const struct reduce_spec *spec, const struct place *p, struct err *e)
{
	const bool server = places_is_server(&r->places, p), events = !spec->second;
	int rc = 0;

	if (!server && events)
		rc = reduce_add_log(r, spec, p, PLACE_APP, false, true, e);
	if (!rc)
		rc = reduce_add_log(
			r, spec, p, spec->second ? PLACE_SECOND : PLACE_FS, true, events, e);
	if (!rc && p->sampled)
		rc = reduce_add_log(r, spec, p, PLACE_SAMPLES, true, false, e);
	return rc;
}

int reduce_traces(const struct reduce_spec *spec, struct reduction **out, struct err *e)
{
	struct reduction *r = alloc_zero(1, sizeof(*r));
	int rc = places_read(&r->places, spec->cluster, e);

	if (!rc)
		rc = metrics_new(
			r->places.n_servers, spec->start_ns, spec->seconds, &r->metrics, e);
	if (!rc)
		metrics_bulk(r->metrics, &r->places.bulk);
	if (!rc)
		rc = events_new(r->places.n_servers, spec->start_ns, spec->seconds, &r->events, e);
	for (size_t i = 0; !rc && i < r->places.n; i++)
		rc = add_node(r, spec, &r->places.place[i], e);
	if (rc)
		reduce_free(r);
	else
		*out = r;
	return rc;
}

void reduce_free(struct reduction *r)
{
	if (!r)
		return;
	metrics_free(r->metrics);
	events_free(r->events);
	places_clear(&r->places);
	free(r);
}

double reduce_received_bytes(const struct reduction *r, const char *server)
{
	const struct sample *samples;
	size_t n = metrics_samples(r->metrics, &samples);
	double bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (samples[i].metric == METRIC_CLIENT_TCP_RECEIVED &&
			!strcmp(r->places.names[samples[i].server], server))
			bytes += samples[i].sum_s;
	return bytes;
}

int reduce_store(const struct reduction *r, struct store *s, int64_t attempt, struct err *e)
{
	const struct sample *samples;
	const struct event *events;
	size_t n = metrics_samples(r->metrics, &samples);
	int rc = n ? store_put_samples(s, attempt, r->places.names, samples, n, e) : 0;

	n = events_list(r->events, &events);
	return rc ? rc
		  : store_put_events(s, attempt, r->places.names,
			    r->places.names + r->places.n_servers, events, n, e);
}
