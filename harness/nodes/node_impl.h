/*
 * Inside of harness/nodes: what a node's thread (thread.c and those it calls) and the
 * caller's side (node.c) share. Nobody else includes this.
 *
 * Who may touch what: the SSH objects and everything marked "thread" belong to the
 * node's thread. What is marked "lock" is shared under set->lock. Neither side
 * holds the lock while it blocks.
 *
 * libssh blocks inside many calls (key exchange, channel set-up), some without any limit. So before
 * such a call the thread sets 'watch_ns'; the set's watchdog shuts the socket down when that moment
 * has passed, and libssh comes back with an error.
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

/* How long the exit code may come after the end of the output. */
#define COMMAND_LINGER_S 0.5

struct bundle_file {
	char *name;
	char *data;
	size_t size;
	mode_t mode; /* 0700 or 0600 */
};

/* The agent's folder, in memory, and the name that its content has. */
struct bundle {
	char hash[17];
	const char *loader; /* "ld-linux-x86-64.so.2"; NULL: the agent is static */
	struct bundle_file *files;
	size_t n;
	char *sums; /* as sha256sum(1) writes and checks them */
};

int bundle_load(const char *dir, struct bundle *b, struct err *e);
void bundle_clear(struct bundle *b);

/* The end of a text. */
struct text_tail {
	char text[NODE_TAIL_MAX + 1];
	size_t len;
};

void text_tail_add(struct text_tail *t, const char *data, size_t len);
/* Its last line with anything in it, fit for a terminal; "" if there is none. */
void text_tail_line(const struct text_tail *t, char *buf, size_t size);

/* command.c: a command on the node. All zero: none. */
struct node_command {
	struct node *node;
	ssh_channel ssh;
	struct ssh_channel_callbacks_struct callbacks;
	int status; /* -1: not known */
	char signal[16];
	struct text_tail printed; /* its standard error */
	double ended_s;           /* clock_mono_s when the end of its output was seen, or 0 */
};

/* Starts 'command', which the login shell reads. Needs node_command_close after errors too. */
int node_command_open(struct node *n, struct node_command *x, const char *command, struct err *e);
void node_command_close(struct node_command *x);
/* Neither waits. Bytes read or written; 0: none now; -EPIPE: the command has ended, of which
 * node_command_error says how ("WHAT: its last line"). */
int node_command_read(struct node_command *x, char *buf, size_t size);
int node_command_write(struct node_command *x, const void *data, size_t len);
int node_command_error(struct node_command *x, struct err *e, const char *what);
/* Runs 'command' to its end with 'in' as its input; adds its output to 'out'. An exit code other
 * than 0, and no progress for 'limit_s', are errors ("WHAT: ..."). */
int node_command_run(struct node *n, const char *what, const char *command, double limit_s,
	const struct iovec *in, size_t n_in, struct text_tail *out, struct err *e);

enum op_kind { OP_CALL, OP_TELL, OP_FETCH, OP_PUT }; /* of a tell, nobody awaits the answer */
enum op_state { OP_QUEUED, OP_RUNNING, OP_DONE };

struct op {
	struct op *next;
	struct node *node;
	enum op_kind kind;
	enum op_state state;  /* lock */
	bool abandoned;       /* lock: the caller has gone; the thread frees */
	int64_t id;           /* OP_CALL */
	char *line;           /* OP_CALL, OP_TELL: with its newline; the thread's once it runs */
	char *remote, *local; /* OP_FETCH, OP_PUT */
	int rc;
	json_t *result;
	struct err err;
	int64_t sent_ns, got_ns; /* CLOCK_REALTIME around a call, on the thread */
};

struct transfer; /* one fetch or put under way (transfer.c) */

enum node_state { NODE_CONNECTING, NODE_UP, NODE_LOST };

/* One session on the way to a node: jump hosts first, the node itself last. */
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
	const char *user; /* the last hop's */
	bool sudo;
	struct hop *hops; /* constant but for what its members say */
	size_t n_hops;

	pthread_t thread;
	bool started;
	int wake; /* eventfd: look at the queue, or at set->closing */
	int fd;   /* lock: the socket of the hop that is used or being opened; -1 before */
	_Atomic int64_t watch_ns; /* CLOCK_MONOTONIC; 0: the thread is in no blocking call */
	atomic_bool stalled;      /* the watchdog has cut the connection */
	atomic_bool stuck;        /* libssh does not return although it was cut */

	enum node_state state; /* lock */
	int rc;                /* lock: why it is lost */
	struct err why;        /* lock */
	struct op *ops;        /* lock: queued and running */
	int64_t last_id;       /* lock */
	size_t told;           /* lock: lines of other nodes' programs that wait to be sent */
	size_t event_bytes;    /* lock: of its events that wait to be taken */
	json_t *hello;         /* set before NODE_UP, then constant */

	ssh_session session; /* thread, as all below; the last hop's */
	bool fresh;          /* packets came for some channel */
	struct node_command agent;
	char *file_command; /* see deploy */
	char *in;           /* received, no newline yet */
	size_t in_len, in_room;
	double heard_s, ping_s; /* clock_mono_s: last word of the agent; first ping since, or 0 */
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
	int done;            /* eventfd: something ended, came up, was lost, or an event waits */
	int interrupt;       /* eventfd */
	struct node *failed; /* lock: the first that was lost */
	struct node_event *events, **events_end; /* lock */
	struct link_end *link;                   /* lock: of nodeset_link */
	size_t n_link;
	pthread_t watchdog;
	bool watching;
	int watch_quit;                /* eventfd */
	void (*waiting_fn)(void *ctx); /* nodeset_on_wait */
	void *waiting_ctx;
};

