/*
 * Shared by the files of diag/flow only.
 *
 *   flow.c      the logs, merged; each record to those whom it concerns
 *   lives.c     connections and their lives
 *   wire.c      receives bound to sends
 *   segments.c  one end's calls on one direction, in order of position
 *   frame.c     bytes to messages
 *   request.c   messages to requests
 *   request_end.c  requests to the sink
 *   thread.c    what a thread is at: disk calls, causes
 *   disks.c     disk calls of threads, until a request takes them
 *   content.c   disk calls that no thread ties to a request
 *   fuse.c      FUSE requests and applications' calls
 *   clocks.c    offsets between clocks
 *   track.c     the offset of two clocks over time
 *   depth.c     spans summed by layer, node and second
 *   table.c     all of this written and read back, without logs
 *
 * Positions are 64 bits wide here: a direction's first one is START plus its 32 bits, and what
 * follows is counted on from it.
 */
#ifndef CULPRIT_DIAG_FLOW_FLOW_IMPL_H
#define CULPRIT_DIAG_FLOW_FLOW_IMPL_H

#include <string.h>

#include "diag/flow/flow.h"
#include "diag/flow/protocol.h"
#include "diag/record/stream.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"
#include "harness/base/map.h"

enum { SENT, RECEIVED };

/* A call that moved bytes, at one end. */
struct segment {
	uint64_t begin, end; /* positions */
	int64_t start_ns, end_ns;
	uint64_t cause; /* of a send: the FUSE request that its thread was at; 0: none */
	bool maybe;     /* ... had in hand (struct thread) */
	uint64_t order; /* of a send: thread.sends before it; of a receive: thread.actions */
	uint32_t pid, tid;
	uint8_t head_size;
	uint8_t head[RECORD_HEAD];
};

/*
 * One end's calls on one direction: a ring, by position. The first 'ready' ones are without a gap
 * and end at 'frontier'; the others wait for calls that have not returned yet.
 */
struct segments {
	struct segment *ring;
	uint32_t first, n, room; /* room: a power of two */
	uint32_t ready;
	uint64_t base, frontier;
	uint64_t gaps; /* bytes that are in no record */
	bool seen;
};

static inline struct segment *segment_at(const struct segments *s, uint32_t i)
{
	return &s->ring[(s->first + i) & (s->room - 1)];
}

enum insert { INSERTED, INSERTED_OVERLAP, INSERT_LATE };

enum insert segments_insert(struct segments *s, const struct segment *seg);
void segments_pop(struct segments *s); /* the first one */
/* Gives up the gap behind 'frontier', if there is one. Returns its bytes. */
uint64_t segments_skip(struct segments *s);

/* What one end has done with a message. */
struct leg {
	int64_t begin_ns, end_ns;
	uint64_t bytes;
	uint32_t pid, tid, calls;
};

struct request;

struct flow_message {
	uint64_t begin, end;
	struct flow_header header;
	struct request *request; /* NULL: of no request */
	struct leg legs[2];      /* SENT, RECEIVED */
};

/* An end of a half: its calls, and how far they have been worked off. */
struct side {
	struct segments segments;
	uint32_t node;     /* FLOW_NO_NODE: not known */
	bool absent;       /* nothing waits for it any more */
	bool ahead;        /* much of it waits for the other end */
	uint32_t attached; /* segments whose bytes belong to messages now */
	uint64_t attached_to, covered;
	bool touched;     /* of the segment at 'attached': it has bytes of a message */
	uint32_t message; /* index of the first one that does not end before attached_to */
};

/* One direction of a life. */
struct half {
	struct flow_life *life;
	struct side side[2]; /* SENT, RECEIVED */
	bool based;
	uint64_t latest; /* the last position seen, to unwrap the next */
	uint32_t bound;  /* receives that have been bound, or given up */
	uint32_t source; /* the first send that the next receive may have bytes of */

	/* Messages that are known, up to framed_to. */
	bool in_step;
	uint64_t framed_to, candidate;
	struct flow_message *messages; /* a ring as in struct segments */
	uint32_t first, n, room;
	bool continues; /* the last one continues in a further fragment */
};

