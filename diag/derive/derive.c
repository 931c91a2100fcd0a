/* Reads one log once, for metrics and events together. */
#include "diag/derive/derive.h"

int derive_log(const char *path, const struct stream_spec *spec, struct metrics *m,
	struct events *ev, uint64_t *lost, struct err *e)
{
	struct stream *s;
	int rc = stream_new(path, spec, &s, e);

	if (rc)
		return rc;
	if (m)
		rc = metrics_attach(m, s, e);
	if (!rc && ev)
		rc = events_attach(ev, s, e);
	if (!rc)
		rc = stream_run(s, e);
	if (!rc && lost)
		*lost = stream_lost(s);
	stream_free(s);
	return rc;
}
