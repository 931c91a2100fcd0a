/*
 * Nodes over SSH: connects to many at once, uploads the agent, and talks to it.
 *
 * Each node has its own thread. It owns the libssh session and the agent's channel, sends queued
 * requests, reads answers, and renews the agent's lease (every lease/4) and the SSH keep-alive,
 * whatever the caller does. A node that does not answer its heartbeat for 'timeout_s', or whose
 * channel ends, is *lost*: every pending and later call on it returns -ENOTCONN with the reason.
 * A lost node stays lost for the lifetime of the nodeset.
 *
 * A nodeset belongs to the caller's thread: its functions may be called only there, except
 * nodeset_interrupt. Calls on different nodes run in parallel through node_call_all. Several
 * nodesets may be in use at once, each in its own thread.
 *
 * This code does not read the user's ssh_config (the inventory does) and never asks for or sends
 * passwords.
 *
 * Jump hosts: each hop is a session of our own inside the previous one (a direct-tcpip channel,
 * relayed by a thread over a socket pair). So every hop's host key is checked in the same way
 * with the same messages, no shell is run, and loss of a node behind a jump host is noticed like
 * any other.
 */
#ifndef CULPRIT_HARNESS_NODES_NODE_H
#define CULPRIT_HARNESS_NODES_NODE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

/* How to reach a host. All pointers are borrowed until node_connect_all returns. Lists are
 * NULL-terminated. */
struct node_spec {
	const char *name;    /* unique; used in messages */
	const char *address; /* IP address or host name */
	unsigned port;       /* 0: 22 */
	const char *user;    /* NULL: root */
	/* The only private key file to use. NULL: use ssh-agent's keys, then 'identities'. */
	const char *identity;
	/* "ssh-ed25519 AAAA...": pinned. NULL: 'known_hosts' must have the host. */
	const char *host_key;
	const char *const *identities; /* key files that exist; NULL: the user's default keys */
	/* Use ssh-agent only if 'identities' cannot be used directly (passphrase). */
	bool identities_only;
	const char *auth_socket; /* ssh-agent's; NULL: $SSH_AUTH_SOCK; "none": do not use it */
	/* The host's name in 'known_hosts'; NULL: address, and port unless 22. */
	const char *host_key_alias;
	/* Files; NULL: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts. */
	const char *const *known_hosts;
	/* Hosts to go through, in order; their own 'jumps' are ignored. */
	const struct node_spec *jumps;
	size_t n_jumps;
	unsigned connect_timeout_s; /* minimum; 0: use the options' timeout */
	bool sudo;                  /* the agent runs as root through 'sudo -n' */
};

struct node_options {
	/* 0: 10 s. The longest of this and all nodes' timeouts applies, because they connect in
	 * parallel. */
	double connect_timeout_s;
	double timeout_s;      /* silence after which a node is lost; 0: 10 */
	double lease_s;        /* given to the agent; 0: 10 */
	const char *agent_dir; /* local folder with the agent's files (harness/agent/README.md) */
	int interrupt_fd; /* node_connect_all returns -EINTR once this is readable; 0: unused */
};

struct node;
struct nodeset;

/* Connects, authenticates, uploads the agent if its content-addressed folder is missing (upload
 * to a temporary name, then rename), starts it and waits for its hello. All or nothing: on
 * failure the error names the first node that failed, and all connections are closed.
 * -EKEYREJECTED: the host key is unknown or not the pinned one; only the key exchange has been
 * sent by then. -EACCES: no key was accepted. -ETIMEDOUT, -ECONNREFUSED, -EHOSTUNREACH ...: from
 * connect(2) and 'connect_timeout_s'. */
int node_connect_all(const struct node_spec *specs, size_t n, const struct node_options *opts,
	struct nodeset **out, struct err *e);

/* Says bye to all (5 s at most), joins the threads, frees. NULL is fine. */
void nodeset_free(struct nodeset *set);

