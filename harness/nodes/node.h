/*
 * Nodes over SSH: connect to many at once, put the agent there, talk to it.
 *
 * Each node has its own thread that owns the libssh session and the agent's
 * channel, sends what is queued, reads answers, and renews the agent's lease
 * (every lease/4) and the SSH keep-alive whatever the caller does. A node that does
 * not answer its heartbeat for 'timeout_s', or whose channel ends, is *lost*: every
 * pending and later call on it returns -ENOTCONN with the reason. It never comes back
 * within one nodeset.
 *
 * A nodeset belongs to one thread (the caller's): its functions are called from there only,
 * but for nodeset_interrupt. Calls on different nodes run side by side through
 * node_call_all. Several nodesets may be in use at once, each in its own thread.
 *
 * No user's ssh_config is read here (the inventory does). Passwords are never asked for nor sent.
 *
 * Jump hosts: each hop is a session of our own inside the one before it (a direct-tcpip channel,
 * relayed by a thread over a socket pair). So every hop's host key is checked in the same way and
 * with the same words, nothing runs a shell, and a node that is lost behind a jump host is noticed
 * like any other.
 */
#ifndef CULPRIT_HARNESS_NODES_NODE_H
#define CULPRIT_HARNESS_NODES_NODE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

/* How to reach a host; all is borrowed until node_connect_all returns. Lists end with a NULL. */
struct node_spec {
	const char *name;    /* unique; used in messages */
	const char *address; /* IP address or host name */
	unsigned port;       /* 0: 22 */
	const char *user;    /* NULL: root */
	/* Private key file: this one, and no other. NULL: ssh-agent's keys, then 'identities'. */
	const char *identity;
	/* "ssh-ed25519 AAAA...": pinned. NULL: 'known_hosts' must know the host. */
	const char *host_key;
	const char *const *identities; /* key files that exist; NULL: the user's default keys */
	/* ssh-agent only for want of another way to use 'identities' (a passphrase). */
	bool identities_only;
	const char *auth_socket; /* ssh-agent's; NULL: $SSH_AUTH_SOCK; "none": not asked */
	/* The host's name in 'known_hosts'; NULL: address, and port unless 22. */
	const char *host_key_alias;
	/* Files; NULL: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts. */
	const char *const *known_hosts;
	/* Hosts to go through, the first one first; their own 'jumps' are ignored. */
	const struct node_spec *jumps;
	size_t n_jumps;
	unsigned connect_timeout_s; /* at least; 0: that of the options */
	bool sudo;                  /* the agent runs as root through 'sudo -n' */
};

struct node_options {
	/* 0: 10. The longest of this and of all nodes' counts: they are connected to at once. */
	double connect_timeout_s;
	double timeout_s;      /* silence after which a node is lost; 0: 10 */
	double lease_s;        /* given to the agent; 0: 10 */
	const char *agent_dir; /* local folder with the agent's files (harness/agent/README.md) */
	int interrupt_fd; /* node_connect_all gives up with -EINTR once this is readable; 0: none */
};

struct node;
struct nodeset;

/* Connects, authenticates, uploads the agent where its content-addressed folder is not there yet
 * (upload to a temporary name, then rename), starts it, waits for its hello.
 * All or nothing: on failure the sentence names the first node that failed, and no
 * connection is left. -EKEYREJECTED: host key not the pinned one, or not known; nothing but the
 * key exchange has been sent by then. -EACCES: no accepted key. -ETIMEDOUT, -ECONNREFUSED,
 * -EHOSTUNREACH ...: as connect(2) and 'connect_timeout_s' have it. */
int node_connect_all(const struct node_spec *specs, size_t n, const struct node_options *opts,
	struct nodeset **out, struct err *e);

/* Says bye to all (5 s at most), joins the threads, frees. NULL is fine. */
void nodeset_free(struct nodeset *set);

/* Makes the call that is waiting, and all later ones, return -EINTR until nodeset_resume. May be
 * called from a signal handler and from other threads. Nodes stay connected; what a node was
 * asked and had begun, it continues with, and its answer is dropped. */