static inline struct flow_message *message_at(const struct half *h, uint32_t i)
{
	return &h->messages[(h->first + i) & (h->room - 1)];
}

/* A connection from one handshake to its end, as far as it can be told. half[0]: from the end with
 * the lower address. */
struct flow_life {
	struct flow_life *next; /* of the same addresses, later */
	struct connection *connection;
	uint64_t number;
	uint32_t refs[2];                /* descriptors at each end */
	bool attached[2];                /* this end has made calls */
	bool closed[2];                  /* ... and closed it */
	uint32_t open;                   /* requests in the table */
	bool waits;                      /* one end has closed it; it is in the list of those */
	struct flow_life *older, *newer; /* of that list */
	struct half half[2];
};

struct end_address {
	uint8_t host[16];
	uint16_t port;
} __attribute__((packed));

struct connection {
	struct end_address ends[2];
	uint32_t node; /* of loopback addresses; else FLOW_NO_NODE */
	uint32_t refs; /* descriptors */
	struct flow_life *lives;
};

/* What a descriptor is to lives.c: its number is the descriptor's mark. */
struct endpoint {
	struct connection *connection; /* NULL: no TCP connection */
	struct flow_life *life;
	uint32_t node;
	uint8_t end; /* which of the connection's */
	bool free;
};

struct disk {
	struct flow_disk pub;
	uint64_t send;   /* the thread's send that follows it */
	int64_t seen_ns; /* merged time when it came */
	bool doubtful;   /* more than one request fitted it by content */
	bool passed;     /* its thread has answered a request since that came after it */
};

/* A thread of a node. */
struct thread {
	uint32_t tid, node;
	uint64_t calls;
	uint64_t actions;   /* how often it has moved on */
	uint64_t cause_set; /* 'actions' when 'cause' was set */
	uint64_t sends;     /* calls that sent something, so far */
	struct disk *disks; /* not yet of a request, from first_disk on, by their ends */
	uint32_t first_disk, n_disks, disk_room;
	uint32_t disks_look; /* so many are looked through for what is of no use any more */
	uint64_t cause;      /* FUSE request that it is at; 0: none */
	/* The FUSE request that it has read and not answered, if it is the only one. If it
	 * answers it itself, then whatever it sent in between was for it. */
	uint64_t hand;
	uint32_t hands;           /* that it has read, and nobody answered */
	struct request *returned; /* it took this request's answer last */
	struct fuse *fuses; /* application: FUSE requests that wait for its call, newest first */
};

static inline struct disk *disk_at(const struct thread *t, uint32_t i)
{
	return &t->disks[t->first_disk + i];
}

struct fuse {
	struct flow_fuse pub;
	char *path; /* of 'pub' */
	uint64_t serial;
	uint32_t node;
	struct fuse *chain;            /* an older one of the same key */
	struct fuse *older, *newer;    /* by age */
	struct thread *thread;         /* in whose list it is, or NULL */
	struct fuse *next;             /* of that list */
	bool begun, answered, settled; /* settled: its call is known, or will not be */
	uint32_t open;                 /* requests under way */
	/* Was it answered by the thread that had it in hand? Requests that wait to know. */
	bool resolved, alone, ending;
	struct request *maybes, **maybes_end;
	uint32_t n_maybes;
	uint32_t reader; /* the thread that has read it, while it is counted in its 'hands' */
	struct request *held, **held_end;
	uint64_t length; /* of its header */
	int64_t over_ns; /* merged time when it had ended */
};

