/* Computes when a modelled disk finishes a request. */
#include "harness/lab/disk_model.h"

int64_t disk_model_idle(const struct disk_model *m, int64_t now_ns)
{
	return m->rate > 0 && m->busy_until_ns > now_ns ? m->busy_until_ns : now_ns;
}

int64_t disk_model_request(struct disk_model *m, int64_t now_ns, uint64_t position, uint64_t size)
{
	int64_t done = disk_model_idle(m, now_ns);

	if (m->rate > 0) {
		if (position != m->end)
			done += m->seek_ns;
		done += (int64_t)((double)size * 1e9 / m->rate);
		m->busy_until_ns = done;
	}
	m->end = position + size;
	return done;
}