/* Returns once 'check' (called under the lock) is true: 0. -EINTR: nodeset_interrupt was called, or
 * 'also_fd' (unless 0) is readable. -ETIMEDOUT after 'timeout_s' (0: never). */
int nodeset_wait(struct nodeset *set, bool (*check)(struct nodeset *, void *), void *ctx,
	double timeout_s, int also_fd);

/* Sleeps until packets or work for the thread come, or until 'until_s' (clock_mono_s). 'ended': the
 * socket is readable because the other side has gone. */
void node_wait(struct node *n, double until_s, bool ended);

/* Begins a stretch in which the thread may block for 'seconds' at most; 0 ends it. */
void node_watch(struct node *n, double seconds);

/* The node is lost: ends its calls, and tells the caller. Once; later calls do nothing. */
void node_lose(struct node *n, int rc, const struct err *why);

/* The thread of a node; 'arg' is the struct node. */
void *node_thread(void *arg);

/* session.c: all hops of the way: connects, checks host keys, authenticates. */
int session_open(struct node *n, struct err *e);

/* Frees everything that libssh holds for the node; fine when half open. */
void session_close(struct node *n);

/* The sentence for what libssh just refused: the watchdog's reason if it cut the
 * connection, else 'what' and libssh's own words. Returns the code (-ETIMEDOUT or -EIO). */
int session_error(struct node *n, struct err *e, const char *what);
/* The same while the session is opened, for which connect_timeout_s is the time: no answer came
 * "during" ("authentication"). */
int hop_error(struct hop *h, struct err *e, const char *during, const char *what);

/* trust.c: what proves the host. hop_pin comes before the session begins and says which keys it may
 * show ('*pinned', '*type': the caller frees); hop_trust looks at the one that it showed.
 * -EKEYREJECTED. */
int hop_pin(struct hop *h, ssh_key *pinned, char **type, struct err *e);
int hop_trust(struct hop *h, ssh_key pinned, struct err *e);

/* login.c: what proves us. -EACCES. The callback answers no question for a passphrase: it would
 * read a terminal that somebody else may be using. */
int login_no_passphrase(
	const char *prompt, char *buf, size_t len, int echo, int verify, void *userdata);
int hop_authenticate(struct hop *h, struct err *e);

/* relay.c: opens a way from jump host 'h' to the next hop and serves it in a thread, to which
 * h->session then belongs. The other end is the next hop's fd. */
int relay_start(struct hop *h, struct hop *next, struct err *e);
/* Ends it and joins; the session is the caller's again. Fine where none runs. */
void relay_stop(struct hop *h);

/* deploy.c: puts the bundle on the node unless it is there. '*serve' (the caller frees) is the
 * command that starts the agent; n->file_command the one that carries a file. */
int deploy(struct node *n, char **serve, struct err *e);

/* transfer.c: n->transfer, a part at a time. */
void transfer_begin(struct node *n, struct op *op);
/* True if anything moved, or it has ended (n->transfer is NULL then). */
bool transfer_step(struct node *n);
void transfer_abort(struct node *n, int rc, const struct err *why);

/* What nodes may leave waiting here: a node that sends more is lost, and this machine's memory is
 * not. */
enum { NODE_EVENTS_MAX = 16 << 20 /* bytes */, NODE_TOLD_MAX = 1 << 16 /* lines */ };

/* link.c: passes on what a linked program said, on the thread of its node. 1; 0: 'event' is not
 * that; -EPROTO. link_clear is for the set's end. */
int link_take(struct node *n, const json_t *event, struct err *e);
void link_clear(struct nodeset *set);

/* Ends a transfer's 'op' for the caller, or frees it if nobody waits. */
void op_finish(struct node *n, struct op *op, int rc);
void op_free(struct op *op);

/* Adds to an eventfd. */
void event_post(int fd);

#endif
