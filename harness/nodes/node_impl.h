/*
 * Internal to harness/nodes: shared by a node's thread (thread.c and the files it calls) and the
 * caller's side (node.c).
 *
 * Ownership: the SSH objects and members marked "thread" belong to the node's thread. Members
 * marked "lock" are shared under set->lock. Neither side holds the lock while it blocks.
 *
 * libssh blocks inside many calls (key exchange, channel set-up), some without any limit. So
 * before such a call the thread sets a deadline, 'watch_ns'; after it the set's watchdog shuts
 * the socket down, and libssh returns with an error.
 */
#ifndef CULPRIT_HARNESS_NODES_NODE_IMPL_H
#define CULPRIT_HARNESS_NODES_NODE_IMPL_H

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "harness/nodes/node.h"

enum { NODE_LINE_MAX = 1 << 20, NODE_SLICE = 32 << 10, NODE_TAIL_MAX = 4096 };

/* How long after the end of the output the exit code may arrive. */
#define COMMAND_LINGER_S 0.5

struct bundle_file {
	char *name;
	char *data;
	size_t size;
	mode_t mode; /* 0700 or 0600 */
};

/* The agent's folder in memory, and the name derived from its content. */
struct bundle {
	char hash[17];
	const char *loader; /* "ld-linux-x86-64.so.2"; NULL: the agent is static */
	struct bundle_file *files;
	size_t n;
	char *sums; /* in the format of sha256sum(1) */
};

int bundle_load(const char *dir, struct bundle *b, struct err *e);
void bundle_clear(struct bundle *b);

/* The end of a text. */
struct text_tail {
	char text[NODE_TAIL_MAX + 1];
	size_t len;
};

void text_tail_add(struct text_tail *t, const char *data, size_t len);
/* The last non-empty line, safe for a terminal; "" if there is none. */
void text_tail_line(const struct text_tail *t, char *buf, size_t size);

/* command.c: a command on the node. All zeros: no command. */
struct node_command {
	struct node *node;
	ssh_channel ssh;
	struct ssh_channel_callbacks_struct callbacks;
	int status; /* -1: unknown */
	char signal[16];
	struct text_tail printed; /* its standard error */
	double ended_s;           /* clock_mono_s when the end of its output was seen, or 0 */
};

/* Starts 'command', which the login shell parses. Call node_command_close even after errors. */
int node_command_open(struct node *n, struct node_command *x, const char *command, struct err *e);
void node_command_close(struct node_command *x);
/* Neither blocks. Bytes read or written; 0: none now; -EPIPE: the command has ended, and
 * node_command_error says how ("WHAT: its last line"). */
int node_command_read(struct node_command *x, char *buf, size_t size);
int node_command_write(struct node_command *x, const void *data, size_t len);
int node_command_error(struct node_command *x, struct err *e, const char *what);
/* Runs 'command' to its end with 'in' as input; appends its output to 'out'. A non-zero exit code
 * and no progress for 'limit_s' are errors ("WHAT: ..."). */
int node_command_run(struct node *n, const char *what, const char *command, double limit_s,
	const struct iovec *in, size_t n_in, struct text_tail *out, struct err *e);

enum op_kind { OP_CALL, OP_TELL, OP_FETCH, OP_PUT }; /* OP_TELL: nobody waits for the answer */
enum op_state { OP_QUEUED, OP_RUNNING, OP_DONE };

struct op {
	struct op *next;
	struct node *node;
	enum op_kind kind;
	enum op_state state; /* lock */
	bool abandoned;      /* lock: the caller has gone; the thread frees */
	int64_t id;          /* OP_CALL */
	char *line; /* OP_CALL, OP_TELL: with its newline; the thread owns it once running */
	char *remote, *local; /* OP_FETCH, OP_PUT */
	int rc;
	json_t *result;
	struct err err;
	int64_t sent_ns, got_ns; /* CLOCK_REALTIME around a call, on the thread */
};

struct transfer; /* one fetch or put in progress (transfer.c) */

enum node_state { NODE_CONNECTING, NODE_UP, NODE_LOST };

/* One session on the route to a node: jump hosts first, the node itself last. */
struct hop {
	struct node *node;
	char *address, *user, *identity, *auth_socket, *host_key, *host_key_alias;
	char **identities, **known_hosts; /* NULL-ended, or NULL */
	bool identities_only;
	unsigned port;
	int fd; /* lock: its socket, TCP or one end of a pair; libssh has a duplicate; -1 before */
	ssh_session session; /* thread; of a jump host: the relay's once it runs */
	ssh_channel forward; /* jump hosts: to the next hop */
	int pair;            /* jump hosts: the relay's end of the next hop's socket; -1 */
	pthread_t relay;
	bool relaying;
};

struct node {
	struct nodeset *set;
	char *name;
	const char *user; /* user of the last hop */
	bool sudo;
	struct hop *hops; /* constant except for marked members */
	size_t n_hops;

	pthread_t thread;
	bool started;
	int wake; /* eventfd: wakes the thread to check the queue and set->closing */
	int fd;   /* lock: socket of the hop in use or being opened; -1 before */
	_Atomic int64_t watch_ns; /* CLOCK_MONOTONIC; 0: not in a blocking call */
	atomic_bool stalled;      /* the watchdog has cut the connection */
	atomic_bool stuck;        /* libssh does not return although the connection was cut */

