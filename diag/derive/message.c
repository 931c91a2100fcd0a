#include "diag/derive/message.h"

bool message_is_whole(const struct message *m, const struct stream *s, uint32_t tid)
{
	if (!m->bytes || m->wanted_more)
		return false;
	return m->answered || (tid && tid != m->tid) || stream_last_poll(s, m->tid) > m->last;
}

void message_read(struct message *m, const struct record *rec)
{
	const struct record_call *c = &rec->call;

	if (!m->bytes)
		m->start_ns = c->start_ns;
	m->bytes += (uint64_t)c->result;
	m->end_ns = c->start_ns + c->service_ns;
	m->tid = c->tid;
	m->last = rec->number;
	m->wanted_more = m->answered = false;
}