struct request {
	struct flow_request pub;
	struct request *chain;           /* an older one of the same key */
	struct request *older, *newer;   /* by age or last use */
	struct request *elder, *younger; /* of all whose disk calls are not decided */
	struct request *next_undecided;
	uint64_t number, wait_for; /* undecided until all up to that number have ended */
	bool undecided;
	bool looked; /* for a FUSE request by size */
	struct request *next_held;
	struct half *half; /* of its call */
	uint64_t life;     /* its number */
	uint64_t cause;
	uint64_t maybe;    /* the FUSE request that its thread had in hand; counted in its 'open' */
	uint32_t messages; /* that one of the ends has not passed yet */
	bool has_call, has_answer;
	bool joined;           /* its answer was known before its call */
	bool tabled;           /* further messages of its id are its own */
	bool waiting;          /* for what the thread that took its answer does next */
	struct thread *thread; /* that one */
	/* Its thread sent it when it had just taken that one's answer, of a cause not yet known. */
	struct request *previous;
	uint32_t followers; /* whose previous one it is */
	struct flow_disk *disks;
	uint32_t disk_room;
	int64_t begun_ns, used_ns; /* merged time */
};

struct log {
	struct stream *stream;
	struct stream_item *item; /* the next one; NULL: at the end */
	uint32_t node;
	int64_t key_ns;
	enum stream_owner owner;
	bool storage; /* a storage folder or device is known */
	char *cut;    /* why it ended early, or NULL */
};

struct flow_node {
	char *name;
	char arch[16]; /* of its logs */
	uint32_t open_logs;
	uint32_t ahead;     /* sides of this node that are far ahead of the other end */
	int64_t hint_ns;    /* its clock minus a common one, to merge by */
	bool serves;        /* it has received calls */
	bool has_fuse;      /* a process on it reads /dev/fuse */
	struct map threads; /* by tid */
	struct thread *last;
};

/* Bounds on clock(b) - clock(a), a < b. */
struct pair {
	bool has_low, has_high;
	int64_t low_ns, high_ns; /* at 'at_low', 'at_high', on a's clock */
	int64_t at_low_ns, at_high_ns;
	int64_t narrowest_ns;
	struct track *track; /* NULL: no messages yet */
};

struct bin {
	double busy_s;
	double entered;
};

struct flow {
	struct flow_spec spec;
	struct flow_sink sink;
	struct flow_counts counts;
	struct log *logs;
	size_t n_logs;
	struct table_reader *reader; /* of a flow that reads no logs */
	struct flow_node *nodes;
	size_t n_nodes;
	int64_t now_ns;    /* merged time */
	uint64_t turns;    /* how often an end has got, or is no longer, ahead */
	int64_t looked_ns; /* when clocks and ages were examined */
	struct err *error;
	int rc; /* of the sink */

	struct map connections;     /* by hash of ends and node */
	struct endpoint *endpoints; /* by mark */
	uint32_t n_endpoints, endpoint_room, free_endpoint;
	uint64_t lives;
	struct flow_life *oldest_life, *newest_life; /* that one end has closed */
	size_t n_waiting_lives;
	uint64_t held;

	struct map table; /* open ones, by hash of life, direction and id: the newest of a key */
	size_t n_tabled;
	struct request *oldest, *newest;   /* of all in the table */
	struct request *eldest, *youngest; /* of all whose disk calls are not decided */
	struct request *undecided, **undecided_end;
	size_t n_undecided;
	uint64_t born;
	size_t n_disks; /* disk calls that wait with threads */
	size_t n_requests;
	uint64_t done;

	struct map fuses; /* by hash of node and unique: the newest of a key */
	size_t n_fuses;
	struct fuse *oldest_fuse, *newest_fuse;
	uint64_t fuse_serial;
	struct fuse **by_serial; /* the last fuse_size of them, a power of two */
	size_t fuse_size;

	struct pair *pairs; /* a * n_nodes + b, a < b */
	struct bin *bins;   /* second, layer, node */
	int32_t n_seconds;
};

/* ---- flow.c ---- */

const char *flow_thread_name(const struct flow *f, uint32_t node, uint32_t pid, uint32_t tid);
/* Forgets nodes and what is known of them. */
void flow_nodes_clear(struct flow *f);

/* ---- table.c ---- */

int table_run(struct flow *f, struct err *e);
void table_reader_free(struct table_reader *r);

/* ---- lives.c ---- */