	enum node_state state; /* lock */
	int rc;                /* lock: why it is lost */
	struct err why;        /* lock */
	struct op *ops;        /* lock: queued and running */
	int64_t last_id;       /* lock */
	size_t told;           /* lock: lines of other nodes' programs waiting to be sent */
	size_t event_bytes;    /* lock: size of pending events */
	json_t *hello;         /* set before NODE_UP, then constant */

	ssh_session session; /* thread, like all below; session of the last hop */
	bool fresh;          /* packets have arrived for some channel */
	struct node_command agent;
	char *file_command; /* see deploy */
	char *in;           /* received, no newline yet */
	size_t in_len, in_room;
	double heard_s, ping_s; /* clock_mono_s: agent's last message; first ping since, or 0 */
	double next_ping_s;
	atomic_bool bye_sent;
	struct transfer *transfer;
};

struct node_event {
	struct node_event *next;
	struct node *node;
	json_t *json;
	size_t bytes; /* of its line */
};

struct nodeset {
	struct node_options opt; /* defaults filled in */
	struct bundle bundle;
	struct node *nodes;
	size_t n;
	pthread_mutex_t lock;
	atomic_bool closing;
	double closing_s;    /* clock_mono_s, set before 'closing' */
	int done;            /* eventfd: a state changed or an event is pending */
	int interrupt;       /* eventfd */
	struct node *failed; /* lock: the first node that was lost */
	struct node_event *events, **events_end; /* lock */
	struct link_end *link;                   /* lock: of nodeset_link */
	size_t n_link;
	pthread_t watchdog;
	bool watching;
	int watch_quit;                /* eventfd */
	void (*waiting_fn)(void *ctx); /* nodeset_on_wait */
	void *waiting_ctx;
};

/* Waits until 'check' (called under the lock) is true, then returns 0. -EINTR: nodeset_interrupt
 * was called, or 'also_fd' (unless 0) is readable. -ETIMEDOUT after 'timeout_s' (0: no limit). */
int nodeset_wait(struct nodeset *set, bool (*check)(struct nodeset *, void *), void *ctx,
	double timeout_s, int also_fd);

/* Sleeps until packets or work for the thread arrive, or until 'until_s' (clock_mono_s). 'ended':
 * the socket is readable because the peer has closed it. */
void node_wait(struct node *n, double until_s, bool ended);

/* Allows the thread to block for at most 'seconds' from now; 0 ends this. */
void node_watch(struct node *n, double seconds);

/* Marks the node as lost: ends its calls and notifies the caller. Later calls do nothing. */
void node_lose(struct node *n, int rc, const struct err *why);

/* Main function of a node's thread; 'arg' is the struct node. */
void *node_thread(void *arg);

/* session.c: opens all hops of the route: connects, checks host keys, authenticates. */
int session_open(struct node *n, struct err *e);

/* Frees all libssh objects of the node; fine if half open. */
void session_close(struct node *n);

/* Sets the error for a failed libssh call: the watchdog's reason if it cut the connection,
 * otherwise 'what' and libssh's message. Returns the code (-ETIMEDOUT or -EIO). */
int session_error(struct node *n, struct err *e, const char *what);
/* The same while the session is opened, limited by connect_timeout_s; a timeout is reported as
 * "during" a stage ("authentication"). */
int hop_error(struct hop *h, struct err *e, const char *during, const char *what);

/* trust.c: checks the host key. hop_pin runs before the session begins and says which keys are
 * acceptable ('*pinned', '*type': the caller frees); hop_trust checks the key that the host
 * showed. -EKEYREJECTED. */
int hop_pin(struct hop *h, ssh_key *pinned, char **type, struct err *e);
int hop_trust(struct hop *h, ssh_key pinned, struct err *e);

/* login.c: authenticates us. -EACCES. The callback refuses to ask for a passphrase, which would
 * read a terminal that another program may use. */
int login_no_passphrase(
	const char *prompt, char *buf, size_t len, int echo, int verify, void *userdata);
int hop_authenticate(struct hop *h, struct err *e);

/* relay.c: opens a channel from jump host 'h' to the next hop and serves it in a thread, which
 * then owns h->session. The other end is the next hop's fd. */
int relay_start(struct hop *h, struct hop *next, struct err *e);
/* Ends the relay and joins its thread; the caller owns the session again. Fine if no relay runs. */
void relay_stop(struct hop *h);

/* deploy.c: uploads the bundle if the node lacks it. '*serve' (the caller frees) is the command
 * that starts the agent; n->file_command transfers a file. */
int deploy(struct node *n, char **serve, struct err *e);

/* transfer.c: moves the next part of n->transfer. */
void transfer_begin(struct node *n, struct op *op);
/* Returns true if data moved or the transfer has ended (n->transfer is then NULL). */
bool transfer_step(struct node *n);
void transfer_abort(struct node *n, int rc, const struct err *why);

/* Limits on data of nodes that is queued here: a node that exceeds one is declared lost, which
 * protects this machine's memory. */
enum { NODE_EVENTS_MAX = 16 << 20 /* bytes */, NODE_TOLD_MAX = 1 << 16 /* lines */ };

/* link.c: forwards a linked program's line, on the thread of its node. 1: forwarded; 0: 'event'
 * is not such a line; -EPROTO. link_clear is for the end of the set. */
int link_take(struct node *n, const json_t *event, struct err *e);
void link_clear(struct nodeset *set);

/* Completes a transfer's 'op' for the caller, or frees it if nobody waits. */
void op_finish(struct node *n, struct op *op, int rc);
void op_free(struct op *op);

/* Adds to an eventfd. */
void event_post(int fd);

#endif
