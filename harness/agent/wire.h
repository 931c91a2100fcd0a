/* JSON objects over a SOCK_SEQPACKET pair, one a packet of at most 64 KiB. */
#ifndef CULPRIT_HARNESS_AGENT_WIRE_H
#define CULPRIT_HARNESS_AGENT_WIRE_H

#include <jansson.h>

#define WIRE_MAX 65536

/* Steals 'message' (NULL: -ENOMEM). Waits while the other side is behind. 0 or -errno. */
int wire_send(int sock, json_t *message);

/* Never waits. 1 and the caller's '*message', an object with a string "what"; 0: none now;
 * -EPIPE: the other side is gone; -EPROTO: a message was lost, for want of memory. */
int wire_receive(int sock, json_t **message);

/* In one line; the caller frees. NULL: no memory. json_dumps (jansson 2.14) returns a text in that
 * case as well, without what it found no memory for. */
char *wire_text(const json_t *message);

/* The value of a text that wire_text made; the caller's. NULL: no memory, or another text.
 * json_loads loses parts of strings as well. */
json_t *wire_parse(const char *text, size_t size);

#endif