/* Makes the waiting call and all later ones return -EINTR until nodeset_resume. May be called
 * from a signal handler and from other threads. Nodes stay connected; a node finishes requests
 * that it has begun, and the answers are dropped. */
void nodeset_interrupt(struct nodeset *set);
void nodeset_resume(struct nodeset *set);

/* While a call waits for nodes, 'fn' is called about once a second, on the waiting thread. */
void nodeset_on_wait(struct nodeset *set, void (*fn)(void *ctx), void *ctx);

size_t nodeset_count(const struct nodeset *set);
struct node *nodeset_at(struct nodeset *set, size_t i);

const char *node_name(const struct node *n);
const json_t *node_hello(const struct node *n); /* the agent's hello; borrowed */
const char *node_dir(const struct node *n);     /* the session's folder there */

/* Clock of the node minus ours, from the fastest of several pings; '*error_s' is half its
 * round-trip time. */
int node_clock_offset(struct node *n, double *offset_s, double *error_s, struct err *e);

/* Is the node lost? 'why' (may be NULL) then receives the reason. */
bool node_lost(struct node *n, struct err *why);

/* Sends one request (see harness/agent/PROTOCOL.md) and waits for the answer. 'args' is an object
 * without id and op, or NULL; its reference is stolen, even in case of errors. The caller owns
 * '*result' (may be NULL). timeout_s 0: no limit except the node's loss. An error of the agent is
 * returned with its code and sentence, prefixed with the node's name. -ETIMEDOUT: no answer in
 * time (the node is not yet lost). */
int node_call(struct node *n, const char *op, json_t *args, double timeout_s, json_t **result,
	struct err *e);

struct node_request {
	struct node *node;
	const char *op;
	json_t *args;   /* stolen */
	json_t *result; /* out: owned by the caller, NULL on failure */
	int rc;         /* out */
	struct err err; /* out, when rc < 0 */
};

/* Runs all calls in parallel and waits for all; returns the first failure (rc and sentence). */
int node_call_all(struct node_request *requests, size_t n, double timeout_s, struct err *e);

/* Sends a request whose answer is fetched later, so that no node waits for a slower one. Returns
 * like node_call. Free it with node_asked_free, answered or not. */
struct node_asked;
int node_ask(struct node *n, const char *op, json_t *args, struct node_asked **out, struct err *e);
/* Fetches the answer without waiting. 0: no answer yet; 1: the caller owns '*result'; or a
 * negative errno like node_call. */
int node_answered(struct node_asked *a, json_t **result, struct err *e);
void node_asked_free(struct node_asked *a); /* NULL is fine */

/* Callback for node_events, on the caller's thread: unsolicited messages of agents, and
 * {"event":"lost","why":"..."} once for each lost node. */
typedef void (*node_event_fn)(void *ctx, struct node *n, const json_t *event);

/* Delivers pending events, waiting up to 'timeout_s' for the first. Returns their number or
 * -EINTR. */
int node_events(struct nodeset *set, double timeout_s, node_event_fn fn, void *ctx);

/* Lets programs that were started with 'link' (PROTOCOL.md), at most one per node, send lines to
 * each other. Each first receives "hello ME N". A line "TO,TO WORDS" that a program writes is
 * then delivered to the programs 'TO' (numbered from 0, in the order of 'ends') as "FROM WORDS".
 * The nodes' threads forward lines in order. Lines to a program or node that has ended are
 * dropped. Replaces the previous group. */
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

/* Transfers files, on all nodes in parallel (sequentially on one node). The target has a
 * temporary name in the same folder until it is complete and its checksum matches. timeout_s as
 * in node_call. Regular files only: not for /proc. An error of the node is returned with its code
 * and sentence. */
int node_fetch_all(struct node_transfer *transfers, size_t n, double timeout_s, struct err *e);
int node_put_all(struct node_transfer *transfers, size_t n, double timeout_s, struct err *e);

#endif