void nodeset_interrupt(struct nodeset *set);
void nodeset_resume(struct nodeset *set);

/* While a call waits for nodes, 'fn' is called about once a second, on the waiting thread. */
void nodeset_on_wait(struct nodeset *set, void (*fn)(void *ctx), void *ctx);

size_t nodeset_count(const struct nodeset *set);
struct node *nodeset_at(struct nodeset *set, size_t i);

const char *node_name(const struct node *n);
const json_t *node_hello(const struct node *n); /* the agent's hello; borrowed */
const char *node_dir(const struct node *n);     /* the session's folder there */

/* Clock of the node minus ours, from the quickest of several pings; '*error_s' is half its
 * round trip. */
int node_clock_offset(struct node *n, double *offset_s, double *error_s, struct err *e);

/* True if the node is lost; 'why' (may be NULL) then says how. */
bool node_lost(struct node *n, struct err *why);

/* One request (see harness/agent/PROTOCOL.md). 'args' is an object without id and op, or NULL; its
 * reference is stolen, even in case of errors. '*result' (may be NULL) is the caller's.
 * timeout_s 0: none but the node's loss. The agent's own error comes back as its code and sentence,
 * prefixed with the node's name.
 * -ETIMEDOUT: no answer in time (the node is then not yet lost). */
int node_call(struct node *n, const char *op, json_t *args, double timeout_s, json_t **result,
	struct err *e);

struct node_request {
	struct node *node;
	const char *op;
	json_t *args;   /* stolen */
	json_t *result; /* out: the caller's, NULL on failure */
	int rc;         /* out */
	struct err err; /* out, when rc < 0 */
};

/* All at once; returns the first failure (rc and sentence), having waited for all. */
int node_call_all(struct node_request *requests, size_t n, double timeout_s, struct err *e);

/* A request whose answer is taken later, so that no node waits for a slower one. Returns as
 * node_call. To be freed, whether it was answered or not. */
struct node_asked;
int node_ask(struct node *n, const char *op, json_t *args, struct node_asked **out, struct err *e);
/* 0: no answer yet; 1: '*result' is the caller's, and the answer is taken; or a negative errno, as
 * of node_call. Does not wait. */
int node_answered(struct node_asked *a, json_t **result, struct err *e);
void node_asked_free(struct node_asked *a); /* NULL is fine */

/* Called on the caller's thread from node_events: unasked messages of agents, and
 * {"event":"lost","why":"..."} once for a node that was lost. */
typedef void (*node_event_fn)(void *ctx, struct node *n, const json_t *event);

/* Delivers waiting events, waiting up to 'timeout_s' for one. Returns how many,
 * or -EINTR. */
int node_events(struct nodeset *set, double timeout_s, node_event_fn fn, void *ctx);

/* Programs that were started with 'link' (PROTOCOL.md), one on each node at most, hear each other.
 * Each is first told "hello ME N". From then on what one writes as "TO,TO WORDS" is told to the
 * programs 'TO' (from 0, in the order of 'ends') as "FROM WORDS". The nodes' threads pass lines on
 * by themselves, in order. What goes to a program or node that has ended is dropped. Replaces the
 * group before. */
struct node_end {
	struct node *node;
	const char *handle;
};
void nodeset_link(struct nodeset *set, const struct node_end *ends, size_t n);

struct node_transfer {
	struct node *node;
	const char *remote; /* absolute, or relative to node_dir */
	const char *local;
	int rc;         /* out */
	struct err err; /* out */
};

/* Files, on all nodes at once (one after the other on one node). What is written has a temporary
 * name in the same folder until it is whole and its checksum is right. timeout_s as in node_call.
 * Regular files only: not for /proc. The node's own error comes back as its code and sentence. */
int node_fetch_all(struct node_transfer *transfers, size_t n, double timeout_s, struct err *e);
int node_put_all(struct node_transfer *transfers, size_t n, double timeout_s, struct err *e);

#endif
