#ifndef CULPRIT_DIAG_THROTTLE_SUPERVISOR_IMPL_H
#define CULPRIT_DIAG_THROTTLE_SUPERVISOR_IMPL_H

#include <linux/seccomp.h>

#include "diag/throttle/family.h"
#include "diag/throttle/supervisor.h"

enum {
	DELAYED_EVERY_NS = 1000000,  /* between readings of all threads, while one is delayed */
	LEARNING_EVERY_NS = 4000000, /* so, of a run that learns, while nothing stops */
	GIVE_UP = 3,                 /* delays in a row that were not decided */
};

struct supervisor {
	char *root;
	int socket, listener;
	struct seccomp_notif *notif; /* of the size that the kernel has */
	struct seccomp_notif_resp *resp;
	size_t notif_size, resp_size;
	struct family family;
	int64_t patience_ns;
	int64_t ahead_ns; /* CLOCK_REALTIME before CLOCK_MONOTONIC */
	/* What runs that learn have shown. */
	struct known_limits *known;
	size_t n_known;
	struct known_limits most;          /* of all threads */
	int64_t most_quiet_ns, longest_ns; /* longest: time without an operation */
	/* This run. */
	const char *name;
	unsigned long period, count;
	pid_t tid; /* of the thread to delay; 0: not seen yet */
	bool delayed;
	uint64_t id; /* the call that waits */
	/* CLOCK_MONOTONIC. All are blocked since quiet_ns (0: they are not); still_ns: they were so
	 * the last time that somebody looked. */
	int64_t since_ns, read_ns, quiet_ns, still_ns;
	struct throttle_delay *delays;
	size_t n_delays, undecided;
	unsigned in_a_row;
	bool gave_up;
	char why[160], told[160]; /* of the last reading; of the last delay that was not decided */
	/* The call that comes next from the delayed thread ends the span of its last one. */
	bool span_open;
};

/* Reads all threads but the delayed one; true: they are blocked, and were so the last time. */
bool watch_all(struct supervisor *s, int64_t now_ns);
/* After that, if no call has stopped in the meantime: are they so for long enough? */
bool watch_quiet(struct supervisor *s, int64_t now_ns);
/* An operation of a thread begins: what it did since the last one has ended. */
void watch_operation(struct supervisor *s, struct family_member *m, int64_t now_ns);
/* Its process is about to end. */
void watch_exit(struct supervisor *s, struct family_member *m, int64_t now_ns);
/* Something happened: what was quiet is no more. */
void watch_disturbed(struct supervisor *s);
/* The limits of the run that learns. */
void watch_learned(struct supervisor *s);
void watch_new_run(struct supervisor *s);

/* Is the call on a file, and is that at or below the root? */
bool call_on_file(const char *root, pid_t tid, const struct seccomp_data *d, int kind, bool *below);

#endif
