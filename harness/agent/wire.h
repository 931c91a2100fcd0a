/* JSON objects over a SOCK_SEQPACKET pair, one a packet of at most 64 KiB. */
#ifndef CULPRIT_AGENT_WIRE_H
#define CULPRIT_AGENT_WIRE_H

#include <jansson.h>

#define WIRE_MAX 65536

/* Steals 'message' (NULL: -ENOMEM). Waits while the other side is behind. 0 or -errno. */
int wire_send(int sock, json_t *message);

/* Never waits. 1 and the caller's '*message', an object with a string "what"; 0: none now;
 * -EPIPE: the other side is gone. */
int wire_receive(int sock, json_t **message);

#endif
