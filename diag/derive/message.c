/* Finds where messages end in the reads of a socket, and classifies them. */
#include "diag/derive/message.h"

#include <string.h>

uint64_t message_asked(const struct call_info *info, const struct record_call *c)
{
	const uint64_t most = 0x7ffff000; /* MAX_RW_COUNT: the kernel moves no more in one call */

	if (strcmp(info->name, "read") && strcmp(info->name, "recvfrom"))
		return info->messages ? 0 : c->asked;
	return c->args[2] < most ? c->args[2] : most;
}

bool message_is_whole(const struct message *m, const struct stream *s, uint32_t tid, uint64_t asked)
{
	if (!m->bytes || m->wanted_more || m->need)
		return false;
	if (!m->answered && !(tid && tid != m->tid) && stream_last_poll(s, m->tid) <= m->last)
		return false;
	return tid ? !asked || asked != m->left : !m->left || m->answered;
}

/* A read that asks for the rest of a length that is not a buffer's shows how many bytes are still
 * wanted. */
static void note_need(struct message *m, uint64_t asked)
{
	if (m->exact && asked && asked == m->left)
		m->need = asked;
}

void message_read(struct message *m, const struct record *rec, uint64_t asked)
{
	const struct record_call *c = &rec->call;
	const uint64_t got = (uint64_t)c->result;

	note_need(m, asked);
	if (!m->bytes) {
		m->start_ns = c->start_ns;
		m->first = asked;
		m->head_size = c->head_size;
		if (c->head_size)
			memcpy(m->head, c->head, c->head_size);
	}
	if (!asked || asked != m->left)
		m->exact = m->bytes && asked != m->first;
	m->need -= got < m->need ? got : m->need;
	m->bytes += got;
	m->left = asked > got ? asked - got : 0;
	m->end_ns = c->start_ns + c->service_ns;
	m->tid = c->tid;
	m->last = rec->number;
	m->wanted_more = m->answered = false;
}

enum message_kind message_kind(const struct message *m, const struct bulk_rule *rule)
{
	const uint64_t known = (1ull << m->head_size) - 1;

	if (m->bytes <= rule->header)
		return MESSAGE_HEADER;
	if (rule->kind.n && rule->check.n && flow_field_known(&rule->check.field, known) &&
		flow_field_known(&rule->kind.field, known) &&
		flow_values_have(&rule->check, m->head))
		return flow_values_have(&rule->kind, m->head) ? MESSAGE_BULK : MESSAGE_REQUEST;
	return rule->above && m->bytes > rule->above ? MESSAGE_BULK : MESSAGE_REQUEST;
}

bool message_nothing(struct message *m, uint64_t asked)
{
	note_need(m, asked);
	if (m->bytes && !m->wanted_more && !m->need && asked && asked == m->first &&
		asked != m->left)
		return true;
	m->wanted_more = true;
	return false;
}
