/*
 * A description of a file system's messages: where a message's header has its length, id, kind and
 * procedure. Read from the file system's Lua file (harness/fs/messages.c); another protocol is
 * another table.
 */
#ifndef CULPRIT_DIAG_FLOW_PROTOCOL_H
#define CULPRIT_DIAG_FLOW_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/header.h"

enum { FLOW_LAYERS = 12 };

struct flow_name {
	uint32_t program, number; /* program: 0 if the protocol has none */
	const char *name;
};

/* What a layer's spans are measured from. */
enum flow_source {
	LAYER_APPLICATION, /* client: calls of applications that caused FUSE requests */
	LAYER_FUSE,        /* client: FUSE requests, in the kernel and the daemon */
	LAYER_CALL,        /* client: from the send of a call to the receipt of its answer */
	LAYER_WIRE,        /* receiver: messages, from the send's start to the receipt's end */
	LAYER_REQUEST,     /* server: from the receipt of a call to the send of its answer */
	LAYER_WAITING,     /* server: ... in no disk call */
	LAYER_DISK,        /* server: data calls and syncs on files */
	LAYER_META,        /* server: other calls on files */
	LAYER_DATA, /* server: from the call's receipt to the last data message of a request */
	LAYER_SOURCES,
};

const char *flow_source_name(enum flow_source s); /* "application" */

struct flow_protocol {
	uint8_t header; /* bytes that length, id and kind take, from a message's start */
	/* Bytes of the whole message, from its first header byte; the sum of the fields. */
	struct flow_field length[4];
	uint8_t n_lengths;
	uint64_t longest; /* a longer message is none */
	struct flow_field id;
	struct flow_values call, answer; /* a message of another kind is neither */
	struct flow_values check[2];     /* of any message; of calls only */
	struct flow_field last;          /* 0: the message continues in the next one (fragments) */
	struct flow_field program, procedure; /* of calls */
	bool parts;              /* a request may have several messages each way, all of its id */
	struct flow_name *names; /* by program, number */
	size_t n_names;
	struct {
		char *name;
		enum flow_source source;
	} layers[FLOW_LAYERS];
	uint8_t n_layers;
};

/* Frees what it points to. */
void flow_protocol_clear(struct flow_protocol *p);

/* Name of a procedure, or NULL. */
const char *flow_protocol_name(const struct flow_protocol *p, uint32_t program, uint32_t number);

/* What the bytes at a message's start say. */
struct flow_header {
	uint64_t bytes; /* of the whole message */
	uint64_t id;
	enum { FLOW_OTHER, FLOW_CALL, FLOW_ANSWER } kind;
	bool last;  /* no further fragment */
	bool named; /* program and procedure are known */
	uint32_t program, procedure;
};

/* Bit i of 'known': header[i] is known. 1: read; 0: further bytes are needed; -1: no message begins
 * here. 'continues': it is a further fragment of a message, of which only length and 'last' are
 * read. */
int flow_header_read(const struct flow_protocol *p, const uint8_t header[FLOW_HEADER],
	uint64_t known, bool continues, struct flow_header *out);

/* Reads program and procedure, if all their bytes are known. */
bool flow_header_name(const struct flow_protocol *p, const uint8_t header[FLOW_HEADER],
	uint64_t known, struct flow_header *out);

#endif
