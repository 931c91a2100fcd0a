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

static uint64_t bits(unsigned offset, unsigned size)
{
	uint64_t ones = size < 64 ? (1ull << size) - 1 : UINT64_MAX;

	return offset < 64 ? ones << offset : 0;
}

static bool is_known(const struct flow_field *f, uint64_t known)
{
	uint64_t wanted = bits(f->offset, f->size);

	return (known & wanted) == wanted;
}

/* Value of a field in 'header', which must be long enough. */
static uint64_t field_get(const struct flow_field *f, const uint8_t *header)
{
	const uint8_t *p = header + f->offset;
	uint64_t v = 0;

	for (unsigned i = 0; i < f->size; i++)
		v = v << 8 | p[f->big ? i : f->size - 1u - i];
	return (v & f->mask) + (uint64_t)f->addend;
}

static bool is_among(const struct flow_values *v, const uint8_t *header)
{
	uint64_t value = field_get(&v->field, header);

	for (unsigned i = 0; i < v->n; i++)
		if (v->values[i] == value)
			return true;
	return false;
}

/* The sum of the length's fields; 0: it cannot be. */
static uint64_t length_of(const struct flow_protocol *p, const uint8_t *header)
{
	uint64_t sum = 0, one;

	for (unsigned i = 0; i < p->n_lengths; i++) {
		one = field_get(&p->length[i], header);
		if (one > p->longest || sum + one > p->longest)
			return 0;
		sum += one;
	}
	return sum;
}

bool flow_header_name(const struct flow_protocol *p, const uint8_t header[FLOW_HEADER],
	uint64_t known, struct flow_header *out)
{
	if (!p->procedure.size || !is_known(&p->procedure, known) ||
		(p->program.size && !is_known(&p->program, known)))
		return false;
	out->procedure = (uint32_t)field_get(&p->procedure, header);
	out->program = p->program.size ? (uint32_t)field_get(&p->program, header) : 0;
	out->named = true;
	return true;
}

/* Does what is known agree with the check? */
static bool agrees(const struct flow_values *v, const uint8_t *header, uint64_t known)
{
	return !v->n || !is_known(&v->field, known) || is_among(v, header);
}

int flow_header_read(const struct flow_protocol *p, const uint8_t header[FLOW_HEADER],
	uint64_t known, bool continues, struct flow_header *out)
{
	*out = (struct flow_header){.last = true};
	if (!agrees(&p->check[0], header, known) && !continues)
		return -1;
	for (unsigned i = 0; i < p->n_lengths; i++)
		if (!is_known(&p->length[i], known))
			return 0;
	out->bytes = length_of(p, header);
	if (p->last.size)
		out->last = field_get(&p->last, header) != 0;
	if (!out->bytes || (!continues && out->last && out->bytes < p->header))
		return -1;
	if (continues)
		return 1;
	if (!is_known(&p->id, known) || !is_known(&p->call.field, known))
		return 0;
	out->id = field_get(&p->id, header);
	if (is_among(&p->call, header))
		out->kind = FLOW_CALL;
	else if (is_known(&p->answer.field, known) && is_among(&p->answer, header))
		out->kind = FLOW_ANSWER;
	if (out->kind == FLOW_CALL && !agrees(&p->check[1], header, known))
		return -1;
	if (out->kind == FLOW_CALL)
		flow_header_name(p, header, known, out);
	return 1;
}