struct endpoint *endpoint_of(struct flow *f, const struct log *l, const struct fd_state *fd);
void endpoint_closed(struct flow *f, const struct fd_state *fd);
/* Of a slot of flow.connections; NULL: it is free. */
struct connection *connection_at(const struct flow *f, size_t slot);
/* Finds the life that a call of an endpoint without one belongs to, on this half and side. */
void life_attach(
	struct flow *f, struct endpoint *ep, int half, int which, const struct record_call *c);
void wire_free(struct flow *f);

/* ---- wire.c ---- */

/* Binds what can be bound now. */
void wire_progress(struct flow *f, struct half *h);
void wire_moved(struct flow *f, struct log *l, const struct record_call *c, struct endpoint *ep,
	bool send, struct thread *t);
/* Nothing below this position will come of this end; UINT64_MAX: nothing at all. */
uint64_t wire_settled(const struct flow *f, const struct half *h, int which);
void wire_node_ended(struct flow *f, uint32_t node);
void wire_force(struct flow *f); /* all logs are ahead of each other: give something up */
void wire_finish(struct flow *f);

/* ---- frame.c ---- */

void frame_segment(struct flow *f, struct half *h, int which, const struct segment *seg);
void frame_advance(struct flow *f, struct half *h);
void frame_attach(struct flow *f, struct half *h, int which);
void frame_retire(struct flow *f, struct half *h);

/* ---- request.c ---- */

/* How long a request that has its answer waits for further messages of its id, in merged time since
 * its last one: longer than a disk keeps them waiting. */
#define FLOW_LINGER_NS 10000000000

void request_framed(struct flow *f, struct half *h, struct flow_message *m);
void request_named(struct flow *f, struct request *r, const struct flow_header *h);
/* A message's first byte was sent; its last byte was received. */
void request_sending(
	struct flow *f, struct half *h, struct flow_message *m, const struct segment *seg);
void request_received(
	struct flow *f, struct half *h, struct flow_message *m, const struct segment *seg);
/* Both ends are done with it. */
void request_settled(struct flow *f, struct half *h, struct flow_message *m);
void request_released(struct flow *f, struct request *r); /* its thread has gone on */
/* What it followed need not wait for its cause any more. */
void request_let_go(struct flow *f, struct request *r);
void request_caused(struct flow *f, struct request *r, struct fuse *u, enum flow_how how);
void requests_expire(struct flow *f);
void requests_of_life_end(struct flow *f, const struct flow_life *l);
void requests_finish(struct flow *f);
void requests_free(struct flow *f);

/* ---- request_end.c ---- */

/* It has ended: nothing further will be of it. */
void request_finish(struct flow *f, struct request *r);
void requests_decide(struct flow *f, bool all); /* those that need not wait any more */
/* Whether 'u' has caused it is known now. */
void request_resolved(struct flow *f, struct request *r, struct fuse *u);
void request_emit(struct flow *f, struct request *r, struct fuse *u); /* and frees it */

/* ---- thread.c ---- */

#define NO_THREAD UINT32_MAX /* has what threads that ended have left */

struct thread *thread_of(struct flow *f, uint32_t node, uint32_t tid);
struct thread *thread_find(const struct flow *f, uint32_t node, uint32_t tid);
/* Of a slot of flow_node.threads; NULL: it is free. */
struct thread *thread_at(const struct map *threads, size_t slot);
void thread_gone(struct flow *f, uint32_t node, uint32_t tid);
void thread_moves_on(struct flow *f, struct thread *t);
void thread_disk(struct flow *f, struct log *l, struct stream_item *item, struct thread *t);
void thread_records_lost(struct flow *f, uint32_t node);
void threads_finish(struct flow *f); /* no thread continues */
void threads_free(struct flow *f);

/* ---- disks.c ---- */

void disks_put(struct flow *f, struct thread *t, const struct disk *d);
/* What is to become of the disk calls before a thread's send number 'send': they are the request's;
 * they belong to what the thread sends next; they belong to nothing that is known. */
