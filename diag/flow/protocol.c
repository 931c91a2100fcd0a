/* Reads a message's header by the file system's description. */
#include "diag/flow/protocol.h"

#include <stdlib.h>
#include <string.h>

void flow_protocol_clear(struct flow_protocol *p)
{
	for (size_t i = 0; i < p->n_names; i++)
		free((char *)p->names[i].name);
	for (size_t i = 0; i < p->n_layers; i++)
		free(p->layers[i].name);
	free(p->names);
	*p = (struct flow_protocol){0};
}

const char *flow_source_name(enum flow_source s)
{
	static const char *const names[LAYER_SOURCES] = {"application", "fuse", "call", "wire",
		"request", "waiting", "disk", "metadata", "data"};

	return s < LAYER_SOURCES ? names[s] : "?";
}

const char *flow_protocol_name(const struct flow_protocol *p, uint32_t program, uint32_t number)
{
	for (size_t i = 0; i < p->n_names; i++)
		if (p->names[i].number == number && p->names[i].program == program)
			return p->names[i].name;
	return NULL;
}

/* The sum of the length's fields; 0: it cannot be. */
static uint64_t length_of(const struct flow_protocol *p, const uint8_t *header)
{
	uint64_t sum = 0, one;

	for (unsigned i = 0; i < p->n_lengths; i++) {
		one = flow_field_get(&p->length[i], header);
		if (one > p->longest || sum + one > p->longest)
			return 0;
		sum += one;
	}
	return sum;
}

bool flow_header_name(const struct flow_protocol *p, const uint8_t header[FLOW_HEADER],
	uint64_t known, struct flow_header *out)
{
	if (!p->procedure.size || !flow_field_known(&p->procedure, known) ||
		(p->program.size && !flow_field_known(&p->program, known)))
		return false;
	out->procedure = (uint32_t)flow_field_get(&p->procedure, header);
	out->program = p->program.size ? (uint32_t)flow_field_get(&p->program, header) : 0;
	out->named = true;
	return true;
}

/* Does what is known agree with the check? */
static bool agrees(const struct flow_values *v, const uint8_t *header, uint64_t known)
{
	return !v->n || !flow_field_known(&v->field, known) || flow_values_have(v, header);
}

int flow_header_read(const struct flow_protocol *p, const uint8_t header[FLOW_HEADER],
	uint64_t known, bool continues, struct flow_header *out)
{
	*out = (struct flow_header){.last = true};
	if (!agrees(&p->check[0], header, known) && !continues)
		return -1;
	for (unsigned i = 0; i < p->n_lengths; i++)
		if (!flow_field_known(&p->length[i], known))
			return 0;
	out->bytes = length_of(p, header);
	if (p->last.size)
		out->last = flow_field_get(&p->last, header) != 0;
	if (!out->bytes || (!continues && out->last && out->bytes < p->header))
		return -1;
	if (continues)
		return 1;
	if (!flow_field_known(&p->id, known) || !flow_field_known(&p->call.field, known))
		return 0;
	out->id = flow_field_get(&p->id, header);
	if (flow_values_have(&p->call, header))
		out->kind = FLOW_CALL;
	else if (flow_field_known(&p->answer.field, known) && flow_values_have(&p->answer, header))
		out->kind = FLOW_ANSWER;
	if (out->kind == FLOW_CALL && !agrees(&p->check[1], header, known))
		return -1;
	if (out->kind == FLOW_CALL)
		flow_header_name(p, header, known, out);
	return 1;
}
