#ifndef CULPRIT_DIAG_THROTTLE_SUPERVISOR_IMPL_H
#define CULPRIT_DIAG_THROTTLE_SUPERVISOR_IMPL_H

#include <linux/seccomp.h>

#include "diag/throttle/family.h"
#include "diag/throttle/supervisor.h"

enum {
	DELAYED_EVERY_NS = 1000000,  /* between readings of all threads while one is delayed */
	LEARNING_EVERY_NS = 4000000, /* likewise in a learning run while no call stops */
	GIVE_UP = 3,                 /* undecided delays in a row */
};

struct supervisor {
	char *root;
	int socket, listener;
	struct seccomp_notif *notif; /* of the running kernel's size */
	struct seccomp_notif_resp *resp;
	size_t notif_size, resp_size;
	struct family family;
	int64_t patience_ns;
	int64_t ahead_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	/* Learned limits. */
	struct known_limits *known;
	size_t n_known;
	struct known_limits most;          /* of all threads */
	int64_t most_quiet_ns, longest_ns; /* longest: time without an operation */
	/* The present run. */
	const char *name;
	unsigned long period, count;
	pid_t tid; /* the thread to delay; 0: not seen yet */
	bool delayed;
	uint64_t id; /* the call that waits */
	/* CLOCK_MONOTONIC. quiet_ns: all threads are blocked since then (0: they are not);
	 * still_ns: the last reading at which they still were. */
	int64_t since_ns, read_ns, quiet_ns, still_ns;
	struct throttle_delay *delays;
	size_t n_delays, undecided;
	unsigned in_a_row;
	bool gave_up;
	char why[160], undecided_why[160]; /* of the last reading; of the last undecided delay */
	/* The delayed thread's next call ends the span of its last delay. */
	bool span_open;
};

/* Reads all threads except the delayed one. True: they are blocked, and were at the last
 * reading. */
bool watch_all(struct supervisor *s, int64_t now_ns);
/* Call after watch_all, if no call has stopped since. Are the threads blocked for long enough? */
bool watch_quiet(struct supervisor *s, int64_t now_ns);
/* A thread begins an operation: closes the measurement since its last one. */
void watch_operation(struct supervisor *s, struct family_member *m, int64_t now_ns);
/* The thread's process is about to end. */
void watch_exit(struct supervisor *s, struct family_member *m, int64_t now_ns);
/* A call or a change ends the quiet time. */
void watch_disturbed(struct supervisor *s);
/* Stores the limits of the learning run. */
void watch_learned(struct supervisor *s);
void watch_new_run(struct supervisor *s);

/* Is it a call on a file at or below the root? */
bool call_on_file(const char *root, pid_t tid, const struct seccomp_data *d, int kind, bool *below);

#endif