void thread_give(struct flow *f, struct thread *t, uint64_t send, struct request *r);
void thread_defer(struct thread *t, uint64_t send);
void thread_drop(struct flow *f, struct thread *t, uint64_t send, enum flow_reason why);
/* Index of the first one that ended after a moment of the node's clock. */
uint32_t disks_after(const struct thread *t, int64_t ns);
/* Takes one out that a request has now. */
void disks_remove(struct flow *f, struct thread *t, uint32_t i);
/* Those of a thread that ends wait with another one, as far as content may tell whose they are. */
void disks_bequeath(struct flow *f, struct thread *t, struct thread *heir);
/* Of a request that cannot have caused it. */
void disks_return(struct flow *f, uint32_t node, const struct flow_disk *d);
void disks_clear(struct flow *f, struct thread *t); /* nobody takes the others */
/* A disk call that no request takes: counted, and told to the sink. */
void disk_alone(struct flow *f, uint32_t node, const struct flow_disk *d, enum flow_reason why);

/* ---- content.c ---- */

/* May a data call be its own that no thread ties to it? */
bool content_may_have(const struct request *r);
/* Gives the request, which is over as all are that came before its end, the data call that only it
 * can have caused. */
void content_disks(struct flow *f, struct request *r);
/* Do messages of so many bytes carry the data, and hardly anything else? */
bool content_carries(uint64_t message_bytes, uint32_t messages, int64_t data);

/* ---- fuse.c ---- */

void fuse_record(struct flow *f, const struct log *l, const struct record_fuse *r);
void fuse_daemon(struct flow *f, const struct log *l, const struct record_call *c, struct thread *t,
	bool reads);
void fuse_call(struct flow *f, const struct log *l, struct stream_item *item, struct thread *t);
void fuse_thread_gone(struct flow *f, struct thread *t);
struct fuse *fuse_by_serial(const struct flow *f, uint64_t serial);
void fuse_hold(struct flow *f, struct fuse *u, struct request *r);
/* May the request count on it (fuse.maybes)? */
bool fuse_may_have_caused(struct flow *f, struct fuse *u, const struct request *r);
/* The only FUSE request under way that 'bytes' of a call, or of an answer, fit. */
struct fuse *fuse_by_size(struct flow *f, const struct request *r);
void fuse_check(struct flow *f, struct fuse *u); /* done? */
void fuses_expire(struct flow *f);
void fuses_finish(struct flow *f);
void fuses_free(struct flow *f);

/* ---- clocks.c ---- */

void clock_edge(struct flow *f, uint32_t from, uint32_t to, int64_t sent_ns, int64_t received_ns);
/* The interval of clock(b) - clock(a) at a moment of a's clock, directly or over other nodes. */
bool clock_pair(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, int64_t *low, int64_t *high);
void clocks_update(struct flow *f); /* nodes' hints */

/* ---- track.c ---- */

/* A bound on clock(b) - clock(a) at a moment of a's clock; 'drift': 1e-6 is 1 ppm. */
void track_edge(struct track **t, int64_t at_ns, bool is_low, int64_t value_ns, double drift);
bool track_at(struct track *t, int64_t at_ns, double drift, struct flow_offset *out);
size_t track_steps(struct track *t, double drift, const struct flow_step **out);

/* A window of time and its tightest bounds, from below and above, to be kept and given back. */
struct track_row {
	int64_t number, at_ns[2], value_ns[2];
	bool has[2];
};
int64_t track_length(const struct track *t); /* of a window; 0: there is no track */
bool track_get(const struct track *t, size_t i, struct track_row *out); /* false: no i-th */
/* In their order. false: this was not given by track_get. */
bool track_put(struct track **t, int64_t length_ns, const struct track_row *row);

/* ---- depth.c ---- */

/* A span of a node, on its clock. */
void depth_span(
	struct flow *f, enum flow_source source, uint32_t node, int64_t begin_ns, int64_t end_ns);
void depth_request(struct flow *f, const struct flow_request *r);
void depth_message(struct flow *f, const struct half *h, const struct flow_message *m);

#endif
